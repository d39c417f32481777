//! Where are the configuration, the state and the skills?
//!
//! OpenClaw's own names and its older ones live here. Resolving is a pure function over an [`Env`], a directory, flags
//! and the question "does this exist?", so a test needs no disk; [`Locations::probe`] asks the real one.

use std::path::{Component, Path, PathBuf};

use thiserror::Error;

use crate::Env;
use crate::tree::trim;

/// The state directory and its older names, newest first.
const STATE_DIRS: [&str; 4] = [".openclaw", ".clawdbot", ".moldbot", ".moltbot"];

/// The configuration file and its older names, newest first.
const CONFIG_FILES: [&str; 4] = ["openclaw.json", "clawdbot.json", "moldbot.json", "moltbot.json"];

const STATE_DIR_VARIABLES: [&str; 2] = ["OPENCLAW_STATE_DIR", "CLAWDBOT_STATE_DIR"];
const CONFIG_PATH_VARIABLES: [&str; 2] = ["OPENCLAW_CONFIG_PATH", "CLAWDBOT_CONFIG_PATH"];
const PROFILE_VARIABLE: &str = "OPENCLAW_PROFILE";

const MAX_PROFILE_CHARS: usize = 64;

/// The command-line flags that move things.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocationFlags {
    /// `--profile NAME`: a separate set of state, configuration and workspace.
    pub profile: Option<String>,
    /// `--dev`: the profile named `dev`.
    pub dev: bool,
    /// `--config PATH`: this configuration file and no other.
    pub config: Option<PathBuf>,
}

/// Where everything is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locations {
    /// The home that OpenClaw's own directories are in; `OPENCLAW_HOME` moves it.
    pub home: PathBuf,
    /// The user's home; personal skills are there.
    pub os_home: PathBuf,
    /// The directory relative paths start from.
    pub cwd: PathBuf,
    /// Sessions, approvals and the like.
    pub state_dir: PathBuf,
    /// The configuration file, whether it exists or not.
    pub config_path: PathBuf,
    /// Skills that were installed.
    pub managed_skills_dir: PathBuf,
    /// Skills the user shares between agents of all makes.
    pub personal_skills_dir: PathBuf,
    /// The workspace of the default agent when the configuration names none.
    pub default_workspace: PathBuf,
    /// The profile, unless it is the default one.
    pub profile: Option<String>,
}

/// Why the flags make no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LocationError {
    /// Both name a profile.
    #[error("--dev and --profile {profile} name two profiles; give one of them")]
    TwoProfiles {
        /// The other profile.
        profile: String,
    },
    /// A profile is part of a directory name.
    #[error(
        "the profile {profile:?} from {from} is not a name; use 1 to {MAX_PROFILE_CHARS} letters, digits, `_` and `-`"
    )]
    BadProfile {
        /// The profile as given.
        profile: String,
        /// The flag or variable it came from.
        from: &'static str,
    },
}

impl Locations {
    /// Finds everything, looking at the disk to see which of the older names are in use.
    pub fn probe(env: &Env, cwd: &Path, flags: &LocationFlags) -> Result<Self, LocationError> {
        Self::resolve(env, cwd, flags, Path::exists)
    }

