//! Does anything run that a skill, a model, a node or a stranger wrote?

use prowess_agent::message::now;
use prowess_testkit::Tree;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::demo;
use crate::room::Room;
use crate::stage::Stage;

/// Markup in every way that was ever taken for some.
const EVIL: &str = "\"'><img src=x onerror=\"window.__canary=1\"><script>window.__canary=1</script><b class=\"canary\">b</b>\
    <svg onload=\"window.__canary=1\"></svg><iframe src=\"javascript:parent.__canary=1\"></iframe>&lt;b&gt;{{7*7}}${window.__canary=1}\u{202e}";

/// The same in Markdown: links that are programs, pictures of others, and markup in every place that has a meaning.
const EVIL_MARKDOWN: &str = "# <img src=x onerror=window.__canary=1>\n[a](javascript:window.__canary=1) [b](JaVaScRiPt:window.__canary=1) \
    [c](&#106;avascript:window.__canary=1) [d](data:text/html,<script>window.__canary=1</script>) [e](vbscript:x) [f](//evil.example) [g](#x) \
    [h](<javascript:window.__canary=1>) <javascript:window.__canary=1> ![i](https://evil.example/i.png) ![j](data:image/svg+xml,<svg/onload=x>) \
    ![k](blob:x) [![l](x)](javascript:window.__canary=1) [m](https://a\"onmouseover=\"window.__canary=1)\n\n\
    ```html\" onload=\"window.__canary=1\n<script>window.__canary=1</script>\n```\n\n| <b class=canary>x</b> | y |\n|---|---|\n| <svg onload=x> | `<iframe>` |\n\n\
    <style>*{color:red}</style><a href=javascript:x>y</a>\n\n- [x] <input onfocus=window.__canary=1 autofocus>\n\n> <details ontoggle=window.__canary=1 open>";

const LINK: &str = "javascript:window.__canary=1";

