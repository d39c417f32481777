//! What does a person learn about a skill: is its name what it seems, and what would it use?

use prowess_testkit::Prowess;
use serde_json::{Value, json};

fn prowess() -> Prowess {
    let bundled = Prowess::new(env!("CARGO_BIN_EXE_prowess")).tree("no-skills/");
    bundled.env("OPENCLAW_BUNDLED_SKILLS_DIR", "$HOME/no-skills")
}

fn manifest(name: &str, description: &str) -> String {
    format!("---\nname: \"{name}\"\ndescription: {description}\n---\n# Text\n")
}

#[test]
fn names_that_mislead_are_reported_everywhere() {
    let place = ".openclaw/workspace/skills";
    let home = prowess().skill("weather", "The weather.", "");
    home.run("skills list").ok().lacks("warning");
    let home = home
        .file(&format!("{place}/w2/SKILL.md"), manifest("we\u{430}ther", "The weather."))
        .file(&format!("{place}/pwn/SKILL.md"), manifest("../../../etc/pwn", "d"))
        .file(&format!("{place}/long/SKILL.md"), manifest("long", &"word ".repeat(4_000)));
    home.run("skills list").ok().out_has("etc-pwn").lacks("../etc").err_has("3 warnings");
    let check = home.run("skills check --json").ok().json();
    let mut kinds: Vec<&str> =
        check["problems"].as_array().expect("problems").iter().filter_map(|one| one["kind"].as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["long-description", "lookalike", "unsafe-name"]);
    home.run("skills check").ok().out_has("(with U+0430) looks like `weather`").out_has("the model sees 1024 of them");
    home.run("skills explain w2").ok().out_has("looks like `weather`");
    home.run("skills explain etc-pwn").ok().out_has("is a path; the skill is called `etc-pwn`");
    home.run("skills explain long").ok().out_has("takes more than its share of the prompt");
    let prompt = home.run("skills prompt").ok();
    assert!(prompt.stdout().len() < 4_000, "{}", prompt.stdout().len());
    prompt.out_has("<name>etc-pwn</name>").lacks("../../../etc");
}

#[test]
fn capabilities_are_shown_and_misspelt_ones_are_reported() {
    let manifest =
        "metadata: {openclaw: {capabilities: {network: [{host: a.example}], sockets: [/run/x.sock], netwrok: []}}}";
    let home = prowess().skill("tool", "Tools.", manifest);
    let told = home.run("skills explain tool").ok();
    told.out_has("did you mean `network`?").out_has("reach a.example: its commands ask for it");
    home.run("leases allow --skill tool --host a.example").ok();
    home.run("config set skills.entries.tool.capabilities '{\"sockets\": [\"/run/x.sock\"], \"keeps_runing\": true}'")
        .ok();
    let told = home.run("skills explain tool").ok();
    told.out_has("reach a.example: allowed by a lease").out_has("/run/x.sock: allowed in the settings");
    home.run("skills check --all").out_has("capabilities.keeps_runing` is unknown; did you mean `keepsRunning`?");
    home.run("doctor").out_has("did you mean `keepsRunning`?");
    home.run("skills explain tool --json").ok().out_has("\"capabilities\"");
}

#[test]
fn a_proposal_works_when_it_is_typed() {
    let text = "---\nname: acme\ndescription: Things.\n---\n```bash\ncurl -s -H \"Authorization: $ACME_API_KEY\" \
                https://api.acme.io/v1/things\n```\n";
    let home = prowess().file(".openclaw/workspace/skills/acme/SKILL.md", text).env("ACME_API_KEY", "canary");
    let told = home.run("skills explain acme --json").ok().lacks("canary").json();
    let expected = json!({"network": [{"host": "api.acme.io"}], "env": ["ACME_API_KEY"]});
    assert_eq!(told["proposal"]["capabilities"], expected);
    let typed = told["proposal"]["command"].as_str().expect("a command").to_owned();
    home.run("skills explain acme").ok().out_has(&typed);
    let lacks = |home: &Prowess| {
        let judged = home.run("exec check --json --skill acme -- 'curl -s https://api.acme.io/v1/things'").ok().json();
        (judged["wants"]["keys"].clone(), judged["remedies"].to_string().contains("ACME_API_KEY"))
    };
    assert_eq!(lacks(&home), (json!([]), false), "nothing declares the key");
    home.run(typed.strip_prefix("prowess ").expect("our own command")).ok();
    assert_eq!(lacks(&home), (json!(["ACME_API_KEY"]), false), "it is given");
    let after = home.run("skills explain acme --json").ok().json();
    assert_eq!(after["proposal"], Value::Null);
    home.run("skills explain acme").ok().out_has("ACME_API_KEY from host").lacks("withheld").lacks(&typed);
    // Who declares something, or uses nothing, gets no proposal.
    let home = home.skill("plain", "Nothing.", "").skill("said", "d", "metadata: {openclaw: {capabilities: {}}}");
    for name in ["plain", "said"] {
        assert_eq!(home.run(&format!("skills explain {name} --json")).ok().json()["proposal"], Value::Null);
    }
}
