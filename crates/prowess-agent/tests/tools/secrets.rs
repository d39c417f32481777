//! The keys of skills in what commands say.

use std::collections::HashSet;
use std::time::Duration;

use prowess_agent::event::Event;
use prowess_agent::tool::finished_since;
use serde_json::{Value, json};

use crate::workshop::{Turn, Workshop};

/// One whose key has a name that says so, and one whose manual says which it is.
fn shop() -> Workshop {
    let primary = "metadata: {\"openclaw\": {\"primaryEnv\": \"SECRET_OF_BETA\"}}";
    Workshop::with(&Value::Null, &[("alpha", "", "x"), ("beta", primary, "x")])
}

#[tokio::test]
async fn a_key_in_an_error_message_is_not_seen() {
    let shop = shop();
    let turn = Turn::new("test");
    shop.take_up(&turn, "alpha");
    shop.take_up(&turn, "beta");
    let table = [
        ("cd \"$ALPHA_API_KEY\"", "[ALPHA_API_KEY]: No such file or directory"),
        ("echo \"a=$ALPHA_API_KEY;b=$SECRET_OF_BETA\"; exit 3", "a=[ALPHA_API_KEY];b=[SECRET_OF_BETA]"),
        ("printenv BETA_API_KEY", "[BETA_API_KEY]"),
        ("\"$ALPHA_API_KEY\"", "[ALPHA_API_KEY]: command not found"),
        ("echo $SECRET_OF_ALPHA", "secret-of-alpha"),
    ];
    for (command, expected) in table {
        let result = shop.call(&turn, "exec", json!({"command": command})).await;
        let all = format!("{} {}", result.text(), result.details);
        assert!(result.text().contains(expected), "{command}: {}", result.text());
        assert!(!all.contains("key-of-") && !all.contains("secret-of-beta"), "{command}: {all}");
    }
    // The file is there, so the command got the key itself.
    shop.call(&turn, "exec", json!({"command": "printenv ALPHA_API_KEY > key"})).await;
    assert_eq!(std::fs::read_to_string(shop.ws("key")).expect("it is there"), "key-of-alpha\n");
}

/// A command that goes on is asked about in a later turn, in which its skill is not in use any more.
#[tokio::test]
async fn a_key_is_not_seen_in_a_later_turn_either() {
    let shop = shop();
    let first = Turn::new("mine");
    shop.take_up(&first, "alpha");
    let command = "until test -e go; do sleep 0.01; done; echo \"key $ALPHA_API_KEY\"";
    let started = shop.call(&first, "exec", json!({"command": command, "background": true})).await;
    let id = started.details["sessionId"].as_str().expect("it runs").to_owned();
    shop.file("go", "");
    let later = Turn::new("mine");
    let poll = json!({"action": "poll", "sessionId": id, "timeout": 60_000});
    let mut answers = vec![shop.call(&later, "process", poll).await];
    for action in ["poll", "log", "list"] {
        answers.push(shop.call(&later, "process", json!({"action": action, "sessionId": id})).await);
    }
    for answer in &answers {
        let all = format!("{} {}", answer.text(), answer.details);
        assert!(all.contains("key [ALPHA_API_KEY]") && !all.contains("key-of-alpha"), "{all}");
    }
    let lines = finished_since(&shop.exec.runner, "mine", &mut HashSet::new(), &shop.tools);
    assert!(lines.len() == 1 && lines[0].text.ends_with(" :: key [ALPHA_API_KEY]"), "{lines:?}");
}

#[tokio::test]
async fn a_key_is_not_seen_while_the_command_runs() {
    let shop = shop();
    let turn = Turn::new("test");
    shop.take_up(&turn, "alpha");
    let waits = "echo \"key $ALPHA_API_KEY\"; until test -e seen; do sleep 0.01; done";
    let call = shop.call(&turn, "exec", json!({"command": waits}));
    let look = async {
        loop {
            let said = turn.seen().into_iter().find_map(|event| match event {
                Event::CallUpdate { tail, .. } if tail.contains("key ") => Some(tail),
                _ => None,
            });
            if let Some(tail) = said {
                shop.file("seen", "");
                return tail;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let (_, tail) = tokio::join!(call, look);
    assert_eq!(tail.trim_end(), "key [ALPHA_API_KEY]");
}
