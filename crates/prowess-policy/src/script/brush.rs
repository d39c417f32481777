//! The second grammar: brush's, asked only about what the first one finds simple.
//!
//! It was written by other people in another way (a tokenizer and a PEG), so that both misread the same text in the same
//! way is unlikely. It is never asked about a text with a doubt: there it could change nothing, and some of those texts
//! take it very long.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brush_parser::ast::{
    AndOr, AndOrList, Command, CommandPrefixOrSuffixItem as Item, CompoundList, IoFileRedirectKind,
    IoFileRedirectTarget, IoRedirect, Pipeline, PipelineTimed, Program, SeparatorOperator, SimpleCommand,
};
use brush_parser::{Parser, ParserOptions};

use super::doubts::Doubts;
use super::draft::redirection;
use super::word::{self, Place};
use super::{DoubtKind, Joint, RedirectKind, Segment, Span};

/// `<<` that brush may take for here-documents.
const MAX_HERE: usize = 8;

/// Lines that brush may search for the end of a here-document.
const MAX_HERE_LINES: usize = 64;

/// The longest number in front of `<` or `>`.
const MAX_DIGITS: usize = 9;

/// Notes a doubt unless brush sees exactly `segments` in `text`.
pub(super) fn confirm(text: &str, segments: &[Segment], doubts: &mut Doubts) {
    confirm_by(parse, text, segments, doubts);
}

fn confirm_by(parse: fn(&str) -> Option<Program>, text: &str, segments: &[Segment], doubts: &mut Doubts) {
    let whole = Span { start: 0, end: text.len() };
    if !is_bearable(text) {
        return doubts.push(whole, DoubtKind::Disagreement);
    }
    // No text is known that makes brush panic and gets here. If there is one, it is not a command we understand, and it
    // must not end the process.
    let parsed = catch_unwind(AssertUnwindSafe(|| parse(text)));
    let Some(program) = parsed.ok().flatten() else { return doubts.push(whole, DoubtKind::Syntax) };
    let ours = segments.iter().map(|segment| Shape::of_segment(text, segment));
    if !shapes(&program).is_some_and(|theirs| theirs.into_iter().eq(ours)) {
        doubts.push(whole, DoubtKind::Disagreement);
    }
}

fn parse(text: &str) -> Option<Program> {
    let options = ParserOptions { enable_extended_globbing: false, ..ParserOptions::default() };
    Parser::new(text.as_bytes(), &options).parse_program().ok()
}

/// Whether brush can read `text` quickly and without panic, even if it sees other quotes in it than we do.
///
/// It searches here-documents in quadratic time, loses its place when one begins inside nested substitutions, and gives
/// up for good on a descriptor beyond 32 bits. We have seen no here-document by now, but `<<` may stand in quotes.
fn is_bearable(text: &str) -> bool {
    let here = text.matches("<<").count();
    let nested = ["$(", "${", "$["].iter().map(|open| text.matches(open).count()).sum::<usize>();
    let lines = text.bytes().filter(|byte| *byte == b'\n').count();
    let is_quick = here == 0 || (here <= MAX_HERE && lines <= MAX_HERE_LINES && nested < 2);
    is_quick && text.split(['<', '>']).all(|before| digits_at_end(before) <= MAX_DIGITS)
}

fn digits_at_end(text: &str) -> usize {
    text.bytes().rev().take_while(u8::is_ascii_digit).count()
}

/// A simple command, as raw text, in the words both grammars have.
#[derive(Debug, PartialEq, Eq)]
struct Shape<'a> {
    joint: Joint,
    assignments: Vec<&'a str>,
    words: Vec<&'a str>,
    redirects: Vec<(Option<u32>, RedirectKind, &'a str)>,
}

impl<'a> Shape<'a> {
    fn new(joint: Joint) -> Self {
        Self { joint, assignments: Vec::new(), words: Vec::new(), redirects: Vec::new() }
    }

    fn of_segment(text: &'a str, segment: &Segment) -> Self {
        let raw = |span: Span| &text[span.range()];
        let redirects = segment.redirects.iter();
        Self {
            joint: segment.joint,
            assignments: segment.assignments.iter().map(|assignment| raw(assignment.span)).collect(),
            words: segment.words.iter().map(|word| raw(word.span)).collect(),
            redirects: redirects.map(|it| (it.descriptor, it.kind, raw(it.target.span))).collect(),
        }
    }
}

/// What brush sees, if it is a flat list of pipelines of simple commands.
fn shapes(program: &Program) -> Option<Vec<Shape<'_>>> {
    let mut found = Vec::new();
    for CompoundList(items) in &program.complete_commands {
        for item in items {
            match item.1 {
                SeparatorOperator::Sequence => add_list(&item.0, &mut found)?,
                SeparatorOperator::Async => return None,
            }
        }
    }
    Some(found)
}

