//! Slash commands: does `/name` mean the skill it means in OpenClaw?

use crate::made;
use std::collections::HashSet;

use prowess_skills::{Command, RESERVED, Skill, SkillName, commands, resolve, sanitize};
use prowess_testkit::{assert_documented, cases, cases_in, check_all, check_all_but};
use serde_json::{Value, json};

const GOLDEN: &str = include_str!("golden/commands.json");
const CUT: &str = "a description cut inside a character";

const DEVIATIONS: &[(&str, &str)] = &[("emoji-at-the-cut", CUT)];

#[test]
fn names_are_derived_as_openclaw_derives_them() {
    check_all(cases_in(GOLDEN, "names"), |case| same(&case["output"], &sanitize(text(&case["input"])).into()));
}

#[test]
fn taken_names_get_numbers() {
    check_all(cases_in(GOLDEN, "collisions"), |case| {
        let strings = |list: &Value| -> Vec<String> {
            list.as_array().expect("a list").iter().map(|name| text(name).to_owned()).collect()
        };
        let skills: Vec<Skill> = strings(&case["input"]["skillNamesInOrder"])
            .iter()
            .map(|name| made::skill(name, "d", &Value::Null, ""))
            .collect();
        let made = commands(&skills, strings(&case["input"]["reserved"]));
        same(&case["output"], &made.into_iter().map(|command| command.name).collect::<Vec<_>>().into())
    });
}

#[test]
fn descriptions_are_one_short_line() {
    assert_documented(DEVIATIONS);
    check_all_but(DEVIATIONS, cases_in(GOLDEN, "descriptions"), |case| {
        let skill = made::skill("n", text(&case["input"]), &Value::Null, "");
        let made = commands([&skill], [""]);
        same(&case["output"], &made[0].description.clone().into())
    });
}

#[test]
fn a_command_goes_to_a_tool_when_both_fields_say_so() {
    check_all(cases_in(GOLDEN, "dispatch"), |case| {
        let fields = case["input"].as_object().expect("fields").iter();
        let extra: String = fields.flat_map(|(key, value)| [key.clone(), format!(": {value}\n")]).collect();
        let made = commands([&made::skill("n", "d", &Value::Null, &extra)], [""]);
        same(&case["output"], &json!(made[0].dispatch.as_ref().map(|dispatch| &dispatch.tool)))
    });
}

#[test]
fn messages_call_on_the_skills_they_call_on_in_openclaw() {
    let file = include_str!("golden/invocation.json");
    let golden: Value = serde_json::from_str(file).expect("a golden file");
    let known: Vec<Command> = golden["commands"].as_array().expect("commands").iter().map(command).collect();
    check_all(cases(file), |case| {
        let call = resolve(text(&case["input"]), &known);
        let got = call.map_or(Value::Null, |call| json!({"command": call.command.name, "args": call.args}));
        same(&case["output"], &got)
    });
}

