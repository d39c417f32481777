//! What a person who wrote a configuration can rely on.

use std::fs;
use std::path::PathBuf;

use prowess_config::{
    Config, Env, FlagError, IncludeError, Layer, LoadError, LocationFlags, Locations, SourceError, VariableSource,
    WarningKind,
};
use serde_json::json;
use tempfile::TempDir;

/// A state directory with these files, and the variables to find it.
struct Place(TempDir);

impl Place {
    fn new(files: &[(&str, &str)]) -> Self {
        let place = Self(TempDir::new().expect("a directory"));
        for (name, text) in files {
            let file = place.file(name);
            fs::create_dir_all(file.parent().expect("a parent")).expect("made");
            fs::write(file, text).expect("written");
        }
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join("state").join(name)
    }

    fn load(&self, env: &[(&str, &str)]) -> Result<Config, LoadError> {
        let home = self.0.path();
        let cwd = self.file("cwd");
        let mut env = env.iter().copied().collect::<Env>();
        env.insert("OPENCLAW_STATE_DIR", home.join("state").to_str().expect("Unicode"));
        let locations = Locations::probe(&env, &cwd, &LocationFlags::default()).expect("no flags");
        Config::load(&locations, &env)
    }
}

fn loaded(text: &str) -> Config {
    Place::new(&[("openclaw.json", text)]).load(&[]).expect(text)
}

#[test]
fn a_missing_file_is_an_empty_configuration() {
    let config = Place::new(&[]).load(&[]).expect("nothing to read");
    assert_eq!(config.tree(), &json!({}));
    assert_eq!(config.warnings(), []);
    assert_eq!(config.get("skills.limits.maxSkillsInPrompt").map(|found| found.value), Some(json!(150)));
}

#[test]
fn a_broken_file_says_where_and_what_to_do() {
    let place = Place::new(&[("openclaw.json", "{\n  skills: {\n    load: { watch: true }\n    limits: {}\n  }\n}\n")]);
    let error = place.load(&[]).expect_err("a comma is missing");
    assert!(matches!(&error, LoadError::Source(SourceError::Syntax { line: 4, column: 5, .. })));
    let expected =
        format!("{}:4:5: a comma is missing; put one between the two entries", place.file("openclaw.json").display());
    assert_eq!(error.to_string(), expected);
}

#[test]
fn odd_files_are_refused() {
    let big = "x".repeat(3 << 20);
    for (text, is_right) in [
        ("[]", (|error: &SourceError| matches!(error, SourceError::NotASection { .. })) as fn(&SourceError) -> bool),
        (big.as_str(), |error| matches!(error, SourceError::TooLarge { .. })),
    ] {
        match Place::new(&[("openclaw.json", text)]).load(&[]) {
            Err(LoadError::Source(error)) => assert!(is_right(&error), "{error}"),
            other => panic!("{other:?}"),
        }
    }
    let place = Place::new(&[("openclaw.json/inner", "")]);
    assert!(matches!(place.load(&[]), Err(LoadError::Source(SourceError::NotAFile { .. }))));
    let place = Place::new(&[]);
    fs::create_dir_all(place.file("")).expect("made");
    fs::write(place.file("openclaw.json"), b"{a:'\xff'}").expect("written");
    assert!(matches!(place.load(&[]), Err(LoadError::Source(SourceError::NotText { offset: 4, .. }))));
}

#[test]
fn a_blank_file_is_empty_with_a_word_of_warning() {
    let config = loaded(" \n");
    assert_eq!(config.warnings()[0].kind, WarningKind::BlankFile);
}

