//! Frontmatter: do we read a `SKILL.md` as OpenClaw does, and better where it loses the file?

use std::path::Path;

use prowess_skills::install::{InstallSpec, Package};
use prowess_skills::{Document, Metadata, Problem, ProblemKind, Skill, Tier};
use prowess_testkit::{assert_documented, cases, check_all_but};
use serde_json::{Map, Value, json};

const FENCES: &str = "fences that are odd or missing";
const YAML: &str = "text that YAML takes for something else";
const TABS: &str = "tabs, and keys that are there twice";
const TEXT: &str = "a name or description that is not text";
const CAPITALS: &str = "`Name:` and `Description:`";
const SPACE: &str = "white space around name and description";
const BLOCKS: &str = "the older names of the manifest";
const COMMENTS: &str = "a comment inside the manifest";
const UNREADABLE: &str = "metadata that cannot be read";
const NULL: &str = "a name that is null";

const DEVIATIONS: &[(&str, &str)] = &[
    ("only-open", FENCES),
    ("bom", FENCES),
    ("leading-blank-line", FENCES),
    ("indented-close", FENCES),
    ("dots-close", FENCES),
    ("colon-in-description", YAML),
    ("starts-with-bracket", YAML),
    ("starts-with-star", YAML),
    ("line-fallback-multiline", YAML),
    ("description-dquote-unterminated", YAML),
    ("description-dash", YAML),
    ("broken-other-key", YAML),
    ("tab-indent", TABS),
    ("duplicate-key", TABS),
    ("numeric-name", TEXT),
    ("numeric-description", TEXT),
    ("bool-name", TEXT),
    ("list-description", TEXT),
    ("name-float", TEXT),
    ("name-exp", TEXT),
    ("name-key-uppercase", CAPITALS),
    ("folded", SPACE),
    ("literal", SPACE),
    ("meta-clawdbot", BLOCKS),
    ("meta-openclaw-string", BLOCKS),
    ("meta-flow-js-comment", COMMENTS),
    ("meta-dup-inner-key", UNREADABLE),
    ("meta-requires-array", UNREADABLE),
];
const NEWER_DEVIATIONS: &[(&str, &str)] = &[
    ("only-open", FENCES),
    ("leading-blank-line", FENCES),
    ("four-dashes-open", FENCES),
    ("close-with-suffix", FENCES),
    ("close-four-dashes", FENCES),
    ("indented-close", FENCES),
    ("dots-close", FENCES),
    ("line-fallback-multiline", YAML),
    ("broken-other-key", YAML),
    ("tab-indent", TABS),
    ("duplicate-key", TABS),
    ("name-key-uppercase", CAPITALS),
    ("name-tilde", NULL),
    ("meta-flow-js-comment", COMMENTS),
    ("meta-dup-inner-key", UNREADABLE),
    ("meta-requires-array", UNREADABLE),
];

#[test]
fn files_read_as_openclaw_reads_them() {
    assert_documented(DEVIATIONS);
    check_all_but(DEVIATIONS, cases(include_str!("golden/frontmatter.json")), check);
}

#[test]
fn files_that_only_the_newer_openclaw_rescues_are_rescued_too() {
    assert_documented(NEWER_DEVIATIONS);
    check_all_but(NEWER_DEVIATIONS, cases(include_str!("golden/frontmatter.newer.json")), check);
}

fn read(text: &str) -> Result<(Skill, Vec<Problem>), Problem> {
    Skill::parse(text.as_bytes(), Path::new("/skills/dirname/SKILL.md"), Tier::Workspace)
}

fn check(case: &Value) -> Result<(), String> {
    let text = case["input"].as_str().expect("the text of a file");
    let wanted = &case["output"];
    let got = match read(text) {
        Ok((skill, _)) => facts(&skill),
        Err(_) => json!({"loaded": false}),
    };
    let mut wanted = wanted.clone();
    if let Some(flat) = wanted.as_object_mut().and_then(|facts| facts.remove("flat")) {
        let document = Document::parse(text.as_bytes()).map_err(|flaw| flaw.reason)?;
        let ours: Map<String, Value> = document.flat().into_iter().map(|(key, text)| (key, text.into())).collect();
        same(&flat, &ours.into())?;
    }
    if let Some(metadata) = wanted.get_mut("metadata").and_then(Value::as_object_mut) {
        // A record in which everything is empty says as much as none.
        metadata.retain(|key, value| key != "always" || *value == true);
        metadata.retain(|_, value| *value != json!({"bins": [], "anyBins": [], "env": [], "config": []}));
        if metadata.is_empty() {
            wanted.as_object_mut().map(|facts| facts.remove("metadata"));
        }
    }
    same(&wanted, &got)
}

