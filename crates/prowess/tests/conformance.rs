//! The claims of `docs/conformance.md` that take the whole command, and the check that none is without a test.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use prowess_testkit::Prowess;
use serde_json::{Value, json};

const CLAIMS: &str = include_str!("../../../docs/conformance.md");

fn bare() -> Prowess {
    Prowess::new(env!("CARGO_BIN_EXE_prowess"))
}

fn prowess() -> Prowess {
    // An empty folder in place of the bundled skills, so that a test shows only what it made.
    bare().tree("no-skills/").env("OPENCLAW_BUNDLED_SKILLS_DIR", "$HOME/no-skills")
}

/// Names and sources of all skills, in order.
fn listed(home: &Prowess) -> Vec<(String, String)> {
    let list = home.run("skills list --json").ok().json();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let skills = list["skills"].as_array().expect("skills").iter();
    skills.map(|skill| (text(&skill["name"]), text(&skill["source"]))).collect()
}

fn workspace(home: &Prowess, flags: &str) -> String {
    home.run(&format!("skills check --json {flags}")).ok().json()["workspaceDir"].as_str().expect("a path").to_owned()
}

#[test]
fn m_disc_02_extra_folders_may_begin_with_a_tilde_or_be_relative() {
    let home = prowess().config("{ skills: { load: { extraDirs: ['~/more', 'near'] } } }").cwd("desk");
    let home = home.skill("more/a", "A.", "").skill("desk/near/b", "B.", "");
    let extra = |name: &str| (name.to_owned(), "openclaw-extra".to_owned());
    assert_eq!(listed(&home), [extra("a"), extra("b")]);
}

#[test]
fn m_disc_05_the_variable_decides_where_bundled_skills_are() {
    let home = bare().skill("mine/own", "Own.", "").env("OPENCLAW_BUNDLED_SKILLS_DIR", "$HOME/mine");
    assert_eq!(listed(&home), [("own".to_owned(), "openclaw-bundled".to_owned())]);
}

// M-DISC-07, M-DISC-24
#[test]
fn m_disc_07_24_the_skills_inside_the_program_have_the_peers_names() {
    let home = bare();
    let names = ["github", "healthcheck", "session-logs", "skill-creator", "tmux", "weather"];
    assert_eq!(listed(&home), names.map(|name| (name.to_owned(), "openclaw-bundled".to_owned())));
    let info = home.run("skills info weather --json").ok().json();
    let file = info["filePath"].as_str().expect("a path");
    assert!(file.starts_with("$HOME/.openclaw/bundled-skills/") && file.ends_with("/weather/SKILL.md"), "{file}");
    home.run("skills check").ok();
}

// M-DISC-08, M-CONF-15
#[test]
fn m_disc_08_m_conf_15_managed_skills_are_in_the_state_directory() {
    let managed = |home: Prowess| home.run("skills check --json").ok().json()["managedSkillsDir"].clone();
    assert_eq!(managed(prowess()), "$HOME/.openclaw/skills");
    let older = || prowess().env("CLAWDBOT_STATE_DIR", "$HOME/old");
    assert_eq!(managed(older()), "$HOME/old/skills");
    assert_eq!(managed(older().env("OPENCLAW_STATE_DIR", "$HOME/new")), "$HOME/new/skills");
    let home = prowess().env("OPENCLAW_STATE_DIR", "$HOME/new").skill("new/skills/m", "M.", "");
    assert_eq!(listed(&home), [("m".to_owned(), "openclaw-managed".to_owned())]);
    // The folders of other versions are named, and nothing in them is loaded.
    let home = prowess().skill(".openclaw/managed-skills/a", "A.", "").skill(".clawdbot/skills/b", "B.", "");
    assert_eq!(listed(&home), []);
    home.run("skills check").ok().out_has("~/.openclaw/managed-skills").out_has("~/.clawdbot/skills");
}

