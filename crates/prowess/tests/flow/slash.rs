//! The same by slash commands: through the model, and straight to the tool.

use prowess_testkit::{Chunking, Heard, ModelServer};

use super::home::{APIS, FORECAST, Line, talking_to};
use super::steps::{self, LOCATION, forecaster};

/// Says `message`, which calls on the weather skill, and checks that the model goes to it.
#[track_caller]
fn call_on_the_skill(message: &str, api: &str) {
    let server = ModelServer::answering(Chunking::Random(5), forecaster);
    let home = talking_to(&server, api);
    home.go("approvals allow curl").ok();
    let output = home.go(&format!("run '{message}'")).ok();
    let requests = server.requests();
    let Some(Heard::Person(asked)) = requests[0].heard().pop() else { panic!("no message") };
    assert!(asked.contains(LOCATION) && asked.contains("\"weather\"") && asked.ends_with(message), "{asked}");
    steps::the_model_has_read_the_skill(&requests[1], &home);
    steps::the_command_has_run(&requests[2], &home);
    output.out_has(FORECAST).err_has("● weather (called)");
    // What was put before the message is for the model alone.
    for line in ["sessions list", "sessions show", "sessions replay", "sessions export"] {
        let shown = home.go(line).ok();
        let text = format!("{}{}", shown.stdout(), shown.stderr());
        assert!(text.contains(message) && !text.contains("User request:"), "{line}\n{shown}");
    }
}

#[test]
fn a_slash_command_is_rewritten_with_the_location_of_its_skill() {
    for api in APIS {
        call_on_the_skill("/weather Shanghai", api);
    }
    call_on_the_skill("/skill weather Shanghai", APIS[1]);
}

#[test]
fn a_dollar_sign_calls_on_a_skill_too() {
    call_on_the_skill("ask $weather about Shanghai", APIS[0]);
}

#[test]
fn a_hidden_skill_is_not_in_the_catalogue_and_can_be_called_on() {
    let server = ModelServer::answering(Chunking::Whole, forecaster);
    let home = talking_to(&server, APIS[0]);
    let file = home.path(".openclaw/workspace/skills/weather/SKILL.md");
    let text = std::fs::read_to_string(&file).expect("the skill");
    let hidden = text.replacen("---\n", "---\ndisable-model-invocation: true\n", 1);
    std::fs::write(&file, hidden).expect("written");
    home.go("approvals allow curl").ok();
    let output = home.go("run '/weather Shanghai'").ok();
    let requests = server.requests();
    assert!(!requests[0].system().contains("weather"), "it is not offered");
    steps::the_model_has_read_the_skill(&requests[1], &home);
    steps::the_command_has_run(&requests[2], &home);
    output.out_has(FORECAST);
}

#[test]
fn a_dispatched_command_goes_straight_to_its_tool_under_the_same_policy() {
    let server = ModelServer::answering(Chunking::Whole, forecaster);
    let home = talking_to(&server, APIS[0]).skill("sky", "Looks up.", "command-dispatch: tool\ncommand-tool: exec");
    let refused = home.go("run '/sky curl -s wttr.in/Shanghai'").code(1);
    refused.err_has("nobody to ask").err_has("prowess leases allow --host wttr.in").lacks(FORECAST);
    home.go("leases allow --host wttr.in").ok();
    let output = home.go("run '/sky curl -s wttr.in/Shanghai'").ok();
    assert_eq!(output.stdout().trim_end(), format!("wttr.in/Shanghai: {FORECAST}"), "{output}");
    output.err_has("● sky (called directly)");
    let told = home.go("run --json '/sky curl -s wttr.in/Shanghai'").ok().json();
    assert_eq!(told["result"]["meta"]["skills"][0]["how"], "dispatched", "{told}");
    assert_eq!(server.requests().len(), 0, "the model has no part in it");
    // But it sees it afterwards.
    home.go("run --continue 'what did I do?'").ok();
    let heard = server.requests()[0].heard();
    assert!(heard.iter().any(|one| matches!(one, Heard::Result(text) if text.contains(FORECAST))), "{heard:?}");
}
