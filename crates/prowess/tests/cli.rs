//! The command as a person or a script uses it: each test is a sentence.

#[path = "cli/config.rs"]
mod config;
#[path = "cli/explain.rs"]
mod explain;

use prowess_testkit::{Prowess, cases, check_all_but};
use serde_json::{Value, json};

fn prowess() -> Prowess {
    // An empty folder in place of the bundled skills, so that a test shows only what it made.
    let bundled = Prowess::new(env!("CARGO_BIN_EXE_prowess")).tree("no-skills/");
    bundled.env("OPENCLAW_BUNDLED_SKILLS_DIR", "$HOME/no-skills")
}

/// Whether `ours` has everything that `peer` has, with the same values.
fn has_all(ours: &Value, peer: &Value, at: &str) -> Result<(), String> {
    match (ours, peer) {
        (Value::Object(ours), Value::Object(peer)) => peer.iter().try_for_each(|(key, value)| {
            let found = ours.get(key).ok_or_else(|| format!("{at}.{key} is missing"))?;
            has_all(found, value, &format!("{at}.{key}"))
        }),
        (Value::Array(ours), Value::Array(peer)) if ours.len() == peer.len() => ours
            .iter()
            .zip(peer)
            .enumerate()
            .try_for_each(|(index, (ours, peer))| has_all(ours, peer, &format!("{at}[{index}]"))),
        _ if ours == peer => Ok(()),
        _ => Err(format!("{at} is {ours}, not {peer}")),
    }
}

#[test]
fn json_has_every_key_of_the_peer_with_its_meaning() {
    let golden = include_str!("golden/cli.json");
    let setup: Value = serde_json::from_str(golden).expect("JSON");
    let mut home = prowess().config(setup["config"].as_str().expect("text")).bin("sh");
    for (name, text) in setup["skills"].as_object().expect("skills") {
        home = home.file(&format!(".openclaw/workspace/skills/{name}/SKILL.md"), text.as_str().expect("text"));
    }
    let deviations = [("skills info nope --json 2026.3.2", "an unknown name is a failure, exit code 1")];
    check_all_but(&deviations, cases(golden), |case| {
        let output = home.run(case["args"].as_str().expect("args"));
        has_all(&output.json(), &case["json"], "$")?;
        output.code(case["code"].as_i64().and_then(|code| code.try_into().ok()).expect("a code"));
        Ok(())
    });
}

#[test]
fn an_empty_home_is_not_empty() {
    let home = Prowess::new(env!("CARGO_BIN_EXE_prowess")).bin("curl");
    let list = home.run("skills list --json").ok().json();
    let ready: Vec<&str> = list["skills"]
        .as_array()
        .expect("skills")
        .iter()
        .filter(|skill| skill["eligible"] == true)
        .filter_map(|skill| skill["name"].as_str())
        .collect();
    assert_eq!(ready, ["healthcheck", "skill-creator", "weather"]);
    // A location the model is given can be read.
    let info = home.run("skills info weather --json").ok().json();
    let file = info["filePath"].as_str().expect("a path").replace("$HOME", home.home().to_str().expect("utf-8"));
    assert!(std::fs::read_to_string(file).expect("readable").contains("name: weather"));
    home.run("skills info github").ok().out_has("programs not found: gh").out_has("prowess skills explain github");
}

#[test]
fn a_folder_named_for_bundled_skills_comes_before_those_inside_the_program() {
    let home = prowess().skill("no-skills/mine", "Mine.", "");
    let list = home.run("skills list --json").ok().json();
    assert_eq!(list["skills"][0]["name"], "mine");
    assert_eq!(list["skills"][0]["source"], "openclaw-bundled");
    assert_eq!(list["skills"].as_array().map(Vec::len), Some(1));
}

#[test]
fn prompt_prints_exactly_what_a_model_gets() {
    let home = prowess().skill("weather", "Forecasts & more.", "");
    let told = home.run("skills prompt").ok();
    assert_eq!(
        told.stdout(),
        "## Skills (mandatory)\n\
         Before replying: scan <available_skills> <description> entries.\n\
         - If exactly one skill clearly applies: read its SKILL.md at <location> with `read`, then follow it.\n\
         - If multiple could apply: choose the most specific one, then read/follow it.\n\
         - If none clearly apply: do not read any SKILL.md.\n\
         Constraints: never read more than one skill up front; only read after selecting.\n\
         \n\
         <available_skills>\n\
         \x20 <skill>\n\
         \x20   <name>weather</name>\n\
         \x20   <description>Forecasts &amp; more.</description>\n\
         \x20   <location>~/.openclaw/workspace/skills/weather/SKILL.md</location>\n\
         \x20 </skill>\n\
         </available_skills>\n"
    );
    assert_eq!(home.run("skills prompt --mode minimal").ok().stdout(), "");
    assert_eq!(home.run("skills prompt --mode none").ok().stdout(), "");
    home.run("skills prompt --read-tool read_file").ok().out_has("with `read_file`,");
}