/// A home in which everything that can be named is named with markup.
fn home() -> Tree {
    let quoted = Value::from(EVIL).to_string();
    let name = "<b class=canary>x<"; // A folder may have such a name.
    let skill = |name: &str| {
        format!(
            "---\nname: {}\ndescription: {quoted}\nhomepage: {quoted}\nlicense: {quoted}\ncompatibility: {quoted}\nallowed-tools: {quoted}\n\
             metadata: {{openclaw: {{emoji: {quoted}, skillKey: {quoted}, primaryEnv: {quoted}, requires: {{bins: [{quoted}], anyBins: [{quoted}], \
             env: [{quoted}], config: [{quoted}], os: [linux, {quoted}]}}, install: [{{id: {quoted}, kind: brew, formula: x, label: {quoted}, bins: [{quoted}]}}]}}}}\n---\n{EVIL}\n",
            Value::from(name)
        )
    };
    Tree::new()
        .file(&format!(".openclaw/workspace/skills/{name}/SKILL.md"), skill("evil"))
        .file(".openclaw/skills/evil/SKILL.md", skill("evil"))
        .file(&format!(".openclaw/workspace/skills/{name}2/SKILL.md"), "---\nname: half\n---\n")
        .file(
            ".openclaw/workspace/skills/open/SKILL.md",
            format!("---\nname: open\ndescription: {quoted}\nhomepage: {LINK}\n---\n"),
        )
        .file(".openclaw/workspace/AGENTS.md", EVIL)
        .file(".openclaw/openclaw.json", r#"{"skills": {"allowBundled": ["none"]}}"#)
}

fn script(method: &str, _params: &Value) -> Option<Value> {
    let said = json!([{"type": "text", "text": EVIL}]);
    Some(match method {
        "agents.list" => {
            json!({"defaultId": "main", "agents": [{"id": "main", "name": EVIL}, {"id": "other", "name": EVIL}]})
        }
        "sessions.list" => {
            json!({"sessions": [{"key": EVIL, "derivedTitle": EVIL, "model": EVIL, "updatedAt": now()}]})
        }
        "chat.history" => json!({"messages": [
            {"role": "user", "content": EVIL},
            {"role": EVIL, "content": said},
            {"role": "assistant", "content": [{"type": "text", "text": EVIL_MARKDOWN}]},
            {"role": "assistant", "content": [{"type": "text", "text": EVIL}, {"type": "toolCall", "id": "c", "name": EVIL, "arguments": {"command": EVIL}}]},
            {"role": "toolResult", "toolCallId": "c", "toolName": EVIL, "content": said, "isError": true},
        ]}),
        "chat.send" => json!({"runId": "run-1", "status": "started"}),
        "exec.approval.list" => json!({"approvals": [question("listed")]}),
        "node.list" => json!({"nodes": [{
            "nodeId": EVIL, "displayName": EVIL, "platform": EVIL, "version": EVIL, "deviceFamily": EVIL, "remoteIp": EVIL,
            "caps": [EVIL], "commands": [EVIL], "pathEnv": EVIL, "connected": true, "connectedAtMs": 1,
        }]}),
        "device.pair.list" => json!({"pending": [{
            "requestId": EVIL, "deviceId": EVIL, "displayName": EVIL, "platform": EVIL, "role": EVIL, "roles": [EVIL, EVIL],
            "scopes": [EVIL], "remoteIp": EVIL,
        }]}),
        "usage.skills" => json!({
            "skills": [{"skill": EVIL, "calls": 1, "tokens": 6, "catalog": 1, "body": 2, "output": 3}],
            "byDay": [{"date": EVIL, "tokens": 1}, {"date": EVIL, "tokens": 2}], "total": 6, "sessions": 1, "skipped": 0,
        }),
        _ => return None,
    })
}

fn question(id: &str) -> Value {
    let mut question = demo::question(id, EVIL);
    for name in ["cwd", "host", "security", "ask", "agentId", "resolvedPath", "sessionKey", "nodeId"] {
        question["request"][name] = EVIL.into();
    }
    question["request"]["commandArgv"] = json!([EVIL, EVIL]);
    for name in ["variables", "envKeys", "skillVariables", "objections"] {
        question["request"][name] = json!([EVIL, {EVIL: EVIL}]);
    }
    question["request"]["always"] = json!([EVIL, {"program": EVIL, "command": EVIL, "cwd": EVIL}]);
    question["request"]["text"] = EVIL.into();
    question["request"]["nodeName"] = EVIL.into();
    question
}

/// No element that only markup could have made, and no link that is a program.
const MADE: &str = "document.querySelectorAll('main img, main iframe, main script, main object, main embed, main svg[onload], .canary, \
    a[href^=\"javascript\" i], [onerror], [onload], [style]:not(option, .window, .window > li)').length";

#[tokio::test(flavor = "multi_thread")]
async fn what_others_wrote_is_text_in_every_view() {
    let stage = Stage::open(Room::open(home()).await, script).await;
    let browser = Browser::open().await;
    browser.visit(&stage.url()).await;
    browser.reads("#state", "connected").await;
    browser.click("[data-skill=evil]").await;
    browser.reads("#panel-skills .detail", "onerror").await;
    browser.reads("#panel-skills .detail", "Shadows other").await;
    browser.reads("#panel-skills .detail h3", "What keeps it back").await;
    assert_eq!(browser.ask(MADE).await, 0);
    browser.click("[data-skill=open]").await;
    browser.reads("#panel-skills .detail", LINK).await;
    assert_eq!(browser.ask(MADE).await, 0);
    browser.click(".chip[data-id=problems]").await;
    browser.reads(".problem", "canary").await;
    assert_eq!(browser.ask(MADE).await, 0);

    stage.tell("exec.approval.requested", &question("told"));
    let resolved = json!({"id": "listed", "decision": EVIL, "resolvedBy": EVIL});
    let views = [
        ("prompt", "onerror"),
        ("chat", "onerror"),
        ("approvals", "Allow this command?"),
        ("nodes", "A device requests"),
        ("sessions", "onerror"),
        ("usage", "Table"),
    ];
    for (view, text) in views {
        browser.click(&format!("#tab-{view}")).await;
        browser.reads(&format!("#panel-{view}"), text).await;
        if view == "chat" {
            turn(&stage, &browser).await;
        }
        if view == "sessions" {
            browser.click("#panel-sessions .row").await;
            browser.reads("#panel-sessions .log", "onerror").await;
        }
        if view == "approvals" {
            stage.tell("exec.approval.resolved", &resolved);
            browser.reads(".answered", "by").await;
        }
        assert_eq!(browser.ask(MADE).await, 0, "{view}");
        browser.is_unharmed().await;
    }
    browser.close().await;
}

/// A turn in which everything that can be told is markup.
async fn turn(stage: &Stage, browser: &Browser) {
    let key = browser.ask("document.getElementById('chat-session').value").await;
    let tell = |stream: &str, data: Value| {
        let mut event = demo::turn(stream, &data);
        event["sessionKey"] = key.clone();
        stage.tell("agent", &event);
    };
    tell("assistant", json!({"text": EVIL, "delta": EVIL}));
    tell("skill", json!({"name": EVIL, "phase": EVIL, "path": EVIL}));
    tell("tool", json!({"phase": "start", "name": EVIL, "toolCallId": EVIL, "args": {EVIL: EVIL}}));
    tell("tool", json!({"phase": "result", "name": EVIL, "toolCallId": EVIL, "meta": EVIL, "isError": true}));
    tell("assistant", json!({"text": EVIL_MARKDOWN, "delta": EVIL_MARKDOWN}));
    let mut asked = question("inline");
    asked["request"]["sessionKey"] = key.clone();
    stage.tell("exec.approval.requested", &asked);
    browser.reads("#panel-chat .question", "Allow this command?").await;
    stage.tell(
        "exec.approval.resolved",
        &json!({"id": "inline", "decision": "deny", "by": {"name": EVIL, "deviceName": EVIL, "deviceId": EVIL}}),
    );
    browser.reads("#panel-chat .verdict", "Denied").await;
    let mut failed = demo::answer("error", EVIL);
    failed["sessionKey"] = key.clone();
    failed["errorMessage"] = EVIL.into();
    stage.tell("chat", &failed);
    browser.reads("#panel-chat .log > .bad", "onerror").await;
}
