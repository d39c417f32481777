//! Are commands judged as recorded, and never more mildly?

use crate::fixture;
use std::collections::BTreeMap;

use fixture::asked::entry;
use fixture::{Stage, judge, rules};
use prowess_policy::safe_bin::SafeBins;
use prowess_policy::{SkillBin, Verdict};
use prowess_testkit::{assert_documented, cases, cases_in, check_all, check_all_but};
use serde_json::Value;

const RECORDED: &str = include_str!("golden/shell-allowlist.json");
const ATTACKS: &str = include_str!("golden/attack-commands.json");

/// Cases where neither or either recorded version decides otherwise, with the row of docs/compatibility.md that says why.
const DEVIATIONS: &[(&str, &str)] = &[
    ("upper-pattern", "upper and lower case in a pattern"),
    ("pipe-empty", "an empty place between two operators"),
    ("pipe-lead", "an empty place between two operators"),
    ("double-semi", "an empty place between two operators"),
    ("redir-null", "output sent to nowhere"),
    ("cr", "characters that cannot be seen"),
    ("nbsp", "characters that cannot be seen"),
    ("rtl", "characters that cannot be seen"),
    ("heredoc", "here-documents"),
    ("heredoc-q", "here-documents"),
    ("heredoc-var", "here-documents"),
    ("heredoc-dash", "here-documents"),
    ("heredoc-quote-body", "here-documents"),
    ("env-assign", "`env NAME=value` with a harmless variable"),
    ("stdbuf", "`stdbuf -oL`, the value attached to the option"),
    ("bash-c-allow-bash", "`sh -c`"),
    ("safe-jq", "`jq` as a safe bin"),
    ("find-exec", "arguments that start other programs or code"),
    ("python-c", "arguments that start other programs or code"),
    ("node-e", "arguments that start other programs or code"),
];

#[test]
fn recorded_commands_are_judged_as_recorded() {
    assert_documented(DEVIATIONS);
    let file: Value = serde_json::from_str(RECORDED).expect("JSON");
    let stage = Stage::recorded(&file["fixture"]);
    check_all_but(DEVIATIONS, cases(RECORDED), |case| {
        let verdict = verdict_of(case, &stage);
        let is_allowed = case["older"] == true || case["newer"] == true;
        if (verdict == Verdict::Allow) == is_allowed { Ok(()) } else { Err(format!("{verdict:?}")) }
    });
}

fn verdict_of(case: &Value, stage: &Stage) -> Verdict {
    let mut rules = rules(&[]);
    rules.home = "/fx/home".into();
    let patterns = case["allowlist"].as_array().expect("a list");
    rules.allowlist = patterns.iter().map(|one| entry(one.as_str().expect("a text"))).collect();
    rules.safe_bins = SafeBins::new(None, &BTreeMap::new(), &["/fx/tbin".into()]).0;
    rules.posture.auto_allow_skills = case["autoAllowSkills"] == true;
    rules.skill_bins = case["skillBins"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|bin| {
            let text = |key: &str| bin[key].as_str().expect("a text").to_owned();
            SkillBin { name: text("name"), real: text("resolvedPath").into() }
        })
        .collect();
    judge(case["command"].as_str().expect("a text"), &rules, stage).verdict()
}