#[test]
fn one_unknown_key_or_missing_variable_stops_nothing() {
    let config = loaded("{skils: 1, skills: {load: {watch: false}, entries: {w: {apiKey: '${NOPE}', enabled: true}}}}");
    assert_eq!(config.get("skills.load.watch").map(|found| found.value), Some(json!(false)));
    assert_eq!(config.tree()["skils"], 1);
    assert_eq!(config.tree()["skills"]["entries"]["w"], json!({ "enabled": true }));
    assert_eq!(config.unavailable()[0].path.to_string(), "skills.entries.w.apiKey");
    let shown: Vec<_> = config.warnings().iter().map(|warning| format!("{}: {}", warning.path, warning.kind)).collect();
    assert_eq!(
        shown,
        [
            "skills.entries.w.apiKey: the variable NOPE is missing or empty, so this value is not set; set NOPE",
            "skils: unknown key, ignored; did you mean `skills`?",
        ]
    );
}

#[test]
fn every_value_knows_where_it_came_from() {
    let place = Place::new(&[
        ("openclaw.json", "{$include: './base.json5', skills: {load: {extraDirs: ['b', '${NOPE}', 'c']}}}"),
        ("base.json5", "{skills: {load: {watch: false, extraDirs: ['a']}, limits: {$include: './limits.json5'}}}"),
        ("limits.json5", "{maxSkillsInPrompt: 7}"),
    ]);
    let config = place.load(&[]).expect("it loads");
    for (path, value, file) in [
        ("skills.load.watch", json!(false), "base.json5"),
        ("skills.load.extraDirs", json!(["a", "b", "c"]), "openclaw.json"),
        ("skills.load.extraDirs.0", json!("a"), "base.json5"),
        ("skills.load.extraDirs.2", json!("c"), "openclaw.json"),
        ("skills.limits.maxSkillsInPrompt", json!(7), "limits.json5"),
    ] {
        let found = config.get(path).expect(path);
        assert_eq!((found.value, found.layer), (value, Layer::File), "{path}");
        assert_eq!(found.origin, Some(place.file(file)), "{path}");
    }
    assert_eq!(config.files().len(), 3);
    let default = config.get("skills.load.watchDebounceMs").expect("a default");
    assert_eq!((default.value, default.layer, default.origin), (json!(250), Layer::Default, None));
    assert!(config.get("skills.limits.maxSkillsPromptTokens").is_none());
    assert!(config.get("a..b").is_none());
}

#[test]
fn later_layers_win_in_any_order() {
    let config = loaded("{skills: {limits: {maxSkillsInPrompt: 1}}}");
    let path = "skills.limits.maxSkillsInPrompt";
    let config = config.with_flag(path, json!("3")).expect("a number").with_env(path, json!(2)).expect("a number");
    let found = config.get(path).expect("set");
    assert_eq!((found.value, found.layer, found.origin), (json!(3), Layer::Flag, None));
    assert_eq!(config.get("skills").expect("a section").layer, Layer::Flag);
    assert_eq!(config.tree()["skills"]["limits"]["maxSkillsInPrompt"], 3);
    assert!(Layer::Default < Layer::File && Layer::File < Layer::Env && Layer::Env < Layer::Flag);
}

#[test]
fn flags_are_checked() {
    let error = loaded("{}").with_flag("skills.load.watch", json!("maybe")).expect_err("no switch");
    assert_eq!(error.to_string(), "`skills.load.watch` must be true or false");
    let error = loaded("{x: 1}").with_flag("x.y", json!(1)).expect_err("x is a number");
    assert!(matches!(error, FlagError::Blocked { .. }));
    assert!(matches!(loaded("{}").with_flag("a..b", json!(1)), Err(FlagError::Path(_))));
}

#[test]
fn the_other_name_of_the_debounce() {
    for (text, value, warnings) in [
        ("{skills:{load:{debounceMs:9}}}", 9, 0),
        ("{skills:{load:{debounceMs:9,watchDebounceMs:8}}}", 8, 1),
        ("{skills:{load:{}}}", 250, 0),
    ] {
        let config = loaded(text);
        for path in ["skills.load.watchDebounceMs", "skills.load.debounceMs"] {
            assert_eq!(config.get(path).map(|found| found.value), Some(json!(value)), "{text} {path}");
        }
        assert_eq!(config.warnings().len(), warnings, "{text}");
    }
}

