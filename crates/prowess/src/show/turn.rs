//! A turn for people: what is there to see of each event?
//!
//! Answers are data and go to stdout; what was called, read and retried goes to stderr, one line each. This file decides
//! what is shown; the `Printer` puts it on the terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use prowess_agent::event::{End, Event, How};
use prowess_agent::message::Usage;
use prowess_exec::ToolResult;
use prowess_skills::text::shorten;
use serde_json::{Map, Value};

use super::call;
use super::markdown::{Look, Markdown};
use crate::output::{BAD, BOLD, DIM, GOOD, WARN, count, paint, short_path};

/// The longest reason that is shown, in UTF-16 units.
const MAX_REASON: usize = 300;

/// The longest reason for the end of a turn: room for what a provider said, and for what to do about it after that.
const MAX_END: usize = 800;

/// How many lines of a command's output are shown with it.
const MAX_OUTPUT_LINES: usize = 20;

/// How many calls at a time are kept track of; far more than any provider makes.
const MAX_OPEN_CALLS: usize = 1024;

/// What runs when no call does.
const WAITING: &str = "waiting for the model";

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// Answers and calls.
    Normal,
    /// Also thoughts and what commands say.
    Verbose,
}

/// When the text of a reply is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// While it comes, for somebody who watches.
    Stream,
    /// Once it is whole, for a program: what is given up and said anew must not be there twice.
    Whole,
}

/// One thing to do with the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Whole lines of the answer.
    Answer(String),
    /// The last line of the answer has grown to this; empty means there is none.
    Growing(String),
    /// A line for the person, without its end.
    Note(String),
    /// Something runs that takes time.
    Busy(String),
    /// Nothing does any more.
    Idle,
}

/// What is known while a turn runs.
pub(crate) struct Turn {
    detail: Detail,
    home: std::path::PathBuf,
    answer: Markdown,
    thought: Markdown,
    open: BTreeMap<String, String>,
    flow: Flow,
    /// Lines of a reply that are not shown yet.
    held: String,
    /// Whether the reply that is under way has said anything, and whether the last one had nothing to say.
    is_speaking: bool,
    was_silent: bool,
}

impl Turn {
    pub(crate) fn new(look: Look, detail: Detail, flow: Flow, home: &Path) -> Self {
        Self {
            detail,
            home: home.to_owned(),
            answer: Markdown::new(look),
            thought: Markdown::new(Look::Plain),
            open: BTreeMap::new(),
            flow,
            held: String::new(),
            is_speaking: false,
            was_silent: false,
        }
    }

    /// With answers wrapped between words.
    pub(crate) fn wrapped(mut self, columns: fn() -> Option<usize>) -> Self {
        self.answer = self.answer.wrapped(columns);
        self
    }

    /// What to do about `event`.
    pub(crate) fn take(&mut self, event: &Event) -> Vec<Step> {
        match event {
            Event::Started => {
                (self.is_speaking, self.was_silent) = (false, false);
                vec![self.busy()]
            }
            Event::SkillsChanged { count: number } => {
                vec![note(DIM, "●", &format!("the skills changed: {} now", count(*number, "skill")))]
            }
            Event::Text { delta } => self.text(delta),
            Event::Thinking { delta } => self.thinks(delta),
            Event::Replied { .. } => self.replied(),
            Event::CallStarted { id, tool, arguments, .. } => self.call_started(id, tool, arguments),
            Event::CallUpdate { id, tail, .. } => self.call_update(id, tail),
            Event::CallEnded { id, tool, summary, result, took } => {
                let label = self.open.remove(id).unwrap_or_else(|| call::brief(tool, summary));
                self.call_ended(&label, result, *took)
            }
            Event::SkillUsed { skill, path, how } => vec![self.skill(skill, path, *how)],
            Event::Retrying { attempt, wait, why } => {
                let text = format!("{}; attempt {attempt} in {}", shorten(why, MAX_REASON), seconds(*wait));
                self.given_up(note(WARN, "↻", &text))
            }
            Event::Compacted { before, after } => {
                let text = format!("the conversation was too long: {before} tokens were summarised in {after}");
                self.given_up(note(DIM, "●", &text))
            }
            Event::Notice(text) => self.given_up(note(WARN, "!", &shorten(text, MAX_REASON))),
            Event::Ended(end) => self.ended(end),
        }
    }

    fn text(&mut self, delta: &str) -> Vec<Step> {
        let mut steps = self.end_thought();
        self.is_speaking |= !delta.trim().is_empty();
        let lines = self.answer.push(delta);
        if self.flow == Flow::Whole {
            self.held.push_str(&lines);
            return steps;
        }
        if !lines.is_empty() {
            steps.push(Step::Answer(lines));
        }
        steps.push(Step::Growing(self.answer.partial()));
        steps
    }

