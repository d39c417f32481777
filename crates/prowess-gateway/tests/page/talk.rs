//! Is a conversation shown while it happens, and does an answer reach the gateway?

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::demo;
use crate::room::Room;
use crate::stage::Stage;

pub(crate) async fn enter(view: &str) -> (Stage, Browser) {
    let stage = Stage::open(Room::open(demo::home()).await, demo::script).await;
    let browser = Browser::open().await;
    browser.visit(&stage.url()).await;
    browser.reads("#state", "connected").await;
    browser.click(&format!("#tab-{view}")).await;
    (stage, browser)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_shown_while_it_is_written() {
    let (stage, browser) = enter("chat").await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    browser.find("#chat-input").await.send_keys("And tomorrow?\u{e007}").await.expect("typed");
    browser.reads(".said.person:last-of-type", "And tomorrow?").await;
    browser.until("!document.querySelector('.stop').hidden").await;
    assert_eq!(stage.asked("chat.send")[0]["message"], "And tomorrow?");
    stage.tell("agent", &demo::turn("lifecycle", &json!({"phase": "start"})));
    stage.tell("agent", &demo::turn("assistant", &json!({"text": "Let me", "delta": "Let me"})));
    browser.until("document.querySelector('[aria-busy=true] .text')?.textContent === 'Let me'").await;
    stage.tell("agent", &demo::turn("skill", &json!({"phase": "read", "name": "weather", "path": "p"})));
    browser.reads(".used", "Skill weather read").await;
    let call = json!({"phase": "start", "name": "exec", "toolCallId": "t1", "args": {"command": "curl wttr.in"}});
    stage.tell("agent", &demo::turn("tool", &call));
    browser.reads(".call:last-of-type summary", "running").await;
    let result = json!({"content": [{"type": "text", "text": "sunny"}]});
    let done = json!({"phase": "result", "name": "exec", "toolCallId": "t1", "isError": false, "result": result});
    stage.tell("agent", &demo::turn("tool", &done));
    browser.reads(".call:last-of-type summary", "done").await;
    stage.tell("chat", &demo::answer("final", "Tomorrow is sunny."));
    browser.reads("#panel-chat .log", "Tomorrow is sunny.").await;
    browser.until("document.querySelector('.stop').hidden && !document.querySelector('[aria-busy=true]')").await;
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_stopped_by_a_button() {
    let (stage, browser) = enter("chat").await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    stage.tell("agent", &demo::turn("lifecycle", &json!({"phase": "start"})));
    browser.until("!document.querySelector('.stop').hidden").await;
    browser.click(".stop").await;
    stage.tell("chat", &demo::answer("aborted", ""));
    browser.reads("#panel-chat .log", "Stopped").await;
    assert_eq!(stage.asked("chat.abort"), [json!({"sessionKey": "agent:main:main", "runId": "run-1"})]);
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_stopped_also_by_who_comes_in_the_middle() {
    let (stage, browser) = enter("chat").await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    stage.tell("agent", &demo::turn("lifecycle", &json!({"phase": "start"})));
    browser.until("!document.querySelector('.stop').hidden").await;
    browser.client.refresh().await.expect("loaded again");
    browser.reads("#panel-chat .log", "umbrella at home").await;
    assert_eq!(browser.ask("document.querySelector('.stop').hidden").await, true, "nothing is known of it yet");
    stage.tell("agent", &demo::turn("assistant", &json!({"text": "Let me", "delta": "me"})));
    browser.reads("#panel-chat .log", "Let me").await;
    assert_eq!(browser.ask("document.querySelector('.stop').hidden").await, false);
    browser.reads(".working", "Working").await;
    // Its end is the end, whatever of it comes late.
    stage.tell("chat", &demo::answer("final", "Let me see."));
    stage.tell("agent", &demo::turn("skill", &json!({"phase": "read", "name": "weather", "path": "p"})));
    let mut other = demo::turn("lifecycle", &json!({"phase": "end"}));
    other["runId"] = "run-0".into();
    stage.tell("agent", &other);
    stage.tell("exec.approval.requested", &demo::question("q1", "uname"));
    browser.reads("#asking", "A command is waiting").await;
    assert_eq!(browser.ask("document.querySelector('.stop').hidden").await, true);
    assert_eq!(browser.ask("document.querySelector('.working').textContent").await, "Waiting for your approval");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_sent_is_not_lost() {
    let (stage, browser) = enter("chat").await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    let histories = || stage.asked("chat.history").len();
    let before = histories();
    stage.go_away();
    browser.reads("#state", "reconnecting").await;
    browser.find("#chat-input").await.send_keys("And tomorrow?\u{e007}").await.expect("typed");
    browser.reads(".unsent", "Your message was not sent: Cannot reach the gateway").await;
    let written = "document.getElementById('chat-input').value";
    assert_eq!(browser.ask(written).await, "And tomorrow?");
    assert_eq!(browser.ask("document.querySelector('.log').innerText.includes('tomorrow')").await, false);
    stage.come_back();
    browser.reads("#state", "connected").await;
    prowess_testkit::eventually("what was said is asked for again", || histories() > before);
    browser.reads("#panel-chat .log", "umbrella at home").await;
    assert_eq!(browser.ask(written).await, "And tomorrow?");
    assert_eq!(browser.ask("document.querySelector('.unsent').hidden").await, false);
    assert_eq!(stage.asked("chat.send"), Vec::<Value>::new());
    browser.find("#chat-input").await.send_keys("\u{e007}").await.expect("typed");
    browser.until("!document.querySelector('.stop').hidden").await;
    assert_eq!(stage.asked("chat.send")[0]["message"], "And tomorrow?");
    assert_eq!(browser.ask("document.querySelector('.unsent').hidden").await, true);
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_could_not_be_sent_leaves_alone_what_was_written_since() {
    let (stage, browser) = enter("chat").await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    stage.go_away();
    browser.reads("#state", "reconnecting").await;
    let both = "(() => {
        const input = document.getElementById('chat-input');
        input.value = 'first';
        input.form.requestSubmit();
        input.value = 'second';
        input.dispatchEvent(new Event('input'));
    })()";
    browser.ask(both).await;
    browser.reads(".unsent", "first").await;
    assert_eq!(browser.ask("document.getElementById('chat-input').value").await, "second");
    browser.click(".unsent button").await;
    browser.until("document.getElementById('chat-input').value === 'first\\nsecond'").await;
    assert_eq!(browser.ask("document.querySelector('.unsent button')").await, Value::Null);
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slash_offers_the_commands_of_skills() {
    let (_stage, browser) = enter("chat").await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    let input = browser.find("#chat-input").await;
    // The commands may arrive a moment later than the first key.
    for _ in 0..600 {
        input.clear().await.expect("cleared");
        input.send_keys("/wea").await.expect("typed");
        if browser.ask("document.getElementById('chat-menu').hidden").await == false {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    browser.reads("#chat-menu [aria-selected=true]", "/weather").await;
    // A field of many lines is no combobox: what is offered is said beside it.
    assert_eq!(browser.ask("document.querySelector('#chat-input').matches('[role], [aria-expanded]')").await, false);
    browser.until("document.getElementById('chat-offer').textContent.includes('Tab takes /weather')").await;
    input.send_keys("\u{e004}").await.expect("typed");
    browser.until("document.getElementById('chat-input').value === '/weather '").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_shown_as_it_is_and_answered_by_one_click() {
    let (stage, browser) = enter("skills").await;
    stage.tell("exec.approval.requested", &demo::question("q1", demo::TRICKY));
    browser.reads("#asking", "A command is waiting").await;
    browser.click("#asking button").await;
    let command = browser.find(".question .command").await.text().await.expect("text");
    assert!(command.contains("U+202E") && !command.contains('\u{202e}'), "{command}");
    assert_eq!(browser.ask("document.querySelector('.question .foreign').title").await, "U+0435");
    browser.reads(".question .warned", "They are marked").await;
    browser.until("/^\\d:\\d\\d$/.test(document.querySelector('.question .left').textContent)").await;
    browser.click("[data-decision=allow-once]").await;
    browser.reads(".answered", "allowed once").await;
    assert_eq!(stage.asked("exec.approval.resolve"), [json!({"id": "q1", "decision": "allow-once"})]);
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_gateway_wrote_as_a_number_is_warned_of_too() {
    let (stage, browser) = enter("approvals").await;
    // As the gateway writes a turn of direction, and a space at the end.
    stage.tell("exec.approval.requested", &demo::question("q1", r"echo \u{202e}txet"));
    stage.tell("exec.approval.requested", &demo::question("q2", r"echo text\u{20}"));
    let mut third = demo::question("q3", "id");
    third["request"]["variables"] = json!([r"LANG=\u{200b}C"]);
    stage.tell("exec.approval.requested", &third);
    browser.until("document.querySelectorAll('.question[data-id]').length === 3").await;
    let warned = "[...document.querySelectorAll('.question:has(.warned)')].map((one) => one.dataset.id)";
    assert_eq!(browser.ask(warned).await, json!(["q1", "q3"]));
    let marked = "[...document.querySelectorAll('.hidden-char')].map((one) => [one.textContent, one.title])";
    assert_eq!(browser.ask(marked).await, json!([[r"\u{202e}", "U+202E"], [r"\u{200b}", "U+200B"]]));
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_answered_is_seen_by_all() {
    let (stage, browser) = enter("approvals").await;
    stage.tell("exec.approval.requested", &demo::question("q1", "uname -a"));
    stage.tell("exec.approval.requested", &demo::question("q2", "id"));
    browser.until("document.querySelectorAll('.question[data-id]').length === 2").await;
    stage.tell("exec.approval.resolved", &json!({"id": "q2", "decision": "deny", "resolvedBy": "the terminal"}));
    browser.reads(".answered", "denied").await;
    browser.reads(".answered", "by the terminal").await;
    let mut old = demo::question("q3", "date");
    old["expiresInMs"] = json!(0);
    stage.tell("exec.approval.requested", &old);
    stage.tell("exec.approval.resolved", &json!({"id": "q1", "decision": "allow-always", "resolvedBy": "x"}));
    browser.reads("#panel-approvals", "No command is waiting").await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_device_is_let_in_by_one_click_and_an_administrator_by_two() {
    let (stage, browser) = enter("nodes").await;
    browser.reads("#panel-nodes", "studio").await;
    let texts = [("1", "build-box"), ("1", "a device requests access"), ("2", "laptop"), ("2", "full control")];
    for (at, text) in texts {
        browser.reads(&format!("#panel-nodes .question:nth-child({at})"), text).await;
    }
    browser.reads("#panel-nodes .question:nth-child(2) .scopes", "operator.read, operator.admin").await;
    assert_eq!(browser.ask("document.querySelectorAll('#panel-nodes .question.admin').length").await, 1);
    browser.click("#panel-nodes .question:not(.admin) [data-act=approve]").await;
    let asked = || stage.asked("device.pair.approve");
    prowess_testkit::eventually("the gateway is told", || asked() == [json!({"requestId": "r1"})]);
    let admin = "#panel-nodes .question.admin [data-act=approve]";
    browser.until("document.querySelectorAll('#panel-nodes .question').length === 2").await;
    browser.click(admin).await;
    browser.reads(admin, "Yes, give it full control").await;
    assert_eq!(asked().len(), 1, "one click is not enough");
    browser.click(admin).await;
    prowess_testkit::eventually("the gateway is told", || asked().len() == 2);
    assert_ne!(asked()[1], json!({"requestId": "r1"}));
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_is_read_and_gone_on_with() {
    let (stage, browser) = enter("sessions").await;
    browser.reads("#panel-sessions .row", "What is the weather in Berlin?").await;
    browser.click("#panel-sessions .rows li:nth-child(2) .row").await;
    browser.reads("#panel-sessions .log", "umbrella at home").await;
    browser.click("#panel-sessions .detail .main").await;
    browser.until("document.getElementById('chat-session').value === 'agent:main:release'").await;
    browser.until("document.activeElement.id === 'chat-input'").await;
    let keys: Vec<Value> = stage.asked("chat.history").into_iter().map(|asked| asked["sessionKey"].clone()).collect();
    assert!(keys.contains(&json!("agent:main:release")), "{keys:?}");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_a_picture_and_a_table() {
    let (_stage, browser) = enter("usage").await;
    browser.reads("#panel-usage table", "git-tidy").await;
    browser.until("document.querySelectorAll('#panel-usage svg.chart rect').length >= 15").await;
    browser.close().await;
}
