//! The Agent Skills standard: are the same rules seen broken as by the loader inside OpenClaw?

use std::path::PathBuf;

use prowess_skills::standard::Violation;
use prowess_skills::{Skill, Tier};
use prowess_testkit::{cases, check_all};
use serde_json::{Value, json};

#[test]
fn the_same_rules_are_seen_broken() {
    check_all(cases(include_str!("golden/standard.json")), |case| {
        let input = &case["input"];
        let (dir, name) = (repeated(&input["dir"]), repeated(&input["name"]));
        let description =
            "d".repeat(usize::try_from(input["descriptionLength"].as_u64().expect("a length")).expect("a size"));
        let file = PathBuf::from(format!("/skills/{dir}/SKILL.md"));
        let text = format!("---\nname: \"{name}\"\ndescription: \"{description}\"\n---\n");
        let got = match Skill::parse(text.as_bytes(), &file, Tier::Workspace) {
            Ok((skill, _)) => {
                let broken: Vec<&str> = skill.violations().into_iter().map(word).collect();
                json!({"loaded": true, "broken": broken})
            }
            Err(_) => json!({"loaded": false, "broken": []}),
        };
        if case["output"] == got { Ok(()) } else { Err(format!("wanted {}, got {got}", case["output"])) }
    });
}

fn word(violation: Violation) -> &'static str {
    match violation {
        Violation::NameIsNotFolder => "name-is-not-folder",
        Violation::LongName => "long-name",
        Violation::NameCharacters => "name-characters",
        Violation::HyphenAtEnd => "hyphen-at-end",
        Violation::DoubleHyphen => "double-hyphen",
        Violation::LongDescription => "long-description",
    }
}

/// `x*64` stands for that many letters.
fn repeated(value: &Value) -> String {
    let text = value.as_str().expect("a text");
    let count = text.split_once('*').and_then(|(letter, count)| Some((letter, count.parse().ok()?)));
    count.map_or_else(|| text.to_owned(), |(letter, count)| letter.repeat(count))
}
