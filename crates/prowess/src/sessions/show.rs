//! `sessions show`: what was said and called, and what did it cost?

use std::fmt::Write as _;
use std::path::Path;

use prowess_agent::message::{Message, ToolReply};
use prowess_host::Failure;
use prowess_skills::text::shorten;
use serde_json::{Map, Value, json};

use super::told::{Broken, Costs, Line, Source, Told, ending, result, typed};
use crate::output::{BAD, BOLD, DIM, GOOD, Report, WARN, cleaned, count, paint, safe, short_path, table};
use crate::show::{Look, Markdown, label, mark, tokens};
use crate::wrap::{stdout_columns, wrap};

/// How much of a reason is shown, in UTF-16 units.
const MAX_REASON: usize = 400;

pub(crate) fn report(told: &Told, home: &Path, json: bool) -> Result<Report, Failure> {
    if json { Report::json(&shape(told)) } else { Ok(Report::text(text(told, home))) }
}

/// All of it for machines; what is not known is left out.
pub(super) fn shape(told: &Told) -> Value {
    let cost = |cost: &super::told::SkillCost| {
        json!({
            "skill": cost.skill, "catalog": cost.catalog, "body": cost.body, "output": cost.output,
            "total": cost.total(),
        })
    };
    let others: Map<String, Value> = told.costs.others.iter().map(|(name, sum)| (name.clone(), json!(sum))).collect();
    let mut shape = json!({
        "key": told.key,
        "sessionId": told.id,
        "path": told.path.display().to_string(),
        "messages": told.lines.iter().map(|line| &line.message).collect::<Vec<_>>(),
        "skills": told.skills(),
        "usage": told.usage(),
        "ledger": {
            "skills": told.costs.skills.iter().map(cost).collect::<Vec<_>>(),
            "other": others,
            "total": told.costs.total,
        },
        "problems": told.problems,
    });
    if let Some(shape) = shape.as_object_mut().filter(|_| told.source == Source::Gateway) {
        for name in ["path", "skills", "ledger"] {
            shape.shift_remove(name);
        }
        if !told.is_counted() {
            shape.shift_remove("usage");
        }
    }
    shape
}

fn text(told: &Told, home: &Path) -> String {
    let name = told.key.as_deref().map_or_else(|| "(no name)".to_owned(), safe);
    let mut text = format!("{}  {}\n", paint(BOLD, &name), paint(DIM, &safe(&told.id)));
    if told.source == Source::File {
        let _ = writeln!(text, "{}", paint(DIM, &short_path(&told.path, home)));
    }
    for problem in &told.problems {
        let _ = writeln!(text, "{} {}", paint(WARN, "!"), safe(problem));
    }
    text.push('\n');
    for (index, line) in told.lines.iter().enumerate() {
        said(&mut text, told, index, line, home);
    }
    let estimate = if told.is_estimated() { " (estimated: no model was asked)" } else { "" };
    let _ = write!(text, "\n{}", count(told.lines.len(), "message"));
    if told.is_counted() {
        let _ = write!(text, ", {}{estimate}", tokens(&told.usage()));
    }
    text.push('\n');
    text.push_str(&ledger(&told.costs));
    text
}

fn said(text: &mut String, told: &Told, index: usize, line: &Line, home: &Path) {
    match &line.message {
        Message::User(user) => {
            for (index, line) in cleaned(typed(user).trim_end()).lines().enumerate() {
                let mark = if index == 0 { ">" } else { " " };
                let _ = writeln!(text, "{}", wrap(&format!("{} {line}", paint(BOLD, mark)), stdout_columns(), "  "));
            }
        }
        Message::Assistant(assistant) => {
            let mut answer = Markdown::new(Look::Plain).wrapped(stdout_columns);
            text.push_str(&answer.push(assistant.text().trim()));
            text.push_str(&answer.finish());
            if let Some((broken, why)) = ending(assistant) {
                let (style, sign) = match broken {
                    Broken::Cut => (WARN, "!"),
                    Broken::Stopped => (WARN, "■"),
                    Broken::Failed => (BAD, "✗"),
                };
                let _ = writeln!(text, "{} {}", paint(style, sign), shorten(why, MAX_REASON));
            }
        }
        Message::ToolResult(reply) => {
            let call = format!("{} {}", paint(DIM, "▸"), called(told, index, reply, home));
            let _ = writeln!(text, "{}", wrap(&call, stdout_columns(), "  "));
            for skill in &line.reads {
                let _ = writeln!(text, "{} {} (read)", paint(GOOD, "●"), paint(BOLD, &safe(skill)));
            }
        }
    }
}

/// The call that a result answers, and what became of it.
fn called(told: &Told, index: usize, reply: &ToolReply, home: &Path) -> String {
    let none = Map::new();
    let call = told.call(index);
    let name = call.map_or(reply.tool_name.as_str(), |call| call.name.as_str());
    let arguments = call.map_or(&none, |call| &call.arguments);
    format!("{}  {}", label(name, arguments, home), mark(&result(reply), None))
}