fn same(wanted: &Value, got: &Value) -> Result<(), String> {
    if wanted == got { Ok(()) } else { Err(format!("\n  wanted {wanted}\n  got    {got}")) }
}

fn facts(skill: &Skill) -> Value {
    let mut facts = json!({
        "loaded": true,
        "name": skill.name.as_str(),
        "description": skill.description,
        "userInvocable": skill.invocation.by_user,
        "disableModelInvocation": !skill.invocation.by_model,
    });
    if skill.unreadable.is_some() {
        facts["heldBack"] = true.into();
    }
    let metadata = metadata_facts(&skill.metadata);
    if !metadata.is_empty() {
        facts["metadata"] = metadata.into();
    }
    facts
}

fn metadata_facts(metadata: &Metadata) -> Map<String, Value> {
    let needs = &metadata.needs;
    let mut facts = Map::new();
    let mut put = |key: &str, value: Value| {
        if value != json!([]) && value != Value::Null && value != Value::Bool(false) {
            facts.insert(key.to_owned(), value);
        }
    };
    put("always", metadata.always.into());
    put("emoji", json!(metadata.emoji));
    put("homepage", json!(metadata.homepage));
    put("skillKey", json!(metadata.skill_key));
    put("primaryEnv", json!(metadata.primary_env));
    put("os", json!(needs.os));
    let requires = json!({"bins": needs.bins, "anyBins": needs.any_bins, "env": needs.env, "config": needs.config});
    let is_empty = requires.as_object().is_some_and(|lists| lists.values().all(|list| *list == json!([])));
    put("requires", if is_empty { Value::Null } else { requires });
    put("install", metadata.install.iter().map(install_facts).collect::<Vec<_>>().into());
    facts
}

fn install_facts(spec: &InstallSpec) -> Value {
    let mut facts = json!({"kind": spec.kind()});
    let mut put = |key: &str, value: Value| {
        if value != json!([]) && value != Value::Null {
            facts[key] = value;
        }
    };
    put("id", json!(spec.id));
    put("label", json!(spec.label));
    put("bins", json!(spec.bins));
    put("os", json!(spec.os));
    match &spec.package {
        Package::Brew(formula) => put("formula", json!(formula)),
        Package::Node(package) | Package::Uv(package) => put("package", json!(package)),
        Package::Go(module) => put("module", json!(module)),
        Package::Download(file) => {
            put("url", json!(file.url));
            put("archive", json!(file.archive));
            put("extract", json!(file.extract));
            put("stripComponents", json!(file.strip_components));
            put("targetDir", json!(file.target_dir));
        }
    }
    facts
}

/// The skill that `frontmatter` makes, and what was reported.
#[track_caller]
fn skill(frontmatter: &str) -> (Skill, Vec<ProblemKind>) {
    let (skill, problems) = read(&format!("---\n{frontmatter}\n---\nbody\n")).expect("a skill");
    (skill, problems.into_iter().map(|problem| problem.kind).collect())
}

#[track_caller]
fn flat(frontmatter: &str) -> Vec<(String, String)> {
    let text = format!("---\n{frontmatter}\n---\n");
    Document::parse(text.as_bytes()).expect("readable").flat()
}

#[test]
fn every_rescue_is_reported() {
    let rescued = DEVIATIONS.iter().filter(|(_, reason)| [FENCES, YAML, TABS, TEXT, CAPITALS].contains(reason));
    let rescued: Vec<&str> = rescued.map(|(id, _)| *id).collect();
    let files = cases(include_str!("golden/frontmatter.json")).filter(|(id, _)| rescued.contains(&id.as_str()));
    for (id, case) in files {
        let (_, problems) = read(case["input"].as_str().expect("a text")).expect("rescued");
        assert!(problems.iter().any(|problem| problem.kind == ProblemKind::Mended), "{id}: {problems:?}");
        assert!(problems.iter().all(|problem| problem.at.is_some() && !problem.fix.is_empty()), "{id}: {problems:?}");
    }
}

