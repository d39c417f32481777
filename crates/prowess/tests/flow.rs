//! The flow that prowess is for: a person says something, the model sees the skills, reads the one it needs, runs its
//! commands under the policy, and answers.

#![cfg(target_os = "linux")]

#[path = "flow/embedded.rs"]
mod embedded;
#[path = "flow/home.rs"]
pub(crate) mod home;
#[path = "flow/keys.rs"]
mod keys;
#[path = "flow/secrets.rs"]
mod secrets;
#[path = "flow/sessions.rs"]
mod sessions;
#[path = "flow/slash.rs"]
mod slash;
#[path = "flow/steps.rs"]
mod steps;

use home::{APIS, Line, talking_to};
use prowess_testkit::{Chunking, ModelServer};
use steps::forecaster;

const MESSAGE: &str = "check the weather in Shanghai";

/// How an answer is asked for.
#[derive(Debug, Clone, Copy)]
enum Shown {
    Text,
    Json,
    Events,
}

/// The flow, step by step, with one wire format, one way to cut it into pieces, and one way to show it.
fn check_the_weather(api: &str, chunking: Chunking, shown: Shown) {
    let server = ModelServer::answering(chunking, forecaster);
    let home = talking_to(&server, api);
    home.go("approvals allow curl").ok();
    let option = match shown {
        Shown::Text => "",
        Shown::Json => "--json",
        Shown::Events => "--events",
    };
    let output = home.go(&format!("run {option} {MESSAGE}")).ok();

    let requests = server.requests();
    let [first, second, third] = requests.as_slice() else { panic!("{} requests\n{output}", requests.len()) };
    steps::the_catalogue_is_in_the_prompt(first);
    steps::the_message_is_there(first, MESSAGE);
    steps::the_model_has_read_the_skill(second, &home);
    steps::the_command_has_run(third, &home);
    match shown {
        Shown::Text => steps::the_answer_is_printed(&output),
        Shown::Json => drop(steps::the_result_is_told(&output)),
        Shown::Events => steps::the_events_are_told(&output),
    }
}

#[test]
fn check_the_weather_over_anthropic_messages() {
    check_the_weather(APIS[0], Chunking::Whole, Shown::Text);
    check_the_weather(APIS[0], Chunking::Bytes(1), Shown::Json);
    check_the_weather(APIS[0], Chunking::Random(1), Shown::Events);
}

#[test]
fn check_the_weather_over_openai_completions() {
    check_the_weather(APIS[1], Chunking::Whole, Shown::Json);
    check_the_weather(APIS[1], Chunking::Bytes(1), Shown::Events);
    check_the_weather(APIS[1], Chunking::Random(2), Shown::Text);
}

#[test]
fn check_the_weather_over_openai_responses() {
    check_the_weather(APIS[2], Chunking::Whole, Shown::Events);
    check_the_weather(APIS[2], Chunking::Bytes(1), Shown::Text);
    check_the_weather(APIS[2], Chunking::Random(3), Shown::Json);
}

#[test]
fn without_leave_the_command_does_not_run_and_the_model_is_told() {
    for api in APIS {
        let server = ModelServer::answering(Chunking::Whole, forecaster);
        let home = talking_to(&server, api);
        let output = home.go(&format!("run {MESSAGE}")).ok();
        let requests = server.requests();
        steps::the_model_has_read_the_skill(&requests[1], &home);
        steps::the_command_was_refused(&requests[2]);
        output
            .err_has("exec curl -s wttr.in/Shanghai")
            .err_has("✗")
            .out_has("prowess leases allow --skill weather --host wttr.in");
    }
}

#[test]
fn the_configuration_can_give_leave_too() {
    let server = ModelServer::answering(Chunking::Whole, forecaster);
    let mut config = home::config(&server.base_url(), APIS[0]);
    config["tools"] = serde_json::json!({"exec": {"security": "full"}});
    let home = home::with_skill().config(&config.to_string());
    let output = home.go(&format!("run {MESSAGE}")).ok();
    steps::the_command_has_run(&server.requests()[2], &home);
    steps::the_answer_is_printed(&output);
}
