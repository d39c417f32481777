//! How are the calls of one reply carried out?

use std::time::Instant;

use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use prowess_exec::ToolResult;
use prowess_exec::tool::Content;
use prowess_policy::shown;
use serde_json::Value;

use super::{Made, Turn, TurnError};
use crate::conversation::{Conversation, NOT_RUN, reply};
use crate::event::{End, Event};
use crate::frame;
use crate::guard::{Finding, Guard};
use crate::image::Image;
use crate::message::{Block, Message, ToolCall, ToolReply, now};
use crate::repair::clip_result;
use crate::tool::{Call, Order, Scope};

/// How many calls run side by side.
const SIDE_BY_SIDE: usize = 8;

/// How much of a call is told in a line.
const SUMMARY_CHARS: usize = 200;

impl Conversation {
    /// Runs `calls`, side by side if all of them may, and keeps the results in their order. `None` if the turn was ended
    /// before all were done; then the rest is answered, too.
    pub(super) async fn run_calls(
        &mut self,
        calls: &[ToolCall],
        turn: &mut Turn<'_>,
    ) -> Result<Option<Vec<ToolResult>>, TurnError> {
        let agent = std::sync::Arc::clone(&self.agent);
        let skills = std::sync::Arc::clone(&self.skills);
        let session = self.transcript.key().to_string();
        let scope = Scope {
            agent: &agent.id,
            session: &session,
            workspace: &agent.workspace,
            home: &agent.home,
            skills: &skills,
            uses: &turn.uses,
            approver: agent.approver.as_ref(),
            events: &turn.run.events,
        };
        let may_overlap =
            calls.iter().all(|call| agent.tools.find(&call.name).is_none_or(|tool| tool.order() == Order::Beside));
        let width = if may_overlap { SIDE_BY_SIDE } else { 1 };
        let mut waiting = calls.iter();
        let mut running = FuturesOrdered::new();
        let mut results = Vec::new();
        loop {
            while running.len() < width
                && let Some(call) = waiting.next()
            {
                running.push_back(carry_out(call, &agent.tools, &scope));
            }
            let done = tokio::select! {
                biased;
                () = turn.stopped() => None,
                done = running.next() => match done {
                    Some(done) => Some(done),
                    None => break,
                },
            };
            let Some((result, skills)) = done else {
                // Dropping the calls ends what they run.
                drop(running);
                for call in &calls[results.len()..] {
                    self.push(Message::ToolResult(reply(&call.id, &call.name, NOT_RUN)))?;
                }
                return Ok(None);
            };
            let call = &calls[results.len()];
            turn.outcome.calls.push(Made {
                tool: call.name.clone(),
                summary: summary(call),
                skills,
                is_error: result.is_error,
                waiting: frame::waiting(&call.id, &result),
            });
            let mut reply = told(call, &result, agent.takes_images());
            turn.stuck = turn.stuck.take().or(watch(&mut turn.guard, call, &mut reply));
            self.push(Message::ToolResult(reply))?;
            results.push(result);
        }
        Ok(Some(results))
    }
}

/// Looks whether a call leads anywhere. Tells the model if not, and says how the turn ends if that has not helped.
fn watch(guard: &mut Guard, call: &ToolCall, reply: &mut ToolReply) -> Option<End> {
    match guard.note(call, reply) {
        Finding::Fine => None,
        Finding::Circling(times) => {
            let told = format!("[This call has returned the same result {times} times. Do something else, or answer.]");
            reply.content.push(Block::text(told));
            None
        }
        Finding::Stuck(times) => Some(End::Failed(format!(
            "the turn was stopped: the model called `{}` {times} times with the same result",
            call.name
        ))),
    }
}

async fn carry_out(call: &ToolCall, tools: &crate::tool::ToolSet, scope: &Scope<'_>) -> (ToolResult, Vec<String>) {
    let started = Instant::now();
    scope.events.tell(Event::CallStarted {
        id: call.id.clone(),
        tool: call.name.clone(),
        arguments: call.arguments.clone(),
        skills: scope.uses.names(),
    });
    let result = tools.call(&call.name, Call { id: &call.id, arguments: &call.arguments }, scope).await;
    scope.events.tell(Event::CallEnded {
        id: call.id.clone(),
        tool: call.name.clone(),
        summary: summary(call),
        result: result.clone(),
        took: started.elapsed(),
    });
    (result, scope.uses.names())
}

/// What stands where an image is that no model of the agent can look at.
const NOT_SHOWN: &str = "[The image is omitted: this model does not accept images.]";

/// What the model is told of a result, within what a transcript takes.
fn told(call: &ToolCall, result: &ToolResult, takes_images: bool) -> ToolReply {
    let block = |one: &Content| match one {
        Content::Text { text } => Block::text(text),
        Content::Image { data, mime_type } if takes_images => {
            Block::Image(Image { data: data.clone(), mime_type: mime_type.clone() })
        }
        Content::Image { .. } => Block::text(NOT_SHOWN),
    };
    clip_result(ToolReply {
        tool_call_id: call.id.clone(),
        tool_name: call.name.clone(),
        content: result.content.iter().map(block).collect(),
        details: (!result.details.is_null()).then(|| result.details.clone()),
        is_error: result.is_error,
        timestamp: now(),
    })
}

/// What a call is about, in a line that a terminal can show.
pub(super) fn summary(call: &ToolCall) -> String {
    let about = ["command", "path", "action"].iter().find_map(|name| call.arguments.get(*name).and_then(Value::as_str));
    let text = about.map_or_else(|| Value::Object(call.arguments.clone()).to_string(), str::to_owned);
    let safe = shown(text.trim()).to_string();
    prowess_skills::text::shorten(&safe, SUMMARY_CHARS)
}