#[test]
fn ordinary_files_have_nothing_to_report() {
    for frontmatter in [
        "name: foo\ndescription: bar",
        "name: \"foo\"\ndescription: 'single ''quoted'' text'",
        "description: line one\n  line two",
        "description: see http://x.y/z and a <b> & \"c\" 'd'",
        "name: yes\ndescription: 2024-01-02",
        "description: d\nmetadata:\n  {\n    # why\n    \"openclaw\": { \"emoji\": \"x\" },\n  }",
        "description: d\nnote: |\n  ---\n  x",
    ] {
        assert_eq!(skill(frontmatter).1, [], "{frontmatter}");
    }
}

#[test]
fn fences_may_have_spaces_after_them_and_any_line_end() {
    for text in [
        "--- \nname: foo\ndescription: bar\n---\nbody\n",
        "---\t\nname: foo\ndescription: bar\n---   \nbody\n",
        "---\r\nname: foo\r\ndescription: bar\r\n---\r\n",
        "---\nname: foo\ndescription: bar\n---",
        "---\nname: foo\ndescription: bar\n---\n\0\0",
    ] {
        let (skill, problems) = read(text).expect("a skill");
        assert_eq!((skill.name.as_str(), skill.description.as_str()), ("foo", "bar"), "{text:?}");
        assert!(problems.is_empty(), "{text:?}: {problems:?}");
    }
}

#[test]
fn bytes_that_are_not_utf8_are_replaced() {
    let bytes = b"---\nname: foo\ndescription: a\xff\xfeb\n---\n";
    let (skill, _) = Skill::parse(bytes, Path::new("/skills/x/SKILL.md"), Tier::Workspace).expect("a skill");
    assert_eq!(skill.description, "a\u{fffd}\u{fffd}b");
}

#[test]
fn a_file_without_a_description_is_no_skill() {
    let kind = |text: &str| read(text).expect_err("no skill").kind;
    for text in [
        "---\nname: foo\n---\n",
        "---\nname: foo\ndescription: '   '\n---\n",
        "---\nname: foo\ndescription:\n---\n",
        "---\nname: foo\ndescription: null\n---\n",
        "---\nname: foo\ndescription: ~\n---\n",
        "---\n---\n",
        "---\nname: foo\n--- \ndescription: d\n---\n",
    ] {
        assert_eq!(kind(text), ProblemKind::NoDescription, "{text:?}");
    }
    for text in ["---\n- a\n- b\n---\n", "---\njust words\n---\n", "---\n# nothing\n---\n"] {
        assert_eq!(kind(text), ProblemKind::BadFrontmatter, "{text:?}");
    }
    for text in ["", "# just text\n", "\n\n"] {
        assert_eq!(kind(text), ProblemKind::NoFrontmatter, "{text:?}");
    }
}

#[test]
fn a_null_name_is_the_folders_name_and_stays_in_the_flat_map() {
    for (written, kept) in [("~", "~"), ("null", "null"), ("Null", "Null")] {
        assert_eq!(skill(&format!("name: {written}\ndescription: d")).0.name.as_str(), "dirname");
        let flat = flat(&format!("name: {written}\ndescription: d"));
        assert_eq!(flat, [("description".into(), "d".into()), ("name".into(), kept.into())]);
    }
    assert_eq!(flat("name:\ndescription: d"), [("description".into(), "d".into())]);
}

