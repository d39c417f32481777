//! Where the settings are, and how are they read and changed?

use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use super::prowess;

#[test]
fn config_is_read_and_changed_without_losing_comments() {
    let home =
        prowess().config("{\n  // limits\n  skills: { limits: { maxSkillsInPrompt: 5 } }, // end\n  mystery: 1,\n}\n");
    let found = home.run("config get skills.limits.maxSkillsInPrompt --json").ok().json();
    assert_eq!(
        (&found["value"], &found["layer"], &found["origin"]),
        (&json!(5), &json!("file"), &json!("$HOME/.openclaw/openclaw.json"))
    );
    assert_eq!(home.run("config get skills.limits.maxSkillsPromptChars").ok().stdout(), "30000\n");
    home.run("config get skills.limits.maxSkillsPromptChars").ok().err_has("default");
    home.run("config get nothing.here").code(1).err_has("is not set");
    home.run("config set skills.entries.github.enabled false").ok();
    home.run("config set skills.limits.maxSkillsInPrompt lots").code(1);
    home.run("config unset skills.limits").ok();
    let text = std::fs::read_to_string(home.path(".openclaw/openclaw.json")).expect("a file");
    for part in ["// limits", "// end", "mystery", "github"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("maxSkillsInPrompt"), "{text}");
    home.run("skills list").ok().err_has("1 warning"); // the unknown key does not stop anything
    assert_eq!(home.run("config path").ok().stdout(), "$HOME/.openclaw/openclaw.json\n");
}

#[test]
fn a_broken_configuration_is_a_clear_failure() {
    let home = prowess().config("{ skills: {\n");
    home.run("skills list").code(1).err_has("openclaw.json").lacks("panicked");
    let failure = home.run("skills list --json").code(1).json();
    assert_eq!(failure["ok"], false);
    home.run("config path").ok();
}

#[test]
fn other_places_can_be_named() {
    let home = prowess()
        .skill("elsewhere/skills/e", "E.", "")
        .skill("more/x", "X.", "")
        .file("other.json", "{ skills: { load: { extraDirs: ['~/more'] } } }");
    home.run("skills list --workspace $HOME/elsewhere").ok().out_has("e").lacks("x ┆");
    let list = home.run("skills list --json --config $HOME/other.json").ok().json();
    assert_eq!((&list["skills"][0]["name"], &list["skills"][0]["source"]), (&json!("x"), &json!("openclaw-extra")));
    home.run("--profile work config path").ok().out_has("$HOME/.openclaw-work/openclaw.json");
    home.run("skills list --dev --profile x").code(2);
}

#[test]
fn setup_prepares_a_workspace_and_never_a_skills_folder() {
    let home = prowess();
    home.run("setup --workspace $HOME/desk").ok().out_has("created AGENTS.md").out_has("created BOOTSTRAP.md");
    assert!(home.path("desk/SOUL.md").is_file() && !home.path("desk/skills").exists());
    assert_eq!(home.run("config get agents.defaults.workspace").ok().stdout(), "$HOME/desk\n");
    std::fs::remove_file(home.path("desk/BOOTSTRAP.md")).expect("removed");
    std::fs::write(home.path("desk/AGENTS.md"), "mine").expect("written");
    home.run("setup").ok().lacks("created");
    assert_eq!(std::fs::read_to_string(home.path("desk/AGENTS.md")).expect("a file"), "mine");
    assert!(!home.path("desk/BOOTSTRAP.md").exists());
}

