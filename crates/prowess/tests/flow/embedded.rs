//! The same without a key, a configuration or a server: the planner in the program.

use super::MESSAGE;
use super::home::{FORECAST, Line, bare};

/// What the hint says to type.
const LEASE: &str = "prowess leases allow --skill weather --host wttr.in";

#[test]
fn a_new_user_sees_a_skill_picked_read_and_explained() {
    let home = bare();
    let output = home.go(&format!("run {MESSAGE}")).ok();
    for line in
        ["The skill \"weather\" fits", "curl ", "Shanghai", "This is the embedded planner, not a language model"]
    {
        assert!(output.stdout().contains(line), "expected: {line}\n{output}");
    }
    output.err_has("read ~/").err_has("● weather (read)").lacks(FORECAST);
    assert!(!home.path(".openclaw/audit/exec.jsonl").exists(), "nothing was run");
    let told = home.go(&format!("run --json {MESSAGE}")).ok().json();
    let meta = &told["result"]["meta"];
    assert_eq!((&meta["agentMeta"]["provider"], &meta["skills"][0]["name"]), (&"prowess".into(), &"weather".into()));
    home.go("sessions show").ok().out_has(MESSAGE).out_has("● weather (read)");
}

#[test]
fn asked_to_act_it_runs_the_command_under_the_policy() {
    let home = bare();
    let refused = home.go(&format!("run --act {MESSAGE}")).code(1);
    refused.lacks("Ran:").lacks(FORECAST).out_has(LEASE).lacks("approvals allow").err_has("exec curl").err_has("✗");
    home.go(LEASE.strip_prefix("prowess ").expect("a command")).ok();
    let output = home.go(&format!("run --act {MESSAGE}")).ok();
    output.out_has(FORECAST).out_has("Shanghai").err_has("exec curl");
    // A command that fails fails the run, and lacking network is explained with what to type.
    let alone = bare().program("tools/curl", "#!/bin/sh\nexit 6\n");
    alone.go(LEASE.strip_prefix("prowess ").expect("a command")).ok();
    let failed = alone.go(&format!("run --act {MESSAGE}")).code(1);
    failed
        .out_has("The command failed with exit code 6")
        .out_has("prowess config set skills.entries.weather.sandbox.network true")
        .lacks("Ran:");
    let events = home.go(&format!("run --act --events {MESSAGE}")).ok();
    events.out_has("\"stream\":\"skill\"").out_has("\"name\":\"exec\"").out_has(FORECAST);
}
