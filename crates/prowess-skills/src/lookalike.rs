//! Look-alikes: which names could be taken for another one?
//!
//! A person who approves a command, and a model that picks a skill, go by the name. Two names are alike if they have the same
//! skeleton: what is left when letters that look the same are made the same (Unicode UTS 39), in one case. And a word
//! that mixes Latin letters with Cyrillic, Greek or the like is suspicious even when nothing is there to be mistaken for.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use unicode_security::RestrictionLevelDetection as _;
use unicode_security::confusable_detection::skeleton;
use unicode_security::restriction_level::RestrictionLevel;

use crate::problem::{Problem, ProblemKind};
use crate::skill::Skill;

/// One problem for each skill whose name is mixed or looks like that of another. Of two that look alike, it is the one with
/// foreign letters, or else the later one.
pub(crate) fn problems(skills: &[Arc<Skill>]) -> Vec<Problem> {
    let is_ascii = |skill: &Skill| skill.name.as_str().is_ascii();
    // With the foreign ones last, the first of several that look alike is the one that they are taken for.
    let ordered = skills.iter().filter(|skill| is_ascii(skill)).chain(skills.iter().filter(|skill| !is_ascii(skill)));
    let mut seen: HashMap<String, &Skill> = HashMap::with_capacity(skills.len());
    let mut problems = Vec::new();
    for skill in ordered {
        match seen.entry(folded(skill.name.as_str())) {
            Entry::Occupied(other) => problems.push(alike(skill, other.get())),
            Entry::Vacant(place) => {
                place.insert(skill);
                problems.extend(mixed(skill));
            }
        }
    }
    problems
}

fn alike(skill: &Skill, other: &Skill) -> Problem {
    let (name, other_name) = (shown(skill.name.as_str()), shown(other.name.as_str()));
    let reason = format!("the name {name} looks like {other_name}, the skill in {}", other.dir().display());
    let fix = "check where it comes from, and rename or remove one of them";
    Problem::new(ProblemKind::Lookalike, &skill.file, reason, fix)
}

fn mixed(skill: &Skill) -> Option<Problem> {
    let name = skill.name.as_str();
    let is_mixed = |word: &str| word.detect_restriction_level() >= RestrictionLevel::MinimallyRestrictive;
    let mut words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_ascii());
    words.any(is_mixed).then(|| {
        let reason = format!("the name {} mixes letters of different alphabets", shown(name));
        Problem::new(ProblemKind::Lookalike, &skill.file, reason, "check where it comes from, and rename or remove it")
    })
}

/// The name with letters that look the same made the same.
fn folded(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    if name.is_ascii() {
        fold(name.chars(), &mut folded);
    } else {
        fold(skeleton(name), &mut folded);
    }
    folded
}

/// The part of it that concerns ASCII, where nearly all names end: no table is needed for those.
fn fold(chars: impl Iterator<Item = char>, folded: &mut String) {
    for c in chars {
        match c {
            'I' | '1' | '|' => folded.push('l'),
            '0' => folded.push('o'),
            'm' | 'M' => folded.push_str("rn"),
            _ => folded.extend(c.to_lowercase()),
        }
    }
}

/// A name in quotes, and the letters in it that only look like ASCII.
fn shown(name: &str) -> String {
    let foreign = name.chars().filter(|c| !c.is_ascii()).take(4).map(|c| format!("U+{:04X}", u32::from(c)));
    let foreign: Vec<String> = foreign.collect();
    if foreign.is_empty() { format!("`{name}`") } else { format!("`{name}` (with {})", foreign.join(", ")) }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::tier::Tier;

    /// The names that are objected to, with what is said about them.
    fn check(names: &[&str]) -> Vec<(usize, String)> {
        let skill = |(place, name): (usize, &&str)| {
            let text = format!("---\nname: \"{name}\"\ndescription: d\n---\n");
            let file = Path::new("/skills").join(place.to_string()).join("SKILL.md");
            Arc::new(Skill::parse(text.as_bytes(), &file, Tier::Workspace).expect("a skill").0)
        };
        let skills: Vec<Arc<Skill>> = names.iter().enumerate().map(skill).collect();
        let place = |problem: &Problem| skills.iter().position(|skill| skill.file == problem.path).expect("its place");
        problems(&skills).iter().map(|problem| (place(problem), problem.reason.clone())).collect()
    }

    #[test]
    fn names_that_look_alike_are_told_apart() {
        let alike = |names: &[&str]| -> Vec<usize> { check(names).into_iter().map(|(place, _)| place).collect() };
        // A Cyrillic а, a Greek ο, a full-width letter, a digit, two letters for one, another case.
        for (one, other) in [
            ("weather", "we\u{430}ther"),
            ("weather", "w\u{435}ather"),
            ("notion", "n\u{3bf}tion"),
            ("github", "\u{ff47}ithub"),
            ("todo-list", "todo-1ist"),
            ("modern", "rnodern"),
            ("Slack", "slack"),
            ("p\u{430}ypal", "paypal"),
        ] {
            let foreign = usize::from(one.is_ascii());
            assert_eq!(alike(&[one, other]), [foreign], "{one} {other}");
        }
        for names in [["weather", "weathers"], ["git", "github"], ["a-b", "a_b"], ["天气", "天气预报"]] {
            assert_eq!(alike(&names), [0; 0], "{names:?}");
        }
        let told = &check(&["weather", "we\u{430}ther"])[0].1;
        assert_eq!(told, "the name `we\u{430}ther` (with U+0430) looks like `weather`, the skill in /skills/0");
    }

    #[test]
    fn mixed_alphabets_are_suspicious_alone() {
        for name in ["we\u{430}ther", "my-p\u{430}ypal", "\u{3b1}lpha"] {
            assert_eq!(check(&[name]).len(), 1, "{name}");
        }
        for name in
            ["погода", "café", "天气 weather", "GitHub助手", "καιρός", "naïve-2", "天気ツール", "😀 fun", "날씨-app"]
        {
            assert_eq!(check(&[name]), [], "{name}");
        }
    }
}
