//! Leftovers: what lies where another version, or a reader of another guide, would have put it?
//!
//! Skills in folders that were never read, and settings in files that are not read, are easy to wonder about for hours.

use std::path::{Path, PathBuf};

use prowess_config::Locations;
use prowess_skills::{Problem, ProblemKind, SkillsConfig};

use crate::fix::quoted;

/// Folders below a state directory that skills were once put into.
const OLD_SKILL_DIRS: [&str; 2] = ["managed-skills", "skills"];
/// State directories, the one in use among them.
const STATE_DIRS: [&str; 4] = [".openclaw", ".clawdbot", ".moldbot", ".moltbot"];
/// Settings in a form that is not read.
const YAML_FILES: [&str; 4] = ["openclaw.yml", "openclaw.yaml", "clawdbot.yml", "clawdbot.yaml"];
/// Settings under older names.
const OLD_FILES: [&str; 4] = ["openclaw.json", "clawdbot.json", "moldbot.json", "moltbot.json"];
/// Entries of a folder that are looked at to see whether it has skills.
const LOOKED_AT: usize = 256;

/// What is passed over, each with the command that brings it back.
pub(crate) fn find(locations: &Locations, settings: &SkillsConfig) -> Vec<Problem> {
    let mut dirs: Vec<PathBuf> = STATE_DIRS.iter().map(|name| locations.home.join(name)).collect();
    if !dirs.contains(&locations.state_dir) {
        // Another profile, or a folder that was named: what is beside it is somebody else's.
        dirs = vec![locations.state_dir.clone()];
    }
    let skills = dirs.iter().flat_map(|dir| OLD_SKILL_DIRS.iter().map(|name| dir.join(name)));
    let used = |dir: &Path| {
        *dir == locations.managed_skills_dir || settings.extra_dirs.iter().any(|extra| locations.expand(extra) == *dir)
    };
    let skills = skills.filter(|dir| !used(dir) && has_skills(dir)).map(|dir| unread_skills(&dir, settings));
    let yaml = dirs.iter().flat_map(|dir| YAML_FILES.iter().map(|name| dir.join(name))).filter(|file| file.is_file());
    let old = dirs.iter().flat_map(|dir| OLD_FILES.iter().map(|name| dir.join(name)));
    let old = old.filter(|file| *file != locations.config_path && file.is_file());
    let files = yaml.map(|file| unread_yaml(&file, locations)).chain(old.map(|file| unread_file(&file, locations)));
    skills.chain(files).collect()
}

fn has_skills(dir: &Path) -> bool {
    let entries = dir.read_dir().into_iter().flatten().flatten().take(LOOKED_AT);
    entries.map(|entry| entry.path().join("SKILL.md")).any(|file| file.is_file())
}

fn unread_skills(dir: &Path, settings: &SkillsConfig) -> Problem {
    let dirs: Vec<String> = settings.extra_dirs.iter().cloned().chain([dir.display().to_string()]).collect();
    let command = format!("prowess config set skills.load.extraDirs {}", quoted(&serde_json::json!(dirs).to_string()));
    Problem::new(ProblemKind::Setting, dir, "the skills in this folder are not loaded", format!("run: {command}"))
}

fn unread_yaml(file: &Path, locations: &Locations) -> Problem {
    let fix = if locations.config_path.is_file() {
        format!("move its settings to {} and remove it", locations.config_path.display())
    } else {
        let (from, to) = (file.to_string_lossy(), locations.config_path.to_string_lossy());
        format!("run: yq -o=json {} > {}", quoted(&from), quoted(&to))
    };
    Problem::new(ProblemKind::Setting, file, "this file is not read: settings are JSON5, in openclaw.json", fix)
}

fn unread_file(file: &Path, locations: &Locations) -> Problem {
    let reason = format!("this file is not read: {} is", locations.config_path.display());
    let fix = format!("remove it, or use it with: prowess --config {}", quoted(&file.to_string_lossy()));
    Problem::new(ProblemKind::Setting, file, reason, fix)
}
