//! Slash commands: does a message call on the skills that it calls on in OpenClaw?

use std::path::Path;
use std::sync::Arc;

use prowess_agent::skills::SkillSet;
use prowess_agent::slash::{MAX_PREFIX, Said, SlashError, read};
use prowess_exec::SkillShare;
use prowess_skills::{
    Budget, Catalog, Command, Dispatch, Filters, Gate, Limits, Machine, Places, Reach, SkillName, SkillsConfig,
    Snapshot, World,
};
use prowess_testkit::{Tree, cases, cases_in, check_all};
use serde_json::{Value, json};

const INVOCATION: &str = include_str!("golden/invocation.json");
const PARSE: &str = include_str!("golden/slash-parse.json");

/// Skills in a folder of their own, with the commands of a golden file.
struct Skills {
    _tree: Tree,
    skills: SkillSet,
}

impl Skills {
    /// Commands as pairs of a command's and a skill's name; `hidden` skills are not in the catalogue.
    fn new(commands: &[(&str, &str)], hidden: &[&str]) -> Self {
        let mut tree = Tree::new();
        for (name, skill) in commands {
            let flag = if hidden.contains(skill) { "disable-model-invocation: true\n" } else { "" };
            let text = format!("---\nname: {}\ndescription: d\n{flag}---\n", json!(skill));
            tree = tree.file(&format!("ws/skills/{name}/SKILL.md"), text);
        }
        let places = Places { workspace: Some(tree.path("ws")), ..Places::default() };
        let catalog = Catalog::load(&places.roots(), &Reach::default());
        let world = World { machines: vec![Machine { os: "linux".into(), ..Machine::default() }], ..World::default() };
        let (config, filters) = (SkillsConfig::default(), Filters::default());
        let gate = Gate { world: &world, config: &config, filters: &filters };
        let snapshot = Snapshot::take(&catalog, &gate, None, &Budget::from(&Limits::default()));
        let commands = commands.iter().map(|(name, skill)| Command {
            name: (*name).to_owned(),
            skill: SkillName::new(skill),
            description: "d".to_owned(),
            dispatch: None,
        });
        let skills = SkillSet::new(snapshot, commands.collect(), Arc::new(|_| Ok(SkillShare::default())));
        Self { _tree: tree, skills }
    }

