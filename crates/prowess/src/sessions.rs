//! `prowess sessions`: which conversations are there, what was said in them, and what did it cost?

pub(crate) mod export;
pub(crate) mod list;
pub(crate) mod replay;
pub(crate) mod show;
pub(crate) mod stored;
pub(crate) mod told;

#[cfg(test)]
pub(crate) mod tests {
    use prowess_agent::message::Message;
    use serde_json::json;

    use super::told::{Costs, Line, SkillCost, Source, Told};

    /// A short conversation about the weather.
    pub(crate) fn weather() -> Told {
        let usage = json!({"input": 15, "output": 3, "totalTokens": 18});
        let written = [
            json!({"role": "user", "content": "check the weather", "timestamp": 1}),
            json!({
                "role": "assistant", "provider": "local", "model": "m", "usage": usage, "stopReason": "toolUse",
                "timestamp": 10,
                "content": [
                    {"type": "text", "text": "Let me look."},
                    {"type": "toolCall", "id": "1", "name": "read", "arguments": {"path": "/home/me/w/SKILL.md"}},
                    {"type": "toolCall", "id": "2", "name": "exec", "arguments": {"command": "curl wttr.in"}}
                ]
            }),
            json!({
                "role": "toolResult", "toolCallId": "1", "toolName": "read", "timestamp": 12,
                "content": [{"type": "text", "text": "```sh\ncurl wttr.in\n```\n"}]
            }),
            json!({
                "role": "toolResult", "toolCallId": "2", "toolName": "exec", "timestamp": 20,
                "content": [{"type": "text", "text": "\u{1b}[2Jno network"}],
                "details": {"status": "completed", "exitCode": 6}
            }),
            json!({
                "role": "assistant", "provider": "local", "model": "m", "usage": usage, "stopReason": "stop",
                "timestamp": 30, "content": [{"type": "text", "text": "It is sunny."}]
            }),
        ];
        let mut lines: Vec<Line> = written
            .into_iter()
            .map(|json| Line {
                message: serde_json::from_value::<Message>(json).expect("a message"),
                reads: Vec::new(),
            })
            .collect();
        lines[2].reads.push("weather".to_owned());
        let costs = Costs {
            skills: vec![SkillCost { skill: "weather".to_owned(), catalog: 12, body: 20, output: 0 }],
            others: vec![("system".to_owned(), 4)],
            total: 36,
        };
        Told {
            key: Some("agent:main:main".to_owned()),
            id: "0123".to_owned(),
            path: "/home/me/s/0123.jsonl".into(),
            lines,
            costs,
            problems: Vec::new(),
            source: Source::File,
        }
    }
}
