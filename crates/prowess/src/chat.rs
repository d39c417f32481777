//! `prowess chat`: a conversation at the terminal.
//!
//! A message is either a command of the chat itself (`/help`, `/new`, …) or something to say. While a turn runs, Ctrl-C
//! stops the turn; at the prompt it clears the line, and twice in a row it leaves.

pub(crate) mod complete;
pub(crate) mod line;
pub(crate) mod start;
mod terminal;

use std::fmt::Write as _;
use std::io::Write as _;

use prowess_agent::event::{End, Event};

use complete::{BUILT_IN, Words};
use line::{Above, Lines, Typed};
use terminal::Terminal;

use prowess_host::Failure;

use crate::output::{BOLD, DIM, count, paint, safe};
use crate::partner::{self, Partner, turn};
use crate::show::{Printer, tokens};
use crate::wish::Wish;

/// The exit code of a program that was told to end, as a shell says it.
const ENDED: u8 = 143;

/// What stands before the line.
const PROMPT: &str = "> ";

/// What a message is to the chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said<'a> {
    Nothing,
    Help,
    New,
    Model(Option<&'a str>),
    Skills,
    Usage,
    Quit,
    /// Something for the conversation, skills' own slash commands included.
    Message(&'a str),
}

/// Whether the conversation goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Prompt,
    Leave,
}

/// Where messages come from, and where the answers go.
pub(crate) struct Chat<'a> {
    pub(crate) lines: Lines,
    pub(crate) printer: &'a Printer,
    /// Where a person sees what happens between turns; nothing if nobody types, or nothing happens then.
    pub(crate) above: Option<Above>,
}

impl Chat<'_> {
    /// Talks until the person leaves, the input ends, or the program is told to end. The code is that of the last turn
    /// when nobody typed. A thread may still wait for a line then, so the runtime must not wait for its threads.
    pub(crate) async fn hold(self, partner: &mut impl Partner) -> Result<u8, Failure> {
        let Self { mut lines, printer, above } = self;
        // Both hear what ends the program: a turn is stopped by it in good order, and then there is no other line.
        let (mut wish, mut end) = (Wish::listen().map_err(Failure::ours)?, Wish::end().map_err(Failure::ours)?);
        let terminal = Terminal::remember();
        let events = printer.events();
        let is_person = matches!(lines, Lines::Person(_));
        let (mut code, mut interrupts) = (0, 0);
        loop {
            if let Some(question) = partner.next_question().filter(|_| is_person) {
                tell(&question);
            }
            let mut reading = std::pin::pin!(lines.next(PROMPT));
            let typed;
            (lines, typed) = loop {
                tokio::select! {
                    biased;
                    () = end.comes() => {
                        terminal.restore();
                        return Ok(ENDED);
                    }
                    next = &mut reading => break next,
                    happened = partner.between_turns() => show(&happened, partner, printer, above.as_ref()),
                }
            };
            let text = match typed? {
                Typed::Line(text) => text,
                Typed::End => break,
                Typed::Interrupt if interrupts > 0 => break,
                Typed::Interrupt => {
                    interrupts += 1;
                    tell(&paint(DIM, "press Ctrl-C again or Ctrl-D to leave"));
                    continue;
                }
            };
            interrupts = 0;
            if is_person && let Some(told) = partner.answer_question(&text).await {
                tell(&told);
                continue;
            }
            let said = read(&text);
            if let Said::Message(message) = said {
                wish.forget();
                let ended = turn(partner, message, &events, &mut wish).await;
                code = if is_person { 0 } else { partner::code(&ended) };
                if ended == End::Interrupted && !is_person {
                    break;
                }
                lines.complete_with(Words::of(&partner.skills()));
            } else if answer(said, partner).await == Next::Leave {
                break;
            }
        }
        Ok(code)
    }
}

/// Shows what happened between turns, and a question that came of it, without touching the line that is typed.
fn show(happened: &[Event], partner: &mut impl Partner, printer: &Printer, above: Option<&Above>) {
    let Some(above) = above else { return happened.iter().for_each(|event| printer.show(event)) };
    for event in happened {
        above.show(&printer.lines(event));
    }
    if let Some(question) = partner.next_question() {
        above.show(&question);
    }
}

