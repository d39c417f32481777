//! `prompt.preview`: what exactly would a model be told, and what does it cost?

use prowess_host::cost::{measure, shape};
use prowess_host::status::Measures;
use prowess_host::{View, system_prompt};
use prowess_skills::text::{push_escaped, units};
use prowess_skills::{Mode, Snapshot, tokens};
use serde::Deserialize;
use serde_json::{Value, json};

use super::given::given;
use super::{Answer, Ask, Method, method};
use crate::aside::blocking;
use crate::params::{self, Shape, TEXT, choice, optional};
use crate::scope::{Access, Scope};
use crate::wire::Refusal;

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[method!("prompt.preview", Access::Operator(Scope::Read), preview)];

const PARAMS: Shape =
    params::shape(&[optional("agentId", TEXT), optional("mode", choice(&["full", "minimal", "none"]))]);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    agent_id: Option<String>,
    mode: Option<String>,
}

/// The system prompt that a new conversation would begin with.
async fn preview(ask: Ask) -> Answer {
    let params: Params = given(&ask, &PARAMS)?;
    let mode = match params.mode.as_deref() {
        Some("minimal") => Mode::Minimal,
        Some("none") => Mode::None,
        _ => Mode::Full,
    };
    blocking(move || {
        let view = ask.gateway.agents.get(params.agent_id.as_deref())?.view();
        render(&view, mode)
    })
    .await?
}

fn render(view: &View, mode: Mode) -> Answer {
    let prompt = system_prompt(view, mode).map_err(|failure| Refusal::unavailable(failure.sentence()))?;
    let mut json = shape(&measure(prompt.parts.iter().map(|part| (part.name, part.text.as_str()))));
    for (shape, part) in json["parts"].as_array_mut().into_iter().flatten().zip(&prompt.parts) {
        shape["text"] = part.text.as_str().into();
    }
    let budget = view.budget();
    let snapshot = view.snapshot(&budget);
    let mut skills = serde_json::to_value(Measures::new(&snapshot, &budget)).unwrap_or_default();
    skills["entries"] = entries(&snapshot).into();
    json["agentId"] = view.context.agent.id.as_str().into();
    json["prompt"] = prompt.text().into();
    json["warnings"] = json!(prompt.warnings);
    json["skills"] = skills;
    Ok(json)
}

/// What each skill takes of the list, in the order of the list.
fn entries(snapshot: &Snapshot) -> Vec<Value> {
    let mut blocks = snapshot.prompt().text.split_inclusive("  </skill>\n").peekable();
    let mut entries = Vec::new();
    for skill in snapshot.visible() {
        let mut name = String::from("<name>");
        push_escaped(&mut name, skill.name.as_str());
        name.push_str("</name>");
        // A skill that was dropped has no block; those that follow keep their order.
        if let Some(block) = blocks.next_if(|block| block.contains(&name)) {
            entries.push(json!({"name": skill.name.as_str(), "chars": units(block), "tokens": tokens(block)}));
        }
    }
    entries
}
