//! A run elsewhere: from the `agent` events of a gateway to events of our own.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use prowess_agent::event::{Event, How};
use prowess_agent::message::{StopReason, Usage};
use prowess_exec::ToolResult;
use prowess_exec::tool::Content;
use serde_json::{Value, json};

/// How many calls at a time are kept track of.
const MAX_OPEN: usize = 1024;

/// What is known of a run while it is told.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    /// How much of the reply that is under way was heard, in bytes.
    heard: usize,
    /// The text that was heard last.
    text: String,
    /// The number of the reply that is under way, where the gateway sends each piece of text once.
    reply: u64,
    /// Whether anything was said at all.
    has_spoken: bool,
    /// Whether the end of the last reply was told, and nothing came after it.
    is_replied: bool,
    /// When calls began.
    open: HashMap<String, Instant>,
}

impl Feed {
    /// What a payload of the run tells.
    pub(crate) fn take(&mut self, payload: &Value) -> Vec<Event> {
        let data = &payload["data"];
        match payload["stream"].as_str() {
            Some("assistant") => self.said(data),
            Some("reasoning") => {
                data["delta"].as_str().map(|delta| Event::Thinking { delta: delta.to_owned() }).into_iter().collect()
            }
            Some("tool") => self.tool(data),
            Some("skill") => skill(data).into_iter().collect(),
            Some("notice") => {
                let mut events: Vec<Event> = self.reply_ended().into_iter().collect();
                events.extend(data["text"].as_str().map(|text| Event::Notice(text.to_owned())));
                events
            }
            Some("compaction") if data["phase"] == "end" => {
                let number = |name: &str| data[name].as_u64().unwrap_or(0);
                vec![Event::Compacted { before: number("tokensBefore"), after: number("tokensAfter") }]
            }
            Some("lifecycle") if data["phase"] == "retry" => {
                self.begin_again();
                vec![Event::Retrying {
                    attempt: data["attempt"].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(2),
                    wait: Duration::from_millis(data["waitMs"].as_u64().unwrap_or(0)),
                    why: data["error"].as_str().unwrap_or("the model failed").to_owned(),
                }]
            }
            // How it ended is told by the answer itself.
            _ => Vec::new(),
        }
    }

    /// What was said so far was given up, or pieces of it were lost: all of it is said again.
    pub(crate) fn begin_again(&mut self) {
        (self.heard, self.has_spoken) = (0, false);
        self.text.clear();
    }

    /// A piece of text, from a gateway that sends each piece once.
    fn piece(&mut self, data: &Value) -> Vec<Event> {
        let (reply, delta) = (data["reply"].as_u64().unwrap_or_default(), data["delta"].as_str().unwrap_or_default());
        let mut events = Vec::new();
        if std::mem::replace(&mut self.reply, reply) != reply {
            events.extend(self.reply_ended());
        }
        if !delta.is_empty() {
            (self.has_spoken, self.is_replied) = (true, false);
            self.heard += delta.len();
            self.text.push_str(delta);
            events.push(Event::Text { delta: delta.to_owned() });
        }
        events
    }

    /// The text of a reply is told as a whole each time; what was heard is not said again, and lost pieces come late.
    fn said(&mut self, data: &Value) -> Vec<Event> {
        let Some(whole) = data["text"].as_str() else { return self.piece(data) };
        let mut events = Vec::new();
        if !whole.starts_with(&self.text) {
            events.extend(self.reply_ended());
        }
        let delta = whole.get(self.heard..).unwrap_or_default().to_owned();
        (self.heard, self.text) = (whole.len(), whole.to_owned());
        if !delta.is_empty() {
            (self.has_spoken, self.is_replied) = (true, false);
            events.push(Event::Text { delta });
        }
        events
    }

    fn reply_ended(&mut self) -> Option<Event> {
        let was_speaking = self.heard > 0;
        self.heard = 0;
        self.text.clear();
        self.is_replied |= was_speaking;
        was_speaking.then(|| Event::Replied { stop: StopReason::Stop, usage: Usage::default() })
    }