fn attacked() -> (Stage, prowess_policy::Rules) {
    let names = [
        "git", "ls", "echo", "find", "tar", "head", "wc", "cut", "uniq", "tr", "env", "nice", "nohup", "timeout", "sh",
        "bash", "id", "cat",
    ];
    let file: Value = serde_json::from_str(ATTACKS).expect("JSON");
    let allowlist: Vec<&str> = file["allowlist"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    (Stage::usual(&names), rules(&allowlist))
}

#[test]
fn attacks_on_the_shape_of_a_command_are_never_allowed() {
    let (stage, rules) = attacked();
    check_all(cases_in(ATTACKS, "attacks"), |case| {
        let command = match &case["command"] {
            Value::String(command) => command.clone(),
            made => {
                let text = |key: &str| made[key].as_str().expect("a text");
                let times = usize::try_from(made["times"].as_u64().expect("a number")).expect("it fits");
                format!("{}{}{}", text("start"), text("fill").repeat(times), text("end"))
            }
        };
        match judge(&command, &rules, &stage).verdict() {
            Verdict::Allow => Err("allowed".to_owned()),
            Verdict::Ask | Verdict::Deny => Ok(()),
        }
    });
}

#[test]
fn ordinary_commands_are_not_needlessly_refused() {
    let (stage, rules) = attacked();
    check_all(cases_in(ATTACKS, "controls"), |case| {
        let judgment = judge(case["command"].as_str().expect("a text"), &rules, &stage);
        let against: Vec<String> = judgment.all_objections().map(ToString::to_string).collect();
        if judgment.verdict() == Verdict::Allow { Ok(()) } else { Err(against.join("; ")) }
    });
}

#[test]
fn what_the_shell_makes_of_values_and_names_is_not_overlooked() {
    let (mut stage, rules) = attacked();
    // Somebody put programs with these names first on PATH.
    stage.path.insert(0, "/home/me/work/bin".into());
    stage.programs.extend(["time", "true", "pwd", "test"].map(|name| format!("/home/me/work/bin/{name}").into()));
    let table = [
        // Arithmetic, indirection and prompts evaluate what variables hold.
        ": 'a[$(id)]'; : $((_))",
        ": '$(id)'; : ${_@P}",
        "ls ${!x}",
        "ls $((x))",
        "ls ${HOME:x}",
        "ls \"${x@P}\"",
        "LANG=$((x)) ls",
        "ls 2>$((x))",
        // Only in the first place, in so many letters, `time` is a word of the language.
        "command time ls",
        "exec time ls",
        "'time' ls",
        "\\time ls",
        "LANG=C time ls",
        "ls | time ls",
        "time time ls",
        // `exec` looks for a program, whatever the shell has of that name.
        "exec true",
        "exec pwd",
        "exec test -f x",
        "exec [ -f x ]",
    ];
    for command in table {
        assert_ne!(judge(command, &rules, &stage).verdict(), Verdict::Allow, "{command}");
    }
    for command in ["time ls", "command true", "true", "ls $x", "ls ${x}", "ls \"$x\" *.txt", "time true"] {
        assert_eq!(judge(command, &rules, &stage).verdict(), Verdict::Allow, "{command}");
    }
}

#[test]
fn variables_that_steer_are_asked_about_wherever_they_come_from() {
    let (stage, rules) = attacked();
    let verdict = |name: &str, value: &str| {
        let mut request = fixture::asked::request("ls", &stage.cwd);
        request.variables = vec![(name.to_owned(), value.to_owned())];
        rules.judge(request, &stage).verdict()
    };
    assert_eq!(verdict("FOO", "1"), Verdict::Allow);
    for (name, value) in [("GOROOT", "/tmp/evil"), ("X", "a[$(id)]"), ("_", "x"), ("AWS_PAGER", "id")] {
        assert_eq!(verdict(name, value), Verdict::Ask, "{name}={value}");
    }
}

#[test]
fn arguments_that_were_once_overlooked_are_asked_about() {
    let names = ["git", "ls", "echo", "tar", "awk", "make", "curl", "xargs", "python3", "touch", "sh"];
    let stage = Stage::usual(&names);
    let listed: Vec<String> = names[..9].iter().map(|name| format!("/usr/bin/{name}")).collect();
    let rules = rules(&listed.iter().map(String::as_str).collect::<Vec<_>>());
    for command in [
        "tar cf -- --checkpoint=1 '--checkpoint-action=exec=touch pwned' a.txt",
        "echo x | xargs tar",
        "echo 'run touch pwned' | xargs git bisect",
        "echo x | xargs git submodule",
        "echo x | python3 //dev/stdin",
        "echo x | python3 ../../../dev/stdin",
        "echo x | make -f /dev/stdin",
        "echo x | make -sf-",
        "echo x | make --fil=-",
        "make 'CC:=touch pwned #' foo.o",
        "make 'COMPILE.c=touch pwned #' foo.o",
        "make 'X!=touch pwned'",
        "MAKEFILES=mk.mk make x",
        "awk -v 'x=touch pwned' '!/[]/\"]/{print x | \"exec sh\"}#\"' a.txt",
        "awk '!/[[:alpha:]/\"]/{print > \"pwned\"}#\"' a.txt",
        "git apply --unsafe-paths x.patch",
        "git checkout-index -f --prefix=.git/hooks/ pre-push",
        "git --work-tree=.git/hooks checkout -f HEAD -- pre-push",
        "curl -sT - file:///home/me/work/.git//config",
        "git fast-export --export-marks=F HEAD",
        "git bundle create F HEAD",
        "tar -tvf x.tar --index-file=F",
        "tar -cf x.tar a --remove-files",
    ] {
        assert_ne!(judge(command, &rules, &stage).verdict(), Verdict::Allow, "{command}");
    }
    for command in [
        "tar -tf x.tar",
        "git log -- a",
        "make -C dir all PREFIX=/usr",
        "make -f other.mk",
        "curl -s https://e.example",
    ] {
        assert_eq!(judge(command, &rules, &stage).verdict(), Verdict::Allow, "{command}");
    }
}
