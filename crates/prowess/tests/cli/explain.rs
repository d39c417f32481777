//! Why is a skill missing, and what mends it?

use serde_json::json;

use super::prowess;

#[test]
fn explain_tells_what_stops_a_skill_and_ends_with_commands_that_mend_it() {
    let needs = r#"metadata: {"openclaw":{"primaryEnv":"X_KEY","requires":{"bins":["nope"],"env":["X_KEY"],"config":["channels.slack"]},"install":[{"kind":"node","package":"nope-cli","bins":["nope"]}]}}"#;
    let home = prowess().skill("x", "Does x.", needs).config("{ skills: { entries: { x: { enabled: false } } } }");
    let told = home.run("skills explain x").ok();
    for line in [
        "disabled in the configuration",
        "programs not found: nope",
        "variables not set: X_KEY",
        "prowess config set skills.entries.x.enabled true",
        "npm install -g --ignore-scripts nope-cli",
        "prowess config set skills.entries.x.apiKey\n",
        "prowess config set channels.slack VALUE",
    ] {
        assert!(told.stdout().contains(line), "{line}\n{told}");
    }
    assert_eq!(home.run("skills explain x --json").ok().json()["outcome"], "unavailable");
}

#[test]
fn the_commands_that_explain_gives_really_mend_it() {
    let needs = r#"metadata: {"openclaw":{"primaryEnv":"X_KEY","requires":{"env":["X_KEY"]}}}"#;
    let home =
        prowess().skill("x", "Does x.", needs).config("// mine\n{ skills: { entries: { x: { enabled: false } } } }");
    let story = home.run("skills explain x --json").ok().json();
    for fix in story["fixes"].as_array().expect("fixes") {
        let command = fix["command"].as_str().expect("a command").strip_prefix("prowess ").expect("one of ours");
        // At a terminal it asks for the value of a key.
        let value = if command.ends_with(".apiKey") { " secret-value" } else { "" };
        home.run(&format!("{command}{value}")).ok();
    }
    let story = home.run("skills explain x --json").ok().json();
    assert_eq!((&story["outcome"], &story["fixes"]), (&json!("visible"), &json!([])));
    let config = std::fs::read_to_string(home.path(".openclaw/openclaw.json")).expect("a file");
    assert!(config.starts_with("// mine"), "{config}");
    home.run("config get skills.entries.x.apiKey").ok().lacks("secret-value");
    home.run("skills explain x").ok().lacks("secret-value").out_has("X_KEY from apiKey");
}

#[test]
fn explain_names_what_a_skill_shadows_and_accounts_for_every_folder() {
    let home = prowess()
        .skill(".openclaw/skills/dup", "Managed.", "")
        .skill("dup", "Workspace.", "")
        .skill("hidden", "Hidden.", "disable-model-invocation: true")
        .file(".openclaw/workspace/skills/broken/SKILL.md", "# no frontmatter\n")
        .file(".openclaw/workspace/skills/near/skill.md", "---\ndescription: d\n---\n");
    home.run("skills explain dup").ok().out_has("shadows ~/.openclaw/skills/dup/SKILL.md (managed)");
    home.run("skills explain broken").ok().out_has("the file has no frontmatter").out_has("edit ");
    let account = home.run("skills explain --json").ok().json();
    let totals = json!({"candidates": 5, "visible": 1, "cut": 0, "hidden": 1, "unavailable": 0, "shadowed": 1, "overLimit": 0, "broken": 2});
    assert_eq!(account["totals"], totals);
    home.run("skills explain").ok().out_has("5 candidates = 1 offered + 1 hidden + 1 shadowed + 2 broken");
}

#[test]
fn explain_of_an_unknown_name_suggests_a_known_one() {
    let home = prowess().skill("git-hub", "x", "");
    home.run("skills explain github").code(1).err_has("did you mean `git-hub`?");
    home.run("skills info nope").code(1).err_has("there is no skill `nope`");
}

#[test]
fn check_exits_with_one_when_something_is_broken() {
    prowess().skill("fine", "Fine.", "").run("skills check").ok().out_has("1 ready");
    let home = prowess().file(".openclaw/workspace/skills/bad/SKILL.md", "---\nname: bad\n---\n");
    home.run("skills check").code(1).out_has("SKILL.md:1:1").out_has("the skill has no description").out_has("fix:");
    let report = home.run("skills check --json").code(1).json();
    assert_eq!(report["problems"][0]["kind"], "no-description");
    assert_eq!(report["summary"]["broken"], 1);
}

#[test]
fn a_mended_file_is_a_warning_and_not_a_failure() {
    let home = prowess().file(".openclaw/workspace/skills/m/SKILL.md", "---\nname: m\ndescription: Use when: x\n---\n");
    home.run("skills check").ok().out_has("contains a colon and is not quoted");
    home.run("skills list").ok().err_has("1 warning");
}

#[test]
fn metadata_that_cannot_be_read_holds_a_skill_back() {
    let home = prowess().skill("x", "Does x.", r#"metadata: {"openclaw": {"requires": "curl"}}"#);
    let skill = &home.run("skills list --json").ok().json()["skills"][0];
    assert_eq!((&skill["eligible"], &skill["objections"][0]["id"]), (&json!(false), &json!("unreadable")));
    home.run("skills prompt").ok().lacks("<name>x</name>");
    home.run("skills check").code(1);
}

#[test]
fn what_is_broken_and_the_exit_code_agree() {
    let home = prowess().tree(".openclaw/workspace/skills/dead/SKILL.md -> nowhere");
    home.run("skills check").code(1).out_has("1 broken");
    let near = prowess().file(".openclaw/workspace/skills/near/skill.md", "---\ndescription: d\n---\n");
    near.run("skills check").code(1).out_has("1 broken").out_has("rename it to SKILL.md");
    let many = prowess()
        .config("{ skills: { limits: { maxSkillsLoadedPerSource: 1 } } }")
        .skill("a", "A.", "")
        .skill("b", "B.", "");
    many.run("skills check").ok().out_has("1 not loaded: over a limit").lacks("broken");
    many.run("skills explain b")
        .ok()
        .out_has("over limit")
        .out_has("config set skills.limits.maxSkillsLoadedPerSource");
}