#[test]
fn variables_from_files_fill_gaps() {
    let place = Place::new(&[
        ("openclaw.json", "{env: {vars: {C: 'config', D: 'config'}, LD_PRELOAD: 'x'}, out: '${A} ${B} ${C} ${D}'}"),
        (".env", "A=state\nB=state\nNODE_OPTIONS=--evil\n"),
        ("cwd/.env", "A=cwd\nD=cwd\nLD_PRELOAD=x\n"),
    ]);
    let config = place.load(&[("C", "host")]).expect("it loads");
    assert_eq!(config.tree()["out"], "state state host config");
    let provided = &config.config_env().variables;
    assert_eq!(provided.keys().collect::<Vec<_>>(), ["A", "B", "D"]);
    assert_eq!(provided["B"].source, VariableSource::Dotenv(place.file(".env")));
    assert_eq!(config.env().get("C"), Some("host"));
    let refused: Vec<_> = config.config_env().refused.iter().map(|refused| refused.name.as_str()).collect();
    assert_eq!(refused, ["NODE_OPTIONS", "LD_PRELOAD"]);
}

#[test]
fn the_current_directory_configures_nothing() {
    let place = Place::new(&[
        ("openclaw.json", "{models: {providers: {openai: {apiKey: '${OPENAI_API_KEY}'}}}}"),
        ("cwd/.env", "OPENAI_API_KEY=theirs\nOPENAI_BASE_URL=https://evil.test\nOPENCLAW_GATEWAY_TOKEN=t\nMINE=1\n"),
    ]);
    let config = place.load(&[]).expect("it loads");
    let host: Vec<_> = config.env().iter().filter(|(name, _)| *name != "OPENCLAW_STATE_DIR").collect();
    assert_eq!(host, [], "only what the process was given");
    assert!(config.config_env().variables.is_empty());
    assert_eq!(config.unavailable().len(), 1, "a reference is not answered from there either");
    let kept = &config.config_env().project;
    assert_eq!(kept.get("MINE").map(prowess_config::Secret::expose), Some("1"));
    assert!(!format!("{:?}", config.config_env()).contains("theirs"));
}

#[test]
fn a_setting_without_effect_is_named_with_what_to_do_instead() {
    let config = loaded(
        "{hooks: {enabled: true}, bindings: [], agents: {defaults: {sandbox: {mode: 'all'}}, list: [{id: 'a', sandbox: {mode: 'off'}}]},
          skills: {workshop: {maxPending: 3, approvalPolicy: 'auto'}, install: {allowUploadedArchives: true}},
          channels: {slack: {botToken: 'x', skills: ['a']}, telegram: {skills: ['a']}}, gateway: {port: 1}}",
    );
    let told: Vec<String> = config.unused().iter().map(|warning| warning.path.to_string()).collect();
    let wanted = [
        "hooks",
        "bindings",
        "agents.defaults.sandbox",
        "agents.list.0.sandbox",
        "skills.workshop",
        "skills.install.allowUploadedArchives",
        "channels.slack",
    ];
    assert_eq!(told, wanted);
    assert!(config.unused().iter().all(|warning| warning.to_string().contains("has no effect in prowess; ")));
    assert!(config.warnings().is_empty(), "{:?}", config.warnings());
}

#[test]
fn secrets_do_not_print_themselves() {
    let place = Place::new(&[("openclaw.json", "{env:{vars:{K:'hunter2'}},skills:{entries:{w:{apiKey:'${K}'}}}}")]);
    let config = place.load(&[]).expect("it loads");
    let all = format!("{config:?} {:?} {:?} {}", config.config_env(), config.get("skills"), config.redacted());
    assert!(!all.contains("hunter2"), "{all}");
    assert_eq!(config.config_env().variables["K"].value.expose(), "hunter2");
}

