//! `prowess run`: one message, and what comes of it.

use std::fs::File;
use std::io::{IsTerminal as _, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use prowess_agent::event::{End, Events};
use prowess_agent::frame::{self, Frames};
use prowess_agent::image::{self, Image, ImageError};
use prowess_agent::{Delivery, Outcome};

use prowess_host::Failure;
use serde_json::Value;

use crate::chat::line::MAX_MESSAGE_BYTES;
use crate::cli::{Globals, MessageArgs};
use crate::output::{Report, json};
use crate::partner::{code, turn};
use crate::show::{Detail, Printer};
use crate::talk::{Talk, settle_index};
use crate::wish::Wish;

pub(crate) fn run(args: &MessageArgs, globals: &Globals) -> Result<Report, Failure> {
    let message = message(&args.words, &args.image)?;
    let images = images(&args.image)?;
    let home = globals.context()?.user_home().to_owned();
    let detail = if args.talk.verbose { Detail::Verbose } else { Detail::Normal };
    let printer = Printer::new(detail, &home);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let report = runtime.map_err(Failure::ours)?.block_on(async {
        let mut talk = Talk::open(globals, &args.talk, &printer)?;
        let mut wish = Wish::listen().map_err(Failure::ours)?;
        let events = match (globals.json, args.events) {
            (true, _) => Events::nobody(),
            (false, true) => lines(talk.frames()),
            (false, false) => printer.events(),
        };
        talk.attach(images);
        talk.deliver(delivery(args, globals));
        let end = turn(&mut talk, &message, &events, &mut wish).await;
        let report = if globals.json { told(talk.outcome(), &end)? } else { Report::text("") };
        Ok(report.code(code(&end)))
    });
    settle_index(globals);
    report
}

/// What a turn led to, for machines. One that came to no outcome failed on something outside of it.
fn told(outcome: Option<&Outcome>, end: &End) -> Result<Report, Failure> {
    match (outcome, end) {
        (Some(outcome), _) => Report::json(&frame::result(outcome)),
        (None, End::Failed(why)) => Err(Failure::input(why)),
        (None, End::Answered | End::Interrupted) => Report::json(&Failure::input("the turn was stopped").to_json()),
    }
}

/// When replies are told: nothing before they are complete if a program reads them, not a person.
pub(crate) fn delivery(args: &MessageArgs, globals: &Globals) -> Delivery {
    let is_read_by_a_program = globals.json || (!args.events && !std::io::stdout().is_terminal());
    if is_read_by_a_program { Delivery::Whole } else { Delivery::Live }
}

/// The images in these files.
pub(crate) fn images(files: &[PathBuf]) -> Result<Vec<Image>, Failure> {
    let images: Vec<Image> = files.iter().map(|file| image(file)).collect::<Result<_, _>>()?;
    image::check(&images).map_err(|error| Failure::input(error.to_string()))?;
    Ok(images)
}

fn image(file: &Path) -> Result<Image, Failure> {
    let shown = file.display();
    let cannot_read = |error| Failure::input(format!("cannot read the image {shown}: {error}"));
    let mut bytes = Vec::new();
    let most = u64::try_from(image::MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    File::open(file).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(cannot_read)?;
    Image::from_bytes(&bytes).map_err(|error| match error {
        // No more than that is read of it.
        ImageError::TooLarge { .. } => {
            let most = image::MAX_BYTES;
            Failure::input(format!("the image {shown} has more than {most} bytes")).hint("make it smaller")
        }
        error => Failure::input(format!("{shown}: {error}")),
    })
}

/// The words of the command line, or stdin. An image says something without words.
pub(crate) fn message(words: &[String], images: &[PathBuf]) -> Result<String, Failure> {
    if words.is_empty() && !images.is_empty() {
        return Ok(String::new());
    }
    if words != ["-"] {
        return said(&words.join(" "));
    }
    let mut text = String::new();
    let read = std::io::stdin().take(MAX_MESSAGE_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| Failure::input(format!("cannot read the message from stdin: {error}")))?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > MAX_MESSAGE_BYTES {
        return Err(Failure::input(format!("the message is longer than {MAX_MESSAGE_BYTES} bytes"))
            .hint("put it in a file and ask about the file"));
    }
    said(text.trim_end())
}

/// A message has something to say.
fn said(text: &str) -> Result<String, Failure> {
    if text.trim().is_empty() {
        return Err(
            Failure::usage("the message is empty").hint("for example: prowess run \"check the weather in Shanghai\"")
        );
    }
    Ok(text.to_owned())
}

/// Prints each event on a line of its own.
fn lines(frames: Frames) -> Events {
    let frames = Mutex::new(frames);
    Events::to(move |event| {
        let frames = frames.lock().unwrap_or_else(PoisonError::into_inner).frames(&event);
        frames.iter().for_each(print_line);
    })
}

/// Prints one event.
pub(crate) fn print_line(frame: &Value) {
    let mut out = std::io::stdout().lock();
    // A reader that has gone away stops no turn.
    let _ = json::write_line(&mut out, frame);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_without_an_outcome_is_a_failure_with_a_reason() {
        let failed = told(None, &End::Failed("no room on the disk".to_owned())).expect_err("a failure");
        assert_eq!((failed.message.as_str(), failed.fault as u8), ("no room on the disk", 1));
        assert!(told(None, &End::Interrupted).expect("a report").text.contains("the turn was stopped"));
    }

    #[test]
    fn a_message_has_something_to_say() {
        for blank in ["", " ", "\n\t "] {
            assert_eq!(said(blank).expect_err(blank).fault as u8, 2);
        }
        assert_eq!(message(&["a".to_owned(), "b".to_owned()], &[]).expect("words"), "a b");
        assert_eq!(message(&[], &["a.png".into()]).expect("an image alone"), "");
    }
}
