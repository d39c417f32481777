//! Saying it: what does the planner tell the person?

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use prowess_policy::advice::may_propose;
use prowess_policy::{Denied, Script, listed, quote};
use prowess_skills::{Objection, Skill};

use super::Foreseen;
use super::fill::Filled;
use super::plan::{Found, Why};
use super::words::{cut, tail};
use crate::message::{Block, Message, ToolCall, ToolReply};
use crate::tool::{BY_LIST, RULE};

/// What it is, said once in a conversation.
pub(super) const WHAT_I_AM: &str =
    "This is the embedded planner, not a language model; `prowess models` shows how to use one.";

/// How many words of a request are named as the reason.
const MAX_WORDS: usize = 5;

/// How much of a section's prose, of an output and of one message in a digest is shown, in bytes.
const MAX_PROSE: usize = 1_500;
const MAX_OUTPUT: usize = 8 * 1024;
const MAX_DIGESTED: usize = 240;

/// How many messages are in a digest.
const MAX_MESSAGES: usize = 40;

/// How a line of a refusal begins that says what to type.
const TYPED_HINT: &str = "To allow it: ";

/// What comes after the commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Next {
    /// They could be run, and this would become of the first.
    MayRun(Foreseen),
    /// They should be run, but there is no tool for it.
    NoTool,
    /// They should be run, but the best one still has blanks.
    Open,
    /// They should be run, but the best one changes something, as these words say, which was not asked for.
    Changes(Vec<String>),
    /// They would run, but the best one would not see what it is asked about, and this is why.
    Blind(String),
    /// They should be run, but this program of the best one is not installed.
    Missing(String),
    /// There are none.
    Nothing,
}

/// There is no request.
pub(super) fn nothing_asked() -> String {
    format!("There is no request to answer.\n\n{WHAT_I_AM}")
}

/// A skill was picked and is read next.
pub(super) fn picked(name: &str, why: &Why, others: &[String]) -> String {
    let mut text = match why {
        Why::Named => format!("Using the skill \"{name}\", as you asked."),
        Why::Words(words) => {
            let words: Vec<String> = words.iter().take(MAX_WORDS).map(|word| format!("\"{word}\"")).collect();
            format!("The skill \"{name}\" fits: {} in its name or description.", listed(&words))
        }
    };
    if !others.is_empty() {
        let _written = write!(text, " The embedded planner uses one skill at a time; ignored: {}.", listed(others));
    }
    text
}

/// No skill fits. What is ready here may still be what the person wants.
pub(super) fn no_skill(nearest: &[String], ready: &[String], meant: Option<&str>) -> String {
    if let Some(meant) = meant {
        return format!("No skill fits this request. Did you mean: `prowess run {}`\n\n{WHAT_I_AM}", quote(meant));
    }
    let nearest = match nearest {
        [] => String::new(),
        some => {
            format!(" The nearest: {}. Name one to use it: `/{} …`.", listed(some), prowess_skills::sanitize(&some[0]))
        }
    };
    let ready = match ready {
        [] => "No skill is ready here; `prowess skills list -v` shows what each one needs.".to_owned(),
        some => format!("Ready here: {}. `prowess skills list` describes them.", listed(some)),
    };
    format!("No skill fits this request.{nearest}\n\n{ready}\n\n{WHAT_I_AM}")
}

/// A skill fits but cannot be used.
pub(super) fn held_back(skill: &Arc<Skill>, objections: &[Objection]) -> String {
    let name = skill.name.as_str();
    let why: Vec<String> = objections.iter().map(ToString::to_string).collect();
    format!(
        "The skill \"{name}\" would fit, but cannot be used here: {}. `prowess skills info {}` shows what it needs.\n\n{WHAT_I_AM}",
        why.join("; "),
        quote(name)
    )
}

/// There is no tool to read with.
pub(super) fn cannot_read(name: &str, location: &str) -> String {
    format!(
        "The skill \"{name}\" fits, but this agent has no `read` tool, so its instructions at {location} stay unread. \
         Allow the tool in the agent's `tools` settings.\n\n{WHAT_I_AM}"
    )
}

/// The skill could not be read.
pub(super) fn unread(name: &str, location: &str, why: &str) -> String {
    let why = cut(why.trim(), MAX_PROSE);
    format!("The skill \"{name}\" at {location} could not be read: {why}\n\n{WHAT_I_AM}")
}