#[test]
fn scalars_become_the_text_that_javascript_prints() {
    for (written, text) in [
        ("1.0", "1"),
        ("0x10", "16"),
        ("0o17", "15"),
        ("007", "7"),
        ("1e3", "1000"),
        ("-0", "0"),
        ("+5", "5"),
        ("1.50", "1.5"),
        (".5", "0.5"),
        ("1e21", "1e+21"),
        ("1e-7", "1e-7"),
        ("true", "true"),
        ("FALSE", "false"),
        ("yes", "yes"),
        ("off", "off"),
        ("2024-01-02", "2024-01-02"),
        ("1_000", "1_000"),
        ("0b11", "0b11"),
        ("v1.2", "v1.2"),
        ("'  spaced  '", "spaced"),
        ("!!str 1", "1"),
        ("!custom d", "d"),
        ("a # note", "a"),
        ("[a, b]", "[\"a\",\"b\"]"),
        ("{a: b}", "{a: b}"),
        ("&anchor {k: v}", "&anchor {k: v}"),
        ("[{a: 1}]", "[{a: 1}]"),
    ] {
        assert_eq!(flat(&format!("k: {written}")), [("k".into(), text.into())], "{written}");
    }
    assert_eq!(flat("k:\n  a: 1\n  b: [x, 2.50]"), [("k".into(), "{\"a\":1,\"b\":[\"x\",2.5]}".into())]);
    assert_eq!(flat("base: &b {k: v}\nuse:\n  <<: *b")[1].1, "{\"<<\":{\"k\":\"v\"}}");
}

#[test]
fn keys_are_trimmed_and_blank_ones_left_out() {
    assert_eq!(flat("' a ': x\n'  ': y\nB: z"), [("a".into(), "x".into()), ("B".into(), "z".into())]);
}

#[test]
fn free_text_in_a_description_survives() {
    for text in [
        "Use when: asked about x",
        "@mention stuff",
        "`code` stuff",
        "%TAG thing",
        "| inline after pipe",
        "a: b: c",
        "\"quoted\" and more",
    ] {
        let (skill, problems) = skill(&format!("name: foo\ndescription: {text}"));
        assert_eq!((skill.name.as_str(), skill.description.as_str()), ("foo", text));
        assert_eq!(problems, [ProblemKind::Mended], "{text}");
    }
    let (skill, problems) = skill("name: foo\ndescription: Use when: x\nother: a: b");
    assert_eq!((skill.description.as_str(), problems.len()), ("Use when: x", 2));
}

#[test]
fn the_manifest_may_be_written_in_many_ways() {
    for metadata in [
        "metadata: {\"openclaw\":{\"emoji\":\"x\",\"requires\":{\"bins\":[\"a\"]}}}",
        "metadata: {openclaw: {emoji: x, requires: {bins: [a]}}}",
        "metadata:\n  {\n    \"openclaw\": {\n      \"emoji\": \"x\",\n      \"requires\": { \"bins\": [\"a\"], },\n    },\n  }",
        "metadata: {\"openclaw\":\n  {\"emoji\":\"x\",\"requires\":{\"bins\":[\"a\"]}}}",
        "metadata:\n  openclaw:\n    emoji: x\n    requires:\n      bins: [a]",
        "metadata:\n  openclaw:\n    emoji: x\n    requires:\n      bins:\n        - a",
        "metadata: \"{openclaw: {emoji: 'x', requires: {bins: ['a'],}}}\"",
        "metadata: '{\"openclaw\":{\"emoji\":\"x\",\"requires\":{\"bins\":[\"a\"]}}}'",
        "metadata: |\n  { \"openclaw\": { \"emoji\": \"x\", \"requires\": { \"bins\": \"a\" } } } // why",
        "metadata: >-\n  { \"openclaw\": { \"emoji\": \"x\",\n  \"requires\": { \"bins\": [\"a\"] } } }",
        "metadata:\n  {\n    // why\n    \"openclaw\": { \"emoji\": \"x\", \"requires\": { \"bins\": [\"a\"] } }\n  }",
        "metadata:\n  {\n    # why\n    \"openclaw\": { \"emoji\": \"x\", \"requires\": { \"bins\": [\"a\"] } }\n  }",
        "metadata: {\"clawdis\":{\"emoji\":\"x\",\"requires\":{\"bins\":[\"a\"]}}}",
        "metadata: {\"clawdbot\":{\"emoji\":\"x\",\"requires\":{\"bins\":[\"a\"]}},\"clawdis\":{}}",
    ] {
        let (skill, _) = skill(&format!("description: d\n{metadata}"));
        assert_eq!((skill.emoji.as_deref(), skill.unreadable), (Some("x"), None), "{metadata}");
        assert_eq!(skill.metadata.needs.bins, ["a"], "{metadata}");
    }
}