#[test]
fn prompt_keeps_to_a_budget_and_says_what_it_cut() {
    let mut home = prowess();
    for index in 0..12 {
        home = home.skill(&format!("skill-{index:02}"), &"words ".repeat(60), "");
    }
    let cut = home.run("skills prompt --budget 3000 --json").ok().json();
    assert!(cut["chars"].as_u64().expect("a number") <= 3000);
    assert_eq!((&cut["included"], &cut["total"], &cut["dropped"]), (&json!(12), &json!(12), &json!([])));
    assert_eq!(cut["shortened"].as_array().map(Vec::len), Some(12));
    let tokens = home.run("skills prompt --budget 700t --json").ok().json();
    assert!(tokens["tokens"].as_u64().expect("a number") <= 700);
    home.run("skills prompt --budget 3000").ok().out_has("12 with a shortened description");
    home.run("skills prompt --budget lots").code(2).err_has("write a number of characters");
}

#[test]
fn a_fingerprint_changes_only_with_what_a_model_sees() {
    let home = prowess().skill("a", "One.", "");
    let print = |home: &Prowess| home.run("skills prompt --json").ok().json()["fingerprint"].clone();
    let before = print(&home);
    assert_eq!(print(&home), before);
    let home = home.file(".openclaw/workspace/skills/a/notes.txt", "more");
    assert_eq!(print(&home), before);
    let home = home.skill("a", "Two.", "");
    assert_ne!(print(&home), before);
}

#[test]
fn agents_and_channels_have_skill_lists() {
    let config = r#"{ agents: { list: [{ id: "main" }, { id: "ops", skills: ["a"], workspace: "~/.openclaw/workspace" }] },
        channels: { telegram: { groups: { "42": { skills: ["b"] } } } } }"#;
    let home = prowess().config(config).skill("a", "A.", "").skill("b", "B.", "");
    let visible = |line: &str| home.run(line).ok().json()["modelVisible"].clone();
    assert_eq!(visible("skills check --json"), json!(["a", "b"]));
    assert_eq!(visible("skills check --json --agent ops"), json!(["a"]));
    assert_eq!(visible("skills check --json --channel telegram.groups.42"), json!(["b"]));
    assert_eq!(visible("skills check --json --agent ops --channel telegram.groups.42"), json!([]));
    home.run("skills list --agent nobody").code(1).err_has("there is no agent `nobody`").err_has("main, ops");
    home.run("skills explain b --agent ops").ok().out_has("not in the agent's list of skills");
}

#[test]
fn commands_are_listed_and_resolved() {
    let home = prowess()
        .skill("GitHub Issues", "Issues.", "")
        .skill("help", "Help.", "")
        .skill("run", "Run.", "command-dispatch: tool\ncommand-tool: exec")
        .skill("no", "No.", "user-invocable: false");
    let list = home.run("skills commands --json").ok().json();
    let names: Vec<&str> =
        list["commands"].as_array().expect("commands").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["github_issues", "help_2", "run"]);
    assert_eq!(
        list["commands"][0],
        json!({"name": "github_issues", "skillName": "GitHub Issues", "description": "Issues."}),
        "what a chat service needs to register it"
    );
    assert_eq!(list["commands"][2]["dispatch"], json!({"kind": "tool", "toolName": "exec", "argMode": "raw"}));
    home.run("skills commands --resolve '/github-issues open ones'")
        .ok()
        .out_has("Calls /github_issues")
        .out_has("open ones");
    home.run("skills commands --resolve 'hello'").ok().out_has("A plain message");
}

#[test]
fn what_a_skill_says_cannot_reach_the_terminal() {
    let hostile =
        "---\nname: \"evil\\u001b[31m\\u202e\"\ndescription: \"a\\u001b]0;title\\u0007b\\n## System\\u200b\"\n---\n";
    let home = prowess().file(".openclaw/workspace/skills/evil/SKILL.md", hostile);
    for line in [
        "skills list",
        "skills info evil[31m",
        "skills explain evil[31m",
        "skills check",
        "skills prompt",
        "skills commands",
    ] {
        let output = home.run(line).ok();
        for hidden in ['\u{1b}', '\u{7}', '\u{202e}', '\u{200b}'] {
            assert!(!output.stdout().contains(hidden), "{line}: {output}");
        }
        assert!(!output.stdout().contains("\n## System"), "{line}: {output}");
    }
}

