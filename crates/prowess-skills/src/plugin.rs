//! Plugins: which of their folders hold skills?
//!
//! A plugin is a folder with an `openclaw.plugin.json`. Its manifest may name folders of skills inside the plugin;
//! whether they count is decided by the `plugins` section of the configuration. No plugin code is run.

use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::json;
use crate::problem::{Problem, ProblemKind};
use crate::text::trim;

/// The name of a plugin's manifest.
pub const MANIFEST: &str = "openclaw.plugin.json";
/// Bytes a manifest may have.
const MAX_MANIFEST: u64 = 256 * 1024;
/// Plugin folders looked at in one place.
const MAX_PLUGINS: usize = 1_000;
/// Bundled plugins that are on without being switched on.
const ON_BY_DEFAULT: [&str; 3] = ["device-pair", "phone-control", "talk-voice"];
/// The plugin that has the memory slot when nobody says otherwise.
const DEFAULT_MEMORY: &str = "memory-core";

/// Where plugins are.
#[derive(Debug, Clone, Default)]
pub struct PluginPlaces {
    /// Folders from `plugins.load.paths`, already made absolute.
    pub configured: Vec<PathBuf>,
    /// The agent's workspace.
    pub workspace: Option<PathBuf>,
    /// The plugins shipped with the program.
    pub bundled: Option<PathBuf>,
    /// The state directory.
    pub state: Option<PathBuf>,
}

/// Skill folders of the plugins that are enabled by `config`, the whole configuration, in the order they rank.
#[must_use]
pub fn plugin_dirs(places: &PluginPlaces, config: &Value) -> (Vec<(String, PathBuf)>, Vec<Problem>) {
    let mut problems = Vec::new();
    // Without a workspace there are no plugin skills.
    let Some(workspace) = &places.workspace else { return (Vec::new(), problems) };
    let rules = Rules::read(config);
    let mut memory = None;
    let mut dirs: Vec<(String, PathBuf)> = Vec::new();
    let mut seen: Vec<(String, PathBuf)> = Vec::new();

    let plugins = places.configured.iter().flat_map(|path| plugin_folders(path, Home::Configured));
    let plugins = plugins
        .chain(below(Some(&workspace.join(".openclaw/extensions")), Home::Workspace))
        .chain(below(places.bundled.as_ref(), Home::Bundled))
        .chain(below(places.state.as_ref().map(|state| state.join("extensions")).as_ref(), Home::Global));
    for (folder, home) in plugins.collect::<Vec<_>>() {
        let manifest = match read_manifest(&folder) {
            Ok(manifest) => manifest,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        if seen.iter().any(|(id, path)| *id == manifest.id && *path == real) {
            continue;
        }
        seen.push((manifest.id.clone(), real));
        if manifest.skills.is_empty() || !rules.enables(&manifest, home) || !rules.gives_slot(&manifest, &mut memory) {
            continue;
        }
        for path in &manifest.skills {
            match skill_dir(&folder, path) {
                Ok(dir) if dirs.iter().any(|(_, known)| *known == dir) => {}
                Ok(dir) => dirs.push((manifest.id.clone(), dir)),
                Err(reason) => problems.push(Problem::new(
                    ProblemKind::Plugin,
                    &folder.join(MANIFEST),
                    format!("the skill folder `{path}` {reason}"),
                    "correct `skills` in the manifest",
                )),
            }
        }
    }
    (dirs, problems)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    Configured,
    Workspace,
    Bundled,
    Global,
}

struct Manifest {
    id: String,
    is_memory: bool,
    skills: Vec<String>,
}

/// A configured path is a plugin, or a folder of plugins.
fn plugin_folders(path: &Path, home: Home) -> Vec<(PathBuf, Home)> {
    if path.join(MANIFEST).is_file() { vec![(path.to_owned(), home)] } else { below(Some(&path.to_owned()), home) }
}

fn below(dir: Option<&PathBuf>, home: Home) -> Vec<(PathBuf, Home)> {
    let entries = dir.and_then(|dir| dir.read_dir().ok());
    let mut folders: Vec<PathBuf> = entries
        .into_iter()
        .flatten()
        .flatten()
        .take(MAX_PLUGINS)
        .filter(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
        .map(|entry| entry.path())
        .filter(|path| path.join(MANIFEST).is_file())
        .collect();
    folders.sort();
    folders.into_iter().map(|folder| (folder, home)).collect()
}

fn read_manifest(folder: &Path) -> Result<Manifest, Problem> {
    let path = folder.join(MANIFEST);
    let problem = |reason: String| Problem::new(ProblemKind::Plugin, &path, reason, "fix or remove the plugin");
    let size = path.metadata().map_err(|error| problem(format!("cannot be read: {error}")))?.len();
    if size > MAX_MANIFEST {
        return Err(problem(format!("has {size} bytes, more than {MAX_MANIFEST}")));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| problem(format!("cannot be read: {error}")))?;
    let manifest = json::parse(&text).map_err(|error| problem(format!("is not JSON: {error}")))?;
    let id = manifest["id"].as_str().map(trim).filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| problem("has no `id`".to_owned()))?.to_owned();
    if !manifest["configSchema"].is_object() {
        return Err(problem("has no `configSchema`".to_owned()));
    }
    let skills = manifest["skills"].as_array().map(Vec::as_slice).unwrap_or_default();
    let skills = skills.iter().filter_map(Value::as_str).map(trim).filter(|path| !path.is_empty());
    Ok(Manifest { id, is_memory: manifest["kind"] == "memory", skills: skills.map(str::to_owned).collect() })
}

/// A folder inside the plugin, both as written and with links resolved.
fn skill_dir(folder: &Path, path: &str) -> Result<PathBuf, &'static str> {
    let mut dir = folder.to_owned();
    for part in Path::new(path).components() {
        match part {
            Component::Normal(name) => dir.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                dir.pop();
            }
            Component::RootDir | Component::Prefix(_) => return Err("is not relative to the plugin"),
        }
    }
    if !dir.starts_with(folder) {
        return Err("leads out of the plugin");
    }
    let real = dir.canonicalize().map_err(|_| "does not exist")?;
    let inside = folder.canonicalize().is_ok_and(|folder| real.starts_with(folder));
    if inside { Ok(dir) } else { Err("is a symlink that leads out of the plugin") }
}

