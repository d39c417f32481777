//! The guard: is a model going round in circles?
//!
//! A call that gives the same result again and again is no progress, whether the calls are all alike or take turns. The
//! model is told first; if it goes on, the turn ends.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::message::{ToolCall, ToolReply};

/// How many calls are remembered.
const MEMORY: usize = 30;
/// From how many equal ones on the model is told.
const WARN: usize = 10;
/// From how many equal ones on the turn ends.
const STOP: usize = 20;

/// What became of the last calls of a turn.
#[derive(Debug, Default)]
pub(crate) struct Guard(VecDeque<u64>);

/// What the guard thinks of a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// Nothing.
    Fine,
    /// It has given this result so many times; the model should hear of it.
    Circling(usize),
    /// So many times that it is enough.
    Stuck(usize),
}

impl Guard {
    /// Notes a call and its result.
    pub(crate) fn note(&mut self, call: &ToolCall, reply: &ToolReply) -> Finding {
        let print = print(call, reply);
        if self.0.len() == MEMORY {
            self.0.pop_front();
        }
        self.0.push_back(print);
        match self.0.iter().filter(|known| **known == print).count() {
            count @ STOP.. => Finding::Stuck(count),
            count @ WARN.. => Finding::Circling(count),
            _ => Finding::Fine,
        }
    }
}

fn print(call: &ToolCall, reply: &ToolReply) -> u64 {
    let mut hasher = DefaultHasher::new();
    call.name.hash(&mut hasher);
    serde_json::Value::Object(call.arguments.clone()).to_string().hash(&mut hasher);
    reply.text().hash(&mut hasher);
    reply.is_error.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::Block;

    fn note(guard: &mut Guard, command: &str, said: &str) -> Finding {
        let serde_json::Value::Object(arguments) = json!({"command": command}) else { panic!("an object") };
        let (id, name) = ("a".to_owned(), "exec".to_owned());
        let call = ToolCall { id, name, arguments, thought_signature: None, provider_data: serde_json::Map::new() };
        let reply = ToolReply {
            tool_call_id: "a".to_owned(),
            tool_name: "exec".to_owned(),
            content: vec![Block::text(said)],
            details: None,
            is_error: false,
            timestamp: 0,
        };
        guard.note(&call, &reply)
    }

    #[test]
    fn the_same_again_and_again_is_told_and_then_ended() {
        let mut guard = Guard::default();
        let findings: Vec<Finding> = (0..20).map(|_| note(&mut guard, "ls", "a")).collect();
        assert!(findings[..9].iter().all(|finding| *finding == Finding::Fine));
        assert_eq!(findings[9], Finding::Circling(10));
        assert_eq!(findings[18], Finding::Circling(19));
        assert_eq!(findings[19], Finding::Stuck(20));
    }

    #[test]
    fn taking_turns_is_going_round_too() {
        let mut guard = Guard::default();
        let findings: Vec<Finding> =
            (0..20).map(|round| note(&mut guard, if round % 2 == 0 { "ls" } else { "pwd" }, "a")).collect();
        assert_eq!(findings[18], Finding::Circling(10));
    }

    #[test]
    fn new_results_are_progress() {
        let mut guard = Guard::default();
        for round in 0..100 {
            assert_eq!(note(&mut guard, "ls", &round.to_string()), Finding::Fine);
        }
    }
}