#[test]
fn m_disc_25_bundled_skills_declare_their_needs() {
    let home = bare();
    let needs = |name: &str| {
        let info = home.run(&format!("skills info {name} --json")).ok().json();
        info["requirements"]["bins"].clone()
    };
    assert_eq!(needs("weather"), json!(["curl"]));
    assert_eq!(needs("github"), json!(["gh"]));
    assert_eq!(needs("session-logs"), json!(["jq", "rg"]));
    assert_eq!(needs("tmux"), json!(["tmux"]));
    assert_eq!((needs("healthcheck"), needs("skill-creator")), (json!([]), json!([])));
}

#[test]
fn m_gate_17_check_and_explain_show_every_objection() {
    let extra = "metadata: {openclaw: {requires: {bins: [absent], env: [UNSET]}}}";
    let home = prowess().skill("x", "X.", extra);
    for command in ["skills check", "skills explain x"] {
        home.run(command).ok().out_has("programs not found: absent").out_has("variables not set: UNSET");
    }
}

#[test]
fn m_filt_07_a_topic_has_a_list_of_its_own() {
    let topics = r#"{ channels: { telegram: { groups: { "42": { topics: { "7": { skills: ["b"] } } } } } } }"#;
    let home = prowess().config(topics).skill("a", "A.", "").skill("b", "B.", "");
    home.run("skills prompt --channel telegram.groups.42.topics.7")
        .ok()
        .out_has("<name>b</name>")
        .lacks("<name>a</name>");
    home.run("skills prompt --channel telegram.groups.42").ok().out_has("<name>a</name>").out_has("<name>b</name>");
}

#[test]
fn m_snap_08_a_fingerprint_outlives_the_process() {
    let home = prowess().skill("a", "A.", "");
    let print = |home: &Prowess| home.run("skills prompt --json").ok().json()["fingerprint"].clone();
    let first = print(&home);
    let again = home.skill("a", "A.", "");
    assert!(first.is_string() && print(&again) == first);
}

// M-PROMPT-03, M-PROMPT-05, M-PROMPT-16, M-PROMPT-19: see also cli::prompt_prints_exactly_what_a_model_gets
#[test]
fn m_prompt_03_the_body_is_never_in_the_prompt() {
    let text = "---\nname: a\ndescription: d\nlicense: MIT\n---\nThe secret of the body.\n";
    let home = prowess().file(".openclaw/workspace/skills/a/SKILL.md", text);
    home.run("skills prompt").ok().out_has("<name>a</name>").lacks("secret of the body").lacks("MIT");
}

#[test]
fn m_conf_01_settings_are_in_openclaw_json_in_json5() {
    let home = prowess().file(".openclaw/openclaw.yml", "skills: { entries: { a: { enabled: false } } }\n");
    assert_eq!(home.run("config path").ok().stdout(), "$HOME/.openclaw/openclaw.json\n");
    home.run("config get skills.entries.a.enabled").code(1);
    let home = home.config("{ // a comment\n  skills: { entries: { a: { enabled: false, }, }, }, }");
    assert_eq!(home.run("config get skills.entries.a.enabled").ok().stdout(), "false\n");
}

// M-CONF-04, M-CONF-05
#[test]
fn m_conf_04_05_watching_and_its_two_names() {
    let get = |config: &str, key: &str| {
        let found = prowess().config(config).run(&format!("config get skills.load.{key} --json")).ok().json();
        found["value"].clone()
    };
    assert_eq!((get("{}", "watch"), get("{}", "watchDebounceMs")), (json!(true), json!(250)));
    assert_eq!(get("{ skills: { load: { watch: false } } }", "watch"), false);
    assert_eq!(get("{ skills: { load: { watchDebounceMs: 9 } } }", "watchDebounceMs"), 9);
    assert_eq!(get("{ skills: { load: { debounceMs: 8 } } }", "watchDebounceMs"), 8);
}

