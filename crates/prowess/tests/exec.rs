//! `exec`, `approvals` and `doctor` as a person or a script uses them: each test is a sentence.

#![cfg(target_os = "linux")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use prowess_exec::terminal;
use prowess_testkit::{Output, Prowess};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_prowess");

/// The program in a session without a terminal, so that no test ever asks whoever runs the tests.
fn prowess() -> Prowess {
    let bundled = Prowess::new("/usr/bin/setsid").tree("no-skills/");
    bundled.env("OPENCLAW_BUNDLED_SKILLS_DIR", "$HOME/no-skills").env("PATH", "/usr/bin:/bin").cwd("work")
}

/// The same with an allowlist, in which nothing is allowed yet.
fn listing() -> Prowess {
    prowess().config("{ tools: { exec: { security: 'allowlist' } } }")
}

trait Line {
    fn go(&self, line: &str) -> Output;
    fn approvals(&self) -> std::path::PathBuf;
}

impl Line for Prowess {
    #[track_caller]
    fn go(&self, line: &str) -> Output {
        self.run(&format!("-w {PROGRAM} {line}"))
    }

    fn approvals(&self) -> std::path::PathBuf {
        self.path(".openclaw/exec-approvals.json")
    }
}

fn verdict(home: &Prowess, command: &str) -> Value {
    home.go(&format!("exec check --json -- \"{command}\"")).ok().json()["verdict"].clone()
}

#[test]
fn check_says_allow_ask_or_deny_and_starts_nothing() {
    let home = prowess();
    home.go("approvals allow ls").ok();
    for (command, expected, code) in
        [("ls", "allow", 0), ("touch x", "ask", 1), ("ls; touch x", "ask", 1), ("", "deny", 2)]
    {
        assert_eq!(verdict(&home, command), expected, "{command}");
        home.go(&format!("exec check --exit-code -- \"{command}\"")).code(code).out_has(expected);
        home.go(&format!("exec check -- \"{command}\"")).ok().out_has(expected);
    }
    assert!(!home.path("work/x").exists() && !home.path(".openclaw/audit").exists(), "checking leaves no trace");
}

#[test]
fn check_tells_machines_everything() {
    let home = listing();
    let found = home.go("exec check --json -- 'nice touch x | head -n 1 && (id)'").ok().json();
    for key in ["verdict", "command", "cwd", "agent", "segments", "objections", "remedies", "always"] {
        assert!(!found[key].is_null(), "{key}: {found}");
    }
    assert_eq!(found["cwd"], "$HOME/work");
    let first = &found["segments"][0];
    assert_eq!((&first["wrappers"], &first["argv"]), (&json!(["nice"]), &json!(["touch", "x"])));
    assert_eq!(first["starts"], json!(["/usr/bin/nice", "/usr/bin/touch"]));
    assert_eq!((&first["verdict"], &first["objections"][0]["code"]), (&json!("ask"), &json!("not-listed")));
    assert_eq!(
        (&found["segments"][1]["verdict"], &found["segments"][1]["cover"]["by"]),
        (&json!("allow"), &json!("safeBin"))
    );
    assert_eq!((&found["objections"][0]["code"], &found["always"]["available"]), (&json!("doubt"), &json!(false)));
    assert!(found["remedies"].to_string().contains("prowess approvals allow /usr/bin/touch"), "{found}");
    let simple = home.go("exec check --json -- 'touch x'").ok().json();
    assert_eq!(simple["always"]["available"], true);
    assert_eq!(simple["always"]["stores"][0]["program"], "/usr/bin/touch");
}

#[test]
fn text_for_people_has_no_control_characters() {
    let home = prowess();
    let output = home.go("exec check -- 'touch \u{1b}[31mred\u{202e}'").ok();
    assert!(!output.stdout().contains(['\u{1b}', '\u{202e}']), "{output}");
}

#[test]
fn one_word_is_a_shell_text_and_several_are_a_program_with_arguments() {
    let home = prowess();
    home.go("approvals allow echo").ok();
    assert_eq!(home.go("exec run -- 'echo a; echo b'").ok().stdout(), "a\nb\n");
    assert_eq!(home.go("exec run -- echo 'a; touch x' '$(touch x)'").ok().stdout(), "a; touch x $(touch x)\n");
    assert!(!home.path("work/x").exists());
}

