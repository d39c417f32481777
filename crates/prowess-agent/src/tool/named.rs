//! Which skills does a command take up by naming their files?
//!
//! A turn later the model still knows `{baseDir}/scripts/play.sh` and has no reason to read the manual again. So a
//! command that names a file of a skill uses the skill. That is no more than the model gets by reading the manual.

use prowess_exec::exec_tool;
use prowess_policy::Script;
use prowess_policy::script::{Expansion, Value as Becomes, Word};
use serde_json::{Map, Value};

use super::place::{absolute, settle};
use crate::event::{Event, How};
use crate::tool::Scope;

/// Notes and tells the use of the skills whose files a command names, if the call is one.
pub(crate) fn take_up(tool: &str, arguments: &Map<String, Value>, scope: &Scope<'_>) {
    let command = arguments.get("command").and_then(Value::as_str).filter(|_| tool == exec_tool::NAME);
    let Some(command) = command else { return };
    for path in named(command) {
        let asked = absolute(&path, scope.workspace, scope.home);
        let Some(real) = settle(&asked) else { continue };
        let Some(skill) = scope.skills.around(&asked, &real).filter(|skill| !scope.uses.has(skill)) else { continue };
        if scope.uses.note(skill, How::Named) {
            let (skill, path) = (skill.name.to_string(), skill.file.clone());
            scope.events.tell(Event::SkillUsed { skill, path, how: How::Named });
        }
    }
}

/// The whole paths that a command names, `~/…` among them.
fn named(command: &str) -> Vec<String> {
    let script = Script::parse(command);
    let words = script.segments.iter().flat_map(|segment| {
        let targets = segment.redirects.iter().map(|redirect| &redirect.target);
        segment.words.iter().chain(targets)
    });
    words.filter_map(|word| path(word, &script.text)).collect()
}

fn path(word: &Word, text: &str) -> Option<String> {
    match &word.value {
        Becomes::Literal(literal) => literal.starts_with('/').then(|| literal.clone()),
        Becomes::Dynamic { expansions, .. } => {
            let written = text.get(word.span.range())?;
            let is_plain = *expansions == [Expansion::Tilde] && !written.contains(['\'', '"', '\\']);
            (is_plain && written.starts_with("~/")).then(|| written.to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn whole_paths_are_found_in_a_command() {
        let table: [(&str, &[&str]); 9] = [
            ("/skills/a/run.sh x", &["/skills/a/run.sh"]),
            ("python3 '/skills/a b/run.py' -v", &["/skills/a b/run.py"]),
            ("cat x | ~/skills/a/run.sh > /tmp/out", &["~/skills/a/run.sh", "/tmp/out"]),
            ("for i in 1 2; do /skills/a/run.sh $i; done", &["/skills/a/run.sh"]),
            ("./run.sh skills/a/run.sh", &[]),
            ("echo '~/skills/a' \\~/x", &[]),
            ("$DIR/skills/a/run.sh", &[]),
            ("~other/skills/run.sh", &[]),
            ("", &[]),
        ];
        for (command, expected) in table {
            assert_eq!(named(command), expected, "{command}");
        }
    }
}