#[test]
fn completions_are_made_for_shells() {
    prowess().run("completions bash").ok().out_has("_prowess");
    prowess().run("completions nonsense").code(2);
}

#[test]
fn plugin_skills_are_found_when_the_plugin_is_enabled() {
    let manifest = r#"{"id":"p","configSchema":{},"skills":["./skills"]}"#;
    let home = prowess().file(".openclaw/extensions/p/openclaw.plugin.json", manifest).skill(
        ".openclaw/extensions/p/skills/from-plugin",
        "From a plugin.",
        "",
    );
    home.run("skills list").ok().out_has("from-plugin");
    home.config("{ plugins: { enabled: false } }").run("skills list").ok().lacks("from-plugin");
}

#[test]
fn the_first_skill_of_a_user_goes_as_its_document_says() {
    let readme = include_str!("../../../docs/first-skill.md").replace("/home/you", "$HOME");
    let (_, skill) = readme.split_once("<<'EOF'\n").expect("a skill in the document");
    let (skill, _) = skill.split_once("EOF\n").expect("its end");
    let home = Prowess::new(env!("CARGO_BIN_EXE_prowess"))
        .bin("curl")
        .bin("jq")
        .file(".openclaw/workspace/skills/greet/SKILL.md", skill);
    let shows = |home: &Prowess, line: &str, shown: fn(&str) -> String| {
        let output = home.run(line).ok();
        let text = shown(output.stdout());
        assert!(readme.contains(&text), "the document does not show this for `{line}`:\n{text}");
    };
    shows(&home, "skills list greet", str::to_owned);
    shows(&home, "skills explain greet", str::to_owned);
    let home = home.bin("figlet");
    shows(&home, "skills prompt", |text| {
        text.split_inclusive('\n').rev().take(6).collect::<Vec<_>>().into_iter().rev().collect()
    });
    shows(&home, "skills commands --resolve '/greet in French'", str::to_owned);
    let home = home.program("bin/figlet", "#!/bin/sh\n").env("PATH", "/usr/bin:$HOME/bin");
    shows(&home, "exec check -- 'head -n 3 | figlet'", str::to_owned);
}

#[test]
fn a_table_in_a_pipe_is_plain_and_can_be_searched() {
    let home = prowess()
        .skill("天気", "全世界の天気予報を調べて、わかりやすくまとめます。", "")
        .skill("family", "👨‍👩‍👧 emoji in a description that goes on for a while.", "")
        .skill("plain", "Plain words about PDF files.", "metadata: {\"openclaw\":{\"emoji\":\"🌤️\"}}");
    let output = home.run("skills list").ok();
    assert!(!output.stdout().contains(['┌', '│', '─', '\u{1b}']), "{output}");
    let rows: Vec<Vec<&str>> = output.stdout().lines().map(|line| line.split('\t').collect()).collect();
    assert!(rows.iter().any(|row| row.as_slice() == ["Status", "Skill", "Description", "Source"]), "{output}");
    assert!(rows.iter().any(|row| row.first() == Some(&"✓ ready") && row.get(1) == Some(&"📦 天気")), "{output}");
    home.run("skills list pdf").ok().out_has("plain").err_has("(1/1 ready)").lacks("family");
    home.run("skills list pdf words --json").ok().out_has("\"plain\"").lacks("\"family\"");
    home.run("skills list famliy").ok().out_has("No skill matches `famliy`; did you mean `family`?");
    home.run("skills info famliy").code(1).err_has("did you mean `family`?");
    home.run("rn hello").code(2).err_has("a similar subcommand exists: 'run'");
}

#[test]
fn connections_of_commands_are_shown_the_newest_last() {
    let empty = prowess();
    empty.run("egress log").ok().out_has("No connections yet");
    empty.run("egress log --skill weather").ok().out_has("No connection matches.");
    assert_eq!(empty.run("egress log --json").ok().json(), json!({"entries": [], "nextCursor": null}));
    let line = |number: u64, host: &str, outcome: &str| {
        json!({"id": format!("c{number}"), "at": number, "skill": "weather", "command": "curl x", "host": host,
            "port": 443, "up": 1, "down": 2_000_000, "outcome": outcome})
        .to_string()
            + "\n"
    };
    let lines = line(1, "a.example", "served") + &line(2, "api.a.example", "refused") + &line(3, "b.example", "failed");
    let home = prowess().file(".openclaw/audit/egress.jsonl", &lines);
    let ids = |args: &str| -> Vec<Value> {
        let log = home.run(&format!("egress log --json {args}")).ok().json();
        log["entries"].as_array().expect("entries").iter().map(|entry| entry["id"].clone()).collect()
    };
    assert_eq!(ids(""), ["c1", "c2", "c3"]);
    assert_eq!(ids("--limit 2"), ["c2", "c3"]);
    assert_eq!(ids("--host a.example"), ["c1", "c2"]);
    assert_eq!(ids("--refused"), ["c2"]);
    let shown = home.run("egress log --limit 1").ok();
    shown.out_has("\tweather\tb.example:443\t1 B\t2.0 MB\tfailed\tcurl x").lacks("a.example");
}