    /// Like [`Locations::probe`], with `exists` in place of the disk.
    pub fn resolve(
        env: &Env,
        cwd: &Path,
        flags: &LocationFlags,
        exists: impl Fn(&Path) -> bool,
    ) -> Result<Self, LocationError> {
        let cwd = normalise(cwd);
        let os_home = ["HOME", "USERPROFILE"].iter().find_map(|name| env.text(name));
        let os_home = os_home.map_or_else(|| cwd.clone(), |home| normalise(&cwd.join(home)));
        let home = env.text("OPENCLAW_HOME").map_or_else(|| os_home.clone(), |home| expand_user(home, &os_home, &cwd));

        let mut env = env.clone();
        let profile = profile_of(&env, flags)?;
        if flags.dev || flags.profile.is_some() {
            apply_profile(&mut env, profile.as_deref(), &home, &cwd);
        }
        let expand = |text: &str| expand_user(text, &home, &cwd);
        let override_dir = STATE_DIR_VARIABLES.iter().find_map(|name| env.text(name)).map(expand);
        // A path that is not Unicode cannot start with `~`.
        let flag = flags.config.as_deref();
        let explicit = flag.map(|path| path.to_str().map_or_else(|| normalise(&cwd.join(path)), expand));
        let explicit = explicit.or_else(|| CONFIG_PATH_VARIABLES.iter().find_map(|name| env.text(name)).map(expand));

        let usual_dir = home.join(STATE_DIRS[0]);
        let state_dir = override_dir.clone().unwrap_or_else(|| {
            let dirs = STATE_DIRS.iter().map(|name| home.join(name));
            dirs.into_iter().find(|dir| exists(dir)).unwrap_or_else(|| usual_dir.clone())
        });
        let config_path = explicit.unwrap_or_else(|| {
            let dirs = override_dir.iter().cloned().chain(STATE_DIRS.iter().map(|name| home.join(name)));
            let mut files = dirs.flat_map(|dir| CONFIG_FILES.map(|name| dir.join(name)));
            files.find(|file| exists(file)).unwrap_or_else(|| state_dir.join(CONFIG_FILES[0]))
        });
        // Managed skills never follow an older directory name, and the workspace never follows a moved state
        // directory: both as in the version we match, so that a user finds the same files.
        let managed_skills_dir = override_dir.unwrap_or_else(|| usual_dir.clone()).join("skills");
        let workspace_name =
            profile.as_ref().map_or_else(|| "workspace".to_owned(), |name| format!("workspace-{name}"));
        Ok(Self {
            default_workspace: usual_dir.join(workspace_name),
            personal_skills_dir: os_home.join(".agents").join("skills"),
            home,
            os_home,
            cwd,
            state_dir,
            config_path,
            managed_skills_dir,
            profile,
        })
    }

    /// A path as a user writes it: `~` is the home, and relative paths start from the current directory.
    #[must_use]
    pub fn expand(&self, path: &str) -> PathBuf {
        expand_user(path, &self.home, &self.cwd)
    }
}

/// The profile in use; `None` for the default one.
fn profile_of(env: &Env, flags: &LocationFlags) -> Result<Option<String>, LocationError> {
    let bad = |profile: &str, from| Err(LocationError::BadProfile { profile: profile.to_owned(), from });
    let name = match (&flags.profile, flags.dev) {
        (Some(profile), true) => return Err(LocationError::TwoProfiles { profile: profile.clone() }),
        (Some(profile), false) if !is_profile_name(profile) => return bad(profile, "--profile"),
        (Some(profile), false) => profile.as_str(),
        (None, true) => "dev",
        (None, false) => match env.text(PROFILE_VARIABLE) {
            // The peer takes any text here; a path separator would point the workspace somewhere else.
            Some(profile) if profile.contains(['/', '\\', '\0']) => return bad(profile, PROFILE_VARIABLE),
            Some(profile) => profile,
            None => return Ok(None),
        },
    };
    Ok(Some(name).filter(|name| !name.eq_ignore_ascii_case("default")).map(str::to_owned))
}