#[test]
fn metadata_that_says_nothing_opens_nothing_and_holds_nothing() {
    for metadata in [
        "metadata:",
        "metadata: null",
        "metadata: ~",
        "metadata: 7",
        "metadata: just words",
        "metadata: {author: me}",
        "metadata: {openclaw: text}",
        "metadata: {openclaw: [1, 2]}",
        "metadata: {openclaw: null}",
        "openclaw: {requires: {bins: [a]}}",
        "requires: {bins: [a]}",
    ] {
        let (skill, _) = skill(&format!("description: d\n{metadata}"));
        assert_eq!((skill.metadata, skill.unreadable), (Metadata::default(), None), "{metadata}");
    }
}

#[test]
fn metadata_that_cannot_be_read_holds_the_skill_back() {
    for metadata in [
        "metadata: {\"openclaw\": {\"requires\": {\"bins\": [\"a\"}}}",
        "metadata: \"{openclaw: {requires: {bins: ['a'\"",
        "metadata: {openclaw: {requires: {bins: [a], bins: [b]}}}",
        "metadata: {openclaw: {requires: [a]}}",
        "metadata: {openclaw: {requires: a}}",
        "metadata: {openclaw: {requires: {env: {A: 1}}}}",
        "metadata: {openclaw: {os: 3}}",
        "metadata: {openclaw: {always: true}}\nmetadata: {openclaw: {requires: {bins: [a]}}}",
    ] {
        let (skill, problems) = skill(&format!("description: d\n{metadata}"));
        assert!(skill.unreadable.is_some(), "{metadata}");
        assert!(problems.contains(&ProblemKind::BadMetadata), "{metadata}: {problems:?}");
    }
}

#[test]
fn lists_may_be_lists_or_words_with_commas() {
    let (skill, _) = skill(
        "description: d\nmetadata: {openclaw: {os: \"darwin, linux,,\", requires: {bins: [1, ' a ', '', true], anyBins: \
         'x', env: [], config: null}}}",
    );
    let needs = skill.metadata.needs;
    assert_eq!(
        (needs.os, needs.bins),
        (vec!["darwin".into(), "linux".into()], vec!["1".into(), "a".into(), "true".into()])
    );
    assert_eq!((needs.any_bins, needs.env, needs.config), (vec!["x".to_owned()], vec![], vec![]));
}

#[test]
fn only_true_is_always_and_only_text_is_text() {
    let metadata = |block: &str| skill(&format!("description: d\nmetadata: {{openclaw: {block}}}")).0.metadata;
    assert!(metadata("{always: true}").always);
    assert!(!metadata("{always: 'true'}").always && !metadata("{always: 1}").always);
    assert_eq!(metadata("{skillKey: '', primaryEnv: 7}"), Metadata::default());
    assert_eq!(metadata("{skillKey: ' '}").skill_key.as_deref(), Some(" "));
}

#[test]
fn a_key_is_the_skill_key_or_else_the_name() {
    assert_eq!(skill("name: n\ndescription: d").0.key(), "n");
    assert_eq!(skill("name: n\ndescription: d\nmetadata: {openclaw: {skillKey: k}}").0.key(), "k");
}