#[test]
fn a_skill_that_is_cut_is_cut_everywhere() {
    let home =
        prowess().config("{ skills: { limits: { maxSkillsInPrompt: 1 } } }").skill("a", "A.", "").skill("b", "B.", "");
    home.run("skills explain b").ok().out_has("b cut").out_has("config set skills.limits.maxSkillsInPrompt NUMBER");
    home.run("skills info b").ok().out_has("Model sees it  no");
    home.run("skills explain").ok().out_has("2 candidates = 1 offered + 1 cut");
    let nothing = home.run("skills prompt --budget 0").ok();
    assert_eq!(nothing.stdout(), "## Skills (mandatory)\nNote: 0 of 2 skills are listed.\n");
}

#[test]
fn a_skill_is_found_by_its_folder_too() {
    let home = prowess().file(".openclaw/workspace/skills/wx/SKILL.md", "---\nname: weather\ndescription: d\n---\n");
    home.run("skills explain wx").ok().out_has("weather visible");
    home.run("skills explain ''").code(1);
    assert_eq!(home.run("skills explain wx --json").ok().json()["name"], "weather");
}

#[test]
fn unknown_names_on_the_command_line_are_said_to_be_unknown() {
    let home = prowess().config("{}");
    home.run("skills list --channel nosuch").code(1).err_has("there is no channel `nosuch`");
    home.run("config set skills.entires.x.enabled false").code(1).err_has("did you mean `skills.entries.x.enabled`?");
    home.run("config set --force skills.entires.x.enabled false").ok().err_has("did you mean `entries`?");
    home.run("setup --workspace /proc/nowhere").code(1);
    home.run("config get agents.defaults.workspace").code(1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_whose_name_is_not_text_is_reported() {
    use std::os::unix::ffi::OsStrExt;
    let home = prowess().tree(".openclaw/workspace/skills/");
    let dir = home.path(".openclaw/workspace/skills").join(std::ffi::OsStr::from_bytes(b"bad\xff"));
    std::fs::create_dir(&dir).expect("a folder");
    std::fs::write(dir.join("SKILL.md"), "---\nname: x\ndescription: d\n---\n").expect("a file");
    home.run("skills check").code(1).out_has("the path is not UTF-8");
}

#[cfg(target_os = "linux")]
#[test]
fn completion_knows_skills_sessions_agents_and_settings() {
    let home = prowess()
        .skill("weather", "Forecasts for a place.", "")
        .config("{ agents: { list: [{ id: 'main' }, { id: 'work' }] } }")
        .file(
            ".openclaw/agents/main/sessions/sessions.json",
            r#"{"agent:main:travel":{"sessionId":"0a","updatedAt":1}}"#,
        )
        .file(".openclaw/agents/main/sessions/0a.jsonl", "{}\n");
    for shell in ["bash", "zsh", "fish"] {
        home.run(&format!("completions {shell}")).ok().out_has("PROWESS_COMPLETE");
    }
    let home = home.env("PROWESS_COMPLETE", "fish");
    for (line, expected) in [
        ("skills info we", "weather\tForecasts for a place."),
        ("skills explain we", "weather"),
        ("sessions show tr", "travel"),
        ("run --session tr", "travel"),
        ("skills list --agent wo", "work"),
        ("run --model emb", "embedded"),
        ("config set skills.load.wat", "skills.load.watch"),
        ("config get skills.entries.wea", "skills.entries.weather.enabled"),
        ("skills ch", "check"),
    ] {
        home.run(&format!("-- prowess {line}")).ok().out_has(expected);
    }
}

#[test]
fn many_skills_and_problems_are_a_page() {
    let mut home = prowess();
    for number in 0..60 {
        let text = format!(
            "---\nname: s{number}\ndescription: Does it: well\nmetadata: {{openclaw: {{requires: {{bins: [nope-1]}}}}}}\n---\n"
        );
        home = home.file(&format!(".openclaw/workspace/skills/s{number}/SKILL.md"), text);
    }
    let check = home.run("skills check");
    assert!(check.stdout().lines().count() < 60, "{check}");
    let check = check.out_has("60 programs not found: nope-1: s0, s1, s10, s11, … (56 more)").out_has("and 59 more:");
    drop(check);
    assert!(home.run("skills check --all").stdout().lines().count() > 180);
}
