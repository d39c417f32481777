//! The script: what does a command text say, read with a real shell grammar?
//!
//! Two independent grammars read the text. Where both see the same commands, words, operators and redirections, the
//! script is what they agree on; where they differ, that is a [`Doubt`], and a script with a doubt is never allowed
//! without a person. Nothing here decides anything: it says what is there.

mod ansi;
mod brush;
mod doubts;
mod draft;
pub(crate) mod prescan;
mod tree;
mod word;

use std::fmt;
use std::ops::Range;

use serde::Serialize;

use doubts::Doubts;
use prescan::Fitness;

/// The longest text that is read at all, in bytes.
pub const MAX_BYTES: usize = 32 * 1024;

/// The deepest nesting of brackets and quotes that is read at all.
pub const MAX_DEPTH: usize = 12;

/// Bytes of the command text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The bytes as a range.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

/// A command text, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The text, byte for byte.
    pub text: String,
    /// Every simple command the grammar shows, in the order of the text, however deeply it is nested.
    pub segments: Vec<Segment>,
    /// What keeps us from being certain. Empty for a flat list of pipelines of simple commands.
    pub doubts: Vec<Doubt>,
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// From its first word or assignment to its last word; redirections may lie within or behind.
    pub span: Span,
    /// How it is joined to the one before it.
    pub joint: Joint,
    /// `NAME=value` in front of the program.
    pub assignments: Vec<Assignment>,
    /// The program and its arguments; empty when there are assignments or redirections only.
    pub words: Vec<Word>,
    /// Where its input comes from and its output goes.
    pub redirects: Vec<Redirect>,
    /// Whether it stands inside something that is listed as a doubt: a substitution, a group, a loop, a function.
    pub nested: bool,
}

/// What stands between two commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Joint {
    /// Nothing: it is the first, or the first of a nested script.
    First,
    /// `|`
    Pipe,
    /// `|&`
    PipeBoth,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;` or a newline.
    Then,
    /// `&`
    Background,
}

/// `NAME=value` or `NAME+=value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    /// All of it.
    pub span: Span,
    /// The name, with its subscript if it has one.
    pub name: String,
    /// What it is set to.
    pub value: Word,
}

/// One word as written, and what it becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// Where it stands.
    pub span: Span,
    /// What it becomes.
    pub value: Value,
}

impl Word {
    /// Exactly what it becomes, where that is certain.
    #[must_use]
    pub fn literal(&self) -> Option<&str> {
        match &self.value {
            Value::Literal(text) => Some(text),
            Value::Dynamic { .. } => None,
        }
    }
}

/// What a word becomes when the shell has finished with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// Exactly this one argument.
    Literal(String),
    /// Something that depends on the moment: one argument, several or none.
    Dynamic {
        /// What the first argument begins with for certain, quotes removed; empty when nothing is certain.
        prefix: String,
        /// Which expansions are in it, without repetition, in the order of the text.
        expansions: Vec<Expansion>,
        /// Whether it may become several arguments or none; false for `"$x"`.
        splits: bool,
    },
}

/// Something the shell replaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Expansion {
    /// `$NAME`, `${NAME}` with nothing else inside, `$1`, `$@`, `$?`.
    Variable,
    /// `${NAME:-…}`, `${!NAME}` and the like.
    Parameter,
    /// `*`, `?`, `[…]`.
    Glob,
    /// `{a,b}`, `{1..3}`.
    Brace,
    /// `~` or `~name` at the start.
    Tilde,
    /// `$(…)` or backticks.
    Substitution,
    /// `<(…)` or `>(…)`.
    Process,
    /// `$((…))`.
    Arithmetic,
}

/// A redirection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// All of it.
    pub span: Span,
    /// The descriptor, when one is written.
    pub descriptor: Option<u32>,
    /// What it does.
    pub kind: RedirectKind,
    /// The file, descriptor or delimiter.
    pub target: Word,
}