#[test]
fn m_conf_09_each_field_of_an_entry_does_something_and_others_are_reported() {
    let needy = "metadata: { openclaw: { primaryEnv: KEY, requires: { env: [KEY, CITY], config: [skills.entries.a.config.on] } } }\n";
    let check = |fields: &str| {
        let home = prowess().config(&format!("{{ skills: {{ entries: {{ a: {{ {fields} }} }} }} }}"));
        let home = home.skill(".openclaw/workspace/skills/a", "A.", needy);
        let check = home.run("skills check --json").ok().json();
        let missing = check["missingRequirements"][0]["missing"].clone();
        (
            check["eligible"] == json!(["a"]),
            check["disabled"] == json!(["a"]),
            missing,
            check["summary"]["warnings"].clone(),
        )
    };
    let lacks = |list: &str, name: &str| {
        let mut lists = json!({"bins": [], "anyBins": [], "env": [], "config": [], "os": []});
        lists[list] = json!([name]);
        lists
    };
    let (key, env, config) = ("apiKey: 'k'", "env: { CITY: 'Rome' }", "config: { on: true }");
    assert_eq!(check(&format!("enabled: true, {key}, {env}, {config}")), (true, false, Value::Null, json!(0)));
    assert_eq!(check(&format!("enabled: false, {key}, {env}, {config}")), (false, true, Value::Null, json!(0)));
    assert_eq!(check(&format!("{env}, {config}")).2, lacks("env", "KEY"));
    assert_eq!(check(&format!("{key}, {config}")).2, lacks("env", "CITY"));
    assert_eq!(check(&format!("{key}, {env}")).2, lacks("config", "skills.entries.a.config.on"));
    assert_eq!(check(&format!("{key}, {env}, {config}, other: 1")), (true, false, Value::Null, json!(1)));
}

#[test]
fn m_filt_01_without_a_list_every_bundled_skill_is_allowed() {
    let blocked = |home: &Prowess| {
        let list = home.run("skills list --json").ok().json();
        let skills = list["skills"].as_array().expect("skills").clone();
        let bundled = skills.iter().filter(|skill| skill["bundled"] == true).count();
        assert_eq!(bundled, 6, "all that are inside the program");
        skills.iter().filter(|skill| skill["blockedByAllowlist"] == true).count()
    };
    assert_eq!(blocked(&bare()), 0);
    assert_eq!(blocked(&bare().config("{ skills: { load: {} } }")), 0);
    assert_eq!(blocked(&bare().config("{ skills: { allowBundled: ['weather'] } }")), 5);
}

#[test]
fn m_prompt_23_name_and_description_then_the_body_then_other_files() {
    let skill = "---\nname: deep\ndescription: FIRST-LEVEL\n---\nSECOND-LEVEL, see notes.md\n";
    let place = ".openclaw/workspace/skills/deep";
    let home = prowess().file(&format!("{place}/SKILL.md"), skill).file(&format!("{place}/notes.md"), "THIRD-LEVEL");
    let read = |file: &str| {
        let path = home.path(&format!("{place}/{file}")).display().to_string();
        json!({"calls": [{"name": "read", "arguments": {"path": path}}]})
    };
    let turns = json!([read("SKILL.md"), read("notes.md"), {"text": "done"}]).to_string();
    let home = home.file("turns.json", turns);
    let levels = |text: &str| ["FIRST-LEVEL", "SECOND-LEVEL", "THIRD-LEVEL"].map(|level| text.contains(level));
    assert_eq!(levels(home.run("prompt").ok().stdout()), [true, false, false], "always");
    home.run("run hi --session levels --model scripted:$HOME/turns.json").ok();
    let stored = home.run("sessions export levels --format jsonl").ok();
    let lines = stored.stdout().lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let results: Vec<_> =
        lines.filter(|line| line["role"] == "toolResult").map(|line| levels(&line.to_string())).collect();
    assert_eq!(
        results,
        [[true, true, false], [false, false, true]],
        "the body when it is chosen, a file when it is needed"
    );
}