    fn tool(&mut self, data: &Value) -> Vec<Event> {
        let text = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        let (id, tool) = (text("toolCallId"), text("name"));
        match data["phase"].as_str() {
            Some("start") => {
                let mut events: Vec<Event> = self.reply_ended().into_iter().collect();
                self.is_replied = false;
                if self.open.len() < MAX_OPEN {
                    self.open.insert(id.clone(), Instant::now());
                }
                let arguments = data["args"].as_object().cloned().unwrap_or_default();
                events.push(Event::CallStarted { id, tool, arguments, skills: Vec::new() });
                events
            }
            Some("update") => match data["partialResult"].as_str() {
                Some(tail) => vec![Event::CallUpdate { id, tool, tail: tail.to_owned() }],
                None => Vec::new(),
            },
            Some("result") => {
                let time = self.open.remove(&id).map_or(Duration::ZERO, |began| began.elapsed());
                vec![Event::CallEnded { result: result(data), summary: text("meta"), id, tool, took: time }]
            }
            _ => Vec::new(),
        }
    }

    /// What the answer adds to what was told: the end of the reply, and its text if none of it was heard.
    pub(crate) fn finish(&mut self, answer: &Value) -> Vec<Event> {
        let mut events = Vec::new();
        if !self.has_spoken {
            let payloads = answer["result"]["payloads"].as_array().into_iter().flatten();
            let texts =
                payloads.filter(|payload| payload["isError"] != true).filter_map(|payload| payload["text"].as_str());
            let text = texts.collect::<Vec<_>>().join("\n\n");
            if !text.is_empty() {
                events.push(Event::Text { delta: text });
            }
        }
        if self.is_replied {
            return events;
        }
        let usage = &answer["result"]["meta"]["agentMeta"]["usage"];
        let usage = serde_json::from_value::<Usage>(usage.clone()).unwrap_or_default();
        events.push(Event::Replied { stop: StopReason::Stop, usage });
        events
    }
}

/// What a tool gave back. Most gateways keep that to themselves, and tell only whether it went well.
fn result(data: &Value) -> ToolResult {
    let is_error = data["isError"] == true;
    let parts = data["result"]["content"].as_array().into_iter().flatten();
    let text = parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n");
    let mut details = data["result"]["details"].clone();
    if data["status"] == "waiting" {
        details = json!({"status": "approval-pending", "approvalId": data["approval"]["approvalId"]});
    }
    ToolResult { content: vec![Content::Text { text }], details, is_error }
}

