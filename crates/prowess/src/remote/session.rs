//! A session that others use too: what happens in it besides the turn that this client asked for?
//!
//! A command that had to wait for approval runs after its turn, and its result begins another turn. Questions stay open in
//! between, and the person at the prompt can answer the one that was shown last.

use prowess_agent::event::{End, Event};
use prowess_exec::approver::Offer;
use prowess_policy::Answer;
use serde_json::Value;

use super::feed::Feed;
use super::questions::Pending;

/// How many open questions are kept.
const MAX_OPEN: usize = 256;

/// What is known of a session between turns.
pub(super) struct SessionWatch {
    key: String,
    /// Questions without an answer, the oldest first.
    open: Vec<Pending>,
    /// The question that the person has seen in full; only that one can be answered.
    shown: Option<String>,
    /// A turn that another client asked for, or the gateway itself, and what was heard of it.
    other: Option<(String, Feed)>,
}

/// What a line at the prompt is to an open question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// The answer to the question of that id.
    Answer(String, Answer),
    /// The person wants to know more; this is it.
    Why(String),
}

impl SessionWatch {
    /// Watches the session `key`.
    pub(super) fn new(key: impl Into<String>) -> Self {
        Self { key: key.into(), open: Vec::new(), shown: None, other: None }
    }

    /// Keeps the questions of the session among `rows`, from an answer to `exec.approval.list`.
    pub(super) fn add_open(&mut self, rows: &Value) {
        for row in rows.as_array().into_iter().flatten() {
            self.asked(row);
        }
    }

    /// Takes an event of the gateway that is not of the client's own turn. Says what there is to show.
    pub(super) fn hear(&mut self, name: &str, payload: &Value) -> Vec<Event> {
        match name {
            "exec.approval.requested" => self.asked(payload),
            "exec.approval.resolved" => self.forget(payload["id"].as_str().unwrap_or_default()),
            "agent" => return self.agent(payload),
            "chat" => return self.ended(payload),
            _ => {}
        }
        Vec::new()
    }

    fn asked(&mut self, payload: &Value) {
        let Some(pending) = Pending::read(payload) else { return };
        let is_known = self.open.iter().any(|known| known.id == pending.id);
        if pending.session() == Some(self.key.as_str()) && !is_known && self.open.len() < MAX_OPEN {
            self.open.push(pending);
        }
    }

    /// The question of that id is over.
    pub(super) fn forget(&mut self, id: &str) {
        self.open.retain(|pending| pending.id != id);
        self.shown.take_if(|shown| shown == id);
    }

    fn agent(&mut self, payload: &Value) -> Vec<Event> {
        let is_here = payload["sessionKey"] == self.key.as_str();
        if is_here && payload["data"]["late"] == true {
            return Feed::default().take(payload);
        }
        let Some(run) = payload["runId"].as_str() else { return Vec::new() };
        if is_here && payload["stream"] == "lifecycle" && payload["data"]["phase"] == "start" {
            self.other = Some((run.to_owned(), Feed::default()));
            return Vec::new();
        }
        match &mut self.other {
            Some((other, feed)) if other == run => feed.take(payload),
            _ => Vec::new(),
        }
    }

    fn ended(&mut self, payload: &Value) -> Vec<Event> {
        let end = match payload["state"].as_str() {
            Some("final") => End::Answered,
            Some("aborted") => End::Interrupted,
            Some("error") => End::Failed(payload["errorMessage"].as_str().unwrap_or("the turn failed").to_owned()),
            _ => return Vec::new(),
        };
        match self.other.take_if(|(run, _)| payload["runId"] == run.as_str()) {
            Some((_, mut feed)) => {
                let mut events = feed.finish(&Value::Null);
                events.push(Event::Ended(end));
                events
            }
            None => Vec::new(),
        }
    }

    /// The oldest open question in full, unless the person has seen it.
    pub(super) fn next_question(&mut self) -> Option<String> {
        let first = self.open.first().filter(|first| self.shown.as_ref() != Some(&first.id))?;
        self.shown = Some(first.id.clone());
        let spoken = first.spoken();
        Some(format!("{}{}", spoken.asked, choices(spoken.offer)))
    }

