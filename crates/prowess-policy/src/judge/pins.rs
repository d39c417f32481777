//! Pins: which files does a command name that must not change before it runs, and what becomes of its text?

use std::path::{Component, PathBuf};

use super::segment::{Bench, Case};
use crate::lookup::Program;
use crate::permit::{Piece, Pin, Template};
use crate::reach::{Farther, Kind, Reach};
use crate::script::{Span, Value, Word};

/// Endings of files that are most likely run by something.
const CODE: &[&str] =
    &["awk", "bash", "cjs", "js", "lua", "mjs", "php", "pl", "ps1", "py", "rb", "sed", "sh", "sql", "ts", "zsh"];

/// How many scripts may stand behind one another, as far as the system goes along.
const MAX_INTERPRETERS: usize = 4;

/// Words of a script that are replaced when it is run.
pub(super) type Replacements = Vec<(Span, Piece)>;

impl Bench<'_> {
    /// Writes the program's path into the text, so that no search and no builtin comes between.
    pub(super) fn pin(&mut self, word: &Word, program: &Program, ground: Ground<'_>, out: &mut Replacements) {
        // Inside other commands only what could be swapped gives way; a name may mean something else there.
        let is_replaced = !ground.nested || (!program.is_settled() && ground.holds(word));
        if is_replaced {
            out.push((word.span, Piece::Pin(self.pins.len())));
        }
        self.pins.push(Pin { span: is_replaced.then_some(word.span), ..pinned(program) });
    }

    /// What the system starts in place of a script must not change either. The first line of the script names it, not a
    /// word of the command.
    pub(super) fn pin_interpreters(&mut self, program: &Program) {
        let behind = std::iter::successors(self.lookup.interpreter(program), |one| self.lookup.interpreter(one));
        for one in behind.take(MAX_INTERPRETERS).filter(|one| !one.is_settled()) {
            self.pins.push(pinned(&one));
        }
    }

    /// The argument that names a script the program runs: what a person approves must not change under it.
    pub(super) fn script_operand<'w>(&self, reach: &Reach, args: &'w [Word]) -> Option<&'w Word> {
        match reach {
            Reach::Script(index) => args.get(*index),
            // What the options mean is not certain here; the first code among them is what it would most likely run. What
            // a program writes or deletes must stay the file itself.
            Reach::Farther(Farther {
                kind: Kind::Shell | Kind::InputCode | Kind::MissingScript | Kind::LoadsCode | Kind::UnknownOption,
                ..
            }) => args.iter().find(|word| self.file(word).is_some_and(|file| self.is_code(&file))),
            Reach::Plain | Reach::Farther(_) => None,
        }
    }

    pub(super) fn pin_script(&mut self, word: &Word, ground: Ground<'_>, case: &mut Case, out: &mut Replacements) {
        if let Some(file) = self.file(word).map(|file| self.lookup.seal(file)) {
            case.object_to_size(&file);
            self.pin(word, &file, ground, out);
        }
    }

    /// Code that words name without being run by a program we see: it is compared when the command starts.
    pub(super) fn watch<'w>(&mut self, words: impl IntoIterator<Item = &'w Word>) {
        for word in words {
            let Some(file) = self.file(word).filter(|file| !file.is_settled() && self.is_code(file)) else { continue };
            let pin = Pin { span: None, ..pinned(&self.lookup.seal(file)) };
            if !self.pins.contains(&pin) {
                self.pins.push(pin);
            }
        }
    }

    pub(super) fn is_code(&self, file: &Program) -> bool {
        let extension = file.real.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        CODE.contains(&extension) || self.lookup.interpreter(file).is_some()
    }

    /// The file that a word names, if there is one.
    pub(super) fn file(&self, word: &Word) -> Option<Program> {
        let path = word.literal().filter(|path| !path.is_empty() && !path.starts_with('-'))?;
        let path = match &self.went {
            _ if !self.moved || path.starts_with('/') => PathBuf::from(path),
            Some(folder) => folder.join(path),
            None => return None,
        };
        self.lookup.file(&path)
    }
}

/// A pin of `program` as it is called: many programs go by the name they are called by, so a link stays a link.
fn pinned(program: &Program) -> Pin {
    Pin {
        span: None,
        path: program.path.clone(),
        real: program.real.clone(),
        identity: program.identity.clone(),
        settled: program.is_settled(),
    }
}

/// The text that a word stands in.
#[derive(Clone, Copy)]
pub(super) struct Ground<'t> {
    pub(super) text: &'t str,
    /// Whether the command is part of another one: in a group, a loop, a substitution.
    pub(super) nested: bool,
}

impl Ground<'_> {
    /// Whether the word can give way to another. Inside other commands it must stand there in so many letters, or in
    /// single quotes: then nothing around it makes more of it.
    pub(super) fn holds(self, word: &Word) -> bool {
        let Value::Literal(value) = &word.value else { return false };
        let written = self.text.get(word.span.range()).unwrap_or_default();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+/".contains(&byte);
        let is_bare = written == value && value.bytes().all(is_plain);
        let is_quoted = !value.contains(['\'', '\\', '`']) && written == format!("'{value}'");
        !self.nested || is_bare || is_quoted
    }
}

/// Whether a path leads to what the program was started with, such as its input, and not to a file of its own.
pub(super) fn is_passage(file: &Program) -> bool {
    [&file.path, &file.real].iter().any(|path| {
        let plain: PathBuf = path.components().collect();
        plain.starts_with("/dev")
            || plain.starts_with("/proc")
            || path.components().any(|part| part == Component::ParentDir)
    })
}

/// The text with its replacements.
pub(super) fn template(text: &str, mut replacements: Replacements) -> Template {
    replacements.sort_by_key(|(span, _)| span.start);
    let mut pieces = Vec::new();
    let mut at = 0;
    for (span, piece) in replacements {
        if span.start > at {
            pieces.push(Piece::Text(text[at..span.start].to_owned()));
        }
        pieces.push(piece);
        at = span.end;
    }
    if at < text.len() {
        pieces.push(Piece::Text(text[at..].to_owned()));
    }
    Template(pieces)
}