#[test]
fn run_ends_as_the_command_ends() {
    let home = prowess().file("work/three", "").file("work/s.sh", "#!/bin/sh\necho out; echo err >&2; exit 7\n");
    home.go("approvals allow ls").ok();
    home.go("exec run -- ls").ok().out_has("three");
    home.go("exec run -- 'ls no-such-file'").code(2).out_has("no-such-file");
    home.go("exec run -- 'ls; exit 7'").code(7);
    let result = home.go("exec run --json -- 'ls; exit 7'").code(7).json();
    assert_eq!((&result["details"]["exitCode"], &result["details"]["status"]), (&json!(7), &json!("completed")));
}

#[test]
fn without_a_terminal_nobody_is_asked_and_nothing_runs() {
    let home = listing();
    home.go("exec run -- touch x").code(1).err_has("nobody to ask").err_has("prowess approvals allow");
    let result = home.go("exec run --json -- touch x").code(1).json();
    assert_eq!(result["isError"], true);
    assert!(!home.path("work/x").exists());
    let trail = std::fs::read_to_string(home.path(".openclaw/audit/exec.jsonl")).expect("a trail");
    assert_eq!(trail.lines().count(), 2, "{trail}");
}

#[test]
fn with_nothing_configured_only_what_leaves_the_sandbox_needs_approval() {
    let home = prowess();
    if verdict(&home, "ls") != "allow" {
        eprintln!("skipped: the sandbox does not hold here");
        return;
    }
    home.go("exec run -- 'for f in a b; do touch $f; done; ls; echo kept > /tmp/x; cat /tmp/x'")
        .ok()
        .out_has("a\nb\nkept");
    home.go("approvals list").ok().out_has("none are needed").out_has("prowess leases list").lacks("approvals allow");
    let refused = home.go("exec run -- 'curl -s https://wttr.in/Lisbon'").code(1);
    let told = "this program has no terminal.\nWhy: it would reach wttr.in.\nTo allow it: prowess leases allow --host wttr.in\n";
    refused.err_has("exec denied: it needs approval, and there is nobody to ask because").err_has(told);
    let found = home.go("exec check --json -- 'git -C . push https://example.com/x; cat ~/.netrc'").ok().json();
    assert_eq!((&found["verdict"], &found["posture"]["security"]), (&json!("ask"), &json!("contained")));
    assert_eq!(
        (&found["wants"]["hosts"], &found["wants"]["reads"]),
        (&json!(["example.com"]), &json!(["$HOME/.netrc"]))
    );
}

#[test]
fn a_program_that_uses_no_proxy_gets_a_hint() {
    let home = prowess();
    if verdict(&home, "ls") != "allow" {
        eprintln!("skipped: the sandbox does not hold here");
        return;
    }
    let direct = home.go("exec run -- 'exec 3<>/dev/tcp/192.0.2.1/80'").code(1);
    direct.err_has("The sandbox has no direct network").err_has("prowess leases allow --host NAME:PORT");
    let result = home.go("exec run --json -- 'exec 3<>/dev/tcp/192.0.2.1/80'").code(1).json();
    assert!(result["content"][0]["text"].as_str().is_some_and(|text| text.contains("no direct network")), "{result}");
    home.go("exec run -- 'sudo -n id'").code(1).err_has("cannot become another user").err_has("run it yourself");
}

#[test]
fn leases_are_given_listed_and_revoked() {
    let home = prowess().skill("weather", "Forecasts.", "");
    home.go("leases list").ok().out_has("No leases yet").out_has("prowess leases allow --host");
    home.go("leases allow").code(2).err_has("nothing to allow").err_has("--host wttr.in");
    home.go("leases allow --host 'not a host'").code(1).err_has("is not a host");
    home.go("leases allow --host x.test --skill wether").code(1).err_has("did you mean `weather`");
    home.go("leases allow --key ~/.ssh/id_rsa").code(1).err_has("is a path").err_has("--read '~/.ssh/id_rsa'");
    home.go("leases allow --key PATH").code(1).err_has("is not a key");
    home.go("leases allow --key TOKEN=x").code(1).err_has("names the variable only");
    home.go("leases allow --key 'my key'").code(1).err_has("is not the name of a variable");
    home.go("leases allow --write ~").code(1).err_has("contains your settings and keys");
    home.go("leases allow --host wttr.in --skill weather")
        .ok()
        .out_has("commands of skill weather")
        .out_has("reach wttr.in");
    home.go("leases allow --host wttr.in --host '*.example.com:8443' --write .").ok().out_has("belong to no skill");
    let list = home.go("leases list --json").ok().json();
    assert_eq!(list["leases"].as_array().map(Vec::len), Some(2), "{list}");
    assert_eq!(
        (&list["leases"][0]["skill"], &list["leases"][1]["lease"]["writes"][0]),
        (&json!("weather"), &json!("$HOME/work"))
    );
    if verdict(&home, "ls") == "allow" {
        assert_eq!(verdict(&home, "curl https://wttr.in/x https://a.example.com:8443/"), "allow");
        assert_eq!(verdict(&home, "curl https://wttr.in.evil.test"), "ask");
    }
    home.go("leases list").ok().out_has("reach wttr.in").out_has("weather");
    home.go("leases revoke wttr.in").ok().out_has("2 leases revoked");
    home.go("leases revoke wttr.in").code(1).err_has("there is no lease `wttr.in`");
    home.go("leases path").ok().out_has("exec-leases.json");
}