// M-CONF-10, M-CONF-11, M-CONF-12, M-CONF-14
#[test]
fn m_conf_10_11_12_14_which_workspace_an_agent_has() {
    assert_eq!(workspace(&prowess(), ""), "$HOME/.openclaw/workspace");
    let list = "list: [{ id: 'main', default: true }, { id: 'ops', workspace: '~/ops' }, { id: 'more' }]";
    let home = prowess().config(&format!("{{ agents: {{ defaults: {{ workspace: '~/desk' }}, {list} }} }}"));
    assert_eq!(workspace(&home, ""), "$HOME/desk");
    assert_eq!(workspace(&home, "--agent ops"), "$HOME/ops");
    let home = home.env("OPENCLAW_STATE_DIR", "$HOME/state").config("{}");
    let home = home.file("state/openclaw.json", format!("{{ agents: {{ {list} }} }}"));
    assert_eq!(workspace(&home, "--agent more"), "$HOME/state/workspace-more");
}

#[test]
fn m_conf_13_a_profile_has_a_workspace_of_its_own() {
    let of = |profile: &str| workspace(&prowess().env("OPENCLAW_PROFILE", profile), "");
    assert_eq!(of("work"), "$HOME/.openclaw/workspace-work");
    assert_eq!(of("default"), "$HOME/.openclaw/workspace");
}

#[test]
fn m_conf_16_paths_in_settings_may_begin_with_a_tilde() {
    let home =
        prowess().config("{ agents: { defaults: { workspace: '~/a/../desk' } } }").skill("desk/skills/x", "X.", "");
    assert_eq!((workspace(&home, ""), listed(&home).len()), ("$HOME/desk".to_owned(), 1));
}

// M-CONF-17, M-CLI-03, M-CLI-04
#[test]
fn m_conf_17_m_cli_03_04_setup_and_onboard_prepare_the_workspace_they_are_given() {
    for command in ["setup", "onboard"] {
        let home = prowess();
        let told = home.run(&format!("{command} --workspace $HOME/desk")).ok();
        for file in ["AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md", "USER.md", "HEARTBEAT.md", "BOOTSTRAP.md"] {
            assert!(home.path("desk").join(file).is_file() && told.stdout().contains(file), "{file}\n{told}");
        }
        assert!(!home.path("desk/skills").exists());
        assert_eq!(home.run("config get agents.defaults.workspace").ok().stdout(), "$HOME/desk\n");
    }
}

// M-CLI-01, M-CLI-02, M-PROMPT-09
#[test]
fn m_cli_01_02_m_prompt_09_check_audits_what_is_in_the_prompt_and_what_is_not() {
    let limits = "{ skills: { limits: { maxSkillsInPrompt: 2 }, entries: { off: { enabled: false } } } }";
    let home = prowess()
        .config(limits)
        .skill("a", "A.", "")
        .skill("b", "B.", "")
        .skill("c", "C.", "")
        .skill(".openclaw/skills/a", "Shadowed.", "")
        .skill("hidden", "H.", "disable-model-invocation: true")
        .skill("off", "O.", "")
        .skill("unmet", "U.", "metadata: {openclaw: {requires: {bins: [absent]}}}")
        .file(
            ".openclaw/workspace/skills/mended/SKILL.md",
            "---\nname: mended\ndescription: Use when: it rains.\ndisable-model-invocation: true\n---\n",
        );
    home.run("skills prompt").ok().out_has("Note: 2 of 3 skills are listed").lacks("<name>c</name>");
    let list = home.run("skills list").ok();
    list.err_has("the model is not told about 1 skill").err_has("run prowess skills check for details");
    let check = home.run("skills check").ok().out_has("1 left out: c").out_has("2 hidden from the model");
    let check = check.out_has("1 replaced by another skill of the same name");
    check.out_has("~/.openclaw/workspace/skills/mended/SKILL.md");
    let report = home.run("skills check --json").ok().json();
    assert_eq!(report["modelVisible"], json!(["a", "b", "c"]));
    assert_eq!((&report["prompt"]["dropped"], &report["disabled"]), (&json!(["c"]), &json!(["off"])));
    let hidden = |name: &str| json!({"name": name, "reason": "disable-model-invocation"});
    assert_eq!(report["notInjected"], json!([hidden("hidden"), hidden("mended")]));
    assert!(report["problems"].to_string().contains("mended/SKILL.md"), "{report}");
    assert_eq!(report["missingRequirements"][0]["name"], "unmet");
    assert_eq!(report["summary"]["shadowed"], 1);
    let names = ["d", "e", "f", "g", "h"];
    let home = names.into_iter().fold(home, |home, name| home.skill(name, "D.", ""));
    home.run("skills check").ok().out_has("6 left out: c, d, e, f, … (2 more)");
    home.run("skills check --all").ok().out_has("6 left out: c, d, e, f, g, h");
}

