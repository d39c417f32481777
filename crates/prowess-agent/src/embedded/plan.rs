//! The plan: what comes next in this conversation?
//!
//! A turn is read from its messages, so nothing is remembered between calls: first a skill is picked and read, then its
//! commands are shown or run, then what came of it is told.

use std::sync::Arc;

use prowess_skills::{Objection, Skill};
use serde_json::{Map, Value};

use super::commands::{Command, commands, unasked_changes};
use super::fill::{About, Filled, fill};
use super::kinds::{foreign, is_command, is_compound, only_sets, pieces};
use super::pick::{Fit, Index};
use super::said::{Facts, Said};
use super::sections::{self, Section};
use super::words::{stems, strength};
use super::{Act, Embedded, Foreseen, say};
use crate::answer::Answer;
use crate::message::{Message, ToolCall, ToolReply};
use crate::model::Request;
use crate::news;
use crate::skills::SkillSet;

/// How many commands are shown, and from how many the one to run is chosen.
const MAX_SHOWN: usize = 3;
const MAX_TRIED: usize = 12;

/// How much worse than the best a command may fit that is run in its place because it would run.
const NEAR: f64 = 1.0;

/// How much worse than the best a command may fit and still fit alike.
const ALIKE: f64 = 0.05;

/// How many sections are searched for the best command, what being in the best section is worth to one, and what it
/// costs to change something that nobody asked to be changed.
const MAX_SEARCHED: usize = 4;
const SECTION: f64 = 1.5;
const UNASKED: f64 = 3.0;

/// What it costs a command to be a loop, to be long, and to be for another system.
const COMPOUND: f64 = 1.0;
const LONG: f64 = 0.5;
const FOREIGN: f64 = 4.0;

/// From how many bytes on a command is long, and how many more are as long as it gets.
const SHORT_BYTES: usize = 200;
const LONG_BYTES: usize = 400;

/// What a blank that the request does not fill costs a command among those of its section.
const OPEN: f64 = 0.6;

/// How many skills are named when none fits: those that come nearest, and those that are ready at all.
const MAX_NEAREST: usize = 3;
const MAX_READY: usize = 10;

/// How much better a skill that is held back has to fit before it is named in place of one that could be used.
const MUCH_BETTER: f64 = 1.5;

/// Commands and how well they fit, the best first.
type Ranked = Vec<(f64, Filled)>;

/// What to do about a request.
#[derive(Debug)]
pub(super) enum Pick<'a> {
    /// Read this skill.
    Skill { skill: &'a Arc<Skill>, why: Why, others: Vec<String> },
    /// This one would fit, but cannot be used here.
    HeldBack { skill: &'a Arc<Skill>, objections: &'a [Objection] },
    /// Nothing fits; these come nearest, these are ready, and this is the request as it was probably meant.
    Nothing { nearest: Vec<String>, ready: Vec<String>, meant: Option<String> },
}

/// Why a skill was picked.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The person named it.
    Named,
    /// These words of the request are in its name or description.
    Words(Vec<String>),
}

/// What a skill says to a request.
#[derive(Debug)]
pub(super) struct Found<'a> {
    pub name: &'a str,
    pub location: &'a str,
    pub section: Option<&'a Section<'a>>,
    /// The best one first.
    pub commands: Vec<Filled>,
}

/// The answer to a conversation.
pub(super) fn answer(planner: &Embedded, request: &Request<'_>) -> Answer {
    let skills = planner.skills.current();
    let Some(begin) = request.messages.iter().rposition(|message| matches!(message, Message::User(_))) else {
        return Answer::text(say::nothing_asked());
    };
    let message = text_of(&request.messages[begin]);
    if message == news::NOTICE {
        return Answer::text(news::last(&request.messages[..begin]).join("\n"));
    }
    let asked = message.as_str();
    if request.tools.is_empty() && asked.to_lowercase().contains("summar") {
        return Answer::text(say::digest(&request.messages[..begin], asked));
    }
    let said = Said::read(asked, &skills);
    let done = calls(&request.messages[begin + 1..]);
    let ran: Vec<_> = done.iter().filter(|(call, _)| call.name == "exec").copied().collect();
    if !ran.is_empty() {
        return Answer::text(say::ran(&ran));
    }
    if let Some((call, reply)) = done.iter().find(|(call, _)| call.name == "read") {
        return explain(planner, request, &skills, &said, call, reply);
    }
    begin_with(planner, request, &skills, &said)
}