#[test]
fn a_signal_is_told_and_becomes_a_code() {
    let home = prowess().program("work/die.sh", "#!/bin/sh\nkill -SEGV $$\n");
    home.go("approvals allow ./die.sh").ok();
    home.go("exec run -- ./die.sh").code(139).err_has("SIGSEGV");
}

#[test]
fn a_timeout_ends_the_command() {
    let home = prowess();
    home.go("approvals allow sleep").ok();
    home.go("exec run --timeout 1 -- sleep 100").code(124).err_has("took too long");
}

/// M-ENV-11, M-EXEC-12: a skill's variables and programs are there in its runs, and only there.
#[test]
fn a_skill_brings_its_variables_and_programs_to_its_own_runs() {
    let needs = "metadata: { openclaw: { primaryEnv: TOOL_API_KEY, requires: { env: [TOOL_API_KEY] } } }";
    let home = prowess()
        .skill("tool", "Does it.", needs)
        .file(".openclaw/workspace/skills/tool/bins/tool-cli", "#!/bin/sh\necho cli says $TOOL_API_KEY\n")
        .config("{ skills: { entries: { tool: { apiKey: 'sk-canary', env: { TOOL_MODE: 'fast' } } } } }");
    let cli = home.path(".openclaw/workspace/skills/tool/bins/tool-cli");
    std::fs::set_permissions(&cli, Permissions::from_mode(0o755)).expect("the mode is set");
    home.go("approvals allow env").ok();
    home.go("approvals allow printenv").ok();
    home.go(&format!("approvals allow {}", cli.display())).ok();
    home.go("exec run --skill tool -- tool-cli").ok().out_has("cli says sk-canary");
    home.go("exec run --skill tool -- printenv").ok().out_has("TOOL_API_KEY=sk-canary").out_has("TOOL_MODE=fast");
    home.go("exec run -- printenv").ok().lacks("sk-canary").lacks("TOOL_MODE");
    home.go("exec run -- tool-cli").code(1).err_has("`tool-cli` is not installed");
    home.go("exec run --skill nothing -- printenv").code(1).err_has("there is no skill `nothing`");
    home.go("exec check --json --skill tool -- tool-cli").ok().lacks("sk-canary").out_has("\"allow\"");
    let trail = std::fs::read_to_string(home.path(".openclaw/audit/exec.jsonl")).expect("a trail");
    let approvals = std::fs::read_to_string(home.approvals()).expect("approvals");
    assert!(!trail.contains("sk-canary") && !approvals.contains("sk-canary"));
}