#[test]
fn m_loop_20_no_hook_script_is_run_and_the_setting_is_reported() {
    let model = "--model scripted:$HOME/turns.json";
    let home = prowess()
        .program("hook.sh", "#!/bin/sh\ntouch $HOME/ran\n")
        .file("turns.json", json!([{"text": "done"}, {"text": "done"}]).to_string())
        .config(
            "{ hooks: { internal: { enabled: true, handlers: [{ event: 'command:new', module: '$HOME/hook.sh' }, \
             { event: 'session:start', module: '$HOME/hook.sh' }] } } }",
        );
    home.run(&format!("run hi {model}")).ok();
    home.run(&format!("run '/new hi' {model}")).ok();
    assert!(!home.path("ran").exists());
    home.run("skills check").ok().out_has("Settings without effect").out_has("hooks has no effect in prowess");
    let report = home.run("skills check --json").ok().json();
    assert_eq!(report["unusedSettings"][0]["path"], "hooks");
    home.run("doctor").out_has("hooks");
}

// M-ROUTE-01, M-ROUTE-02: there is no routing yet, so the settings are unknown and the catalogue is complete.
#[test]
fn m_route_01_02_without_routing_the_catalogue_is_complete() {
    let home = prowess().skill("a", "A.", "").skill("skill-router", "R.", "");
    let shown = |home: &Prowess| home.run("skills check --json").ok().json()["modelVisible"].clone();
    assert_eq!(shown(&home), json!(["a", "skill-router"]));
    let home = home.config("{ skills: { dynamic: true, router: 'skill-router' } }");
    assert_eq!(shown(&home), json!(["a", "skill-router"]));
    let check = home.run("skills check").ok().out_has("skills.dynamic: unknown key, ignored");
    check.out_has("skills.router: unknown key, ignored");
}

// M-INST-01, M-INST-02, M-INST-03, M-INST-04, M-INST-05, M-INST-06
#[test]
fn m_inst_01_02_03_04_05_06_a_person_is_told_which_command_installs_a_program() {
    let told = |install: &str, settings: &str, brew: bool| {
        let extra = format!("metadata: {{openclaw: {{requires: {{bins: [absent]}}, install: [{install}]}}}}");
        let home = prowess().skill("x", "X.", &extra).config(&format!("{{ skills: {{ install: {{ {settings} }} }} }}"));
        let home = if brew { home.bin("brew") } else { home };
        let info = home.run("skills explain x --json").ok().json();
        info["fixes"][0]["command"].as_str().unwrap_or_else(|| panic!("{info}")).to_owned()
    };
    let (formula, package) = ("{kind: brew, formula: f}", "{kind: node, package: p}");
    assert_eq!(told(formula, "", true), "brew install f");
    for (manager, command) in [
        ("npm", "npm install -g --ignore-scripts p"),
        ("pnpm", "pnpm add -g --ignore-scripts p"),
        ("yarn", "yarn global add --ignore-scripts p"),
        ("bun", "bun add -g --ignore-scripts p"),
    ] {
        assert_eq!(told(package, &format!("nodeManager: '{manager}'"), false), command);
    }
    assert_eq!(told("{kind: go, module: m.example/x}", "", false), "go install m.example/x");
    assert_eq!(told("{kind: uv, package: u}", "", false), "uv tool install u");
    assert_eq!(told("{kind: download, url: 'https://h.example/a'}", "", false), "curl -LO https://h.example/a");
    let both = format!("{package}, {formula}");
    assert_eq!(told(&both, "preferBrew: true", true), "brew install f");
    assert_eq!(told(&both, "preferBrew: false", true), "npm install -g --ignore-scripts p");
}

