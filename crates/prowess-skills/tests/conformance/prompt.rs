//! The claims about what the model sees.

use std::path::{Path, PathBuf};

use prowess_skills::{Budget, Limits, Mode, Skill, Tier, render, section};

/// Skills `s000`, `s001`, … in the workspace, each with this description.
fn crowd(count: usize, description: &str) -> Vec<Skill> {
    let one = |at: usize| {
        let text = format!("---\nname: s{at:03}\ndescription: {description}\n---\nThe body stays unread.\n");
        let file = PathBuf::from(format!("/home/me/skills/s{at:03}/SKILL.md"));
        Skill::parse(text.as_bytes(), &file, Tier::Workspace).expect("a skill").0
    };
    (0..count).map(one).collect()
}

// M-PROMPT-01, M-PROMPT-02, M-PROMPT-03, M-PROMPT-04, M-PROMPT-05, M-PROMPT-22
#[test]
fn m_prompt_01_02_03_04_05_22_the_catalogue_word_for_word() {
    let budget = Budget::from(&Limits::default());
    let shown = render(&crowd(2, "Does it."), Some(Path::new("/home/me")), Some("A note."), &budget);
    let one = |name: &str| {
        format!(
            "  <skill>\n    <name>{name}</name>\n    <description>Does it.</description>\n    \
             <location>~/skills/{name}/SKILL.md</location>\n  </skill>\n"
        )
    };
    let block = format!("<available_skills>\n{}{}</available_skills>", one("s000"), one("s001"));
    assert_eq!(shown.text, format!("A note.\n{block}"));
    let elsewhere = render(&crowd(1, "Does it."), Some(Path::new("/home/you")), None, &budget);
    assert!(elsewhere.text.contains("<location>/home/me/skills/s000/SKILL.md</location>"));
}

#[test]
fn m_prompt_06_at_most_150_skills() {
    let shown = render(&crowd(153, "d"), None, None, &Budget::from(&Limits::default()));
    assert_eq!(shown.text.matches("<skill>").count(), 150);
    assert_eq!(shown.cut.dropped, ["s150", "s151", "s152"]);
}

// M-PROMPT-07, M-PROMPT-08
#[test]
fn m_prompt_07_08_descriptions_shrink_before_names_are_dropped() {
    let budget = Budget::from(&Limits::default());
    assert_eq!(budget.chars, 30_000);
    let shown = render(&crowd(100, &"words ".repeat(100)), None, None, &budget);
    assert!((25_000..=30_000).contains(&shown.chars()), "{}", shown.chars());
    assert_eq!(shown.text.matches("<skill>").count(), 100);
    assert!(shown.cut.dropped.is_empty() && !shown.cut.shortened.is_empty());
    let tight = render(&crowd(100, &"words ".repeat(100)), None, None, &Budget { chars: 3_000, ..budget });
    assert!(tight.chars() <= 3_000 && !tight.cut.dropped.is_empty() && tight.cut.shortened.is_empty());
    assert!(!tight.text.contains("<description>"));
}

#[test]
fn m_prompt_09_a_line_counts_what_was_cut() {
    let budget = Budget { skills: 4, chars: 30_000, tokens: None };
    let cut = render(&crowd(6, "d"), None, None, &budget);
    assert!(cut.text.starts_with("Note: 4 of 6 skills are listed.\n"), "{}", cut.text);
    assert!(render(&crowd(4, "d"), None, None, &budget).text.starts_with("<available_skills>"));
    let short = render(&crowd(4, &"words ".repeat(50)), None, None, &Budget { chars: 1_000, ..budget.clone() });
    let told = "Note: 4 of 4 skills are listed, 4 with a shortened description.\n";
    assert!(short.text.starts_with(told), "{}", short.text);
    let bare = render(&crowd(4, &"words ".repeat(50)), None, None, &Budget { chars: 480, ..budget });
    assert!(bare.text.starts_with("Note: 4 of 4 skills are listed, 4 by name only.\n"), "{}", bare.text);
}

// M-PROMPT-10, M-PROMPT-11, M-PROMPT-12, M-PROMPT-13, M-PROMPT-14, M-PROMPT-15, M-PROMPT-16, M-PROMPT-17
#[test]
fn m_prompt_10_11_12_13_14_15_16_17_the_rules_of_the_section() {
    let text = section("\n  <available_skills>…</available_skills>\n\n", Mode::Full, "read_file");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "## Skills (mandatory)");
    for (line, words) in [
        (1, &["Before replying", "scan", "<description>"][..]),
        (2, &["exactly one skill clearly applies", "read its SKILL.md at <location> with `read_file`", "follow it"]),
        (3, &["multiple could apply", "most specific"]),
        (4, &["none clearly apply", "do not read any"]),
        (5, &["never read more than one skill up front", "only read after selecting"]),
    ] {
        assert!(words.iter().all(|word| lines[line].contains(word)), "{line}: {}", lines[line]);
    }
    assert_eq!(lines[6..], ["", "<available_skills>…</available_skills>"]);
}

// M-PROMPT-18, M-PROMPT-19, M-PROMPT-20, M-PROMPT-21
#[test]
fn m_prompt_18_19_20_21_when_there_is_no_section() {
    assert_ne!(section("x", Mode::Full, "read"), "");
    assert_eq!(section("x", Mode::Minimal, "read"), "");
    assert_eq!(section("x", Mode::None, "read"), "");
    assert_eq!(section(" \n", Mode::Full, "read"), "");
    assert_eq!(Mode::default(), Mode::Full);
}
