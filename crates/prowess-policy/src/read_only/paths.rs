//! Where may a command look that nobody was asked about?
//!
//! `/proc` shows the variables of running programs, `/sys` and `/dev` the machine itself. A path can be written in many
//! ways, and an option can have one glued to it; so a word counts as leading there when any reading of it does.

use std::path::{Component, Path, PathBuf};

use crate::script::{Expansion, Script, Value, Word};

/// Folders whose files are no files.
const OUT_OF_BOUNDS: &[&str] = &["proc", "sys", "dev"];

/// Whether a word becomes a text or a list of files, whatever variables hold, and none of these is out of bounds.
pub(super) fn is_harmless(word: &Word, script: &Script, cwd: &Path) -> bool {
    match &word.value {
        Value::Literal(text) => !is_out_of_bounds(text, cwd),
        Value::Dynamic { expansions, .. } => {
            let tame = [Expansion::Glob, Expansion::Tilde];
            let written = script.text.get(word.span.range()).unwrap_or_default();
            expansions.iter().all(|one| tame.contains(one)) && is_plain_pattern(written, cwd)
        }
    }
}

/// Whether a text could lead to what is no file, seen from `cwd`. `/dev/null` is nothing.
pub(super) fn is_out_of_bounds(text: &str, cwd: &Path) -> bool {
    readings(text).any(|path| match settle(path, cwd) {
        Some(place) => place != Path::new("/dev/null") && is_special(&place),
        None => true,
    })
}

/// Whether a text could lead to the root of everything.
pub(super) fn is_root(text: &str, cwd: &Path) -> bool {
    readings(text).any(|path| settle(path, cwd).is_none_or(|place| place == Path::new("/")))
}

/// Whether everything seen from `cwd` has to be asked about: there, or at the root, plain names lead out of bounds.
pub(super) fn is_out_of_bounds_from(cwd: &Path) -> bool {
    cwd == Path::new("/") || is_special(cwd)
}

fn is_special(place: &Path) -> bool {
    OUT_OF_BOUNDS.iter().any(|name| place.starts_with(Path::new("/").join(name)))
}

/// The paths that a word could mean: itself, what stands behind `=` or `:`, and in an option whatever follows a letter.
fn readings(text: &str) -> impl Iterator<Item = &str> {
    let is_option = text.starts_with('-');
    let inner = text.char_indices().filter(move |(_, before)| is_option || matches!(before, '=' | ':' | ','));
    std::iter::once(text).chain(inner.map(|(at, before)| &text[at + before.len_utf8()..]))
}

/// Where `path` leads from `cwd`, which is free of links. Nothing for `a/..`: `a` could be a link.
fn settle(path: &str, cwd: &Path) -> Option<PathBuf> {
    let mut place = cwd.to_owned();
    let mut is_certain = true;
    for part in Path::new(path).components() {
        match part {
            Component::RootDir | Component::Prefix(_) => place = PathBuf::from("/"),
            Component::CurDir => {}
            Component::ParentDir if is_certain => {
                place.pop();
            }
            Component::ParentDir => return None,
            Component::Normal(name) => {
                place.push(name);
                is_certain = false;
            }
        }
    }
    Some(place)
}

/// Whether a pattern can only become files where it says: `/*` and `.*` could be any folder of the root, or the folder
/// above.
fn is_plain_pattern(written: &str, cwd: &Path) -> bool {
    let is_pattern = |part: &str| part.contains(['*', '?', '[']);
    if written.contains(['\'', '"', '\\']) || written.split('/').any(|part| part == "..") {
        return false;
    }
    if written.split('/').any(|part| is_pattern(part) && part.starts_with('.')) {
        return false;
    }
    let fixed: Vec<&str> = written.split('/').take_while(|part| !is_pattern(part)).collect();
    // All of it when there is no pattern in it, but a `~`.
    let fixed = fixed.join("/");
    let begins_at_root = written.starts_with('/') && fixed.trim_matches(['/', '.']).is_empty();
    !written.starts_with('-') && !begins_at_root && !is_out_of_bounds(&fixed, cwd)
}
