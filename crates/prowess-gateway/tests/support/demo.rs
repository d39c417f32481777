//! A home with something in it, and a gateway's answers about things that a test cannot have: other machines, people
//! who ask, and a model that talks.

use prowess_agent::message::now;
use prowess_testkit::Tree;
use serde_json::{Value, json};

/// A command with a letter of another alphabet and a hidden turn of direction in it.
pub(crate) const TRICKY: &str = "curl -s https://wttr.in/Berlin | gr\u{435}p \"\u{202e}txet\u{202c}\" > /tmp/weather";

/// A home with skills of every kind.
pub(crate) fn home() -> Tree {
    let skill = |name: &str, about: &str, emoji: &str, more: &str| {
        format!(
            "---\nname: {name}\ndescription: \"{about}\"\nhomepage: https://example.org/{name}\nmetadata: {{openclaw: {{emoji: \"{emoji}\"{more}}}}}\n---\n# {name}\nUse it well.\n"
        )
    };
    let workspace = ".openclaw/workspace/skills";
    Tree::new()
        .file(".openclaw/openclaw.json", r#"{"skills": {"allowBundled": [], "entries": {"standup": {"enabled": false}}}}"#)
        .file(&format!("{workspace}/weather/SKILL.md"), skill("weather", "Say what the weather is and will be, anywhere on Earth, without a key.", "⛅", ""))
        .file(&format!("{workspace}/git-tidy/SKILL.md"), skill("git-tidy", "Tidy a branch before review: reorder, squash and reword commits.", "🌿", ", requires: {bins: [sh]}"))
        .file(&format!("{workspace}/release-notes/SKILL.md"), skill("release-notes", "Write release notes from merged pull requests, in the voice of the project.", "📰", ""))
        .file(&format!("{workspace}/sql-look/SKILL.md"), skill("sql-look", "Look into a database: tables, plans, slow queries. It only reads.", "🗄", ", requires: {bins: [no-such-database-client]}, install: [{kind: brew, formula: db-client, bins: [no-such-database-client]}]"))
        .file(&format!("{workspace}/speech/SKILL.md"), skill("speech", "Turn text into speech and speech into text.", "🎙", ", primaryEnv: SPEECH_API_KEY, requires: {env: [SPEECH_API_KEY]}"))
        .file(&format!("{workspace}/standup/SKILL.md"), skill("standup", "Collect what everybody did yesterday into one short report.", "🧍", ""))
        .file(".openclaw/skills/weather/SKILL.md", skill("weather", "The weather, as an older version of this skill told it.", "🌧", ""))
        .file(&format!("{workspace}/unfinished/SKILL.md"), "---\nname: unfinished\n---\nNo description yet.\n")
        .file(".openclaw/agents/main/sessions/0b9d5b1e-1f0c-4c56-9d53-0f6f5a6a7b10.jsonl", usage())
}

/// A conversation that says what was spent on what.
fn usage() -> String {
    let mut lines = vec![
        json!({"type": "session", "version": 3, "id": "0b9d5b1e-1f0c-4c56-9d53-0f6f5a6a7b10", "timestamp": stamp(6), "cwd": "/"}),
    ];
    let costs = [
        ("weather", 410, 5200, 2900),
        ("git-tidy", 380, 8100, 6400),
        ("release-notes", 390, 3900, 7200),
        ("speech", 350, 900, 150),
        ("sql-look", 320, 0, 0),
    ];
    let mut parent = Value::Null;
    let mut id = 0;
    let mut push = |lines: &mut Vec<Value>, mut line: Value| {
        id += 1;
        line["id"] = format!("{id:08x}").into();
        line["parentId"] = parent.clone();
        parent = line["id"].clone();
        lines.push(line);
    };
    for day in (0..6).rev() {
        for (place, (skill, catalog, body, output)) in costs.into_iter().enumerate() {
            let scale = 2 + (day * 7 + u64::try_from(place).unwrap_or_default() * 3) % 5;
            let accounts = json!({
                format!("catalog:{skill}"): {"input": catalog * scale / 4},
                format!("body:{skill}"): {"input": body * scale / 4},
                format!("output:{skill}"): {"output": output * scale / 4},
                "system": {"input": 200},
            });
            push(
                &mut lines,
                json!({"type": "custom", "customType": "prowess:usage", "timestamp": stamp(day), "data": {"accounts": accounts}}),
            );
            if body > 0 {
                push(
                    &mut lines,
                    json!({"type": "custom", "customType": "prowess:use", "timestamp": stamp(day), "data": {"skill": skill, "how": "read"}}),
                );
            }
        }
    }
    lines.iter().flat_map(|line| [line.to_string(), "\n".to_owned()]).collect()
}

fn stamp(days: u64) -> String {
    let millis = i64::try_from(now() - days * 86_400_000).unwrap_or_default();
    jiff::Timestamp::from_millisecond(millis).expect("a time").to_string()
}

/// What the gateway of the demonstration says.
pub(crate) fn script(method: &str, params: &Value) -> Option<Value> {
    Some(match method {
        "agents.list" => json!({"defaultId": "main", "agents": [{"id": "main"}]}),
        "sessions.list" => json!({"sessions": [
            {"key": "agent:main:main", "derivedTitle": "What is the weather in Berlin?", "updatedAt": now() - 60_000, "totalTokens": 12_840, "model": "small"},
            {"key": "agent:main:release", "derivedTitle": "Notes for the next release", "updatedAt": now() - 7_200_000, "totalTokens": 48_210, "model": "small"},
            {"key": "agent:main:tidy", "derivedTitle": "Tidy the branch before review", "updatedAt": now() - 172_800_000, "totalTokens": 9_120, "model": "small"},
        ]}),
        "chat.history" => json!({"sessionKey": params["sessionKey"], "messages": history()}),
        "chat.send" => json!({"runId": "run-1", "status": "started"}),
        "chat.abort" => json!({"ok": true, "aborted": true, "runIds": ["run-1"]}),
        "exec.approval.list" => json!({"approvals": []}),
        "exec.approval.log" => json!({"entries": [
            {"id": "a1", "decision": "allow-once", "at": now() - 3_600_000, "command": "git push origin main", "by": {"name": "Anna", "deviceName": "Pixel 9", "deviceId": "9f86d081884c7d65", "client": "openclaw-control-ui"}},
            {"id": "a2", "decision": null, "at": now() - 7_200_000, "command": "make release", "by": null, "why": "timeout"},
        ], "nextCursor": null}),
        "egress.log" => json!({"entries": [
            connection("c3", "served", "wttr.in", 443, "curl -s 'https://wttr.in/Berlin?format=3'"),
            connection("c2", "refused", "tracker.example", 443, "npm install left-pad"),
            connection("c1", "failed", "registry.npmjs.org", 443, "npm install left-pad"),
        ], "nextCursor": null, "open": [], "openCount": 0}),
        "exec.approvals.get" => {
            json!({"path": "/home/ada/.openclaw/exec-approvals.json", "exists": true, "hash": "h1", "file": {
                "version": 1, "defaults": {"security": "allowlist", "ask": "on-miss"},
                "agents": {"main": {"allowlist": [
                    {"id": "r1", "pattern": "/usr/bin/git", "lastUsedAt": now() - 300_000, "lastUsedCommand": "git status", "lastResolvedPath": "/usr/bin/git"},
                    {"id": "r2", "pattern": "/usr/bin/curl", "lastUsedAt": now() - 90_000_000, "lastUsedCommand": "curl -s https://wttr.in/Berlin", "lastResolvedPath": "/usr/bin/curl"},
                ]}},
            }})
        }
        "exec.approvals.set" | "device.pair.remove" | "device.token.revoke" => json!({}),
        "exec.approval.resolve" | "device.pair.approve" | "device.pair.reject" | "sessions.reset" => {
            json!({"ok": true})
        }
        "device.pair.list" => json!({"paired": [
            {"deviceId": "2b1c1abb05d119c14567a217437d08ac0c103a4d5dd743ad68ae7c9bc716f910", "displayName": "laptop", "platform": "darwin", "role": "operator", "roles": ["operator"], "scopes": ["operator.read", "operator.write", "operator.approvals"], "approvedAtMs": now() - 86_400_000, "tokens": [{"role": "operator", "scopes": [], "createdAtMs": now() - 86_400_000, "lastUsedAtMs": now() - 60_000}]},
            {"deviceId": "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752", "displayName": "laptop", "platform": "linux", "role": "node", "roles": ["node"], "approvedAtMs": now() - 172_800_000, "tokens": []},
        ], "pending": [
            {"requestId": "r1", "deviceId": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", "displayName": "build-box", "platform": "linux", "role": "node", "roles": ["node"], "scopes": [], "remoteIp": "192.0.2.17", "ts": now()},
            {"requestId": "r2", "deviceId": "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752", "displayName": "laptop", "platform": "darwin", "role": "operator", "roles": ["operator"], "scopes": ["operator.read", "operator.admin"], "isRepair": true, "remoteIp": "192.0.2.18", "ts": now()},
        ]}),
        "node.list" => json!({"ts": now(), "nodes": [
            {"nodeId": "2b1c1abb05d119c14567a217437d08ac0c103a4d5dd743ad68ae7c9bc716f910", "displayName": "studio", "platform": "darwin", "version": "0.1.0", "caps": ["system"], "commands": ["system.run", "system.run.prepare", "system.which"], "pathEnv": "/opt/homebrew/bin:/usr/bin:/bin", "connectedAtMs": now() - 3_600_000, "paired": true, "connected": true},
            {"nodeId": "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752", "displayName": "attic", "platform": "linux", "version": "0.1.0", "caps": ["system"], "commands": [], "paired": true, "connected": false},
        ]}),
        _ => return None,
    })
}

fn history() -> Value {
    json!([
        {"role": "user", "content": [{"type": "text", "text": "What is the weather in Berlin, and do I need an umbrella?"}], "timestamp": now() - 90_000},
        {"role": "assistant", "content": [
            {"type": "text", "text": "I look it up."},
            {"type": "toolCall", "id": "c1", "name": "read", "arguments": {"path": "~/.openclaw/workspace/skills/weather/SKILL.md"}},
            {"type": "toolCall", "id": "c2", "name": "exec", "arguments": {"command": "curl -s 'https://wttr.in/Berlin?format=3'"}},
        ], "timestamp": now() - 80_000},
        {"role": "toolResult", "toolCallId": "c1", "toolName": "read", "content": [{"type": "text", "text": "# weather\nUse it well."}], "isError": false},
        {"role": "toolResult", "toolCallId": "c2", "toolName": "exec", "content": [{"type": "text", "text": "Berlin: ⛅ +9°C"}], "isError": false},
        {"role": "assistant", "content": [{"type": "text", "text": "It is 9 °C and partly cloudy in Berlin.\nNo rain is expected before the evening, so you can leave the umbrella at home."}], "timestamp": now() - 70_000},
    ])
}

/// A connection of a command, as the gateway tells it.
pub(crate) fn connection(id: &str, outcome: &str, host: &str, port: u16, command: &str) -> Value {
    let mut row = json!({
        "id": id, "at": now() - 60_000, "session": "agent:main:main", "skill": "weather", "command": command,
        "host": host, "port": port, "protocol": "connect", "address": "192.0.2.7:443", "up": 517, "down": 6_340, "ms": 210,
        "outcome": outcome,
    });
    match outcome {
        "refused" => row["reason"] = json!("not allowed: the user said no"),
        "failed" => row["reason"] = json!("connection refused by 192.0.2.7:443"),
        _ => {}
    }
    row
}

/// A question about a command.
pub(crate) fn question(id: &str, command: &str) -> Value {
    json!({
        "id": id, "createdAtMs": now(), "expiresAtMs": now() + 600_000, "expiresInMs": 600_000,
        "request": {
            "command": command, "cwd": "/home/me/.openclaw/workspace", "host": "gateway", "security": "allowlist", "ask": "on-miss",
            "agentId": "main", "resolvedPath": "/usr/bin/curl", "sessionKey": "agent:main:main", "nodeId": null, "systemRunPlan": null,
            "variables": ["LANG=C"], "objections": ["no rule covers /usr/bin/curl"], "decisions": ["allow-once", "allow-always", "deny"],
            "always": [{"program": "/usr/bin/curl", "command": "curl -s https://wttr.in/Berlin", "cwd": "/home/me/.openclaw/workspace"}],
        },
    })
}

/// What is told while a turn runs.
pub(crate) fn turn(stream: &str, data: &Value) -> Value {
    json!({"runId": "run-1", "sessionKey": "agent:main:main", "stream": stream, "seq": 1, "ts": now(), "data": data})
}

/// What is told of the answer while it is written.
pub(crate) fn answer(state: &str, text: &str) -> Value {
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": text}], "timestamp": now()});
    json!({"runId": "run-1", "sessionKey": "agent:main:main", "seq": 2, "state": state, "message": message})
}
