//! `sessions replay`: a session the way it looked when it ran. Nothing is run and no model is asked.

use std::time::Duration;

use prowess_agent::event::{End, Event, How};
use prowess_agent::frame::Frames;
use prowess_agent::message::{Assistant, Block, Message};
use prowess_host::Failure;
use serde_json::{Value, json};

use super::told::{Broken, Told, ending, result, typed};
use crate::output::Report;
use crate::show::Printer;

/// Something to show.
#[derive(Debug, PartialEq)]
pub(crate) enum Scene {
    /// A person said this.
    Said(String),
    /// This happened.
    Happened(Event),
}

/// Shows all of it.
pub(crate) fn play(told: &Told, printer: &Printer) {
    for scene in scenes(told) {
        match scene {
            Scene::Said(text) => printer.said(&text),
            Scene::Happened(event) => printer.show(&event),
        }
    }
}

/// The same for machines: a list of objects, as `run --events` prints them one by one.
pub(crate) fn report(told: &Told) -> Result<Report, Failure> {
    let mut frames = Frames::new(&told.id, told.key.as_deref().unwrap_or_default());
    let shapes = scenes(told).into_iter().flat_map(|scene| match scene {
        Scene::Said(text) => vec![json!({"stream": "said", "data": {"text": text}})],
        Scene::Happened(event) => frames.frames(&event),
    });
    Report::json(&shapes.collect::<Vec<_>>())
}

/// What there was to see, in its order.
pub(crate) fn scenes(told: &Told) -> Vec<Scene> {
    let mut scenes = Vec::new();
    // When the last reply came, which is when its calls began.
    let mut replied = 0;
    for (index, line) in told.lines.iter().enumerate() {
        match &line.message {
            Message::User(user) => scenes.push(Scene::Said(typed(user))),
            Message::Assistant(assistant) => {
                replied = assistant.timestamp;
                scenes.extend(spoken(assistant).into_iter().map(Scene::Happened));
            }
            Message::ToolResult(reply) => {
                let call = told.call(index);
                let path = call.and_then(|call| call.arguments.get("path")).and_then(Value::as_str).unwrap_or("");
                let uses = line.reads.iter().map(|skill| Event::SkillUsed {
                    skill: skill.clone(),
                    path: path.into(),
                    how: How::Read,
                });
                scenes.extend(uses.map(Scene::Happened));
                scenes.push(Scene::Happened(Event::CallEnded {
                    id: reply.tool_call_id.clone(),
                    tool: call.map_or_else(|| reply.tool_name.clone(), |call| call.name.clone()),
                    result: result(reply),
                    took: Duration::from_millis(reply.timestamp.saturating_sub(replied)),
                    summary: String::new(),
                }));
            }
        }
    }
    if !matches!(scenes.last(), Some(Scene::Happened(Event::Ended(_)))) {
        scenes.push(Scene::Happened(Event::Ended(End::Answered)));
    }
    scenes
}

fn spoken(assistant: &Assistant) -> Vec<Event> {
    let mut events = Vec::new();
    for block in &assistant.content {
        match block {
            Block::Text { text, .. } => events.push(Event::Text { delta: text.clone() }),
            Block::Thinking { thinking, .. } => events.push(Event::Thinking { delta: thinking.clone() }),
            Block::ToolCall(_) | Block::Image(_) | Block::Other(_) => {}
        }
    }
    events.push(Event::Replied { stop: assistant.stop_reason, usage: assistant.usage });
    events.extend(assistant.calls().map(|call| Event::CallStarted {
        id: call.id.clone(),
        tool: call.name.clone(),
        arguments: call.arguments.clone(),
        skills: Vec::new(),
    }));
    match ending(assistant) {
        None => {}
        Some((Broken::Cut, why)) => events.push(Event::Notice(format!("the answer was {why}"))),
        Some((Broken::Stopped, _)) => events.push(Event::Ended(End::Interrupted)),
        Some((Broken::Failed, why)) => events.push(Event::Ended(End::Failed(why.to_owned()))),
    }
    events
}

#[cfg(test)]
mod tests {
    use prowess_agent::message::StopReason;

    use super::*;
    use crate::sessions::tests::weather;

    #[test]
    fn a_replay_is_what_happened() {
        let names: Vec<String> = scenes(&weather())
            .iter()
            .map(|scene| match scene {
                Scene::Said(text) => format!("> {text}"),
                Scene::Happened(event) => {
                    let shown = format!("{event:?}");
                    shown.split([' ', '(']).next().unwrap_or_default().to_owned()
                }
            })
            .collect();
        assert_eq!(
            names,
            [
                "> check the weather",
                "Text",
                "Replied",
                "CallStarted",
                "CallStarted",
                "SkillUsed",
                "CallEnded",
                "CallEnded",
                "Text",
                "Replied",
                "Ended"
            ]
        );
    }

    #[test]
    fn a_turn_that_failed_is_shown_to_have_failed() {
        let mut told = weather();
        if let Some(Message::Assistant(last)) = told.lines.last_mut().map(|line| &mut line.message) {
            last.stop_reason = StopReason::Error;
            last.error_message = Some("no key".to_owned());
        }
        assert_eq!(scenes(&told).last(), Some(&Scene::Happened(Event::Ended(End::Failed("no key".to_owned())))));
    }
}
