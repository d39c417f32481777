//! The claims about slash commands.

use prowess_skills::{MAX_NAME, Skill, commands, resolve, sanitize};
use prowess_testkit::Tree;

use crate::conformance::{load, read, take};

fn called(frontmatters: &[&str]) -> Vec<(String, String)> {
    let skills: Vec<Skill> = frontmatters.iter().map(|text| read(&format!("{text}\ndescription: d")).0).collect();
    let made = commands(&skills, ["help"]).into_iter().map(|command| (command.name, command.skill.to_string()));
    made.collect()
}

// M-CMD-01, M-CMD-02, M-CMD-03
#[test]
fn m_cmd_01_02_03_who_has_a_command() {
    let tree = Tree::new()
        .dir("extra")
        .skill("ws/skills/a", "A", "")
        .skill("ws/skills/hidden", "H", "disable-model-invocation: true")
        .skill("ws/skills/closed", "C", "user-invocable: false")
        .skill("ws/skills/unmet", "U", "metadata: {openclaw: {requires: {bins: [x]}}}");
    let snapshot = take(&load(&tree));
    let made = commands(snapshot.skills().iter().map(AsRef::as_ref), [""; 0]);
    assert_eq!(made.iter().map(|command| command.name.as_str()).collect::<Vec<_>>(), ["a", "hidden"]);
    assert!(!snapshot.prompt().text.contains("hidden"));
}

// M-CMD-04, M-CMD-05, M-CMD-06, M-CMD-07
#[test]
fn m_cmd_04_05_06_07_how_a_command_is_named() {
    for (name, wanted) in [("GitHub", "github"), ("a - b.c", "a_b_c"), ("a__b", "a_b"), ("_-x9-_", "x9"), ("né", "n")]
    {
        assert_eq!(sanitize(name), wanted, "{name}");
    }
    assert_eq!((MAX_NAME, sanitize(&"x".repeat(40)).len()), (32, 32));
}

#[test]
fn m_cmd_08_names_that_collide_get_numbers() {
    let found = called(&["name: a b", "name: a-b", "name: A_B", "name: help"]);
    let found: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(found, ["a_b", "a_b_2", "a_b_3", "help_2"]);
}

// M-CMD-09, M-CMD-10, M-CMD-11, M-CMD-12, M-CMD-14
#[test]
fn m_cmd_09_10_11_12_14_what_a_message_calls() {
    let skill = read("name: gh-issues\ndescription: d").0;
    let made = commands([&skill], [""; 0]);
    assert_eq!(made[0].name, "gh_issues");
    let args = |message: &'static str| resolve(message, &made).map(|call| call.args);
    for message in ["/gh-issues", "/gh_issues", "/skill gh-issues", "/skill gh_issues", " /GH-issues "] {
        assert_eq!(args(message), Some(None), "{message}");
    }
    assert_eq!(args("/gh-issues a  \"b c\"\t--d=$E\n/f"), Some(Some("a  \"b c\"\t--d=$E\n/f")));
    assert_eq!(args("/skill gh-issues a  b"), Some(Some("a  b")));
    assert_eq!(args("  /gh-issues \t a  b \n "), Some(Some("a  b")), "without what is around them");
    for message in ["gh-issues", "please /gh-issues", "skill gh-issues", "/", "/other", "/skill other"] {
        assert_eq!(args(message), None, "{message}");
    }
}

#[test]
fn m_cmd_13_a_command_may_name_the_tool_it_goes_to() {
    let tool = |fields: &str| {
        let skill = read(&format!("description: d\n{fields}")).0;
        commands([&skill], [""; 0]).remove(0).dispatch.map(|dispatch| dispatch.tool)
    };
    assert_eq!(tool("command-dispatch: tool\ncommand-tool: exec").as_deref(), Some("exec"));
    assert_eq!(tool("command-tool: exec"), None);
    assert_eq!(tool("command-dispatch: tool"), None);
}