    fn thinks(&mut self, delta: &str) -> Vec<Step> {
        if self.detail < Detail::Verbose {
            return Vec::new();
        }
        let lines = self.thought.push(delta);
        lines.lines().map(|line| Step::Note(paint(DIM, line))).collect()
    }

    fn end_thought(&mut self) -> Vec<Step> {
        self.thought.finish().lines().map(|line| Step::Note(paint(DIM, line))).collect()
    }

    /// Whatever was begun is brought to an end, so that nothing follows in the middle of a line.
    fn end_text(&mut self) -> Vec<Step> {
        let mut steps = self.end_thought();
        let last = std::mem::take(&mut self.held) + &self.answer.finish();
        if !last.is_empty() {
            steps.push(Step::Answer(last));
        }
        steps
    }

    /// Tells something that happens between replies. A reply that it finds under way was given up: another comes in its
    /// place, or none.
    fn given_up(&mut self, step: Step) -> Vec<Step> {
        let was_speaking = std::mem::take(&mut self.is_speaking);
        let mut steps = match self.flow {
            Flow::Stream => self.end_text(),
            Flow::Whole => {
                self.held.clear();
                self.answer.finish();
                self.end_thought()
            }
        };
        if was_speaking && self.flow == Flow::Stream {
            steps.push(note(WARN, "✗", "the text above is incomplete and was discarded"));
        }
        steps.push(step);
        steps
    }

    fn replied(&mut self) -> Vec<Step> {
        self.was_silent = !std::mem::take(&mut self.is_speaking);
        self.end_text()
    }

    fn call_started(&mut self, id: &str, tool: &str, arguments: &Map<String, Value>) -> Vec<Step> {
        let label = call::label(tool, arguments, &self.home);
        if self.open.len() < MAX_OPEN_CALLS {
            self.open.insert(id.to_owned(), label);
        }
        self.was_silent = false;
        let mut steps = self.end_text();
        steps.push(self.busy());
        steps
    }

    fn call_update(&self, id: &str, tail: &str) -> Vec<Step> {
        let last = tail.lines().rev().map(|line| shorten(line, MAX_REASON)).find(|line| !line.trim().is_empty());
        match (self.open.get(id), last) {
            (Some(label), Some(last)) => vec![Step::Busy(format!("{label}  {}", paint(DIM, last.trim())))],
            _ => Vec::new(),
        }
    }

    fn call_ended(&self, label: &str, result: &ToolResult, time: Duration) -> Vec<Step> {
        // The result of a command that had to wait for approval comes by itself, after its turn.
        let is_late = result.details["late"] == true;
        let mark = call::mark(result, (!is_late).then_some(time));
        let mut steps = vec![Step::Note(format!("{} {label}  {mark}", paint(DIM, "▸")))];
        if is_late || self.detail == Detail::Verbose {
            steps.extend(output(&result.text()));
        }
        if is_late && self.open.is_empty() {
            return steps;
        }
        steps.push(self.busy());
        steps
    }

    /// What runs now. Once no call does, the model is asked again.
    fn busy(&self) -> Step {
        let label = self.open.values().next_back().map_or(WAITING, String::as_str);
        match self.open.len() {
            0 | 1 => Step::Busy(label.to_owned()),
            number => Step::Busy(format!("{label} {}", paint(DIM, &format!("and {} more", number - 1)))),
        }
    }

    fn skill(&self, skill: &str, path: &Path, how: How) -> Step {
        let word = match how {
            How::Read => "read",
            How::Called => "called",
            How::Dispatched => "called directly",
            How::Named => "a command uses one of its files",
        };
        let place = short_path(path, &self.home);
        let mut text = format!("{} {} ({word})", paint(GOOD, "●"), paint(BOLD, &shorten(skill, MAX_REASON)));
        if self.detail == Detail::Verbose {
            let _ = write!(text, " {}", paint(DIM, &place));
        }
        Step::Note(text)
    }

    fn ended(&mut self, end: &End) -> Vec<Step> {
        self.open.clear();
        let mut steps = self.end_text();
        steps.push(Step::Idle);
        match end {
            End::Answered if self.was_silent => steps.push(note(WARN, "!", "the model gave an empty answer")),
            End::Answered => {}
            End::Interrupted => steps.push(note(WARN, "■", "stopped")),
            End::Failed(why) => steps.push(note(BAD, "✗", &shorten(why, MAX_END))),
        }
        steps
    }
}

/// A line with a mark in front.
fn note(style: anstyle::Style, mark: &str, text: &str) -> Step {
    Step::Note(format!("{} {text}", paint(style, mark)))
}