    /// What `text` is to the question that was shown; nothing if none is open or it is no answer.
    pub(super) fn typed(&self, text: &str) -> Option<Typed> {
        let pending = self.open.iter().find(|pending| Some(&pending.id) == self.shown.as_ref())?;
        let spoken = pending.spoken();
        let answer = |answer| Some(Typed::Answer(pending.id.clone(), answer));
        match text.trim().to_lowercase().as_str() {
            "y" | "yes" if spoken.offer != Offer::Nothing => answer(Answer::Once),
            "s" | "session" if spoken.offer == Offer::Session => answer(Answer::Session),
            "a" | "always" if matches!(spoken.offer, Offer::Always | Offer::Session) => answer(Answer::Always),
            "n" | "no" => answer(Answer::No),
            "w" | "why" => Some(Typed::Why(format!("{}{}", spoken.why, choices(spoken.offer)))),
            _ => None,
        }
    }
}

/// What can be typed at the prompt while a question is open.
fn choices(offer: Offer) -> &'static str {
    match offer {
        Offer::Nothing => "It waits for your approval. Type n to refuse it, or w for the reasons.",
        Offer::Once => "It waits for your approval. Type y to run it once, n to refuse it, or w for the reasons.",
        Offer::Always => {
            "It waits for your approval. Type y to run it once, a to always allow it, n to refuse it, or w for the reasons."
        }
        Offer::Session => {
            "It waits for your approval. Type y to allow it once, s for this session, a for always, n to refuse it, or w for the reasons."
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn question(id: &str, session: &str) -> Value {
        json!({"id": id, "request": {"command": format!("make {id}"), "sessionKey": session, "decisions": ["allow-once", "deny"]}})
    }

    #[test]
    fn only_a_question_that_was_shown_is_answered() {
        let mut watch = SessionWatch::new("agent:main:main");
        assert_eq!((watch.typed("y"), watch.next_question()), (None, None));
        for (id, session) in [("one", "agent:main:main"), ("far", "agent:main:other"), ("two", "agent:main:main")] {
            watch.hear("exec.approval.requested", &question(id, session));
        }
        assert_eq!(watch.typed("y"), None, "nobody has seen it");
        assert!(watch.next_question().is_some_and(|text| text.contains("make one") && text.contains("Type y")));
        assert_eq!(watch.next_question(), None, "it was shown");
        assert_eq!(watch.typed(" Y "), Some(Typed::Answer("one".to_owned(), Answer::Once)));
        assert_eq!(watch.typed("no"), Some(Typed::Answer("one".to_owned(), Answer::No)));
        assert_eq!((watch.typed("a"), watch.typed("yes please")), (None, None), "neither is offered");
        assert!(matches!(watch.typed("w"), Some(Typed::Why(_))));
        watch.hear("exec.approval.resolved", &json!({"id": "one"}));
        assert_eq!(watch.typed("y"), None, "the next one was not shown");
        assert!(watch.next_question().is_some_and(|text| text.contains("make two")));
    }

    #[test]
    fn a_late_result_and_the_turn_about_it_are_shown() {
        let mut watch = SessionWatch::new("agent:main:main");
        let late = json!({"runId": "old", "sessionKey": "agent:main:main", "stream": "tool", "data": {
            "phase": "result", "name": "exec", "toolCallId": "c1", "meta": "make it", "isError": false, "late": true,
            "result": {"content": [{"type": "text", "text": "made"}], "details": {"late": true}},
        }});
        assert!(matches!(&watch.hear("agent", &late)[..], [Event::CallEnded { summary, .. }] if summary == "make it"));
        let mut elsewhere = late;
        elsewhere["sessionKey"] = "agent:main:other".into();
        assert_eq!(watch.hear("agent", &elsewhere), []);
        let start =
            json!({"runId": "new", "sessionKey": "agent:main:main", "stream": "lifecycle", "data": {"phase": "start"}});
        let piece =
            |run: &str| json!({"runId": run, "stream": "assistant", "data": {"reply": 0, "delta": "It is made."}});
        assert_eq!(watch.hear("agent", &piece("new")), [], "nothing is known of that run");
        watch.hear("agent", &start);
        assert_eq!(watch.hear("agent", &piece("new")), [Event::Text { delta: "It is made.".to_owned() }]);
        assert_eq!(watch.hear("agent", &piece("other")), []);
        let end = watch.hear("chat", &json!({"runId": "new", "state": "final"}));
        assert!(matches!(&end[..], [Event::Replied { .. }, Event::Ended(End::Answered)]), "{end:?}");
    }
}
