//! Any bytes as a `SKILL.md`: they are read or reported, and what is read is fit to be shown.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use prowess_skills::text::clean;
use prowess_skills::{Document, Skill, Tier};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(document) = Document::parse(bytes) {
        let _ = document.metadata();
        for (key, text) in document.flat() {
            assert!(!key.is_empty() && key == key.trim_matches(prowess_skills::text::is_space), "{key:?}: {text:?}");
        }
        for key in document.keys() {
            assert!(document.position(key).is_some_and(|at| at.line > 0));
            assert_eq!(document.get(key).is_some(), document.text(key).is_some());
        }
    }
    match Skill::parse(bytes, Path::new("/skills/folder/SKILL.md"), Tier::Workspace) {
        Ok((skill, _)) => {
            assert!(!skill.name.as_str().is_empty() && !skill.description.is_empty());
            assert_eq!(clean(skill.name.as_str()), skill.name.as_str());
        }
        Err(problem) => assert!(!problem.reason.is_empty() && !problem.fix.is_empty()),
    }
});