fn add_list<'a>(list: &'a AndOrList, found: &mut Vec<Shape<'a>>) -> Option<()> {
    let joint = if found.is_empty() { Joint::First } else { Joint::Then };
    add_pipeline(&list.first, joint, found)?;
    list.additional.iter().try_for_each(|next| match next {
        AndOr::And(pipeline) => add_pipeline(pipeline, Joint::And, found),
        AndOr::Or(pipeline) => add_pipeline(pipeline, Joint::Or, found),
    })
}

fn add_pipeline<'a>(pipeline: &'a Pipeline, first: Joint, found: &mut Vec<Shape<'a>>) -> Option<()> {
    // To brush `time` is a keyword; we keep it as the first word, for whoever sees through wrappers.
    let mut timed: &[&str] = match pipeline.timed {
        None => &[],
        Some(PipelineTimed::Timed(_)) => &["time"],
        Some(PipelineTimed::TimedWithPosixOutput(_)) => &["time", "-p"],
    };
    let mut joint = first;
    for command in &pipeline.seq {
        let Command::Simple(command) = command else { return None };
        let mut shape = Shape::new(joint);
        shape.words.extend(std::mem::take(&mut timed));
        joint = if add_command(command, &mut shape)? { Joint::PipeBoth } else { Joint::Pipe };
        found.push(shape);
    }
    if !timed.is_empty() {
        found.push(Shape { words: timed.to_vec(), ..Shape::new(joint) });
    }
    Some(())
}

/// Fills in `shape`, and says whether the pipe behind the command carries both outputs: brush tells so by a
/// redirection that nobody wrote.
fn add_command<'a>(command: &'a SimpleCommand, shape: &mut Shape<'a>) -> Option<bool> {
    let prefix = command.prefix.iter().flat_map(|prefix| &prefix.0);
    let suffix = command.suffix.iter().flat_map(|suffix| &suffix.0);
    let mut pipes_both = false;
    for item in prefix {
        match item {
            Item::AssignmentWord(_, word) => shape.assignments.push(&word.value),
            Item::IoRedirect(redirect) => shape.redirects.push(written(redirect)?),
            Item::Word(_) | Item::ProcessSubstitution(..) => return None,
        }
    }
    shape.words.extend(command.word_or_name.iter().map(|word| word.value.as_str()));
    for item in suffix {
        match item {
            Item::Word(word) | Item::AssignmentWord(_, word) => shape.words.push(&word.value),
            Item::IoRedirect(IoRedirect::File(_, _, IoFileRedirectTarget::Fd(_))) => pipes_both = true,
            Item::IoRedirect(redirect) => shape.redirects.push(written(redirect)?),
            Item::ProcessSubstitution(..) => return None,
        }
    }
    Some(pipes_both)
}

fn written(redirect: &IoRedirect) -> Option<(Option<u32>, RedirectKind, &str)> {
    let (descriptor, sign, target) = match redirect {
        IoRedirect::File(descriptor, kind, target) => (*descriptor, sign(kind), raw(target)?),
        IoRedirect::OutputAndError(target, _) => (None, "&>", target.value.as_str()),
        IoRedirect::HereDocument(..) | IoRedirect::HereString(..) => return None,
    };
    let descriptor = descriptor.map(u32::try_from).transpose().ok()?;
    let value = word::read(target, 0, Place::Argument)?.value;
    Some((descriptor, redirection(sign, &value).0, target))
}

fn sign(kind: &IoFileRedirectKind) -> &'static str {
    match kind {
        IoFileRedirectKind::Read => "<",
        IoFileRedirectKind::Write => ">",
        IoFileRedirectKind::Append => ">>",
        IoFileRedirectKind::ReadAndWrite => "<>",
        IoFileRedirectKind::Clobber => ">|",
        IoFileRedirectKind::DuplicateInput => "<&",
        IoFileRedirectKind::DuplicateOutput => ">&",
    }
}

fn raw(target: &IoFileRedirectTarget) -> Option<&str> {
    match target {
        IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => Some(&word.value),
        IoFileRedirectTarget::Fd(_) | IoFileRedirectTarget::ProcessSubstitution(..) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_in_the_second_grammar_is_a_doubt() {
        let mut doubts = Doubts::default();
        confirm_by(|_| panic!("on purpose"), "ls", &[], &mut doubts);
        assert!(!doubts.is_empty());
    }

    /// The guard above is void where a panic aborts.
    #[test]
    fn panics_unwind_in_every_profile() {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).expect("the manifest of the workspace");
        assert!(manifest.contains("[profile.release]") && manifest.contains("[profile.dist]"));
        let aborts = manifest.lines().find(|line| line.trim_start().starts_with("panic"));
        assert_eq!(aborts, None);
    }
}