/// The first step: pick a skill, and read it.
fn begin_with(planner: &Embedded, request: &Request<'_>, skills: &SkillSet, said: &Said) -> Answer {
    let (skill, why, others) = match pick(skills, said) {
        Pick::Skill { skill, why, others } => (skill, why, others),
        Pick::HeldBack { skill, objections } => return Answer::text(say::held_back(skill, objections)),
        Pick::Nothing { nearest, ready, meant } => {
            return Answer::text(say::no_skill(&nearest, &ready, meant.as_deref()));
        }
    };
    let location = planner.location(skill, request.system);
    let name = skill.name.as_str();
    if !request.tools.iter().any(|tool| tool.name == "read") {
        return Answer::text(say::cannot_read(name, &location));
    }
    let arguments = [("path".to_owned(), Value::String(location))].into_iter().collect();
    let call = call(request, "read", arguments);
    Answer { calls: vec![call], ..Answer::text(say::picked(name, &why, &others)) }
}

/// The second step: show what the skill says to the request, or run it.
fn explain(
    planner: &Embedded,
    request: &Request<'_>,
    skills: &SkillSet,
    said: &Said,
    call: &ToolCall,
    reply: &ToolReply,
) -> Answer {
    let location = ["path", "file_path"].iter().find_map(|key| call.arguments.get(*key)?.as_str()).unwrap_or_default();
    let skill =
        skills.snapshot.skills().iter().find(|skill| {
            location == skill.file.to_string_lossy() || location == planner.location(skill, request.system)
        });
    let name = skill.map_or(location, |skill| skill.name.as_str());
    if reply.is_error {
        return Answer::text(say::unread(name, location, &reply.text()));
    }
    let body = reply.text();
    let sections = sections::parse(&body);
    let description = skill.map_or("", |skill| skill.description.as_str());
    let (section, ranked) = find(&sections, said, name, description);
    let foresee = |text: &str| {
        let forecast = planner.forecast.as_ref();
        forecast.map_or(Foreseen::Asks(Vec::new()), |forecast| (forecast.0)(text, skill.map(AsRef::as_ref)))
    };
    let (first, next) = choose(&ranked, &stems(&said.text), foresee);
    // What would run stands first, so that what is shown is what is run.
    let others = ranked.iter().map(|(_, filled)| filled).filter(|filled| Some(*filled) != first.as_ref());
    let commands = first.iter().chain(others).take(MAX_SHOWN).cloned().collect();
    let found = Found { name, location, section, commands };
    match (planner.act, &next, &first) {
        (Act::Run, ..) if !request.tools.iter().any(|tool| tool.name == "exec") => {
            Answer::text(say::shown(&found, &say::Next::NoTool))
        }
        (Act::Run, say::Next::MayRun(_), Some(first)) => {
            let arguments = [("command".to_owned(), Value::String(first.text.clone()))].into_iter().collect();
            Answer { calls: vec![self::call(request, "exec", arguments)], ..Answer::text(say::running(&found, first)) }
        }
        (Act::Run | Act::Show, ..) => Answer::text(say::shown(&found, &next)),
    }
}

/// The command to run, and what comes of it: the same whether it is only shown or run.
fn choose(
    ranked: &[(f64, Filled)],
    asked: &[String],
    foresee: impl Fn(&str) -> Foreseen,
) -> (Option<Filled>, say::Next) {
    let Some((most, first)) = ranked.first() else { return (None, say::Next::Nothing) };
    // A skill gives the same command for several systems, of which this is one.
    let is_missing = |filled: &Filled| matches!(foresee(&filled.text), Foreseen::Missing(_));
    let here = ranked.iter().filter(|(_, filled)| !is_missing(filled));
    // Of commands that fit alike, one that sees what it is asked about is better.
    let is_blind = |filled: &Filled| matches!(foresee(&filled.text), Foreseen::Blind(_));
    let mut alike = here.clone().filter(|(fit, _)| *fit >= most - ALIKE);
    let best = alike.find(|(_, filled)| !is_blind(filled)).or_else(|| here.clone().next());
    let best = best.map_or(first, |(_, best)| best);
    if !best.open.is_empty() {
        return (Some(best.clone()), say::Next::Open);
    }
    let foreseen = foresee(&best.text);
    if let Foreseen::Blind(why) = foreseen {
        return (Some(best.clone()), say::Next::Blind(why));
    }
    if let Foreseen::Missing(program) = foreseen {
        return (Some(best.clone()), say::Next::Missing(program));
    }
    let runs_as_asked = foreseen == Foreseen::Runs && unasked_changes(&best.text, asked).is_empty();
    let other = if runs_as_asked { None } else { runnable(ranked, asked, &foresee) };
    let best = other.unwrap_or_else(|| best.clone());
    let changes = unasked_changes(&best.text, asked);
    if !changes.is_empty() {
        return (Some(best), say::Next::Changes(changes));
    }
    let foreseen = foresee(&best.text);
    (Some(best), say::Next::MayRun(foreseen))
}