/// What a redirection does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RedirectKind {
    /// `<`
    Read,
    /// `>`, `>|`, `>>`, `&>`, `&>>`, `<>`
    Write,
    /// `>&N`, `<&N` with a number or `-`; `>&word` is [`RedirectKind::Write`].
    Duplicate,
    /// `<<`, `<<-`
    HereDocument,
    /// `<<<`
    HereString,
}

/// One reason why the script cannot be read with certainty, or has a shape that is never allowed unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Doubt {
    /// Where.
    pub span: Span,
    /// What.
    #[serde(flatten)]
    pub kind: DoubtKind,
}

/// Kinds of doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum DoubtKind {
    /// There is no command in it.
    Empty,
    /// More than [`MAX_BYTES`].
    TooLong,
    /// Nested more deeply than [`MAX_DEPTH`].
    TooDeep,
    /// A NUL byte.
    Nul,
    /// A control character other than tab and newline, a carriage return among them.
    Control,
    /// A space or line separator that the shell takes for a letter, or a character that cannot be seen or turns the
    /// direction of the text.
    Invisible,
    /// Not a shell command.
    Syntax,
    /// The two grammars read it differently.
    Disagreement,
    /// A backslash at the end of a line.
    Continuation,
    /// `&`
    Background,
    /// `( … )`
    Subshell,
    /// `{ …; }`
    Group,
    /// `if`, `for`, `while`, `until`, `case`, `select`, `((…))`, `[[ … ]]`
    Compound,
    /// A function definition.
    Function,
    /// `coproc`
    Coprocess,
    /// `$(…)` or backticks, in a word or a here-document.
    Substitution,
    /// `<(…)` or `>(…)`
    ProcessSubstitution,
    /// A here-document.
    HereDocument,
    /// A here-string.
    HereString,
    /// `!` in front of a pipeline is fine; this is history expansion, extended globs, or anything else without a name here.
    Unusual,
}

impl fmt::Display for DoubtKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "there is no command in it",
            Self::TooLong => "it is too long to read and show in full",
            Self::TooDeep => "it is nested too deeply",
            Self::Nul => "it has a NUL byte",
            Self::Control => "it has a control character",
            Self::Invisible => "it contains an invisible character",
            Self::Syntax => "it is not a complete shell command",
            Self::Disagreement => "it can be read in more than one way",
            Self::Continuation => "it continues after a backslash at the end of a line",
            Self::Background => "it leaves a command in the background",
            Self::Subshell => "it has a subshell",
            Self::Group => "it has a group",
            Self::Compound => "it has a condition, a loop or a case",
            Self::Function => "it defines a function",
            Self::Coprocess => "it starts a coprocess",
            Self::Substitution => "the output of another command becomes part of it",
            Self::ProcessSubstitution => "the output of another command replaces a file",
            Self::HereDocument => "it has a here-document",
            Self::HereString => "it has a here-string",
            Self::Unusual => "it has an expansion whose result depends on the shell's settings",
        })
    }
}

impl Script {
    /// Reads `text`. Never fails: what cannot be read is in [`Script::doubts`].
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut doubts = Doubts::default();
        let segments = match prescan::look(text, &mut doubts) {
            Fitness::Fit => tree::read(text, &mut doubts),
            Fitness::Unfit => Vec::new(),
        };
        if doubts.is_empty() {
            if segments.is_empty() {
                doubts.push(Span { start: 0, end: text.len() }, DoubtKind::Empty);
            } else {
                brush::confirm(text, &segments, &mut doubts);
            }
        }
        Self { text: text.to_owned(), segments, doubts: doubts.into_list() }
    }
}

/// `word` as one literal word of a command, bare where that is safe in any place and any shell.
#[must_use]
pub fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    // As the first word `a=b` would be an assignment, and `time` a keyword.
    let is_special =
        word.starts_with('=') || word == "time" || word::assignment(word).is_some() || draft::reserved(word).is_some();
    if !word.is_empty() && word.chars().all(is_plain) && !is_special {
        return word.to_owned();
    }
    // A backslash before a line break is refused everywhere, so the quotes are closed and opened between the two.
    format!("'{}'", word.replace('\'', r"'\''").replace("\\\n", "\\''\n"))
}
