//! Wrappers: which program does this command really start?
//!
//! `timeout 5 nice rg x` is about `rg`. A wrapper is peeled off only when every word of it is understood; what it does
//! not say plainly, or does to more than the one command behind it, is [`Inner::Opaque`] with the reason. Nothing is
//! looked up here: whether a word names the program it seems to name is for the caller to find out, for each
//! [`Wrapper`] as for the command itself.

mod assignment;
mod builtin;
mod carrier;
mod shell;
mod xargs;

use std::borrow::Cow;
use std::fmt;

use crate::script::{Expansion, Value, Word};

pub use assignment::is_harmless_assignment;
pub use builtin::is_harmless_builtin;
pub(crate) use builtin::steers_shell;
pub(crate) use carrier::{is_carrier, plain_name};
pub(crate) use shell::{is_multiplexer, is_shell};
pub(crate) use xargs::is_bare as is_bare_xargs;

/// The most wrappers around one command that are seen through, shells with `-c` among them.
pub const MAX_WRAPPERS: usize = 4;

/// A command without what is wrapped around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unwrapped<'a> {
    /// What was peeled off, outermost first. Each is a program of its own that must be trusted.
    pub wrappers: Vec<Wrapper<'a>>,
    /// `NAME=value` given to `env`, in order, with the value where it is known.
    pub assignments: Vec<(String, Option<String>)>,
    /// Whether more arguments are added while it runs.
    pub tail: Tail,
    /// What is left.
    pub inner: Inner<'a>,
}

/// Something that starts the command behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wrapper<'a> {
    /// The word that names it.
    pub word: &'a Word,
    /// Who does the wrapping.
    pub kind: WrapperKind,
}

/// Who does the wrapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrapperKind {
    /// A program that is looked up like any other.
    Program,
    /// The shell itself: `command` or `exec`. There is no program to find.
    Shell,
    /// `time`: a word of the language in some shells, a program in others.
    Either,
}

/// Whether the words of a command are all there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// They are.
    Closed,
    /// `xargs` adds arguments that nobody knows yet.
    Open,
}

/// What a wrapped command comes down to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inner<'a> {
    /// A program and its arguments; never empty. The program is a literal word, or one that begins with `~` and is
    /// otherwise literal. A built-in of the shell is meant only when no wrapper is a [`WrapperKind::Program`].
    Command(Cow<'a, [Word]>),
    /// The text of `sh -c TEXT`, to be read as a script of its own.
    Script {
        /// Where the text stands.
        word: &'a Word,
        /// The text.
        text: &'a str,
    },
    /// `command -v NAME`: asks the shell where a program is and starts nothing.
    Query,
    /// It cannot be seen through.
    Opaque(Reason),
}

/// Why a command cannot be seen through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// There is no word at all, or nothing behind the wrapper.
    MissingCommand,
    /// An option that is not known, shortened, or written in an unusual way.
    UnknownOption,
    /// A word that becomes known only while it runs stands where an option or a program is expected.
    Dynamic,
    /// More than [`MAX_WRAPPERS`].
    TooDeep,
    /// `env -i`, `env -u`: variables disappear.
    Environment,
    /// `env -C`: programs and files are looked for elsewhere.
    Directory,
    /// `env -S`: one word is taken apart by rules of its own.
    SplitString,
    /// `sudo` and the like.
    OtherUser,
    /// `strace`, `setsid`, `watch` and the like.
    Supervisor,
    /// `eval`, `source`, `trap`: words become commands.
    Evaluates,
    /// `export`, `alias`, `set`: later commands mean something else.
    ShellState,
    /// A shell that reads commands from its input.
    ReadsInput,
    /// `sh -l`, `sh -i`, `--rcfile`: start-up files run first.
    StartupFiles,
    /// Words behind the text of `sh -c` become `$0`, `$1`, … in it.
    ExtraOperands,
    /// `-c` of a shell whose language is not the one we read.
    OtherLanguage,
    /// `busybox` and `toybox` bring programs of their own under the usual names.
    Multiplexer,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MissingCommand => "no command follows it",
            Self::UnknownOption => "it has an unknown option",
            Self::Dynamic => "its arguments contain variables",
            Self::TooDeep => "too many programs are wrapped around the command",
            Self::Environment => "it removes variables from the environment",
            Self::Directory => "it starts the command in another folder",
            Self::SplitString => "it splits a string into words and runs them",
            Self::OtherUser => "it starts the command as another user or in another place",
            Self::Supervisor => "it starts and controls another program",
            Self::Evaluates => "it runs its arguments, or a file, as shell code",
            Self::ShellState => "it changes what later commands mean",
            Self::ReadsInput => "the shell would read commands from its input",
            Self::StartupFiles => "the shell would run its start-up files first",
            Self::ExtraOperands => "the words after the `-c` text become part of what it runs",
            Self::OtherLanguage => "the text is in a shell language that prowess does not parse",
            Self::Multiplexer => "it runs its built-in programs under the names of other programs",
        })
    }
}