/// What a skill says to the request.
pub(super) fn shown(found: &Found<'_>, next: &Next) -> String {
    let mut parts = Vec::new();
    let heading = found.section.map(super::sections::Section::heading).filter(|heading| !heading.is_empty());
    let place = heading.map(|heading| format!(", section \"{heading}\"")).unwrap_or_default();
    parts.push(format!("From the skill \"{}\" ({}){place}:", found.name, found.location));
    if !found.commands.is_empty() {
        let texts: Vec<&str> = found.commands.iter().map(|command| command.text.as_str()).collect();
        parts.push(block("bash", &texts.join("\n")));
        parts.extend(about_blanks(&found.commands));
    }
    let prose = found.section.map(super::sections::Section::prose).unwrap_or_default();
    if !prose.is_empty() {
        let prose = shortened(&prose);
        let mut lines: Vec<&str> = prose.lines().collect();
        // What a last line with a colon announces was a block of code, and is not shown here.
        while lines.last().is_some_and(|line| line.trim().is_empty() || line.trim_end().ends_with(':')) {
            lines.pop();
        }
        let quoted: Vec<String> = lines.iter().map(|line| format!("> {line}").trim_end().to_owned()).collect();
        parts.extend((!quoted.is_empty()).then(|| quoted.join("\n")));
    }
    if found.section.is_none() {
        parts.push("It has no instructions.".to_owned());
    }
    parts.extend(hint(found, next));
    parts.push(WHAT_I_AM.to_owned());
    parts.join("\n\n")
}

/// A command is run next.
pub(super) fn running(found: &Found<'_>, command: &Filled) -> String {
    let changed: Vec<String> = command.given.iter().map(|(was, now)| format!("`{now}` instead of `{was}`")).collect();
    let changed = if changed.is_empty() { String::new() } else { format!(", with {}", listed(&changed)) };
    format!("Running what the skill \"{}\" says{changed}.", found.name)
}

/// What came of the commands.
pub(super) fn ran(ran: &[(&ToolCall, &ToolReply)]) -> String {
    let mut parts: Vec<String> = ran.iter().map(|(call, reply)| outcome(call, reply)).collect();
    parts.push(WHAT_I_AM.to_owned());
    parts.join("\n\n")
}

/// What was said so far, shortened.
pub(super) fn digest(before: &[Message], asked: &str) -> String {
    let mut lines = vec!["A digest by the embedded planner, not a language model: the messages, shortened.".to_owned()];
    let skip = before.len().saturating_sub(MAX_MESSAGES);
    if skip > 0 {
        lines.push(format!("- {skip} earlier messages omitted"));
    }
    lines.extend(before[skip..].iter().flat_map(digested));
    if before.is_empty() {
        // Everything came in one text, instructions first: its end says where things stand.
        lines.push(tail(asked.trim(), 2 * MAX_PROSE).trim().to_owned());
    }
    lines.retain(|line| !line.is_empty());
    lines.join("\n")
}

fn digested(message: &Message) -> Vec<String> {
    let line = |who: &str, text: &str| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let short = cut(&text, MAX_DIGESTED);
        let more = if short.len() < text.len() { "…" } else { "" };
        (!text.is_empty()).then(|| format!("- {who}: {short}{more}"))
    };
    match message {
        Message::User(user) => {
            user.content.iter().filter_map(Block::as_text).filter_map(|text| line("asked", text)).collect()
        }
        Message::Assistant(assistant) => {
            let calls = assistant.calls().filter_map(|call| {
                let arguments = serde_json::Value::Object(call.arguments.clone()).to_string();
                line(&format!("called {}", call.name), &arguments)
            });
            line("answered", &assistant.text()).into_iter().chain(calls).collect()
        }
        Message::ToolResult(reply) => {
            line(if reply.is_error { "failed" } else { "got" }, &reply.text()).into_iter().collect()
        }
    }
}

fn outcome(call: &ToolCall, reply: &ToolReply) -> String {
    let command = call.arguments.get("command").and_then(serde_json::Value::as_str).unwrap_or_default();
    let told = reply.text();
    let told = told.trim();
    let status =
        reply.details.as_ref().map(|details| details["status"].as_str().unwrap_or_default()).unwrap_or_default();
    let ran = block("bash", command);
    let output = block("text", &ends(told));
    if status == "approval-pending" {
        let slug = reply.details.as_ref().and_then(|details| details["approvalSlug"].as_str()).unwrap_or("ID");
        return format!(
            "The command is waiting for your approval and has not run yet:\n\n{ran}\n\nAnswer on the page, or with \
             `prowess approvals resolve {slug} allow-once`."
        );
    }
    if reply.is_error && told.starts_with(&format!("exec denied: {}", Denied::ByPerson)) {
        return format!("You refused the command, so it did not run:\n\n{ran}");
    }
    if reply.is_error && told.contains("exec denied") {
        // What a skill's list of tools leaves out, no approval of a program lets in.
        let is_by_list = reply.details.as_ref().is_some_and(|details| details[RULE] == BY_LIST);
        let allow = program(command)
            .filter(|program| !is_by_list && !told.contains(TYPED_HINT) && may_propose(Path::new(program)))
            .map(|program| format!("To always allow the program: `prowess approvals allow {}`.", quote(&program)));
        return format!(
            "The command was refused and did not run:\n\n{ran}\n\n{output}{}",
            allow.map(|allow| format!("\n\n{allow}")).unwrap_or_default()
        );
    }
    if reply.is_error {
        return format!("The command failed:\n\n{ran}\n\n{output}");
    }
    if status == "running" {
        return format!("The command is still running in the background:\n\n{ran}\n\n{output}");
    }
    match reply.details.as_ref().and_then(|details| details["exitCode"].as_i64()) {
        Some(code) if code != 0 => format!("The command failed with exit code {code}:\n\n{ran}\n\n{output}"),
        _ => format!("Ran:\n\n{ran}\n\n{output}"),
    }
}