/// A skill declares a variable of the host. That is a wish, and the operator decides.
#[test]
fn a_host_variable_reaches_a_skill_only_if_the_operator_bound_it() {
    let needs = "metadata: { openclaw: { primaryEnv: AWS_SECRET_ACCESS_KEY, requires: { env: [AWS_SESSION_TOKEN] }, \
                 capabilities: { env: [OTHER_TOKEN] } } }";
    let home = prowess().skill("cloud", "Does it.", needs).skill("other", "Does it.", needs);
    let home = home.env("AWS_SECRET_ACCESS_KEY", "canary-1").env("AWS_SESSION_TOKEN", "canary-2");
    let home = home.env("OTHER_TOKEN", "canary-3");
    home.go("approvals allow printenv").ok();
    // Presence is what the gate asks for, and all that it says.
    home.go("skills info cloud --json").ok().out_has("\"eligible\": true").lacks("canary");
    let typed =
        "prowess leases allow --skill cloud --key AWS_SECRET_ACCESS_KEY --key AWS_SESSION_TOKEN --key OTHER_TOKEN";
    let refused = home.go("exec run --skill cloud -- printenv").code(1);
    refused.err_has("use the key AWS_SESSION_TOKEN").err_has(typed).lacks("canary");
    home.go("exec check --skill cloud -- printenv").ok().out_has(typed).lacks("canary");
    let wants = home.go("exec check --json --skill cloud -- printenv").ok().json();
    assert_eq!(wants["wants"]["keys"], json!(["AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "OTHER_TOKEN"]));
    home.go("skills explain cloud").ok().out_has("AWS_SESSION_TOKEN from host, withheld").lacks("canary");
    // The configuration gives a variable to a skill, too.
    home.go("config set skills.entries.cloud.capabilities.env '[\"AWS_SESSION_TOKEN\"]'").ok();
    let more = home.go("exec run --skill cloud -- printenv").code(1);
    more.err_has("--key AWS_SECRET_ACCESS_KEY --key OTHER_TOKEN").lacks("canary");
    let all = "[\"AWS_SECRET_ACCESS_KEY\",\"AWS_SESSION_TOKEN\",\"OTHER_TOKEN\"]";
    home.go(&format!("config set skills.entries.cloud.capabilities.env '{all}'")).ok();
    home.go("exec run --skill cloud -- printenv").ok().out_has("canary-1").out_has("canary-2").out_has("canary-3");
    home.go("exec run --skill other -- printenv").code(1).lacks("canary");
    // What the hint says works when it is typed, for that skill alone.
    home.go(&typed.replace("prowess ", "").replace("cloud", "other")).ok().out_has("commands of skill other");
    home.go("exec run --skill other -- printenv").ok().out_has("canary-1");
    home.go("leases revoke other").ok();
    home.go("exec run -- printenv").ok().lacks("canary");
    let approvals = json!({"version": 1, "defaults": {"security": "full", "ask": "off"}});
    std::fs::write(home.approvals(), approvals.to_string()).expect("written");
    let home = home.config("{ tools: { exec: { security: 'full', ask: 'off' } } }");
    home.go("exec run --skill other -- printenv").ok().lacks("canary").err_has("runs without AWS_SESSION_TOKEN");
}

/// A whole turn: the model reads the skill and then runs a command that would carry the key past redaction.
#[test]
fn a_skill_cannot_talk_a_turn_into_handing_out_a_key() {
    let needs = "metadata: { openclaw: { requires: { env: [AWS_SECRET_ACCESS_KEY], bins: [printenv, rev] } } }";
    let home = prowess().skill("cloud", "Does it.", needs).env("AWS_SECRET_ACCESS_KEY", "canary-1234");
    let file = home.path(".openclaw/workspace/skills/cloud/SKILL.md").display().to_string();
    let call = |name: &str, arguments: Value| json!({"calls": [{"name": name, "arguments": arguments}]});
    let steal = json!({"command": "printenv AWS_SECRET_ACCESS_KEY | rev"});
    let turns = json!([call("read", json!({"path": file})), call("exec", steal), {"text": "done"}]).to_string();
    let home = home.file("turns.json", turns);
    let turn = |home: &Prowess, session: &str| {
        home.go(&format!("run hi --session {session} --model scripted:$HOME/turns.json")).ok();
        home.go(&format!("sessions export {session} --format jsonl")).ok()
    };
    let stolen = "4321-yranac";
    home.go("approvals allow printenv").ok();
    home.go("approvals allow rev").ok();
    turn(&home, "asked").lacks(stolen).out_has("use the key AWS_SECRET_ACCESS_KEY");
    let full = home.config("{ tools: { exec: { security: 'full', ask: 'off' } } }");
    std::fs::write(full.approvals(), r#"{"version": 1, "defaults": {"security": "full", "ask": "off"}}"#)
        .expect("written");
    turn(&full, "full").lacks(stolen).out_has("runs without AWS_SECRET_ACCESS_KEY");
    // The control: with the operator's word the very same turn has it.
    full.go("config set skills.entries.cloud.capabilities.env '[\"AWS_SECRET_ACCESS_KEY\"]'").ok();
    turn(&full, "bound").out_has(stolen);
}

/// A skill of the workspace takes the name of the one that a key was configured for.
#[test]
fn a_namesake_does_not_inherit_a_key() {
    let needs = "metadata: { openclaw: { primaryEnv: TOOL_API_KEY } }";
    let entry = "{ skills: { entries: { tool: { apiKey: 'sk-canary' } } } }";
    let home = prowess().skill(".openclaw/skills/tool", "Does it.", needs).config(entry);
    home.go("approvals allow printenv").ok();
    home.go("exec run --skill tool -- printenv").ok().out_has("TOOL_API_KEY=sk-canary");
    let home = home.skill("tool", "Does it.", needs);
    let typed = "prowess skills bind tool";
    home.go("exec run --skill tool -- printenv")
        .code(1)
        .err_has("use the key TOOL_API_KEY")
        .err_has("prowess leases allow --skill tool --key TOOL_API_KEY")
        .lacks("sk-canary");
    let belongs = "gets nothing of skills.entries.tool, which belongs to managed:tool";
    home.go("skills check").ok().out_has(belongs).out_has(typed);
    home.go("skills explain tool").ok().out_has(belongs).out_has("TOOL_API_KEY from apiKey, withheld").out_has(typed);
    home.go("doctor").out_has(belongs).out_has(typed);
    home.go("config set skills.entries.tool.env.TOOL_MODE fast").ok().err_has(belongs).err_has(typed);
    home.go("skills bind tool").ok().out_has("now belongs to tool").out_has("apiKey, env.TOOL_MODE").lacks("sk-canary");
    home.go("exec run --skill tool -- printenv").ok().out_has("sk-canary").out_has("TOOL_MODE=fast");
    home.go("skills check").ok().lacks("gets nothing of");
    home.go("skills bind tool --json").ok().out_has("\"changed\": false");
    home.go("exec run -- cat ../.openclaw/skill-bindings.json").code(1).lacks("managed:tool");
}

#[test]
fn variables_that_steer_a_program_are_refused() {
    let home = prowess().env("GITHUB_TOKEN", "host-canary").env("LD_PRELOAD_X", "host-canary");
    home.go("approvals allow printenv").ok();
    home.go("exec run --env GREETING=hello -- printenv").ok().out_has("GREETING=hello").lacks("host-canary");
    for name in ["LD_PRELOAD", "PATH", "BASH_ENV", "HOME", "GIT_SSH_COMMAND", "GITHUB_TOKEN"] {
        home.go(&format!("exec run --env {name}=x -- printenv")).code(1).err_has("Security Violation");
    }
    home.go("exec run --env nothing -- printenv").code(2);
}

#[test]
fn the_network_is_off_unless_it_is_granted() {
    let home = prowess();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let connect = format!("#!/bin/bash\nexec 3<>/dev/tcp/127.0.0.1/{port} && echo connected\n");
    let script = home.path("work/connect.sh");
    std::fs::write(&script, connect).expect("written");
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).expect("the mode is set");
    home.go("approvals allow ./connect.sh").ok();
    home.go("exec run -- ./connect.sh").code(1).lacks("connected").out_has("/dev/tcp");
    home.go("exec run --network -- ./connect.sh").ok().out_has("connected");
}

#[test]
fn a_run_reads_and_writes_its_folder_and_what_it_is_granted() {
    let home = prowess().file("private", "canary").file("out/x", "");
    home.go("approvals allow cat").ok();
    home.go("approvals allow cp").ok();
    home.go("exec run -- cat ../private").code(1).lacks("canary");
    home.go("exec run --read ../private -- cat ../private").ok().out_has("canary");
    home.go("exec run --read ../private -- cp ../private ../out/y").code(1);
    home.go("exec run --read ../private --write ../out -- cp ../private ../out/y").ok();
    assert!(home.path("out/y").exists());
    let granted = home.config("{ tools: { exec: { sandbox: { read: ['~/private'] } } } }");
    granted.go("exec run -- cat ../private").ok().out_has("canary");
}

#[test]
fn an_unknown_sandbox_is_no_sandbox_and_no_run() {
    let home = prowess();
    home.go("approvals allow ls").ok();
    home.go("exec run --sandbox chroot -- ls").code(2).err_has("unknown sandbox `chroot`");
    home.go("exec run --sandbox docker -- ls").code(2);
    home.go("exec run --sandbox off -- ls").ok();
    home.go("exec run --sandbox landlock -- ls").ok();
    // A typing error in the configuration leaves the default in place, and never runs anything bare.
    let home = home.file("private", "canary").config("{ tools: { exec: { sandbox: { kind: 'chrot' } } } }");
    home.go("approvals allow cat").ok();
    home.go("exec run -- cat ../private").code(1).lacks("canary");
    home.go("exec run --sandbox off -- cat ../private").ok().out_has("canary");
}

#[test]
fn the_operators_words_decide() {
    let run = |config: &str| prowess().config(config).go("exec run -- touch x");
    run("{ tools: { exec: { security: 'deny' } } }").code(1).err_has("commands are disabled");
    run("{ tools: { exec: { security: 'allowlist', ask: 'off' } } }").code(1).err_has("the rules do not allow it");
    run("{ tools: { exec: { security: 'ful' } } }").code(1).err_has("commands are disabled");
    run("{ tools: { exec: { security: 'full' } } }").ok();
    run("{ tools: { exec: { security: 'full', ask: 'always' } } }").code(1);
    run("{ tools: { exec: { host: 'node' } } }").code(1).err_has("node");
    let home = prowess().config("{ tools: { exec: { security: 'full' } } }");
    std::fs::write(home.approvals(), r#"{"version":1,"agents":{"main":{"security":"deny"}}}"#).expect("written");
    home.go("exec run -- touch x").code(1).err_has("commands are disabled");
    assert!(!home.path("work/x").exists());
}

#[test]
fn what_is_allowed_can_be_listed_and_taken_back() {
    let home = listing();
    home.go("approvals list").ok().out_has("No rules yet").out_has("prowess approvals allow NAME");
    home.go("approvals allow ls").ok().out_has("/usr/bin/ls may run");
    home.go("approvals allow ls").ok().out_has("was already allowed");
    home.go("approvals allow --all-agents cat").ok();
    home.go("approvals allow no-such-program").code(1).err_has("`no-such-program` is not installed");
    home.go("approvals allow /no/such/program").code(1).err_has("is not installed");
    home.go("approvals allow ' '").code(2);
    let list = home.go("approvals list --json").ok().json();
    assert_eq!(list["path"], "$HOME/.openclaw/exec-approvals.json");
    let facts: Vec<_> =
        list["entries"].as_array().expect("a list").iter().map(|it| (&it["agent"], &it["pattern"])).collect();
    assert_eq!(facts.len(), 2);
    assert!(facts.contains(&(&json!("main"), &json!("/usr/bin/ls"))), "{list}");
    assert!(facts.contains(&(&json!("*"), &json!("/usr/bin/cat"))), "{list}");
    home.go("approvals list").ok().out_has("/usr/bin/ls");
    assert_eq!(home.go("approvals path").ok().stdout(), "$HOME/.openclaw/exec-approvals.json\n");
    assert_eq!(std::fs::metadata(home.approvals()).expect("it is there").permissions().mode() & 0o777, 0o600);
    assert_eq!((verdict(&home, "ls"), verdict(&home, "cat x")), (json!("allow"), json!("allow")));
    home.go("approvals revoke /usr/bin/cat").code(1).err_has("has no rule");
    home.go("approvals revoke --all-agents /usr/bin/cat").ok();
    let id =
        list["entries"].as_array().and_then(|list| list.iter().find(|it| it["agent"] == "main")).expect("it")["id"]
            .clone();
    home.go(&format!("approvals revoke {}", &id.as_str().expect("text")[..8])).ok().out_has("One rule removed");
    assert_eq!((verdict(&home, "ls"), verdict(&home, "cat x")), (json!("ask"), json!("ask")));
}

#[test]
fn an_interpreter_is_allowed_for_scripts_never_for_code() {
    let home = prowess().file("work/s.pl", "print \"from a script\\n\";\n");
    home.go("approvals allow perl").ok().out_has("never code in its arguments");
    home.go("exec run -- perl s.pl").ok().out_has("from a script");
    for command in ["perl -e 'print 1'", "echo x | perl", "perl -Mstrict s.pl", "sh s.pl"] {
        assert_eq!(verdict(&home, command), "ask", "{command}");
    }
}

#[test]
fn a_broken_approvals_file_fails_closed_and_is_kept() {
    let home = prowess();
    home.go("approvals allow ls").ok();
    let broken = "{\"version\":1,\"agents\":{\"main\":{\"allowlist\":[{\"pattern\":\"/usr/bin/ls\"}]}";
    std::fs::write(home.approvals(), broken).expect("written");
    for line in
        ["exec run -- ls", "exec check -- ls", "approvals list", "approvals allow cat", "approvals revoke /usr/bin/ls"]
    {
        home.go(line).code(1).err_has("exec-approvals.json");
    }
    home.go("doctor").code(1).out_has("until then every command is refused");
    assert_eq!(std::fs::read_to_string(home.approvals()).expect("it is there"), broken);
}

#[test]
fn an_approvals_file_that_others_can_write_is_refused() {
    let home = prowess();
    home.go("approvals allow ls").ok();
    std::fs::set_permissions(home.approvals(), Permissions::from_mode(0o660)).expect("the mode is set");
    home.go("exec run -- ls").code(1).err_has("can be changed by users other than its owner");
    home.go("approvals list").code(1).err_has("chmod go-w");
    std::fs::set_permissions(home.approvals(), Permissions::from_mode(0o600)).expect("the mode is set");
    home.go("exec run -- ls").ok();
}

#[test]
fn the_state_directory_can_be_elsewhere() {
    let home = prowess().env("OPENCLAW_STATE_DIR", "$HOME/elsewhere");
    home.go("approvals allow ls").ok();
    home.go("exec run -- ls").ok();
    assert_eq!(home.go("approvals path").ok().stdout(), "$HOME/elsewhere/exec-approvals.json\n");
    assert!(home.path("elsewhere/exec-approvals.json").is_file() && home.path("elsewhere/audit/exec.jsonl").is_file());
    assert!(!home.path(".openclaw/exec-approvals.json").exists() && !home.path(".openclaw/audit").exists());
}

#[test]
fn a_hint_never_proposes_to_allow_something_harmful() {
    let home = listing();
    for command in ["rm -rf /", "bash x.sh", "sudo rm x", "python3 x.py", "perl -e 1", "dd of=x", "chmod 777 x"] {
        home.go(&format!("exec check -- '{command}'")).ok().lacks("approvals allow");
        home.go(&format!("exec run -- '{command}'")).code(1).lacks("approvals allow");
    }
    home.go("exec check -- 'touch x'").ok().out_has("prowess approvals allow /usr/bin/touch");
    home.go("exec check -- no-such-program").ok().out_has("is not installed").lacks("approvals allow");
    home.go("approvals allow perl").ok();
    home.go("exec check -- 'perl absent.pl'").ok().out_has("a script that was not found").lacks("from its input");
}

#[test]
fn the_doctor_covers_the_model_the_configuration_and_the_gateway() {
    let home = prowess().config("{ skills: { entires: {} } }").skill("good", "Good.", "");
    let output = home.go("doctor").ok();
    for (mark, part) in [("!", "model"), ("✓", "state"), ("!", "configuration"), ("✓", "skills"), ("–", "gateway")]
    {
        let line = output.stdout().lines().find(|line| line.starts_with(&format!("{mark} {part}")));
        assert!(line.is_some(), "{part}\n{output}");
    }
    assert!(output.stdout().lines().count() <= 30, "it fits a screen\n{output}");
    let output = output.out_has("did you mean `entries`?").out_has("prowess config unset").out_has("network");
    output.out_has("ANTHROPIC_API_KEY").out_has("prowess gateway run");
    let nowhere = r#"{ models: { providers: { far: { baseUrl: "http://127.0.0.1:9/v1", models: [{ id: "m" }] } } }, agents: { defaults: { model: "far/m" } } }"#;
    prowess().config(nowhere).go("doctor").code(1).out_has("far/m").out_has("127.0.0.1 is not reachable");
    let broken = prowess().config("{ skills: ").go("doctor").code(1).out_has("openclaw.json:1:");
    assert!(broken.stdout().starts_with("✗ configuration"), "{broken}");
    assert_eq!(prowess().config("[]").go("doctor --json").code(1).json()["findings"][0]["status"], "broken");
}

#[test]
fn the_doctor_says_what_works_and_what_to_mind() {
    let home = prowess();
    home.go("doctor").ok().out_has("landlock").out_has("seccomp").out_has("needs your approval").out_has("/bin/bash");
    let found = home.go("doctor --json").ok().json();
    assert_eq!(found["ok"], true);
    let findings = found["findings"].as_array().expect("a list");
    for name in ["landlock", "seccomp", "approvals", "commands", "shell"] {
        assert!(findings.iter().any(|it| it["name"] == name), "{name}: {found}");
    }
    prowess().config("{ tools: { exec: { security: 'full' } } }").go("doctor").ok().out_has("EVERY command runs");
    let off = prowess().config("{ tools: { exec: { security: 'deny' } } }");
    off.go("doctor").code(1).out_has("every command is refused (security is deny)");
    assert_eq!(off.go("doctor --json").code(1).json()["ok"], false);
}

/// Runs `exec run` at a terminal of its own and types one of `answers` at each question. What the screen showed, and
/// the exit code.
fn at_a_terminal(home: &Prowess, command: &str, answers: &[&str]) -> (String, Option<i32>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (screen, theirs) = terminal::open().expect("a terminal");
        let end = || Stdio::from(theirs.try_clone().expect("a copy"));
        let mut child = Command::new("/usr/bin/setsid")
            .args(["--ctty", "--wait", PROGRAM, "exec", "run", "--", command])
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("NO_COLOR", "1"), ("LANG", "C.UTF-8")])
            .env("HOME", home.home())
            .env("OPENCLAW_BUNDLED_SKILLS_DIR", home.path("no-skills"))
            .current_dir(home.path("work"))
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .expect("it starts");
        drop(theirs);
        let (mut seen, mut answers, mut buffer) = (String::new(), answers.iter(), [0; 4096]);
        let mut looked = 0;
        while let Ok(count @ 1..) = screen.read(&mut buffer).await {
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
            if seen[looked..].contains("[w]hy: ") {
                looked = seen.len();
                let answer = answers.next().expect("one question more than answers");
                screen.write(format!("{answer}\n").as_bytes()).await.expect("it takes an answer");
            }
        }
        (seen, child.wait().expect("it ends").code())
    })
}