fn is_profile_name(name: &str) -> bool {
    (1..=MAX_PROFILE_CHARS).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// A profile flag stands for two variables, unless they are set already.
fn apply_profile(env: &mut Env, profile: Option<&str>, home: &Path, cwd: &Path) {
    let [state_variable, _] = STATE_DIR_VARIABLES;
    let [config_variable, _] = CONFIG_PATH_VARIABLES;
    let suffix = profile.map(|name| format!("-{name}")).unwrap_or_default();
    let state_dir = match env.text(state_variable) {
        Some(dir) => expand_user(dir, home, cwd),
        None => home.join(format!("{}{suffix}", STATE_DIRS[0])),
    };
    env.insert(state_variable, state_dir.to_string_lossy());
    if env.text(config_variable).is_none() {
        env.insert(config_variable, state_dir.join(CONFIG_FILES[0]).to_string_lossy());
    }
}

/// A path as a user writes it: `~`, `~/…` and `~\…` start from `home`, other relative paths from `cwd`.
///
/// Purely by the text: `..` takes back a name even if that name is a link.
#[must_use]
pub fn expand_user(path: &str, home: &Path, cwd: &Path) -> PathBuf {
    let path = trim(path);
    let expanded = match path.strip_prefix('~') {
        Some("") => home.to_owned(),
        Some(rest) if rest.starts_with(['/', '\\']) => home.join(rest.trim_start_matches(['/', '\\'])),
        _ => PathBuf::from(path),
    };
    normalise(&cwd.join(expanded))
}

/// Removes `.` and resolves `..` by the text alone.
pub(crate) fn normalise(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => match out.components().next_back() {
                Some(Component::Normal(_)) => drop(out.pop()),
                Some(Component::RootDir | Component::Prefix(_)) => {}
                _ => out.push(".."),
            },
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{LocationError, LocationFlags, Locations, expand_user};
    use crate::Env;

    fn resolve(env: &[(&str, &str)], flags: &LocationFlags, existing: &[&str]) -> Locations {
        let env = env.iter().copied().collect::<Env>();
        let exists = |path: &Path| existing.iter().any(|known| Path::new(known) == path);
        Locations::resolve(&env, Path::new("/cwd"), flags, exists).expect("flags are fine")
    }

    /// The state directory, the configuration file and the managed skills.
    fn check(env: &[(&str, &str)], existing: &[&str]) -> [String; 3] {
        let found = resolve(env, &LocationFlags::default(), existing);
        [found.state_dir, found.config_path, found.managed_skills_dir].map(|path| path.display().to_string())
    }

    #[test]
    fn variables_and_older_names() {
        let home = ("HOME", "/h");
        for (env, existing, expected) in [
            (vec![home], vec![], ["/h/.openclaw", "/h/.openclaw/openclaw.json", "/h/.openclaw/skills"]),
            (vec![home], vec!["/h/.moldbot"], ["/h/.moldbot", "/h/.moldbot/openclaw.json", "/h/.openclaw/skills"]),
            (
                vec![home],
                vec!["/h/.clawdbot", "/h/.clawdbot/clawdbot.json", "/h/.moltbot"],
                ["/h/.clawdbot", "/h/.clawdbot/clawdbot.json", "/h/.openclaw/skills"],
            ),
            (
                vec![home],
                vec!["/h/.openclaw", "/h/.openclaw/moltbot.json", "/h/.clawdbot/clawdbot.json"],
                ["/h/.openclaw", "/h/.openclaw/moltbot.json", "/h/.openclaw/skills"],
            ),
            (vec![home, ("OPENCLAW_STATE_DIR", "/st")], vec![], ["/st", "/st/openclaw.json", "/st/skills"]),
            (vec![home, ("CLAWDBOT_STATE_DIR", "~/st")], vec![], ["/h/st", "/h/st/openclaw.json", "/h/st/skills"]),
            (
                vec![home, ("OPENCLAW_STATE_DIR", " "), ("CLAWDBOT_STATE_DIR", "st")],
                vec!["/cwd/st/clawdbot.json"],
                ["/cwd/st", "/cwd/st/clawdbot.json", "/cwd/st/skills"],
            ),
            (
                vec![home, ("OPENCLAW_STATE_DIR", "/st")],
                vec!["/h/.openclaw/openclaw.json"],
                ["/st", "/h/.openclaw/openclaw.json", "/st/skills"],
            ),
            (
                vec![home, ("OPENCLAW_CONFIG_PATH", "~/c.json")],
                vec![],
                ["/h/.openclaw", "/h/c.json", "/h/.openclaw/skills"],
            ),
            (
                vec![home, ("CLAWDBOT_CONFIG_PATH", "c.json")],
                vec![],
                ["/h/.openclaw", "/cwd/c.json", "/h/.openclaw/skills"],
            ),
            (
                vec![home, ("OPENCLAW_HOME", "~/claw")],
                vec![],
                ["/h/claw/.openclaw", "/h/claw/.openclaw/openclaw.json", "/h/claw/.openclaw/skills"],
            ),
            (
                vec![("USERPROFILE", "/u")],
                vec![],
                ["/u/.openclaw", "/u/.openclaw/openclaw.json", "/u/.openclaw/skills"],
            ),
            (vec![], vec![], ["/cwd/.openclaw", "/cwd/.openclaw/openclaw.json", "/cwd/.openclaw/skills"]),
        ] {
            assert_eq!(check(&env, &existing), expected, "{env:?} {existing:?}");
        }
    }

    #[test]
    fn personal_skills_stay_in_the_users_home() {
        let found = resolve(&[("HOME", "/h"), ("OPENCLAW_HOME", "/o")], &LocationFlags::default(), &[]);
        assert_eq!(found.personal_skills_dir, Path::new("/h/.agents/skills"));
        assert_eq!((found.home, found.os_home), (PathBuf::from("/o"), PathBuf::from("/h")));
    }

    #[test]
    fn profiles_split_state_and_workspace() {
        let work = LocationFlags { profile: Some("work".to_owned()), ..LocationFlags::default() };
        let found = resolve(&[("HOME", "/h")], &work, &["/h/.openclaw/openclaw.json"]);
        assert_eq!(found.config_path, Path::new("/h/.openclaw-work/openclaw.json"));
        assert_eq!(found.managed_skills_dir, Path::new("/h/.openclaw-work/skills"));
        assert_eq!(found.default_workspace, Path::new("/h/.openclaw/workspace-work"));

        let dev = LocationFlags { dev: true, ..LocationFlags::default() };
        let found = resolve(&[("HOME", "/h"), ("OPENCLAW_STATE_DIR", "/st")], &dev, &[]);
        assert_eq!((found.state_dir, found.config_path), ("/st".into(), "/st/openclaw.json".into()));
        assert_eq!(found.profile.as_deref(), Some("dev"));

        let default = LocationFlags { profile: Some("Default".to_owned()), ..LocationFlags::default() };
        let found = resolve(&[("HOME", "/h"), ("OPENCLAW_PROFILE", "work")], &default, &["/h/.clawdbot"]);
        assert_eq!(found.state_dir, Path::new("/h/.openclaw"));
        assert_eq!(found.default_workspace, Path::new("/h/.openclaw/workspace"));
    }

    #[test]
    fn the_config_flag_beats_everything() {
        let flags = LocationFlags { config: Some("x.json".into()), dev: true, ..LocationFlags::default() };
        let found = resolve(&[("HOME", "/h"), ("OPENCLAW_CONFIG_PATH", "/y.json")], &flags, &[]);
        assert_eq!(found.config_path, Path::new("/cwd/x.json"));
    }

    #[test]
    fn bad_profiles_are_refused() {
        let check = |env: &[(&str, &str)], flags: &LocationFlags| {
            let env = env.iter().copied().collect::<Env>();
            Locations::resolve(&env, Path::new("/"), flags, |_| false).expect_err("refused")
        };
        let named = |name: &str| LocationFlags { profile: Some(name.to_owned()), ..LocationFlags::default() };
        for name in ["", "a/b", "..", "a b", "é"] {
            assert!(matches!(check(&[], &named(name)), LocationError::BadProfile { from: "--profile", .. }), "{name}");
        }
        let both = LocationFlags { dev: true, ..named("work") };
        assert_eq!(check(&[], &both), LocationError::TwoProfiles { profile: "work".to_owned() });
        let error = check(&[("OPENCLAW_PROFILE", "../x")], &LocationFlags::default());
        assert!(matches!(error, LocationError::BadProfile { from: "OPENCLAW_PROFILE", .. }));
    }

    #[test]
    fn expands_by_the_text_alone() {
        let check = |path| expand_user(path, Path::new("/h"), Path::new("/w/d")).display().to_string();
        for (path, expected) in [
            ("~", "/h"),
            ("~/x", "/h/x"),
            ("~\\x", "/h/x"),
            (" ~/x ", "/h/x"),
            ("~user", "/w/d/~user"),
            ("x/./y/../z", "/w/d/x/z"),
            ("../x", "/w/x"),
            ("/a/../../b", "/b"),
            ("", "/w/d"),
        ] {
            assert_eq!(check(path), expected, "{path}");
        }
    }
}