#[cfg(target_os = "linux")]
#[test]
fn m_exec_08_what_is_meant_for_a_container_never_runs_outside_of_one() {
    // Whether this machine has an engine or not, it has no such container.
    let sandbox = "{ kind: 'docker', container: 'prowess-no-such-container' }";
    let home = prowess().config(&format!("{{ tools: {{ exec: {{ security: 'full', sandbox: {sandbox} }} }} }}"));
    let home = home.env("PATH", "/usr/bin:/bin").cwd("work");
    home.run("exec run -- touch made").code(1);
    assert!(!home.path("work/made").exists());
    let home = home.config("{ tools: { exec: { security: 'full' } } }");
    home.run("exec run -- touch made").ok();
    assert!(home.path("work/made").exists(), "without one it is a child of ours");
}

// M-LOOP-01, M-LOOP-15
#[cfg(target_os = "linux")]
#[test]
fn m_loop_01_15_a_skill_is_picked_and_read_or_called_by_its_command() {
    let text = "---\nname: cellar\ndescription: Which wines are in the cellar. Use when someone asks about wine.\n---\n\
                # Cellar\n\n## List the wines\n\n```bash\ncat wines.txt\n```\n";
    let home = prowess()
        .env("PATH", "/usr/bin:/bin")
        .file(".openclaw/workspace/skills/cellar/SKILL.md", text)
        .file(".openclaw/workspace/wines.txt", "Riesling");
    let uses = |result: &Value| {
        let meta = &result["result"]["meta"];
        let pick = |list: &str, key: &str| -> Vec<String> {
            let items = meta[list].as_array().expect("a list").iter();
            items.map(|item| item[key].as_str().expect("a word").to_owned()).collect()
        };
        (pick("skills", "how"), pick("calls", "tool"))
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let result = home.run("run --json --act --yes-read-only 'which wine is in the cellar?'").ok().json();
    assert_eq!(uses(&result), (words(&["read"]), words(&["read", "exec"])));
    assert!(result["result"]["payloads"].to_string().contains("Riesling"), "{result}");
    let result = home.run("run --json --new '/cellar list'").ok().json();
    assert_eq!(uses(&result), (words(&["called", "read"]), words(&["read"])));
    let result = home.run("run --json --new 'what is the meaning of life?'").ok().json();
    assert_eq!(uses(&result), (words(&[]), words(&[])), "or none");
}

#[test]
fn m_loop_03_how_much_of_a_file_is_in_the_prompt_is_configured() {
    let home = prowess().file(".openclaw/workspace/SOUL.md", "x".repeat(500));
    home.run("prompt").ok().out_has(&"x".repeat(500));
    let home = home.config("{ agents: { defaults: { bootstrapMaxChars: 100 } } }");
    home.run("prompt").ok().out_has(&"x".repeat(70)).lacks(&"x".repeat(71));
    let home = home.config("{ agents: { defaults: { bootstrapTotalMaxChars: 10 } } }");
    home.run("prompt").ok().lacks("xx");
}

/// The rows of the claims: id, decision, test.
fn rows() -> Vec<[&'static str; 3]> {
    let cells = |line: &'static str| line.trim_matches('|').split(" | ").map(str::trim).collect::<Vec<_>>();
    let rows = CLAIMS.lines().filter(|line| line.starts_with("| M-")).map(cells);
    rows.map(|row| match row[..] {
        [id, _, decision, test] => [id, decision, test],
        _ => panic!("not a row of four cells: {row:?}"),
    })
    .collect()
}

/// The texts of all sources that a claim can name, by the name of the file.
fn sources() -> Vec<(String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of crates").to_owned();
    let mut folders: Vec<PathBuf> = fs::read_dir(crates)
        .expect("a folder")
        .flat_map(|entry| ["src", "tests"].map(|part| entry.as_ref().expect("an entry").path().join(part)))
        .collect();
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        // A crate need not have tests.
        for path in fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                // A file of claims may be split by subject.
                let is_part = path.parent().is_some_and(|folder| folder.ends_with("conformance"));
                let name =
                    if is_part { "conformance".into() } else { path.file_stem().expect("a name").to_string_lossy() };
                found.push((name.into_owned(), fs::read_to_string(&path).expect("a source")));
            }
        }
    }
    found
}