/// The `plugins` section.
struct Rules<'a> {
    config: &'a Value,
    enabled: bool,
    allow: Vec<&'a str>,
    deny: Vec<&'a str>,
    memory: Option<&'a str>,
}

impl<'a> Rules<'a> {
    fn read(config: &'a Value) -> Self {
        let section = &config["plugins"];
        let names = |value: &'a Value| -> Vec<&'a str> {
            let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
            items.iter().filter_map(Value::as_str).map(trim).filter(|name| !name.is_empty()).collect()
        };
        let memory = match section["slots"]["memory"].as_str().map(trim) {
            Some(slot) if slot.eq_ignore_ascii_case("none") => None,
            Some(slot) if !slot.is_empty() => Some(slot),
            _ => Some(DEFAULT_MEMORY),
        };
        Self {
            config,
            enabled: section["enabled"] != Value::Bool(false),
            allow: names(&section["allow"]),
            deny: names(&section["deny"]),
            memory,
        }
    }

    fn enables(&self, plugin: &Manifest, home: Home) -> bool {
        let id = plugin.id.as_str();
        if !self.enabled || self.deny.contains(&id) || (!self.allow.is_empty() && !self.allow.contains(&id)) {
            return false;
        }
        if id == "acpx" && self.config["acp"]["enabled"] == Value::Bool(false) {
            return false;
        }
        if self.memory == Some(id) {
            return true;
        }
        match self.config["plugins"]["entries"][id]["enabled"] {
            Value::Bool(enabled) => enabled,
            _ if home != Home::Bundled => true,
            _ => ON_BY_DEFAULT.contains(&id) || self.config["channels"][id]["enabled"] == Value::Bool(true),
        }
    }