/// The best command that would run without a question, or a part of it that would, if it fits about as well as any.
fn runnable(ranked: &[(f64, Filled)], asked: &[String], foresee: impl Fn(&str) -> Foreseen) -> Option<Filled> {
    let may_run = |text: &str| foresee(text) == Foreseen::Runs;
    let (most, _) = ranked.first()?;
    let near = ranked.iter().filter(|(fit, filled)| *fit >= most - NEAR && filled.open.is_empty());
    let candidates = near.flat_map(|(_, filled)| {
        let part = |text: &str| {
            let given = filled.given.iter().filter(|(_, now)| text.contains(now.as_str())).cloned().collect();
            Filled { text: text.to_owned(), given, open: Vec::new(), unsaid: Vec::new() }
        };
        std::iter::once(filled.clone()).chain(pieces(&filled.text).into_iter().map(part))
    });
    candidates.into_iter().find(|filled| unasked_changes(&filled.text, asked).is_empty() && may_run(&filled.text))
}

/// Picks the skill that was named, or the one that fits.
pub(super) fn pick<'a>(skills: &'a SkillSet, said: &Said) -> Pick<'a> {
    let mut named = said.named.iter().filter_map(|name| skills.find(name));
    if let Some(skill) = named.next() {
        let others = named.map(|skill| skill.name.to_string()).collect();
        return Pick::Skill { skill, why: Why::Named, others };
    }
    let visible: Vec<&Arc<Skill>> = skills.snapshot.visible().collect();
    let lacking: Vec<_> =
        skills.snapshot.held_back().iter().filter(|held| held.objections.iter().all(is_a_need)).collect();
    let index = Index::new(visible.iter().copied().chain(lacking.iter().map(|held| &held.skill)));
    // What stands in quotes is somebody's text, and seldom says what to do with it.
    let mut ranked = index.rank(&said.unquoted());
    if !ranked.iter().any(Fit::is_enough) {
        ranked = index.rank(&said.text);
    }
    let usable = ranked.iter().find(|fit| fit.place < visible.len());
    let held = ranked.iter().find(|fit| fit.place >= visible.len()).filter(|fit| fit.is_enough());
    let best = usable.filter(|fit| fit.is_enough());
    match (best, held) {
        (best, Some(held)) if best.is_none_or(|best| held.score > MUCH_BETTER * best.score) => {
            let held = lacking[held.place - visible.len()];
            Pick::HeldBack { skill: &held.skill, objections: &held.objections }
        }
        (Some(Fit { place, words, .. }), _) => {
            Pick::Skill { skill: visible[*place], why: Why::Words(words.clone()), others: Vec::new() }
        }
        (None, _) => {
            let nearest = ranked.iter().filter(|fit| fit.place < visible.len()).take(MAX_NEAREST);
            Pick::Nothing {
                nearest: nearest.map(|fit| visible[fit.place].name.to_string()).collect(),
                ready: visible.iter().take(MAX_READY).map(|skill| skill.name.to_string()).collect(),
                meant: index.corrected(&said.text).filter(|text| {
                    index.rank(text).first().is_some_and(|fit| fit.place < visible.len() && fit.is_enough())
                }),
            }
        }
    }
}

/// Whether something is missing that can be had, rather than forbidden.
fn is_a_need(objection: &Objection) -> bool {
    match objection {
        Objection::NoBins(_) | Objection::NoAnyBins(_) | Objection::NoEnv(_) | Objection::NoConfig(_) => true,
        Objection::Disabled
        | Objection::NotListed
        | Objection::Unreadable(_)
        | Objection::WrongOs(_)
        | Objection::NotForAgent
        | Objection::NotForChannel => false,
    }
}