fn read(text: &str) -> Said<'_> {
    let text = text.trim();
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
    match (word, rest) {
        ("", _) => Said::Nothing,
        ("/help", None) => Said::Help,
        ("/new" | "/reset", None) => Said::New,
        ("/model", name) => Said::Model(name),
        ("/skills", None) => Said::Skills,
        ("/usage", None) => Said::Usage,
        ("/quit" | "/exit", None) => Said::Quit,
        _ => Said::Message(text),
    }
}

/// What the chat does itself.
async fn answer(said: Said<'_>, partner: &mut impl Partner) -> Next {
    match said {
        Said::Nothing | Said::Message(_) => {}
        Said::Quit => return Next::Leave,
        Said::Help => tell(&help()),
        Said::New => match partner.renew().await {
            Ok(()) => tell(&paint(DIM, "new conversation started")),
            Err(failure) => tell(&failure.to_string()),
        },
        Said::Model(None) => tell(&safe(&partner.model())),
        Said::Model(Some(name)) => match partner.choose(name).await {
            Ok(()) => tell(&format!("now using {}", safe(&partner.model()))),
            Err(failure) => tell(&failure.to_string()),
        },
        Said::Skills => tell(&skills(partner)),
        Said::Usage => tell(&tokens(&partner.usage().await)),
    }
    Next::Prompt
}

fn help() -> String {
    let mut text = String::new();
    for (name, about) in BUILT_IN {
        let _ = writeln!(text, "  {:<10} {about}", format!("/{name}"));
    }
    text.push_str("  /NAME      use a skill by its command; Tab completes\n");
    text.push_str("  $NAME      use a skill anywhere in a message\n");
    text.push_str("End a line with a backslash to continue on the next. Ctrl-C stops an answer, Ctrl-D leaves.");
    text
}

fn skills(partner: &impl Partner) -> String {
    let skills = partner.skills();
    let mut text = format!("{}\n", count(skills.count, "skill"));
    for command in &skills.commands {
        let name = paint(BOLD, &format!("{:<20}", format!("/{}", safe(&command.command))));
        let _ = writeln!(text, "  {name} {}", safe(&command.about));
    }
    text.trim_end().to_owned()
}

/// A line for the person. Nothing is left to do when stderr has gone away.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(anstream::stderr(), "{}", text.trim_end());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::partner::tests::Echo;

    #[test]
    fn the_chats_own_commands_are_told_from_messages() {
        let table = [
            ("", Said::Nothing),
            ("  ", Said::Nothing),
            ("/help", Said::Help),
            (" /new ", Said::New),
            ("/model", Said::Model(None)),
            ("/model  local/x ", Said::Model(Some("local/x"))),
            ("/usage", Said::Usage),
            ("/quit", Said::Quit),
            ("/exit", Said::Quit),
            ("/quit smoking", Said::Message("/quit smoking")),
            ("/weather Lisbon", Said::Message("/weather Lisbon")),
            ("/skill weather Lisbon", Said::Message("/skill weather Lisbon")),
            ("hello", Said::Message("hello")),
        ];
        for (text, expected) in table {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn every_built_in_command_is_known_to_the_help() {
        let help = help();
        for (name, _) in BUILT_IN {
            assert!(help.contains(&format!("/{name} ")), "{name}");
        }
    }

    #[tokio::test]
    async fn another_model_is_chosen_or_the_old_one_stays() {
        let mut echo = Echo::new();
        assert_eq!(answer(Said::Model(Some("local/x")), &mut echo).await, Next::Prompt);
        assert_eq!(echo.model, "local/x");
        answer(Said::Model(Some("nope")), &mut echo).await;
        assert_eq!(echo.model, "local/x");
        echo.heard.push("x".to_owned());
        answer(Said::New, &mut echo).await;
        assert!(echo.heard.is_empty());
        assert_eq!(answer(Said::Quit, &mut echo).await, Next::Leave);
    }
}