    /// Of the memory plugins only the one in the slot counts.
    fn gives_slot(&self, plugin: &Manifest, taken: &mut Option<String>) -> bool {
        if !plugin.is_memory {
            return true;
        }
        let fits = self.memory == Some(plugin.id.as_str()) && taken.as_ref().is_none_or(|id| *id == plugin.id);
        if fits {
            *taken = Some(plugin.id.clone());
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use prowess_testkit::Tree;
    use serde_json::json;

    use super::*;

    fn plugin(tree: Tree, dir: &str, manifest: &Value) -> Tree {
        tree.dir(&format!("{dir}/skills")).file(&format!("{dir}/{MANIFEST}"), manifest.to_string())
    }

    fn manifest(id: &str) -> Value {
        json!({"id": id, "configSchema": {}, "skills": ["skills"]})
    }

    fn places(tree: &Tree) -> PluginPlaces {
        PluginPlaces {
            configured: vec![tree.path("one"), tree.path("many")],
            workspace: Some(tree.path("ws")),
            bundled: Some(tree.path("bundled")),
            state: Some(tree.path("state")),
        }
    }

    /// The ids whose skills count, in order, and how many problems there are.
    fn ids(tree: &Tree, config: &Value) -> (Vec<String>, usize) {
        let (dirs, problems) = plugin_dirs(&places(tree), config);
        (dirs.into_iter().map(|(id, _)| id).collect(), problems.len())
    }

    fn everywhere() -> Tree {
        let tree = plugin(Tree::new(), "one", &manifest("one"));
        let tree = plugin(tree, "many/b", &manifest("b"));
        let tree = plugin(tree, "many/a", &manifest("a"));
        let tree = plugin(tree, "many/.hidden", &manifest("hidden"));
        let tree = plugin(tree, "ws/.openclaw/extensions/w", &manifest("w"));
        let tree = plugin(tree, "bundled/talk-voice", &manifest("talk-voice"));
        let tree = plugin(tree, "bundled/off", &manifest("off"));
        plugin(tree, "state/extensions/g", &manifest("g"))
    }

    #[test]
    fn plugins_come_from_four_places_in_order() {
        assert_eq!(
            ids(&everywhere(), &json!({})),
            (["one", "a", "b", "w", "talk-voice", "g"].map(str::to_owned).into(), 0)
        );
    }

    #[test]
    fn without_a_workspace_there_are_none() {
        let tree = everywhere();
        let (dirs, _) = plugin_dirs(&PluginPlaces { workspace: None, ..places(&tree) }, &json!({}));
        assert!(dirs.is_empty());
    }

    #[test]
    fn the_configuration_decides_which_count() {
        let tree = everywhere();
        let with = |plugins: Value| ids(&tree, &json!({ "plugins": plugins })).0.join(" ");
        assert_eq!(with(json!({"enabled": false})), "");
        assert_eq!(with(json!({"deny": ["a", " b "]})), "one w talk-voice g");
        assert_eq!(with(json!({"allow": ["g", "off"]})), "g");
        assert_eq!(with(json!({"allow": []})), "one a b w talk-voice g");
        assert_eq!(with(json!({"deny": ["g"], "allow": ["g"]})), "");
        assert_eq!(
            with(json!({"entries": {"one": {"enabled": false}, "off": {"enabled": true}}})),
            "a b w off talk-voice g"
        );
        assert_eq!(with(json!({"entries": {"talk-voice": {"enabled": false}}})), "one a b w g");
        let channel = json!({"channels": {"off": {"enabled": true}}});
        assert_eq!(ids(&tree, &channel).0.join(" "), "one a b w off talk-voice g");
    }

    #[test]
    fn only_the_plugin_in_the_memory_slot_counts() {
        let memory = |id: &str| json!({"id": id, "configSchema": {}, "skills": ["skills"], "kind": "memory"});
        let tree = plugin(Tree::new(), "many/memory-core", &memory("memory-core"));
        let tree = plugin(tree, "many/other", &memory("other"));
        let tree = plugin(tree, "many/plain", &manifest("plain"));
        let with = |slot: Value| ids(&tree, &json!({"plugins": {"slots": {"memory": slot}}})).0.join(" ");
        assert_eq!(with(Value::Null), "memory-core plain");
        assert_eq!(with(json!("other")), "other plain");
        assert_eq!(with(json!("none")), "plain");
        assert_eq!(with(json!("absent")), "plain");
    }

    #[test]
    fn acpx_follows_its_own_switch() {
        let tree = plugin(Tree::new(), "many/acpx", &manifest("acpx"));
        assert_eq!(ids(&tree, &json!({})).0, ["acpx"]);
        assert!(ids(&tree, &json!({"acp": {"enabled": false}})).0.is_empty());
    }

    #[test]
    fn a_folder_must_exist_inside_the_plugin() {
        let skills =
            json!(["skills", "./skills/", "more", "../secret", "/etc", "missing", "link", 7, " ", "a/../skills"]);
        let tree = Tree::new().dir("many/p/more").dir("many/secret").symlink("many/p/link", "../secret");
        let tree = plugin(tree, "many/p", &json!({"id": "p", "configSchema": {}, "skills": skills}));
        let (dirs, problems) = plugin_dirs(&places(&tree), &json!({}));
        let dirs: Vec<PathBuf> = dirs.into_iter().map(|(_, dir)| dir).collect();
        assert_eq!(dirs, [tree.path("many/p/skills"), tree.path("many/p/more")]);
        let named: Vec<bool> = ["../secret", "/etc", "missing", "link"]
            .iter()
            .zip(&problems)
            .map(|(path, problem)| problem.kind == ProblemKind::Plugin && problem.reason.contains(path))
            .collect();
        assert_eq!(named, [true; 4], "{problems:?}");
    }

    #[test]
    fn a_plugin_reached_twice_counts_once() {
        let tree = plugin(Tree::new(), "one", &manifest("p")).symlink("many/alias", "../one");
        assert_eq!(ids(&tree, &json!({})), (vec!["p".to_owned()], 0));
    }

    #[test]
    fn a_manifest_that_cannot_be_used_is_reported() {
        for text in [
            "{",
            "[]",
            "{}",
            r#"{"id": " ", "configSchema": {}}"#,
            r#"{"id": "p"}"#,
            r#"{"id": "p", "configSchema": 1}"#,
        ] {
            let tree = Tree::new().file(&format!("one/{MANIFEST}"), text);
            assert_eq!(ids(&tree, &json!({})), (vec![], 1), "{text}");
        }
        let big = Tree::new().file(&format!("one/{MANIFEST}"), format!("{}{}", manifest("p"), " ".repeat(300_000)));
        assert_eq!(ids(&big, &json!({})), (vec![], 1));
    }
}