#[test]
fn homepage_and_emoji_are_taken_from_the_manifest_first() {
    let shown = |text: &str| {
        let skill = skill(&format!("description: d\n{text}")).0;
        (skill.emoji, skill.homepage)
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(shown("emoji: e\nurl: u\nwebsite: w\nhomepage: h"), (some("e"), some("h")));
    assert_eq!(shown("url: u\nwebsite: w"), (None, some("w")));
    assert_eq!(shown("url: ' u '"), (None, some("u")));
    assert_eq!(shown("homepage: h\nmetadata: {openclaw: {homepage: m, emoji: x}}\nemoji: e"), (some("x"), some("m")));
    assert_eq!(shown("homepage: ' '"), (None, None));
}

#[test]
fn switches_are_read_only_with_hyphens() {
    let flags = |text: &str| {
        let invocation = skill(&format!("description: d\n{text}")).0.invocation;
        (invocation.by_user, invocation.by_model)
    };
    assert_eq!(flags("user-invocable: false\ndisable-model-invocation: yes"), (false, false));
    assert_eq!(flags("user-invocable: ' OFF '\ndisable-model-invocation: \"1\""), (false, false));
    assert_eq!(flags("user_invocable: false\ndisable_model_invocation: true"), (true, true));
    assert_eq!(flags("user-invocable: never\ndisable-model-invocation: 2"), (true, true));
    assert_eq!(flags("user-invocable:\ndisable-model-invocation:"), (true, true));
}

#[test]
fn an_empty_hyphen_field_wins_and_an_absent_one_does_not() {
    let tool = |text: &str| skill(&format!("description: d\n{text}")).0.dispatch.map(|dispatch| dispatch.tool);
    assert_eq!(tool("command-dispatch: ''\ncommand_dispatch: tool\ncommand-tool: exec"), None);
    assert_eq!(tool("command-dispatch: tool\ncommand-tool: ''\ncommand_tool: exec"), None);
    assert_eq!(tool("command-dispatch:\ncommand_dispatch: tool\ncommand_tool: exec").as_deref(), Some("exec"));
    assert_eq!(tool("command_dispatch: TOOL\ncommand-tool: exec\ncommand-arg-mode: odd").as_deref(), Some("exec"));
}

/// Whether a bracket or a quote of a flow map is still open at its end.
fn is_open(text: &str) -> bool {
    let (mut depth, mut quote, mut escaped) = (0, None, false);
    for c in text.chars() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(mark), _) => quote = quote.filter(|_| c != mark),
            (None, '"' | '\'') => quote = Some(c),
            (None, '{' | '[') => depth += 1,
            (None, '}' | ']') => depth -= 1,
            _ => {}
        }
    }
    depth > 0 || quote.is_some()
}

#[test]
fn metadata_that_is_cut_off_anywhere_holds_the_skill_back() {
    let inner = r#"{"openclaw": {"emoji": "🌤", "os": ["linux"], "requires": {"bins": ["a", "b"], "env": ["X"]}, "install": [{"kind": "brew", "formula": "f"}]}}"#;
    let lines = inner.replace(", ", ",\n    ");
    let plain = "{openclaw: {emoji: x, requires: {bins: [a, b], anyBins: [c]}, always: false}}";
    let quoted = format!("'{inner}'");
    let mut cut = 0;
    for whole in [inner, lines.as_str(), plain, quoted.as_str()] {
        for end in (1..=whole.len()).filter(|&end| whole.is_char_boundary(end)) {
            let part = &whole[..end];
            for more in ["", "license: MIT\n", "allowed-tools: [a, b]\n"] {
                let text = format!("---\nname: a\ndescription: d\nmetadata: {part}\n{more}---\nbody\n");
                let read = Document::parse(text.as_bytes()).map(|document| document.metadata().map(|_| ()));
                let is_held = !matches!(read, Ok(Ok(())));
                // A quote around the whole may be missing at its end: what it holds is complete.
                if end == whole.len() || is_open(part.trim_start_matches('\'')) {
                    assert_eq!(is_held, end < whole.len(), "{text}");
                    cut += usize::from(is_held);
                }
            }
        }
    }
    assert!(cut > 1_000, "{cut}");
}

#[test]
fn a_key_is_found_at_its_line_whatever_stands_before_it() {
    let places = |text: &str| {
        let document = Document::parse(text.as_bytes()).expect("a document");
        ["name", "description", "absent"].map(|key| document.position(key).map(|at| (at.line, at.column)))
    };
    assert_eq!(places("---\nname: a\ndescription: d\n---\n"), [Some((2, 1)), Some((3, 1)), None]);
    assert_eq!(
        places("\n\n---\n# why\nname: a\nx: |\n  y\n\ndescription: d\n---\n"),
        [Some((5, 1)), Some((9, 1)), None]
    );
    assert_eq!(
        places("---\nname: a\nother: a: b\ndescription: d\n---\n"),
        [Some((2, 1)), Some((4, 1)), None],
        "mended"
    );
}

#[test]
fn words_that_were_meant_as_a_manifest_are_not_taken_for_nothing() {
    let is_read = |metadata: &str| {
        let text = format!("---\nname: a\ndescription: d\nmetadata: {metadata}\n---\n");
        Document::parse(text.as_bytes()).expect("a document").metadata().is_ok()
    };
    for meant in ["openclaw needs curl", "clawdbot", "clawdis curl", "requires curl", "'{x'", "'[x'"] {
        assert!(!is_read(meant), "{meant}");
    }
    assert!(is_read("just words") && is_read("7"));
}