fn ledger(costs: &Costs) -> String {
    if costs.total == 0 {
        return String::new();
    }
    let number = |number: u64| if number == 0 { String::new() } else { number.to_string() };
    let mut rows: Vec<Vec<String>> = costs
        .skills
        .iter()
        .map(|cost| {
            let total = number(cost.total());
            vec![safe(&cost.skill), number(cost.catalog), number(cost.body), number(cost.output), total]
        })
        .collect();
    let blank = String::new;
    rows.extend(
        costs
            .others
            .iter()
            .map(|(name, sum)| vec![format!("({})", safe(name)), blank(), blank(), blank(), number(*sum)]),
    );
    rows.push(vec!["total".to_owned(), blank(), blank(), blank(), number(costs.total)]);
    format!("\nTokens by skill\n{}", table(&["Skill", "List", "Instructions", "Output", "Total"], &[1, 2, 3, 4], rows))
}

#[cfg(test)]
mod tests {
    use prowess_agent::message::{Block, StopReason};

    use super::*;
    use crate::sessions::tests::weather;

    #[test]
    fn a_conversation_on_a_page() {
        let told = weather();
        let text = report(&told, Path::new("/home/me"), false).expect("a report").text;
        let text = anstream::adapter::strip_str(&text).to_string();
        let expected = "\
agent:main:main  0123
~/s/0123.jsonl

> check the weather
Let me look.
▸ read ~/w/SKILL.md  ✓
● weather (read)
▸ exec curl wttr.in  ✗ exit code 6
It is sunny.

5 messages, 30 tokens read, 6 written
";
        assert!(text.starts_with(expected), "{text}");
        for row in ["weather", "12", "20", "(system)", "36"] {
            assert!(text[expected.len()..].contains(row), "{row}\n{text}");
        }
    }

    #[test]
    fn messages_keep_their_lines_and_nothing_is_cut() {
        let mut told = weather();
        let wrapped =
            "The user calls a skill. Read its SKILL.md first:\n- \"weather\"\n\nUser request:\n$weather\nin Porto";
        let Message::User(user) = &mut told.lines[0].message else { panic!("a person speaks first") };
        user.content = vec![Block::text(wrapped)];
        let Some(Message::Assistant(last)) = told.lines.last_mut().map(|line| &mut line.message) else {
            panic!("the model speaks last")
        };
        let long = format!("One.\n\n- a\n- b\n{}", "word ".repeat(300));
        last.content = vec![Block::text(&long)];
        let text = report(&told, Path::new("/home/me"), false).expect("a report").text;
        let text = anstream::adapter::strip_str(&text).to_string();
        assert!(text.contains("> $weather\n  in Porto\nLet me look.\n"), "{text}");
        assert!(text.contains(&format!("\n{}\n", long.trim_end())), "{text}");
    }

    #[test]
    fn a_reply_that_did_not_end_well_is_marked() {
        let table = [
            (StopReason::Length, None, "It is sunny.\n! cut off at its length limit\n"),
            (StopReason::Aborted, None, "It is sunny.\n■ stopped\n"),
            (StopReason::Error, Some("no\u{1b}[2J key"), "It is sunny.\n✗ no[2J key\n"),
            (StopReason::Stop, None, "It is sunny.\n\n5 messages"),
        ];
        for (stop, error, expected) in table {
            let mut told = weather();
            let Some(Message::Assistant(last)) = told.lines.last_mut().map(|line| &mut line.message) else {
                panic!("the model speaks last")
            };
            last.stop_reason = stop;
            last.error_message = error.map(str::to_owned);
            let text = report(&told, Path::new("/home/me"), false).expect("a report").text;
            let text = anstream::adapter::strip_str(&text).to_string();
            assert!(text.contains(expected), "{expected}\n{text}");
        }
    }

    #[test]
    fn what_a_gateway_does_not_tell_is_left_out() {
        let mut told = Told { source: Source::Gateway, costs: Costs::default(), ..weather() };
        for line in &mut told.lines {
            if let Message::Assistant(reply) = &mut line.message {
                reply.usage = prowess_agent::message::Usage::default();
            }
        }
        let text = report(&told, Path::new("/home/me"), false).expect("a report").text;
        assert!(text.ends_with("\n5 messages\n"), "{text}");
        let shape = shape(&told);
        let known: Vec<&String> = shape.as_object().expect("an object").keys().collect();
        assert_eq!(known, ["key", "sessionId", "messages", "problems"]);
    }

    #[test]
    fn machines_get_all_of_it() {
        let json = report(&weather(), Path::new("/home/me"), true).expect("a report").text;
        let json: Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["messages"].as_array().map(Vec::len), Some(5));
        assert_eq!(json["skills"], json!(["weather"]));
        let ledger = &json["ledger"];
        assert_eq!((&ledger["skills"][0]["total"], &ledger["other"]["system"]), (&json!(32), &json!(4)));
        assert_eq!(ledger["total"], json["usage"]["totalTokens"]);
    }
}
