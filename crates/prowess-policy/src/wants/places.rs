//! Places: in which directory does each part of a command run, and which file does a word mean there?

use std::path::{Component, Path, PathBuf};

use crate::judge::{Judged, Objection};
use crate::script::{DoubtKind, Span};

/// The directory of each segment, as far as the text tells: `cd` moves what comes after it in the same shell.
pub(super) fn places(segments: &[Judged], objections: &[Objection], (cwd, home): (&Path, &Path)) -> Vec<PathBuf> {
    let shells: Vec<Span> = objections.iter().filter_map(shell_of_its_own).collect();
    // Where each shell is: the outermost one, and those within it that have moved.
    let mut outer = cwd.to_owned();
    let mut inner: Vec<(Shell, PathBuf)> = Vec::new();
    let mut places = Vec::new();
    for segment in segments {
        let within = within(&shells, segment.span);
        let known = within.iter().find_map(|shell| inner.iter().rfind(|(one, _)| one == shell));
        let place = known.map_or(&outer, |(_, place)| place).clone();
        if let [program, target @ ..] = segment.argv.as_slice()
            && matches!(program.as_str(), "cd" | "pushd")
            && let Some(moved) = destination(target, &place, home)
        {
            match within.first() {
                Some(shell) => inner.push((*shell, moved)),
                None => outer = moved,
            }
        }
        places.push(place);
    }
    places
}

/// A shell within the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shell {
    /// A subshell or a substitution.
    Sub(Span),
    /// One that a program starts, such as `sh -c`.
    Started,
}

fn shell_of_its_own(objection: &Objection) -> Option<Span> {
    let Objection::Doubt(doubt) = objection else { return None };
    let kinds = [DoubtKind::Subshell, DoubtKind::Substitution, DoubtKind::ProcessSubstitution];
    kinds.contains(&doubt.kind).then_some(doubt.span)
}

/// The shells around a segment, innermost first.
fn within(shells: &[Span], segment: Option<Span>) -> Vec<Shell> {
    let Some(segment) = segment else { return vec![Shell::Started] };
    let mut around: Vec<Span> =
        shells.iter().filter(|shell| shell.start <= segment.start && segment.end <= shell.end).copied().collect();
    around.sort_by_key(|shell| shell.end - shell.start);
    around.into_iter().map(Shell::Sub).collect()
}

/// Where `cd` with these words leads, if that is certain.
fn destination(words: &[String], place: &Path, home: &Path) -> Option<PathBuf> {
    let mut plain = words.iter().filter(|word| !matches!(word.as_str(), "--" | "-L" | "-P" | "-e" | "-@"));
    match (plain.next(), plain.next()) {
        (None, _) => Some(home.to_owned()),
        (Some(word), None) if word != "-" => resolve(word, place, home),
        _ => None,
    }
}

/// The path that `word` means in `dir`, as far as its text tells.
pub(super) fn resolve(word: &str, dir: &Path, home: &Path) -> Option<PathBuf> {
    let word = word.trim_matches(['"', '\'']);
    let below_home = ["~", "$HOME", "${HOME}"].iter().find_map(|home| word.strip_prefix(home));
    let rest = before_pattern(below_home.unwrap_or(word));
    if rest.contains(['$', '`', '\n']) {
        return None;
    }
    let path = match below_home {
        Some(_) if rest.is_empty() => home.to_owned(),
        Some(_) => home.join(rest.trim_start_matches('"').strip_prefix('/')?),
        None => dir.join(rest),
    };
    Some(lexical(&path))
}

/// The directory in which a pattern such as `~/src/*.rs` finds files, or the word itself.
fn before_pattern(word: &str) -> &str {
    match word.find(['*', '?', '[', '{']) {
        Some(at) => word[..at].rfind('/').map_or("", |slash| &word[..slash.max(1)]),
        None => word,
    }
}

/// `path` without `.` and `..`, as far as its text tells.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