fn command(golden: &Value) -> Command {
    Command {
        name: text(&golden["name"]).to_owned(),
        skill: SkillName::new(text(&golden["skillName"])),
        description: "d".to_owned(),
        dispatch: None,
    }
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn same(wanted: &Value, got: &Value) -> Result<(), String> {
    if wanted == got { Ok(()) } else { Err(format!("wanted {wanted}, got {got}")) }
}

#[test]
fn names_are_lower_case_words_with_underscores() {
    for (name, wanted) in [
        ("weather", "weather"),
        ("Weather", "weather"),
        ("github-issues", "github_issues"),
        ("  padded  ", "padded"),
        ("--lead--trail--", "lead_trail"),
        ("a---b", "a_b"),
        ("a_-_b", "a_b"),
        ("naïve-tool", "na_ve_tool"),
        ("日本語", "skill"),
        ("🌤️ weather", "weather"),
        ("C++", "c"),
        ("foo@1.2.3", "foo_1_2_3"),
        ("İstanbul", "i_stanbul"),
        ("ß-straße", "stra_e"),
        ("ＡＢＣ", "skill"),
        ("e\u{301}accent", "e_accent"),
        ("Ⅷ-roman", "roman"),
        ("ﬁle", "le"),
        ("\u{212a}", "k"), // the Kelvin sign, whose lower case is an ordinary k
        ("zero\u{200b}width", "zero_width"),
        ("tab\tname", "tab_name"),
        ("$(rm -rf /)", "rm_rf"),
        ("../../etc/passwd", "etc_passwd"),
        ("1password", "1password"),
        ("abcdefghijklmnopqrstuvwxyz12345-tail", "abcdefghijklmnopqrstuvwxyz12345_"),
        ("", "skill"),
        ("_", "skill"),
    ] {
        assert_eq!(sanitize(name), wanted, "{name:?}");
    }
}

fn made_names(names: &[&str], reserved: &[&str]) -> Vec<String> {
    let skills: Vec<Skill> = names.iter().map(|name| made::skill(name, "d", &Value::Null, "")).collect();
    commands(&skills, reserved).into_iter().map(|command| command.name).collect()
}

#[test]
fn reserved_names_are_taken_in_any_case() {
    assert_eq!(made_names(&["Help", "New"], &["HELP", "new"]), ["help_2", "new_2"]);
    assert_eq!(made_names(&["dock-telegram"], &["dock-telegram", "dock_telegram"]), ["dock_telegram_2"]);
    assert_eq!(made_names(&["skill", "日本語", "status"], &RESERVED), ["skill_2", "skill_3", "status_2"]);
    // A reserved name with a hyphen is in nobody's way.
    assert_eq!(made_names(&["export-session"], &RESERVED), ["export_session"]);
}

#[test]
fn numbers_go_on_and_names_stay_short() {
    let many: Vec<String> = (0..1_100).map(|index| format!("{}{}", "x".repeat(40), "y".repeat(index))).collect();
    let names = made_names(&many.iter().map(String::as_str).collect::<Vec<_>>(), &[]);
    assert_eq!(names.last().map(String::as_str), Some("xxxxxxxxxxxxxxxxxxxxxxxxxxx_1100"));
    assert!(names.iter().all(|name| name.len() <= 32));
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), 1_100);
}

#[test]
fn only_skills_that_a_user_may_call_get_a_command() {
    let skills = [
        made::skill("a", "d", &Value::Null, "user-invocable: false\n"),
        made::skill("A", "d", &Value::Null, ""),
        made::skill("hidden", "d", &Value::Null, "disable-model-invocation: true\n"),
    ];
    let made = commands(&skills, [""]);
    assert_eq!(made.iter().map(|command| command.name.as_str()).collect::<Vec<_>>(), ["a", "hidden"]);
    assert_eq!(made[0].skill.as_str(), "A");
}

#[test]
fn messages_are_calls_or_are_not() {
    let command = |name: &str, skill: &str| Command {
        name: name.to_owned(),
        skill: SkillName::new(skill),
        description: "d".to_owned(),
        dispatch: None,
    };
    let known = [
        command("weather", "weather"),
        command("github_issues", "GitHub Issues"),
        command("my_tool_2", "my-tool"),
        command("skill_2", "skill"),
    ];
    for (message, wanted) in [
        ("/weather", Some(("weather", None))),
        (" \u{feff}/Weather\u{a0}a  b ", Some(("weather", Some("a  b")))),
        ("/WEATHER x", Some(("weather", Some("x")))),
        ("/weather\r\nx\ny\n", Some(("weather", Some("x\ny")))),
        ("/github-issues x", Some(("github_issues", Some("x")))),
        ("/my-tool x", None),
        ("/my_tool_2", Some(("my_tool_2", None))),
        ("/my-tool-2", Some(("my_tool_2", None))),
        ("/skill my-tool x", Some(("my_tool_2", Some("x")))),
        ("/skill my_tool", Some(("my_tool_2", None))),
        ("/skill My__Tool", Some(("my_tool_2", None))),
        ("/skill GitHub-Issues", Some(("github_issues", None))),
        ("/skill github issues", None),
        ("/skill skill", Some(("skill_2", None))),
        ("/skill", None),
        ("/skill  ", None),
        ("/skill /weather", None),
        ("/weather: x", None),
        ("/weather@bot", None),
        ("weather", None),
        ("say /weather", None),
        ("//weather", None),
        ("/", None),
        ("", None),
    ] {
        let got = resolve(message, &known).map(|call| (call.command.name.as_str(), call.args));
        assert_eq!(got, wanted, "{message:?}");
    }
}

#[test]
fn an_exact_command_name_comes_before_a_hyphenated_one() {
    let named = |name: &str| Command {
        name: name.to_owned(),
        skill: SkillName::new(name),
        description: "d".to_owned(),
        dispatch: None,
    };
    // No skill makes a command with a hyphen, but other channels' commands may be in the list.
    let known = [named("a_b"), named("a-b")];
    assert_eq!(resolve("/a-b", &known).map(|call| call.command.name.as_str()), Some("a-b"));
}