/// The program of a command, if it has only one.
fn program(command: &str) -> Option<String> {
    let script = Script::parse(command);
    let mut programs = script.segments.iter().filter_map(|segment| segment.words.first()?.literal());
    let first = programs.next()?;
    programs.all(|other| other == first).then(|| first.to_owned())
}

/// What was put into the commands, and what is still an example.
fn about_blanks(commands: &[Filled]) -> Option<String> {
    let (mut filled, mut open) = (Vec::new(), Vec::new());
    for command in commands {
        for (was, now) in &command.given {
            let said = format!("replaced `{was}` with `{now}`");
            if !filled.contains(&said) {
                filled.push(said);
            }
        }
        for was in &command.open {
            let said = format!("`{was}`");
            if !open.contains(&said) {
                open.push(said);
            }
        }
    }
    let mut sentences = Vec::new();
    if !filled.is_empty() {
        sentences.push(format!("From your request: {}.", listed(&filled)));
    }
    if !open.is_empty() {
        sentences
            .push(format!("Replace {} with your own value; the request does not clearly say which.", listed(&open)));
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn hint(found: &Found<'_>, next: &Next) -> Option<String> {
    let first = found.commands.first()?;
    Some(match next {
        Next::MayRun(foreseen) if first.open.is_empty() => match foreseen {
            Foreseen::Runs => {
                "Nothing was run. With `--act`, prowess runs the first command in the sandbox.".to_owned()
            }
            Foreseen::Asks(wants) if wants.is_empty() => {
                "Nothing was run. With `--act`, prowess asks you and runs the first command.".to_owned()
            }
            Foreseen::Asks(wants) => format!(
                "Nothing was run. With `--act`, prowess asks to {}, then runs the first command.",
                listed(wants)
            ),
            Foreseen::Blind(why) => left_to_person(why),
            Foreseen::Missing(program) => not_installed(program),
            Foreseen::Refused => {
                "Nothing was run. The exec policy refuses the first command; `prowess exec check` says why.".to_owned()
            }
        },
        Next::MayRun(_) | Next::Nothing => "Nothing was run.".to_owned(),
        Next::NoTool => {
            "Nothing was run: this agent has no `exec` tool. Allow it in the agent's `tools` settings.".to_owned()
        }
        Next::Changes(words) => format!(
            "Nothing was run: the command may change something ({}), which the request does not ask for. Run it \
             yourself, or ask for exactly that.",
            listed(words)
        ),
        Next::Blind(why) => left_to_person(why),
        Next::Missing(program) => not_installed(program),
        Next::Open => {
            let open = listed(&first.open.iter().map(|was| format!("`{was}`")).collect::<Vec<_>>());
            let mut wording = first.unsaid.clone();
            wording.dedup();
            let then = if wording.is_empty() {
                "Replace it, and run the command in your own terminal.".to_owned()
            } else {
                format!("Ask again and add it: {}.", listed(&wording))
            };
            format!("Nothing was run: the request does not say what to use for {open}. {then}")
        }
    })
}

fn not_installed(program: &str) -> String {
    format!("Nothing was run: `{program}` is not installed here. Install it, and ask again.")
}

fn left_to_person(why: &str) -> String {
    format!("Nothing was run, because {why}. Run the first command in your own terminal.")
}

/// A code block whose fence is longer than any within.
fn block(language: &str, text: &str) -> String {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

/// `text`, or its beginning up to the end of a line.
fn shortened(text: &str) -> String {
    let short = cut(text, MAX_PROSE);
    if short.len() == text.len() {
        return text.to_owned();
    }
    let whole = short.rfind('\n').map_or(short, |end| &short[..end]);
    format!("{}\n…", whole.trim_end())
}

/// `text`, or its beginning and its end.
fn ends(text: &str) -> String {
    if text.len() <= MAX_OUTPUT {
        return text.to_owned();
    }
    let head = cut(text, MAX_OUTPUT / 2);
    let end = tail(text, MAX_OUTPUT / 2);
    format!("{head}\n… {} bytes omitted …\n{end}", text.len() - head.len() - end.len())
}
