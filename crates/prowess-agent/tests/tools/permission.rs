//! `allowed-tools` of skills in use.

use serde_json::{Value, json};

use crate::workshop::{Person, Turn, Workshop};

fn shop() -> Workshop {
    let skills = [
        ("git", "allowed-tools: Bash(git:*) Bash(echo:*)", "x"),
        ("notes", "allowed-tools: Read, Write", "x"),
        ("more", "allowed-tools: Read Bash", "x"),
        ("free", "", "x"),
    ];
    Workshop::with(&Value::Null, &skills)
}

#[tokio::test]
async fn what_a_list_does_not_name_is_asked_about() {
    let shop = shop();
    shop.file("a", "a");
    let table = [
        (&["git"][..], "exec", json!({"command": "echo hi"}), 0),
        (&["git"], "exec", json!({"command": "echo hi; touch x"}), 1),
        (&["git"], "exec", json!({"command": "echo hi > x"}), 1),
        (&["git"], "read", json!({"path": "a"}), 1),
        (&["git"], "write", json!({"path": "b", "content": "x"}), 1),
        (&["git"], "process", json!({"action": "list"}), 0),
        (&["git"], "process", json!({"action": "clear", "sessionId": "none"}), 0),
        (&["git"], "process", json!({"action": "write", "sessionId": "none", "data": "x"}), 1),
        (&["git"], "process", json!({"action": "submit", "sessionId": "none"}), 1),
        (&["git"], "process", json!({"action": "send-keys", "sessionId": "none", "keys": ["Enter"]}), 1),
        (&["git"], "process", json!({"action": "paste", "sessionId": "none", "text": "x"}), 1),
        (&["git"], "process", json!({"action": "Write", "sessionId": "none", "data": "x"}), 1),
        (&["git"], "read", json!({"path": shop.manual("free")}), 0),
        (&["notes"], "read", json!({"path": "a"}), 0),
        (&["notes"], "exec", json!({"command": "echo hi"}), 1),
        (&["git", "notes"], "read", json!({"path": "a"}), 1),
        (&["git", "notes"], "exec", json!({"command": "echo hi"}), 1),
        (&["notes", "more"], "read", json!({"path": "a"}), 0),
        (&["notes", "more"], "write", json!({"path": "b", "content": "x"}), 1),
        (&["free"], "exec", json!({"command": "touch x"}), 0),
        (&["free", "git"], "exec", json!({"command": "touch x"}), 1),
        (&[], "exec", json!({"command": "touch x"}), 0),
    ];
    for (skills, tool, arguments, times) in table {
        for person in [Person::willing(), Person::unwilling(), Person::default()] {
            let is_willing = person.consent == Person::willing().consent;
            let turn = Turn::with(person);
            for skill in skills {
                shop.take_up(&turn, skill);
            }
            let result = shop.call(&turn, tool, arguments.clone()).await;
            assert_eq!(turn.person.times(), times, "{skills:?} {tool} {arguments}");
            // There is no such process, whoever agrees.
            let is_wrong = tool == "process" && arguments["action"] != "list";
            assert_eq!(result.is_error, is_wrong || (times > 0 && !is_willing), "{arguments}: {}", result.text());
        }
    }
}

#[tokio::test]
async fn everything_that_a_call_is_given_is_shown() {
    use prowess_exec::approver::{Change, Passage};
    let shop = shop();
    let turn = Turn::with(Person::unwilling());
    shop.take_up(&turn, "git");
    let command = format!("echo {}; touch end", "x".repeat(5_000));
    let calls = [
        ("write", json!({"path": "b", "content": "evil"})),
        ("exec", json!({"command": command, "env": {"A": "1"}})),
        ("process", json!({"action": "submit", "sessionId": "none"})),
    ];
    for (tool, arguments) in calls {
        shop.call(&turn, tool, arguments).await;
    }
    let asked = turn.person.asked.lock().expect("no panic").clone();
    assert_eq!(asked[0].summary, "write b");
    assert_eq!(asked[0].content, [Passage { change: Change::Added, text: "evil".to_owned() }]);
    assert_eq!(asked[1].summary, format!("run {command} with {{\"env\":{{\"A\":\"1\"}}}}"));
    assert_eq!(asked[2].summary, "call process with {\"action\":\"submit\",\"sessionId\":\"none\"}");
}

#[tokio::test]
async fn a_refusal_says_what_why_and_what_to_do() {
    let shop = shop();
    let turn = Turn::with(Person::default());
    shop.take_up(&turn, "git");
    let result = shop.call(&turn, "exec", json!({"command": "touch mark"})).await;
    let text = result.text();
    assert!(text.starts_with("exec denied: it needs approval, and nobody answered."), "{text}");
    assert!(text.contains("run touch mark") && text.contains("the skill `git` in use lists other tools"), "{text}");
    assert!(!shop.ws("mark").exists());
    assert_eq!(result.details["rule"], "allowed-tools");
    let turn = Turn::with(Person::default());
    shop.take_up(&turn, "git");
    shop.take_up(&turn, "notes");
    let text = shop.call(&turn, "exec", json!({"command": "echo hi"})).await.text();
    assert!(text.contains("the skill `notes` in use lists other tools (Read, Write)"), "{text}");
}