/// What one wrapper makes of its words.
enum Peel {
    /// Not a wrapper: this is the command.
    Command,
    /// The command begins this many words further on.
    Inner(Layer),
    /// The script is this word.
    Script(usize),
    Query,
    Opaque(Reason),
}

/// A wrapper that is understood.
struct Layer {
    skip: usize,
    kind: WrapperKind,
    assignments: Vec<(String, Option<String>)>,
    tail: Tail,
    /// What `xargs -I` replaces.
    replaced: Option<String>,
}

impl Layer {
    fn program(skip: usize) -> Self {
        Self { skip, kind: WrapperKind::Program, assignments: Vec::new(), tail: Tail::Closed, replaced: None }
    }
}

/// Peels every wrapper off `words`, around which `depth` wrappers were already.
#[must_use]
pub fn unwrap(words: &[Word], depth: usize) -> Unwrapped<'_> {
    let mut found = Unwrapped {
        wrappers: Vec::new(),
        assignments: Vec::new(),
        tail: Tail::Closed,
        inner: Inner::Opaque(Reason::MissingCommand),
    };
    // Where a word was replaced, the rest is a copy; places stay the same.
    let mut argv = Cow::Borrowed(words);
    let mut start = 0;
    found.inner = loop {
        let layer = match peel(&argv[start..], &found) {
            Peel::Inner(layer) => layer,
            Peel::Command => break Inner::Command(rest(argv, start)),
            Peel::Query => break Inner::Query,
            Peel::Opaque(reason) => break Inner::Opaque(reason),
            Peel::Script(_) if depth + found.wrappers.len() >= MAX_WRAPPERS => break Inner::Opaque(Reason::TooDeep),
            Peel::Script(at) => {
                // Known as it is written, and still known after `xargs -I`.
                let word = &words[start + at];
                let (Some(text), Some(_)) = (literal(word), literal(&argv[start + at])) else {
                    break Inner::Opaque(Reason::Dynamic);
                };
                found.wrappers.push(Wrapper { word: &words[start], kind: WrapperKind::Program });
                break Inner::Script { word, text };
            }
        };
        if depth + found.wrappers.len() >= MAX_WRAPPERS {
            break Inner::Opaque(Reason::TooDeep);
        }
        found.wrappers.push(Wrapper { word: &words[start], kind: layer.kind });
        found.assignments.extend(layer.assignments);
        if layer.tail == Tail::Open {
            found.tail = Tail::Open;
        }
        start += layer.skip;
        if let Some(replaced) = &layer.replaced {
            argv.to_mut()[start..].iter_mut().for_each(|word| xargs::replace(word, replaced));
        }
    };
    found
}

fn rest(argv: Cow<'_, [Word]>, start: usize) -> Cow<'_, [Word]> {
    match argv {
        Cow::Borrowed(words) => Cow::Borrowed(&words[start..]),
        Cow::Owned(mut words) => Cow::Owned(words.split_off(start)),
    }
}

/// Looks at the first word of `words`, behind the wrappers `found` so far.
fn peel(words: &[Word], found: &Unwrapped<'_>) -> Peel {
    let Some(first) = words.first() else { return Peel::Opaque(Reason::MissingCommand) };
    let token = match &first.value {
        Value::Literal(token) => token.as_str(),
        // A file below a home folder: the caller knows which.
        Value::Dynamic { expansions, .. } if **expansions == [Expansion::Tilde] => return Peel::Command,
        Value::Dynamic { .. } => return Peel::Opaque(Reason::Dynamic),
    };
    // Only the shell itself has built-ins; `nice eval` would look for a program called `eval`.
    let in_shell = found.wrappers.iter().all(|wrapper| wrapper.kind == WrapperKind::Shell)
        && found.wrappers.last().is_none_or(|wrapper| literal(wrapper.word) == Some("command"));
    if in_shell && let Some(peeled) = builtin::peel(token, words) {
        return peeled;
    }
    let name = plain_name(token);
    match name.as_str() {
        "xargs" => xargs::peel(words),
        name if shell::is_shell(name) => shell::peel(name, words, found.tail),
        name if shell::is_multiplexer(name) => Peel::Opaque(Reason::Multiplexer),
        name => carrier::peel(name, words),
    }
}

/// The text of a word that is known.
fn literal(word: &Word) -> Option<&str> {
    match &word.value {
        Value::Literal(text) => Some(text),
        Value::Dynamic { .. } => None,
    }
}
