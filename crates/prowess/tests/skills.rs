//! What does a person learn about a skill: is its name what it seems?

use prowess_testkit::Prowess;

fn prowess() -> Prowess {
    let bundled = Prowess::new(env!("CARGO_BIN_EXE_prowess")).tree("no-skills/");
    bundled.env("OPENCLAW_BUNDLED_SKILLS_DIR", "$HOME/no-skills")
}

fn manifest(name: &str, description: &str) -> String {
    format!("---\nname: \"{name}\"\ndescription: {description}\n---\n# Text\n")
}

#[test]
fn names_that_mislead_are_reported_everywhere() {
    let place = ".openclaw/workspace/skills";
    let home = prowess().skill("weather", "The weather.", "");
    home.run("skills list").ok().lacks("warning");
    let home = home
        .file(&format!("{place}/w2/SKILL.md"), manifest("we\u{430}ther", "The weather."))
        .file(&format!("{place}/pwn/SKILL.md"), manifest("../../../etc/pwn", "d"))
        .file(&format!("{place}/long/SKILL.md"), manifest("long", &"word ".repeat(4_000)));
    home.run("skills list").ok().out_has("etc-pwn").lacks("../etc").err_has("3 warnings");
    let check = home.run("skills check --json").ok().json();
    let mut kinds: Vec<&str> =
        check["problems"].as_array().expect("problems").iter().filter_map(|one| one["kind"].as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["long-description", "lookalike", "unsafe-name"]);
    home.run("skills check").ok().out_has("(with U+0430) looks like `weather`").out_has("the model sees 1024 of them");
    home.run("skills explain w2").ok().out_has("looks like `weather`");
    home.run("skills explain etc-pwn").ok().out_has("is a path; the skill is called `etc-pwn`");
    home.run("skills explain long").ok().out_has("takes more than its share of the prompt");
    let prompt = home.run("skills prompt").ok();
    assert!(prompt.stdout().len() < 4_000, "{}", prompt.stdout().len());
    prompt.out_has("<name>etc-pwn</name>").lacks("../../../etc");
}
