//! `system.run`: is a command shown as what it is?

use prowess_policy::system_run::{SystemRunError, resolve};
use prowess_testkit::{cases, check_all};
use serde_json::{Value, json};

fn strings(value: &Value) -> Vec<String> {
    value.as_array().expect("a list").iter().map(|item| item.as_str().expect("text").to_owned()).collect()
}

fn display(command: &[&str]) -> (String, bool) {
    let command: Vec<String> = command.iter().map(|arg| (*arg).to_owned()).collect();
    let run = resolve(&command, None).expect("no claim to differ from");
    assert_eq!(run.argv, command);
    (run.display, run.shell_text.is_some())
}

#[test]
fn requests_are_read_as_in_openclaw() {
    check_all(cases(include_str!("golden/system-run.json")), |case| {
        let found = match resolve(&strings(&case["command"]), case["raw"].as_str()) {
            Ok(run) => json!({ "shellText": run.shell_text, "display": run.display }),
            Err(error) => {
                let mut details = json!({ "code": error.code() });
                if let SystemRunError::RawMismatch { raw, inferred } = &error {
                    details["rawCommand"] = json!(raw);
                    details["inferred"] = json!(inferred);
                }
                json!({ "error": error.to_string(), "details": details })
            }
        };
        let same = found.as_object().expect("an object").iter().all(|(key, value)| case[key] == *value);
        if same { Ok(()) } else { Err(format!("found {found}")) }
    });
}

#[test]
fn a_shell_is_shown_as_its_text_only_when_the_text_is_everything() {
    let whole: &[&[&str]] = &[
        &["bash", "-c", "rg x"],
        &["/usr/bin/bash", "-l", "-c", "rg x"],
        &["sh", "-ec", "rg x"],
        &["zsh", "--norc", "-c", "rg x"],
        &["timeout", "-k", "1", "5", "bash", "-c", "rg x"],
        &["nice", "-n", "5", "nohup", "sh", "-c", "rg x"],
        &["stdbuf", "-oL", "sh", "-c", "rg x"],
        &["env", "--", "sh", "-c", "rg x"],
        &["toybox", "--", "sh", "-c", "rg x"],
        &["cmd.exe", "/d", "/s", "/c", "rg", "x"],
        &["pwsh", "-NoProfile", "-Command", "rg x"],
    ];
    for command in whole {
        assert_eq!(display(command), ("rg x".to_owned(), true), "{command:?}");
    }
    let more: &[&[&str]] = &[
        &["sh", "-c", "$0", "evil"],
        &["env", "LD_PRELOAD=x.so", "sh", "-c", "rg x"],
        &["env", "-i", "sh", "-c", "rg x"],
        &["env", "--", "A=1", "sh", "-c", "rg x"],
        &["nice", "env", "A=1", "sh", "-c", "rg x"],
        &["bash", "--rcfile", "evil", "-ic", "rg x"],
        &["bash", "-O", "extglob", "-c", "rg x"],
        &["bash", "script.sh", "-c", "rg x"],
        &["./sh", "-c", "rg x"],
        &["/fx/ws/bash", "-c", "rg x"],
        &["/fx/ws/env", "bash", "-c", "rg x"],
        &["nice", "nice", "nice", "nice", "nice", "sh", "-c", "rg x"],
        &["powershell", "-File", "evil.ps1", "-Command", "rg x"],
    ];
    for command in more {
        let (shown, shell) = display(command);
        assert!(command.iter().all(|arg| shown.contains(arg)), "{command:?} is shown as {shown}");
        assert!(shell, "{command:?} goes through a shell");
    }
}

#[test]
fn what_is_no_shell_with_text_is_shown_whole() {
    let plain: &[&[&str]] = &[
        &["bash", "script.sh"],
        &["bash", "-c"],
        &["busybox", "wget", "-c", "x"],
        &["sudo", "sh", "-c", "x"],
        &["timeout", "5"],
        &["env", "-S", "sh -c x"],
    ];
    for command in plain {
        let (shown, shell) = display(command);
        assert!(!shell && command.iter().all(|arg| shown.contains(arg)), "{command:?} is shown as {shown}");
    }
    assert_eq!(display(&["a b", "", "c\"d"]).0, r#""a b" "" "c\"d""#);
    assert_eq!(display(&["ls "]).0, "\"ls \"");
}
