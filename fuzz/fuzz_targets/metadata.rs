//! Any text as the `metadata` of a skill: it is read, or it says nothing, or it holds the skill back.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use prowess_skills::install::{InstallPrefs, options};
use prowess_skills::{Needs, Skill, Tier};

fuzz_target!(|metadata: &str| {
    let inline = format!("---\nname: n\ndescription: d\nmetadata: {metadata}\n---\n");
    let indented = metadata.replace('\n', "\n  ");
    let below = format!("---\nname: n\ndescription: d\nmetadata:\n  {indented}\n---\n");
    for text in [inline, below] {
        let Ok((skill, problems)) = Skill::parse(text.as_bytes(), Path::new("/skills/n/SKILL.md"), Tier::Managed)
        else {
            continue;
        };
        if skill.unreadable.is_some() {
            assert!(!problems.is_empty());
        }
        let Needs { os, bins, any_bins, env, config } = &skill.metadata.needs;
        for word in [os, bins, any_bins, env, config].into_iter().flatten() {
            assert!(!word.is_empty() && word == prowess_skills::text::trim(word), "{word:?}");
        }
        let _ = options(&skill.metadata.install, "linux", true, &InstallPrefs::default());
    }
});