#[test]
fn a_person_at_a_terminal_says_yes_no_always_or_why() {
    let home = listing();
    let mark = home.path("work/x");
    let (screen, code) = at_a_terminal(&home, "touch x", &["n"]);
    assert!(code == Some(1) && !mark.exists() && screen.contains("the user said no"), "{screen}");
    let (screen, code) = at_a_terminal(&home, "touch x", &["w", "what", "y"]);
    assert!(code == Some(0) && mark.exists(), "{screen}");
    assert!(screen.contains("    touch x") && screen.contains("starts   /usr/bin/touch"), "{screen}");
    assert_eq!(verdict(&home, "touch x"), "ask", "once is once");
    std::fs::remove_file(&mark).expect("it was made");
    let (screen, code) = at_a_terminal(&home, "touch x", &["a"]);
    assert!(code == Some(0) && mark.exists(), "{screen}");
    assert!(screen.contains("would allow /usr/bin/touch as `touch x` in "), "{screen}");
    assert_eq!((verdict(&home, "touch x"), verdict(&home, "touch y")), (json!("allow"), json!("ask")));
    home.go("approvals list").ok().out_has("touch x");
    let (screen, code) = at_a_terminal(&home, "bash -c 'touch $0' y", &["a", "n"]);
    assert!(code == Some(1) && !home.path("work/y").exists() && !screen.contains("[a]lways"), "{screen}");
    let (screen, code) = at_a_terminal(&home, "touch x", &[]);
    assert!(code == Some(0) && !screen.contains("Allow it?"), "{screen}");
}

