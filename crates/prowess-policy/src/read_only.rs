//! Read-only commands: does this command only look?
//!
//! An operator may want to be spared questions about `ls` and `grep`. So the answer is yes only for commands that are
//! known here to change nothing with exactly these arguments: a flat list of pipelines, each program the machine's own,
//! each option in a table. What looks and tells a secret is not harmless either, so nothing that holds variables may be
//! looked at. Everything else is not read-only, which costs a question and nothing more. Git is never read-only: the
//! settings of the repository it finds start programs.

mod paths;
mod table;

use std::path::Path;

use crate::judge::{Judged, Judgment, Objection, ProgramPlace};
use crate::reach::{self, Called, Reach};
use crate::script::{Redirect, RedirectKind, Script, Segment};
use crate::wrapper::{Tail, is_harmless_builtin};

/// Whether the judged command changes nothing and reaches no network, as far as programs do what they are known for.
#[must_use]
pub fn is_read_only(judgment: &Judgment) -> bool {
    let request = judgment.request();
    // A variable can make a program start another one; what a container calls `ls` is not known here.
    if request.place != ProgramPlace::Here || !request.variables.is_empty() {
        return false;
    }
    if !judgment.objections().iter().all(|one| matches!(one, Objection::AlwaysAsk)) {
        return false;
    }
    let cwd = &request.binding.cwd.path;
    if paths::is_out_of_bounds_from(cwd) {
        return false;
    }
    let script = Script::parse(&request.binding.command);
    let (segments, judged) = (&script.segments, judgment.segments());
    // Fewer or more were judged than are written where a shell stands within the shell.
    if !script.doubts.is_empty() || segments.is_empty() || segments.len() != judged.len() {
        return false;
    }
    segments.iter().zip(judged).all(|(segment, judged)| only_reads(&script, cwd, segment, judged))
}

fn only_reads(script: &Script, cwd: &Path, segment: &Segment, judged: &Judged) -> bool {
    let is_simple = segment.assignments.is_empty() && !segment.nested && judged.wrappers.is_empty();
    if !is_simple || !segment.redirects.iter().all(|redirect| is_reading(redirect, cwd)) {
        return false;
    }
    if !segment.words.iter().all(|word| paths::is_harmless(word, script, cwd)) {
        return false;
    }
    let tolerable = |one: &Objection| matches!(one, Objection::NotListed { .. } | Objection::ReadsFrom(_));
    if judged.standing.as_ref().is_err_and(|objections| !objections.iter().all(tolerable)) {
        return false;
    }
    let Some((first, args)) = segment.words.split_first() else { return false };
    let Some(token) = first.literal() else { return false };
    let Some(program) = &judged.program else {
        // What the shell does itself; but behind `cd` the same words lead elsewhere.
        return token != "cd" && is_harmless_builtin(&segment.words);
    };
    let Some(name) = name(token) else { return false };
    let called = Called { token, real: &program.real, text: &script.text };
    program.is_trusted()
        && is_itself(name, &program.real)
        && reach::reach(called, args, Tail::Closed) == Reach::Plain
        && table::only_reads(name, args, cwd)
}

/// The name of the program, when it is called by its name or from one of the system's own folders.
fn name(token: &str) -> Option<&str> {
    match token.rsplit_once('/') {
        None => Some(token),
        Some(("/bin" | "/usr/bin" | "/usr/local/bin", name)) => Some(name),
        Some(_) => None,
    }
}

/// Whether the file behind `name` is a build of it, or one file that is many programs.
fn is_itself(name: &str, real: &Path) -> bool {
    let Some(file) = real.file_name().and_then(|file| file.to_str()) else { return false };
    let is_build = || file.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
    file == name
        || is_build()
        || matches!(file, "busybox" | "toybox" | "coreutils" | "uutils")
        || file == format!("g{name}")
}

/// Whether a redirection creates and changes nothing. `/dev/tcp/…` is a connection to bash.
fn is_reading(redirect: &Redirect, cwd: &Path) -> bool {
    let Some(target) = redirect.target.literal() else { return false };
    let is_standard = redirect.descriptor.is_none_or(|number| number <= 2);
    is_standard
        && match redirect.kind {
            RedirectKind::Read => !paths::is_out_of_bounds(target, cwd),
            RedirectKind::Write => target == "/dev/null",
            RedirectKind::Duplicate => matches!(target, "0" | "1" | "2" | "-"),
            RedirectKind::HereDocument | RedirectKind::HereString => false,
        }
}

#[cfg(test)]
mod tests;