/// What a command said, below it.
fn output(text: &str) -> Vec<Step> {
    let lines: Vec<&str> = text.lines().collect();
    let shown = lines.iter().take(MAX_OUTPUT_LINES);
    let mut steps: Vec<Step> =
        shown.map(|line| Step::Note(format!("  {}", paint(DIM, &shorten(line, MAX_REASON))))).collect();
    if lines.len() > MAX_OUTPUT_LINES {
        let left = count(lines.len() - MAX_OUTPUT_LINES, "line");
        steps.push(Step::Note(format!("  {}", paint(DIM, &format!("… and {left}")))));
    }
    steps
}

/// A time as people say it.
pub(crate) fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    format!("{} min {:02} s", time.as_secs() / 60, time.as_secs() % 60)
}

/// Tokens on one line.
pub(crate) fn tokens(usage: &Usage) -> String {
    let cached = if usage.cache_read > 0 { format!(" ({} from the cache)", usage.cache_read) } else { String::new() };
    let price = if usage.cost.total > 0.0 { format!(", ${:.4}", usage.cost.total) } else { String::new() };
    format!("{} tokens read{cached}, {} written{price}", usage.read(), usage.output)
}

#[cfg(test)]
mod tests {
    use prowess_agent::message::StopReason;
    use serde_json::json;

    use super::*;

    fn plain(steps: &[Step]) -> Vec<String> {
        let strip = |text: &str| anstream::adapter::strip_str(text).to_string();
        let line = |step: &Step| match step {
            Step::Answer(text) => format!("out {}", strip(text)),
            Step::Growing(text) => format!("… {}", strip(text)),
            Step::Note(text) => format!("err {}", strip(text)),
            Step::Busy(text) => format!("busy {}", strip(text)),
            Step::Idle => "idle".to_owned(),
        };
        steps.iter().map(line).collect()
    }

    fn all(detail: Detail, events: &[Event]) -> Vec<String> {
        shown(detail, Flow::Stream, events)
    }

    fn shown(detail: Detail, flow: Flow, events: &[Event]) -> Vec<String> {
        let mut turn = Turn::new(Look::Plain, detail, flow, Path::new("/home/me"));
        let steps: Vec<Step> = events.iter().flat_map(|event| turn.take(event)).collect();
        plain(&steps)
    }

    fn started(id: &str, tool: &str, arguments: Value) -> Event {
        let Value::Object(arguments) = arguments else { panic!("an object") };
        Event::CallStarted { id: id.to_owned(), tool: tool.to_owned(), arguments, skills: Vec::new() }
    }

    fn ended(id: &str, tool: &str, result: ToolResult) -> Event {
        Event::CallEnded {
            id: id.to_owned(),
            tool: tool.to_owned(),
            result,
            took: Duration::from_millis(240),
            summary: String::new(),
        }
    }

    fn text(delta: &str) -> Event {
        Event::Text { delta: delta.to_owned() }
    }

    #[test]
    fn a_turn_is_answers_on_stdout_and_the_rest_on_stderr() {
        let path = "/home/me/.openclaw/skills/weather/SKILL.md";
        let done = || ToolResult::done("sunny", json!({"status": "completed"}));
        let events = [
            Event::Started,
            text("Let me "),
            text("look."),
            Event::Replied { stop: StopReason::ToolUse, usage: Usage::default() },
            started("1", "read", json!({"path": path})),
            Event::SkillUsed { skill: "weather".to_owned(), path: path.into(), how: How::Read },
            ended("1", "read", done()),
            started("2", "exec", json!({"command": "curl -s wttr.in"})),
            ended("2", "exec", done()),
            text("Sunny.\n"),
            Event::Replied { stop: StopReason::Stop, usage: Usage::default() },
            Event::Ended(End::Answered),
        ];
        assert_eq!(
            all(Detail::Normal, &events),
            [
                "busy waiting for the model",
                "… Let me ",
                "… Let me look.",
                "out Let me look.\n",
                "busy read ~/.openclaw/skills/weather/SKILL.md",
                "err ● weather (read)",
                "err ▸ read ~/.openclaw/skills/weather/SKILL.md  ✓ 0.2 s",
                "busy waiting for the model",
                "busy exec curl -s wttr.in",
                "err ▸ exec curl -s wttr.in  ✓ 0.2 s",
                "busy waiting for the model",
                "out Sunny.\n",
                "… ",
                "idle",
            ]
        );
    }