#[test]
fn a_setting_that_restricts_is_never_loosened_by_a_slip() {
    for value in ["'no'", "0", "{}", "['x']"] {
        let config = format!("{{ skills: {{ entries: {{ a: {{ enabled: {value} }} }} }} }}");
        let home = prowess().config(&config).skill("a", "A.", "");
        let list = home.run("skills list --json").ok().json();
        assert_eq!(
            (&list["skills"][0]["disabled"], list["problems"].as_array().map(Vec::len)),
            (&json!(true), Some(1)),
            "{value}"
        );
    }
    let bundled =
        |config: &str| prowess().config(config).skill("no-skills/b", "B.", "").run("skills list --json").ok().json();
    assert_eq!(bundled("{ skills: { allowBundled: 3 } }")["skills"][0]["eligible"], false);
    let agents = prowess().config("{ agents: { list: [{ id: 'main', skills: false }] } }").skill("a", "A.", "");
    assert_eq!(agents.run("skills check --json").ok().json()["modelVisible"], json!([]));
}

#[test]
fn a_home_that_is_not_text_is_refused_and_nothing_is_written_beside_it() {
    use std::os::unix::ffi::OsStrExt;
    let home = prowess();
    let odd = home.home().join(std::ffi::OsStr::from_bytes(b"n\xff"));
    std::fs::create_dir(&odd).expect("a folder");
    let run =
        std::process::Command::new(env!("CARGO_BIN_EXE_prowess")).args(["skills", "check"]).env("HOME", &odd).output();
    let output = run.expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the path in HOME is not UTF-8"));
    let beside = std::fs::read_dir(home.home()).expect("a folder").flatten();
    assert!(beside.filter(|entry| entry.file_name().to_string_lossy().starts_with('n')).count() <= 2);
}

#[test]
fn a_configuration_file_that_was_named_must_exist() {
    let home = prowess();
    for line in ["skills list", "run hi", "doctor --json", "gateway run", "prompt"] {
        let output = home.run(&format!("{line} --config /nope.json")).code(1);
        let told = format!("{}{}", output.stdout(), output.stderr());
        assert!(told.contains("the configuration file /nope.json does not exist"), "{output}");
    }
    home.run("config set --config $HOME/new.json skills.load.watch false").ok();
    home.run("config get --config $HOME/new.json skills.load.watch").ok().out_has("false");
}

#[test]
fn a_value_comes_from_stdin_and_json5_is_understood() {
    let home = prowess();
    home.run("config set skills.entries.x.apiKey").code(2).err_has("no value").err_has("--stdin");
    for line in ["config set skills.entries.x.apiKey --stdin", "config set skills.entries.x.apiKey -"] {
        let mut child = home
            .command()
            .args(line.split(' '))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        child.stdin.take().expect("a pipe").write_all(b"s3cret\n").expect("written");
        assert!(child.wait().expect("it ends").success(), "{line}");
        let shown = home.run("config get skills.entries.x.apiKey --show-secrets").ok();
        assert_eq!(shown.stdout(), "s3cret\n", "{line}");
        home.run("config unset skills.entries.x.apiKey").ok();
    }
    home.run("config set skills.entries.x '{enabled: false, env: {A: \"b\"},}'").ok();
    home.run("config get skills.entries.x.enabled").ok().out_has("false");
    home.run("config set skills.entries yes")
        .code(1)
        .err_has("must be an object")
        .err_has("for example: prowess config set");
    home.run("config set skills.entries '{x:'").code(1).err_has("not valid JSON5");
    home.run("config set gateway.port abc").code(1).err_has("must be a whole number from 0 to 65535");
    home.run("config set gateway.bind mars").code(1).err_has("or an IP address");
    home.run("config set gateway.http.cors true").code(1).err_has("`gateway.http.cors` is not a known key");
    home.run("config set tools.web.search true").code(1).err_has("`tools.web` is not a known key");
    home.run("config set agents.defaults.model.primry a/b")
        .code(1)
        .err_has("did you mean `agents.defaults.model.primary`?");
    home.run("config get skills.lod.watch").code(1).err_has("did you mean `skills.load.watch`?");
    home.run("config keys sandbox.kind").ok().out_has("tools.exec.sandbox.kind").lacks("skills.load.watch");
    home.run("skills list --agent nobody").code(1).err_has("there is no agent `nobody`");
}