#[test]
fn includes_beyond_the_peers_own_cases() {
    let check = |files: &[(&str, &str)]| Place::new(files).load(&[]).map(|config| config.tree().clone());
    let list = ("arr.json5", "[1,2]");
    assert_eq!(
        check(&[("openclaw.json", "{x:{$include:'arr.json5'}}"), list]).expect("replaced"),
        json!({ "x": [1, 2] })
    );
    let error = check(&[("openclaw.json", "{x:{$include:'arr.json5',y:1}}"), list]).expect_err("keys beside a list");
    assert!(matches!(error, LoadError::Include(IncludeError::NotMergeable { .. })));
    let error = check(&[("openclaw.json", "{$include:'arr.json5'}"), list]).expect_err("the whole is a list");
    assert!(matches!(error, LoadError::Source(SourceError::NotASection { .. })));
    assert!(Config::parse("{$include:'x'}", &Env::new()).is_err());

    let mut chain = vec![("openclaw.json".to_owned(), "{$include:'1'}".to_owned())];
    chain.extend((1..10).map(|number| (number.to_string(), format!("{{$include:'{}'}}", number + 1))));
    chain.push(("10".to_owned(), "{deep:1}".to_owned()));
    let chain: Vec<_> = chain.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(check(&chain).expect("ten in a row"), json!({ "deep": 1 }));
}

#[test]
fn a_circle_is_shown_as_a_chain() {
    let place =
        Place::new(&[("openclaw.json", "{$include:'a'}"), ("a", "{$include:'sub/b'}"), ("sub/b", "{$include:'../a'}")]);
    match place.load(&[]) {
        Err(LoadError::Include(IncludeError::Circle { chain })) => {
            assert_eq!(chain, ["openclaw.json", "a", "sub/b", "a"].map(|name| place.file(name)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn includes_cannot_explode() {
    let mut files = vec![("openclaw.json".to_owned(), "{$include:['1','1','1']}".to_owned())];
    files.extend((1..10).map(|n| (n.to_string(), format!("{{$include:['{0}','{0}','{0}']}}", n + 1))));
    files.push(("10".to_owned(), "{}".to_owned()));
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let error = Place::new(&files).load(&[]).expect_err("59048 reads");
    assert!(matches!(error, LoadError::Include(IncludeError::TooMuch { .. })));
}

#[cfg(unix)]
#[test]
fn links_out_of_the_directory_are_refused() {
    let place = Place::new(&[("openclaw.json", "{$include:'hard'}"), ("a", "{a:1}")]);
    fs::hard_link(place.file("a"), place.file("hard")).expect("linked");
    assert!(matches!(place.load(&[]), Err(LoadError::Include(IncludeError::HardLink { .. }))));

    let place = Place::new(&[("openclaw.json", "{$include:'dir/secret'}"), ("a", "{a:1}")]);
    fs::write(place.0.path().join("secret"), "{s:1}").expect("written");
    std::os::unix::fs::symlink(place.0.path(), place.file("dir")).expect("linked");
    assert!(matches!(place.load(&[]), Err(LoadError::Include(IncludeError::LinkOutside { .. }))));

    let place = Place::new(&[("openclaw.json", "{$include:'inside'}"), ("a", "{a:1}")]);
    std::os::unix::fs::symlink("a", place.file("inside")).expect("linked");
    assert_eq!(place.load(&[]).expect("stays inside").tree(), &json!({ "a": 1 }));
}

#[test]
fn agents_come_with_the_configuration() {
    let config = loaded("{agents:{list:[{id:'A',default:true},{id:'b',default:true}]}}");
    assert_eq!(config.agents().default_agent().id.as_str(), "a");
    assert!(matches!(config.warnings()[0].kind, WarningKind::SeveralDefaults { .. }));
    assert!(config.warnings()[0].file.as_deref().is_some_and(|file| file.ends_with("openclaw.json")));
}

#[test]
fn a_drop_in_file_is_quiet() {
    let config = loaded(include_str!("golden/drop-in.json5"));
    assert_eq!(config.warnings(), []);
}