    #[test]
    fn what_went_wrong_is_one_line_each() {
        let table = [
            (Event::Ended(End::Interrupted), "err ■ stopped"),
            (Event::Ended(End::Failed("no\u{1b}[2J key".to_owned())), "err ✗ no[2J key"),
            (
                Event::Retrying { attempt: 2, wait: Duration::from_secs(3), why: "busy".to_owned() },
                "err ↻ busy; attempt 2 in 3.0 s",
            ),
            (Event::Notice("two\nlines".to_owned()), "err ! two lines"),
            (Event::SkillsChanged { count: 1 }, "err ● the skills changed: 1 skill now"),
            (
                Event::Compacted { before: 90, after: 9 },
                "err ● the conversation was too long: 90 tokens were summarised in 9",
            ),
        ];
        for (event, expected) in table {
            assert_eq!(all(Detail::Normal, &[event]).last().map(String::as_str), Some(expected));
        }
    }

    #[test]
    fn a_note_never_lands_in_the_middle_of_an_answer() {
        let lines = all(Detail::Normal, &[text("half"), Event::Notice("n".to_owned()), text("x")]);
        let broke_off = "err ✗ the text above is incomplete and was discarded";
        assert_eq!(lines, ["… half", "out half\n", broke_off, "err ! n", "… x"]);
    }

    fn replied(stop: StopReason) -> Event {
        Event::Replied { stop, usage: Usage::default() }
    }

    fn retrying() -> Event {
        Event::Retrying { attempt: 2, wait: Duration::from_secs(1), why: "cut".to_owned() }
    }

    #[test]
    fn a_program_gets_only_replies_that_count() {
        let answer = |events: &[Event]| -> Vec<String> {
            let lines = shown(Detail::Normal, Flow::Whole, events);
            lines.into_iter().filter(|line| line.starts_with("out") || line.starts_with('…')).collect()
        };
        let whole = [text("one\nha"), retrying(), text("one\ntwo"), replied(StopReason::Stop)];
        assert_eq!(answer(&whole), ["out one\ntwo\n"]);
        let elsewhere =
            [text("ha"), Event::Notice("asking b instead".to_owned()), text("b"), replied(StopReason::Stop)];
        assert_eq!(answer(&elsewhere), ["out b\n"]);
        let stopped = [text("one\nha"), Event::Ended(End::Interrupted)];
        assert_eq!(answer(&stopped), ["out one\nha\n"], "what was said until then is kept");
        let waiting = [text("ha"), retrying(), Event::Ended(End::Interrupted)];
        assert_eq!(answer(&waiting), [""; 0]);
        let notice = [text("a"), replied(StopReason::Length), Event::Notice("cut off".to_owned())];
        assert_eq!(answer(&notice), ["out a\n"]);
    }

    #[test]
    fn an_answer_without_a_word_is_noticed() {
        let silent = "err ! the model gave an empty answer";
        let says = |events: &[Event]| all(Detail::Normal, events).iter().any(|line| line == silent);
        let ended = || Event::Ended(End::Answered);
        assert!(says(&[Event::Started, replied(StopReason::Stop), ended()]));
        assert!(says(&[Event::Started, text(" \n"), replied(StopReason::Stop), ended()]));
        assert!(!says(&[Event::Started, text("a"), replied(StopReason::Stop), ended()]));
        let call = [replied(StopReason::Stop), started("1", "read", json!({})), ended()];
        assert!(!says(&call), "some models call without saying so");
        assert!(!says(&[text("straight from a tool"), ended()]));
        assert!(!says(&[replied(StopReason::Stop), Event::Ended(End::Interrupted)]));
    }

    #[test]
    fn a_cut_answer_is_told_once_and_by_the_turn() {
        let lines = all(Detail::Normal, &[text("a"), replied(StopReason::Length)]);
        assert_eq!(lines, ["… a", "out a\n"]);
    }

    #[test]
    fn thoughts_and_output_are_shown_only_on_request() {
        let events = [
            Event::Thinking { delta: "hm\nwell".to_owned() },
            text("So."),
            started("1", "exec", json!({"command": "ls"})),
            ended("1", "exec", ToolResult::done("a\nb", json!({"status": "completed"}))),
        ];
        let quiet = |lines: Vec<String>| -> Vec<String> {
            lines.into_iter().filter(|line| line.starts_with("err") || line.starts_with("out")).collect()
        };
        assert_eq!(quiet(all(Detail::Normal, &events)), ["out So.\n", "err ▸ exec ls  ✓ 0.2 s"]);
        assert_eq!(
            quiet(all(Detail::Verbose, &events)),
            ["err hm", "err well", "out So.\n", "err ▸ exec ls  ✓ 0.2 s", "err   a", "err   b"]
        );
    }

    #[test]
    fn calls_side_by_side_are_counted() {
        let lines = all(
            Detail::Normal,
            &[
                started("1", "read", json!({"path": "a"})),
                started("2", "read", json!({"path": "b"})),
                ended("2", "read", ToolResult::error("read", "there is no b")),
            ],
        );
        assert_eq!(lines, ["busy read a", "busy read b and 1 more", "err ▸ read b  ✗ there is no b", "busy read a"]);
    }
}