fn skill(data: &Value) -> Option<Event> {
    let how = match data["phase"].as_str()? {
        "read" => How::Read,
        "called" => How::Called,
        "dispatched" => How::Dispatched,
        "named" => How::Named,
        "changed" => {
            let count = data["count"].as_u64().and_then(|count| usize::try_from(count).ok())?;
            return Some(Event::SkillsChanged { count });
        }
        _ => return None,
    };
    let path = PathBuf::from(data["path"].as_str().unwrap_or_default());
    Some(Event::SkillUsed { skill: data["name"].as_str()?.to_owned(), path, how })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(events: &[Event]) -> Vec<&str> {
        events
            .iter()
            .filter_map(|event| if let Event::Text { delta } = event { Some(delta.as_str()) } else { None })
            .collect()
    }

    fn said(feed: &mut Feed, text: &str) -> Vec<Event> {
        feed.take(&json!({"stream": "assistant", "data": {"text": text, "delta": "?"}}))
    }

    #[test]
    fn text_is_said_once_even_where_pieces_were_lost() {
        let mut feed = Feed::default();
        assert_eq!(texts(&said(&mut feed, "All")), ["All"]);
        assert_eq!(texts(&said(&mut feed, "All done: out")), [" done: out"]);
        assert_eq!(texts(&said(&mut feed, "All done: out")), [""; 0]);
        feed.begin_again();
        assert_eq!(texts(&said(&mut feed, "All done: out, and")), ["All done: out, and"]);
        // Another reply begins.
        let next = said(&mut feed, "Now this");
        assert!(matches!(next[0], Event::Replied { .. }));
        assert_eq!(texts(&next), ["Now this"]);
    }

    #[test]
    fn pieces_are_put_together() {
        let mut feed = Feed::default();
        let mut piece = |reply: u64, delta: &str| {
            feed.take(&json!({"stream": "assistant", "data": {"reply": reply, "delta": delta}}))
        };
        assert_eq!(texts(&piece(0, "All ")), ["All "]);
        assert_eq!(texts(&piece(0, "done")), ["done"]);
        let next = piece(1, "Now this");
        assert!(matches!(next[0], Event::Replied { .. }), "{next:?}");
        assert_eq!(texts(&next), ["Now this"]);
        // What was said so far, for who comes later.
        let whole = json!({"stream": "assistant", "data": {"reply": 1, "text": "Now this and"}});
        assert_eq!(texts(&feed.take(&whole)), [" and"]);
    }

    #[test]
    fn a_call_is_told_from_its_start_to_its_end() {
        let mut feed = Feed::default();
        said(&mut feed, "Let me run it.");
        let start = json!({"stream": "tool", "data": {"phase": "start", "name": "exec", "toolCallId": "c1", "args": {"command": "ls"}}});
        let events = feed.take(&start);
        assert!(
            matches!(&events[..], [Event::Replied { .. }, Event::CallStarted { id, .. }] if id == "c1"),
            "{events:?}"
        );
        // A gateway of OpenClaw tells neither what comes nor what came.
        let update = json!({"stream": "tool", "data": {"phase": "update", "name": "exec", "toolCallId": "c1"}});
        assert_eq!(feed.take(&update), []);
        let end = json!({"stream": "tool", "data": {"phase": "result", "name": "exec", "toolCallId": "c1", "meta": "ls", "isError": true}});
        let events = feed.take(&end);
        assert!(matches!(&events[..], [Event::CallEnded { result, .. }] if result.is_error), "{events:?}");
    }

    #[test]
    fn a_command_that_waits_is_not_done() {
        let end = json!({"stream": "tool", "data": {"phase": "result", "name": "exec", "toolCallId": "c1", "meta": "ls",
            "isError": false, "status": "waiting", "approval": {"approvalId": "a3b2"}}});
        let events = Feed::default().take(&end);
        let [Event::CallEnded { result, .. }] = &events[..] else { panic!("{events:?}") };
        assert_eq!(result.details["status"], "approval-pending");
    }

    #[test]
    fn an_answer_that_was_not_streamed_is_shown_at_the_end() {
        let answer = json!({"result": {"payloads": [{"text": "Hello."}], "meta": {"agentMeta": {"usage": {"input": 3, "output": 1}}}}});
        let mut feed = Feed::default();
        assert_eq!(texts(&feed.finish(&answer)), ["Hello."]);
        let mut feed = Feed::default();
        said(&mut feed, "Hello.");
        assert_eq!(texts(&feed.finish(&answer)), [""; 0]);
    }

    #[test]
    fn a_notice_comes_after_the_reply_that_it_is_about() {
        let mut feed = Feed::default();
        let notice = json!({"stream": "notice", "data": {"text": "cut off"}});
        assert_eq!(feed.take(&notice), [Event::Notice("cut off".to_owned())]);
        said(&mut feed, "Half of");
        let events = feed.take(&notice);
        assert!(matches!(&events[..], [Event::Replied { .. }, Event::Notice(_)]), "{events:?}");
        assert_eq!(feed.finish(&json!({})), [], "the reply has ended once");
    }

    #[test]
    fn skills_are_told_as_here() {
        let mut feed = Feed::default();
        let used = json!({"stream": "skill", "data": {"phase": "read", "name": "weather", "path": "/w/SKILL.md"}});
        assert!(matches!(&feed.take(&used)[..], [Event::SkillUsed { how: How::Read, .. }]));
    }
}