/// The section that answers, and its commands with what the request says in them, the best one first.
fn find<'a>(
    sections: &'a [Section<'a>],
    said: &Said,
    name: &str,
    description: &str,
) -> (Option<&'a Section<'a>>, Ranked) {
    let ranked = sections::rank(sections, &said.text, name);
    let Some((first, most)) = ranked.first().copied() else { return (None, Vec::new()) };
    let facts = Facts::read(said);
    let mut asked = stems(&said.text);
    asked.sort();
    asked.dedup();
    // What the skill is called tells its commands apart no more.
    let topic = stems(name);
    asked.retain(|stem| !topic.contains(stem));
    let mut best: Option<(f64, &Section<'_>, Ranked)> = None;
    for (section, score) in ranked.iter().filter(|(section, _)| section.has_commands()).take(MAX_SEARCHED) {
        let about = About::read(&[description, section.text]);
        let found = commands_for(section, &asked, &facts, about);
        let away = if section.is_elsewhere(&said.text) { FOREIGN } else { 0.0 };
        let Some(fit) = found.first().map(|(fit, _)| SECTION * score / most + fit - away) else { continue };
        if best.as_ref().is_none_or(|(known, ..)| fit > *known) {
            best = Some((fit, *section, found));
        }
    }
    let Some((_, section, commands)) = best else {
        let about = About::read(&[description, first.text]);
        return (Some(first), commands_for(first, &asked, &facts, about));
    };
    let commands = commands.into_iter().map(|(fit, filled)| (fit, with_settings(filled, section, sections))).collect();
    (Some(section), commands)
}

/// The best commands of a section, and how well they fit.
fn commands_for(section: &Section<'_>, asked: &[String], facts: &Facts, about: About) -> Ranked {
    let mut found = Ranked::new();
    for command in commands(section).iter().filter(|command| is_command(&command.text)) {
        let filled = fill(&command.text, facts, about);
        let changes = if unasked_changes(&command.text, asked).is_empty() { 0.0 } else { UNASKED };
        found.push((score(command, &filled, asked) - changes, filled));
    }
    // Within a section one without blanks is better; another section is not better for having none. The sort keeps the
    // skill's own order among equals.
    let whole = |one: &(f64, Filled)| one.0 - OPEN * number(one.1.open.len());
    found.sort_by(|a, b| whole(b).total_cmp(&whole(a)));
    found.truncate(MAX_TRIED);
    found
}

fn score(command: &Command, filled: &Filled, asked: &[String]) -> f64 {
    let (note, text) = (stems(&command.note), stems(&command.text));
    let about = asked.iter().map(|stem| {
        let worth = if note.contains(stem) { 1.5 } else { 0.0 } + if text.contains(stem) { 1.0 } else { 0.0 };
        worth * strength(stem)
    });
    let about: f64 = about.sum();
    let inline = if command.is_inline { 0.6 } else { 0.0 };
    let compound = if is_compound(&command.text) { COMPOUND } else { 0.0 };
    let length = number(command.text.len().saturating_sub(SHORT_BYTES)) / number(LONG_BYTES);
    let against = inline + compound + LONG * length.min(1.0) + FOREIGN * foreign(&command.text);
    about + 0.5 * number(filled.given.len()) - against
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// `filled` after the lines of the skill that set the variables in it, and those that these lines use in turn: each
/// command runs in a shell of its own.
fn with_settings(filled: Filled, section: &Section<'_>, sections: &[Section<'_>]) -> Filled {
    if !filled.text.contains('$') {
        return filled;
    }
    let before = sections.iter().take_while(|other| !std::ptr::eq(*other, section)).chain([section]);
    let lines = before.filter(|section| section.text.contains('=')).flat_map(commands);
    let settings: Vec<String> = lines.map(|line| line.text).filter(|line| only_sets(line)).collect();
    let mut script = filled.text.clone();
    // Backwards, so that what a line uses is looked for before it; the nearest line that sets a name counts.
    let mut set: Vec<&str> = Vec::new();
    for line in settings.iter().rev() {
        let Some((name, _)) = line.split_once('=') else { continue };
        if !set.contains(&name) && !filled.text.contains(line) && uses(&script, name) {
            script = format!("{line}\n{script}");
            set.push(name);
        }
    }
    Filled { text: script, ..filled }
}

/// Whether a text expands the variable of that name.
fn uses(text: &str, name: &str) -> bool {
    let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    text.split('$').skip(1).any(|rest| rest.trim_start_matches('{').strip_prefix(name).is_some_and(is_whole))
}

/// The calls of this turn that have their result, in order.
fn calls(messages: &[Message]) -> Vec<(&ToolCall, &ToolReply)> {
    let mut found = Vec::new();
    let mut waiting: Vec<&ToolCall> = Vec::new();
    for message in messages {
        match message {
            Message::Assistant(assistant) => waiting = assistant.calls().collect(),
            Message::ToolResult(reply) => {
                let call = waiting.iter().find(|call| call.id == reply.tool_call_id);
                found.extend(call.map(|call| (*call, reply)));
            }
            Message::User(_) => {}
        }
    }
    found
}

/// A call whose id no other call of the conversation has.
fn call(request: &Request<'_>, tool: &str, arguments: Map<String, Value>) -> ToolCall {
    let before: usize = request
        .messages
        .iter()
        .map(|message| match message {
            Message::Assistant(assistant) => assistant.calls().count(),
            Message::User(_) | Message::ToolResult(_) => 0,
        })
        .sum();
    let id = format!("call_{}", before + 1);
    ToolCall { id, name: tool.to_owned(), arguments, thought_signature: None, provider_data: Map::new() }
}

fn text_of(message: &Message) -> String {
    match message {
        Message::User(user) => {
            let texts: Vec<&str> = user.content.iter().filter_map(crate::message::Block::as_text).collect();
            texts.join("\n")
        }
        Message::Assistant(assistant) => assistant.text(),
        Message::ToolResult(reply) => reply.text(),
    }
}