#[test]
fn a_single_command_is_not_asked_about_for_a_session() {
    let home = prowess();
    if verdict(&home, "ls") != "allow" {
        eprintln!("skipped: the sandbox does not hold here");
        return;
    }
    let (screen, code) = at_a_terminal(&home, "curl -s https://x.test", &["s", "n"]);
    assert!(screen.contains("wants to reach x.test") && screen.contains("[y]es, once / [a]lways / [n]o"), "{screen}");
    assert!(code == Some(1) && !screen.contains("[s]ession") && screen.contains("Please answer"), "{screen}");
    assert!(screen.contains("exec denied: the user said no.\r\n") && !screen.contains("To allow it"), "{screen}");
}

#[test]
fn a_command_may_come_from_stdin_however_long() {
    use std::io::Write;
    let home = prowess();
    home.go("approvals allow ls").ok();
    let check = |text: &str| {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_prowess"))
            .args(["exec", "check", "--json", "--", "-"])
            .env("HOME", home.home())
            .env("PATH", "/usr/bin:/bin")
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("it starts");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        value["verdict"].as_str().expect("a word").to_owned()
    };
    assert_eq!(check("ls -la"), "allow");
    assert_eq!(check(&format!("ls {}; id", "A".repeat(200_000))), "deny", "too long to be shown whole");
}
