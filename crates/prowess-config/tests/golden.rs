//! What the peer makes of these inputs, we make of them too, or we say why not.

use std::fs;
use std::path::Path;

use prowess_config::{Config, Env, IncludeError, LoadError, LocationFlags, Locations, WarningKind};
use serde_json::{Value, json};
use tempfile::TempDir;

fn golden(text: &str) -> Value {
    serde_json::from_str(text).expect("a golden file is JSON")
}

fn cases<'a>(golden: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    golden[name].as_array().expect(name).iter()
}

fn env_of(value: &Value) -> Env {
    value.as_object().expect("a map").iter().map(|(name, value)| (name, value.as_str().expect("text"))).collect()
}

/// One deviation: where the peer gives up on a missing variable, we go on without the value.
#[test]
fn substitutions() {
    let golden = golden(include_str!("golden/config-format.json"));
    let env = env_of(&golden["env"]);
    for case in cases(&golden, "substitutions") {
        let config = Config::parse(&json!({ "k": case["input"] }).to_string(), &env).expect("it parses");
        assert_eq!(config.tree().get("k"), case.get("output"), "{case}");
        let missing: Vec<_> = config.unavailable().iter().map(|gone| gone.variable.as_str()).collect();
        assert_eq!(missing.first().copied(), case["missing"].as_str(), "{case}");
        let warned = config.warnings().iter().any(|warning| matches!(warning.kind, WarningKind::Unavailable { .. }));
        assert_eq!(warned, case.get("missing").is_some(), "{case}");
    }
}

#[test]
fn includes() {
    let golden = golden(include_str!("golden/config-format.json"));
    for case in cases(&golden, "includes") {
        let home = tree_of_includes(&golden["files"]);
        let dir = home.path().join("config");
        let input = case["input"].as_str().expect("text");
        fs::write(dir.join("openclaw.json"), input).expect("written");
        match (load(&dir), case["fails"].as_str()) {
            (Ok(config), None) => assert_eq!(config.tree(), &case["output"], "{input}"),
            (Err(LoadError::Include(error)), Some(kind)) => assert_eq!(kind_of(&error), kind, "{input}: {error}"),
            (other, _) => panic!("{input}: {other:?}"),
        }
    }
}

/// The golden's own files, a link that leads out, and two chains: one too long by two, one just short.
fn tree_of_includes(files: &Value) -> TempDir {
    let home = TempDir::new().expect("a directory");
    let dir = home.path().join("config");
    let outside = home.path().join("cfgt-out");
    fs::create_dir_all(dir.join("sub")).expect("made");
    fs::create_dir_all(&outside).expect("made");
    fs::write(outside.join("o.json5"), "{o:1}").expect("written");
    #[cfg(unix)]
    std::os::unix::fs::symlink(outside.join("o.json5"), dir.join("link.json5")).expect("linked");
    for (name, text) in files.as_object().expect("a map") {
        fs::write(dir.join(name), text.as_str().expect("text")).expect("written");
    }
    for (letter, last) in [("d", 11), ("e", 8)] {
        for number in 0..=last {
            let next = format!("{{$include:\"./{letter}{}.json5\"}}", number + 1);
            let text = if number == last { "{deep:1}".to_owned() } else { next };
            fs::write(dir.join(format!("{letter}{number}.json5")), text).expect("written");
        }
    }
    home
}

fn load(dir: &Path) -> Result<Config, LoadError> {
    let dir_text = dir.to_str().expect("Unicode");
    let env = Env::from_iter([("HOME", dir_text), ("OPENCLAW_STATE_DIR", dir_text)]);
    let locations = Locations::probe(&env, dir, &LocationFlags::default()).expect("no flags");
    Config::load(&locations, &env)
}

fn kind_of(error: &IncludeError) -> &'static str {
    match error {
        IncludeError::NotAPath { .. } => "NotAPath",
        IncludeError::Outside { .. } => "Outside",
        IncludeError::LinkOutside { .. } => "LinkOutside",
        IncludeError::HardLink { .. } => "HardLink",
        IncludeError::Unreadable { .. } => "Unreadable",
        IncludeError::Unparseable { .. } => "Unparseable",
        IncludeError::Circle { .. } => "Circle",
        IncludeError::TooDeep { .. } => "TooDeep",
        IncludeError::TooMuch { .. } => "TooMuch",
        IncludeError::NotMergeable { .. } => "NotMergeable",
        IncludeError::NoDirectory { .. } => "NoDirectory",
    }
}

#[test]
fn workspaces() {
    let golden = golden(include_str!("golden/workspace-dir.json"));
    for case in cases(&golden, "cases") {
        let env = env_of(&case["env"]);
        let cwd = Path::new(case["cwd"].as_str().expect("text"));
        let locations = Locations::resolve(&env, cwd, &LocationFlags::default(), |_| false).expect("no flags");
        let agents = Config::parse(&case["config"].to_string(), &env).expect("it parses").agents();
        let agent = case["agent"].as_str().map_or(agents.default_agent(), |id| agents.get(id).expect(id));
        let workspace = agents.workspace(agent, &locations);
        assert_eq!(workspace, Path::new(case["workspace"].as_str().expect("text")), "{}", case["id"]);
    }
}