/// Whether `function` is a test in this source, and one that is run.
fn has_test(source: &str, function: &str) -> bool {
    let (plain, is_async) = (format!("fn {function}() {{"), format!("async fn {function}() {{"));
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let is_it = |line: &str| line == plain || line == is_async;
    lines.iter().enumerate().filter(|(_, line)| is_it(line)).any(|(at, _)| {
        let above = lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        let marks: Vec<&&str> = above.filter(|line| line.starts_with("#[")).collect();
        let is_marked = marks.iter().any(|mark| mark.starts_with("#[test]") || mark.starts_with("#[tokio::test"));
        is_marked && !marks.iter().any(|mark| mark.starts_with("#[ignore"))
    })
}

#[test]
fn a_function_that_is_not_run_as_a_test_is_none() {
    let source = "#[test]\nfn a() {\n}\nfn b() {\n}\n#[test]\n#[ignore = \"slow\"]\nfn c() {\n}\n\
                  /// D.\n#[tokio::test]\nasync fn d() {\n}\n";
    assert_eq!(["a", "b", "c", "d", "e"].map(|name| has_test(source, name)), [true, false, false, true, false]);
}

#[test]
fn every_claim_has_an_id_of_its_own_and_a_test_that_exists() {
    let (rows, sources) = (rows(), sources());
    assert!(rows.len() > 200 && !CLAIMS.contains("TODO"), "{} rows", rows.len());
    let mut seen = HashSet::new();
    for [id, decision, test] in rows {
        let well_formed =
            id.rsplit_once('-').is_some_and(|(_, number)| number.len() == 2 && number.parse::<u8>().is_ok());
        assert!(well_formed && seen.insert(id), "{id} is malformed or there twice");
        assert!(["follow", "differ", "later:"].iter().any(|word| decision.starts_with(word)), "{id}: {decision}");
        if test == "–" {
            assert!(decision.starts_with("later:"), "{id} is promised and has no test");
            continue;
        }
        for named in test.split(", ") {
            let (file, function) = named.trim_matches('`').split_once("::").unwrap_or_else(|| panic!("{id}: {test}"));
            let is_there = |(name, text): &(String, String)| name == file && has_test(text, function);
            assert!(sources.iter().any(is_there), "{id}: there is no test {named}");
        }
    }
}

/// A test that is named after claims, or is preceded by their ids, is the one that the table points to for each.
#[test]
fn the_tests_and_the_table_name_each_other() {
    let sources: String =
        sources().into_iter().filter(|(name, _)| name == "conformance").map(|(_, text)| text).collect();
    for [id, _, test] in rows().into_iter().filter(|[.., test]| test.contains("conformance::")) {
        let (area, number) = id.rsplit_once('-').expect("an id");
        let in_name = test.contains(&area.replace('-', "_").to_lowercase()) && test.contains(&format!("_{number}_"));
        assert!(in_name, "{id}: {test} does not name it");
    }
    let ids: HashSet<&str> = rows().into_iter().map(|[id, ..]| id).collect();
    let comments = sources.lines().filter_map(|line| line.strip_prefix("// M-")).filter(|line| line.contains('-'));
    for id in comments.flat_map(|line| line.split(':').next().unwrap_or(line).split(", M-")) {
        assert!(ids.contains(format!("M-{id}").as_str()), "a test names M-{id}, which is no claim");
    }
}