    fn golden(file: &str) -> Self {
        let golden: Value = serde_json::from_str(file).expect("a golden file");
        let pairs: Vec<(String, String)> = serde_json::from_value(golden["commands"].clone()).expect("commands");
        let hidden: Vec<String> = serde_json::from_value(golden["hidden"].clone()).unwrap_or_default();
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, skill)| (name.as_str(), skill.as_str())).collect();
        Self::new(&pairs, &hidden.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn command_of(&self, skill: &str) -> String {
        let command = self.skills.commands.iter().find(|command| command.skill.as_str() == skill);
        command.expect("a command of the skill").name.clone()
    }

    fn location(&self, skill: &str) -> String {
        self.skills.find(skill).expect("a skill").file.to_string_lossy().into_owned()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

#[test]
fn commands_are_understood_as_in_openclaw() {
    for file in [INVOCATION, PARSE] {
        let world = Skills::golden(file);
        check_all(cases(file), |case| {
            let said = read(text(&case["input"]), &world.skills, None).map_err(|error| error.to_string())?;
            match (&case["command"], said) {
                (Value::Null, Said::Plain) => Ok(()),
                (Value::String(name), Said::Calls { text: body, skills }) => {
                    let args = case["args"].as_str().unwrap_or_default();
                    let is_right = world.command_of(&skills[0]) == *name && body.ends_with(args) && skills.len() == 1;
                    if is_right { Ok(()) } else { Err(format!("{skills:?}: {body}")) }
                }
                (_, said) => Err(format!("{said:?}")),
            }
        });
    }
}

#[test]
fn references_are_understood_as_in_openclaw() {
    let world = Skills::golden(INVOCATION);
    check_all(cases_in(INVOCATION, "references"), |case| {
        let input = text(&case["input"]);
        let said = match read(input, &world.skills, None) {
            Err(error) if case["failed"] == true => return Err(error.to_string()),
            other => other.map_err(|error| error.to_string())?,
        };
        let skills = match said {
            Said::Plain => Vec::new(),
            Said::Calls { text: body, skills } => {
                for skill in &skills {
                    assert!(body.contains(&format!("\"{skill}\"")) && body.contains(&world.location(skill)), "{body}");
                }
                assert!(body.ends_with(&format!("\n\nUser request:\n{input}")), "{body}");
                skills
            }
            Said::Dispatch { .. } => return Err("a dispatch".to_owned()),
        };
        let commands: Vec<String> = skills.iter().map(|skill| world.command_of(skill)).collect();
        if json!(commands) == case["skills"] { Ok(()) } else { Err(format!("found {commands:?}")) }
    });
}

fn called(world: &Skills, message: &str) -> Vec<String> {
    match read(message, &world.skills, None).expect("no error") {
        Said::Calls { skills, .. } => skills,
        Said::Plain | Said::Dispatch { .. } => Vec::new(),
    }
}

#[test]
fn skills_are_found_by_every_spelling() {
    let world = Skills::new(&[("github_issues", "GitHub Issues"), ("demo_four", "demo-four")], &[]);
    for (message, wanted) in [
        ("/demo-four x", vec!["demo-four"]),
        ("/demo_four", vec!["demo-four"]),
        ("/skill Demo_Four x", vec!["demo-four"]),
        ("see $github-issues, $demo_four: and $Demo-Four", vec!["GitHub Issues", "demo-four"]),
        ("/demo-four with $github_issues", vec!["demo-four", "GitHub Issues"]),
        ("/demo-four with $demo-four", vec!["demo-four"]),
        ("$nobody", vec![]),
        ("用$github_issues看", vec!["GitHub Issues"]),
    ] {
        assert_eq!(called(&world, message), wanted, "{message:?}");
    }
}

#[test]
fn a_skill_that_is_not_in_the_conversation_is_plain_text() {
    let mut world = Skills::new(&[("weather", "weather")], &[]);
    let gone = Command {
        name: "gone".to_owned(),
        skill: SkillName::new("gone"),
        description: "d".to_owned(),
        dispatch: Some(Dispatch { tool: "exec".to_owned() }),
    };
    world.skills.commands.push(gone);
    for message in ["/gone x", "/skill gone", "$gone"] {
        assert_eq!(read(message, &world.skills, None), Ok(Said::Plain), "{message:?}");
    }
}

#[test]
fn a_dispatch_has_its_tool_and_arguments() {
    let mut world = Skills::new(&[("weather", "weather")], &[]);
    world.skills.commands[0].dispatch = Some(Dispatch { tool: "exec".to_owned() });
    for (message, wanted) in
        [("/weather  curl $weather ", "curl $weather"), ("/weather", ""), ("/skill weather a\nb", "a\nb")]
    {
        let Ok(Said::Dispatch { command, tool, args }) = read(message, &world.skills, None) else {
            panic!("{message:?} is a dispatch");
        };
        assert_eq!((command.name.as_str(), tool, args), ("weather", "exec", wanted));
    }
    // A reference asks for the skill, not for its shortcut.
    assert_eq!(called(&world, "see $weather"), ["weather"]);
}

#[test]
fn locations_are_shortened_by_the_home() {
    let world = Skills::new(&[("weather", "weather")], &["weather"]);
    let home = Path::new(&world.location("weather")).ancestors().nth(4).expect("a folder").to_owned();
    let Ok(Said::Calls { text, .. }) = read("/weather Shanghai", &world.skills, Some(&home)) else { panic!("a call") };
    assert!(text.contains("- \"weather\" at ~/ws/skills/weather/SKILL.md\n"), "{text}");
    assert!(text.ends_with("\n\nUser request:\n/weather Shanghai"), "{text}");
}

#[test]
fn nine_skills_are_one_too_many() {
    let names: Vec<String> = (0..9).map(|index| format!("s{index}")).collect();
    let pairs: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), name.as_str())).collect();
    let world = Skills::new(&pairs, &[]);
    let message = |count: usize| format!("${}", names[..count].join(" $"));
    assert_eq!(called(&world, &message(8)), names[..8]);
    assert_eq!(read(&message(9), &world.skills, None), Err(SlashError::TooMany { found: 9 }));
}

#[test]
fn locations_give_way_before_a_message_fails() {
    // 125 characters each: eight with their locations are too long, eight without are not.
    let long: Vec<String> = (0..8).map(|index| format!("s{index}-{}", "x".repeat(60))).collect();
    let pairs: Vec<(&str, &str)> = long.iter().map(|name| (name.as_str(), name.as_str())).collect();
    let message = format!("${}", long.join(" $"));
    let world = Skills::new(&pairs, &[&long[7]]);
    let Ok(Said::Calls { text, skills }) = read(&message, &world.skills, None) else { panic!("a call") };
    assert_eq!(skills, long);
    let prefix = text.split("\n\nUser request:").next().expect("a prefix");
    assert!(prefix.len() <= MAX_PREFIX);
    assert!(!prefix.contains(&world.location(&long[0])), "the model has it in its catalogue");
    assert!(prefix.contains(&world.location(&long[7])), "the model has it nowhere else");
    let hidden: Vec<&str> = long.iter().map(String::as_str).collect();
    let world = Skills::new(&pairs, &hidden);
    assert_eq!(read(&message, &world.skills, None), Err(SlashError::LongPrefix { found: 8 }));
}

#[test]
fn a_line_that_is_too_long_is_an_error() {
    let name = format!("w{}", "x".repeat(600));
    let world = Skills::new(&[("w", &name)], &[]);
    let error = read("/w", &world.skills, None).expect_err("an error");
    assert!(matches!(&error, SlashError::LongLine { skill } if skill.starts_with("wxx")), "{error}");
    assert!(error.to_string().contains("512"), "{error}");
}
