//! Protected files: which files of a workspace make code run later, outside the sandbox?
//!
//! A hook, an editor's task, another agent's settings or a CI workflow is a file like any other to the command that
//! writes it, and a program to whoever comes later. Such files are read-only in the sandbox, and the file tools ask
//! before they change one. They are known by name, from one table, except for Git directories, which are known by what
//! is in them, whatever they are called. The operator adds names and removes them (`tools.exec.protected`).

use std::collections::BTreeMap;
use std::path::{Component, Path};

/// Removing this word leaves Git directories alone.
pub const GIT: &str = ".git";

/// Where in a workspace a name counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// At the top only.
    Top,
    /// In every folder.
    Anywhere,
}

/// Names that stand for the same thing.
struct Kind {
    /// What it is, for a question: "FILE is …".
    what: &'static str,
    at: At,
    names: &'static [&'static str],
}

/// The table. A name with slashes is a path.
#[rustfmt::skip]
const KINDS: &[Kind] = &[
    Kind { what: "a file that every conversation begins with", at: At::Top, names: &[
        "BOOTSTRAP.md", "HEARTBEAT.md", "IDENTITY.md", "MEMORY.md", "SOUL.md", "TOOLS.md", "USER.md",
    ] },
    Kind { what: "part of a skill, and skills steer the agent", at: At::Top, names: &["skills"] },
    Kind { what: "among the workspace's plugins and skills, which steer the agent", at: At::Anywhere, names: &[
        ".agents", ".openclaw",
    ] },
    Kind { what: "a file that steers another agent", at: At::Anywhere, names: &[
        ".aider.conf.yml", ".claude", ".clinerules", ".codex", ".continue", ".cursor", ".cursorrules", ".gemini",
        ".github/copilot-instructions.md", ".kiro", ".mcp.json", ".opencode", ".roo", ".windsurf", ".windsurfrules",
        "opencode.json",
    ] },
    // Agents read these in every directory that they work in.
    Kind { what: "instructions that agents follow", at: At::Anywhere, names: &[
        "AGENTS.md", "AGENTS.override.md", "CLAUDE.local.md", "CLAUDE.md", "GEMINI.md",
    ] },
    Kind { what: "settings of a package manager or a build tool, which can start programs", at: At::Anywhere, names: &[
        ".cargo/config", ".cargo/config.toml", ".config/mise", ".mise", ".mise.local.toml", ".mise.toml", ".npmrc",
        ".pnpmfile.cjs", ".yarnrc", ".yarnrc.yml", "mise.local.toml", "mise.toml",
    ] },
    Kind { what: "run when a debugger or an interpreter starts in its folder", at: At::Anywhere, names: &[
        ".gdbinit", ".irbrc", ".lldbinit", ".pdbrc", ".pryrc", ".Rprofile",
    ] },
    Kind { what: "an editor's settings, which can start programs", at: At::Anywhere, names: &[
        ".devcontainer", ".devcontainer.json", ".dir-locals.el", ".exrc", ".fleet", ".idea", ".nvim.lua", ".nvimrc",
        ".vimrc", ".vscode", ".zed",
    ] },
    Kind { what: "a Git hook, or what one runs", at: At::Anywhere, names: &[
        ".husky", ".lefthook.yaml", ".lefthook.yml", ".overcommit.yml", ".pre-commit-config.yaml", "lefthook.yaml",
        "lefthook.yml",
    ] },
    Kind { what: "run by a shell that enters its folder", at: At::Anywhere, names: &[".envrc"] },
    Kind { what: "run when a shell or a session starts", at: At::Top, names: &[
        ".bash_aliases", ".bash_login", ".bash_logout", ".bash_profile", ".bashrc", ".config/autostart", ".config/fish",
        ".config/git", ".config/systemd", ".cshrc", ".gitconfig", ".inputrc", ".kshrc", ".login", ".profile", ".pythonrc",
        ".pythonrc.py", ".ssh", ".tcshrc", ".tmux.conf", ".xinitrc", ".xprofile", ".xsession", ".zlogin", ".zlogout",
        ".zprofile", ".zshenv", ".zshrc",
    ] },
    Kind { what: "a CI workflow, which runs elsewhere with its own keys", at: At::Anywhere, names: &[
        ".buildkite", ".circleci", ".drone.yml", ".forgejo/workflows", ".gitea/workflows", ".github/actions",
        ".github/workflows", ".gitlab-ci.yml", ".semaphore", ".teamcity", ".tekton", ".travis.yml", ".woodpecker",
        ".woodpecker.yml", "Jenkinsfile", "appveyor.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml",
        "cloudbuild.yaml",
    ] },
];

/// What in a Git directory can make git start a program, or read its settings elsewhere. The rest is what ordinary use
/// writes: objects, references, the index, logs, and the state of a merge or rebase.
pub const GIT_PROTECTED: &[&str] = &["config", "config.worktree", "hooks", "commondir", "gitdir", "info/attributes"];

/// Folders of a Git directory that hold Git directories: those of submodules and of linked working trees.
pub const GIT_NESTED: &[&str] = &["modules", "worktrees"];

/// What the operator changes about the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProtectedSettings {
    /// Names, or paths seen from the workspace, that are protected too.
    pub add: Vec<String>,
    /// Names that are not: one of the table, or [`GIT`].
    pub remove: Vec<String>,
}

/// Which files are protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    /// By their last part, in small letters.
    names: BTreeMap<String, Vec<Rule>>,
    git: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    /// What stands in front of the last part, in small letters.
    parents: Vec<String>,
    at: At,
    what: &'static str,
}

impl Default for Protection {
    fn default() -> Self {
        Self::new(&ProtectedSettings::default())
    }
}

impl Protection {
    /// The table with what the operator changes about it.
    #[must_use]
    pub fn new(settings: &ProtectedSettings) -> Self {
        let removed: Vec<String> = settings.remove.iter().map(|name| plain(name)).collect();
        let mut protection = Self { names: BTreeMap::new(), git: !removed.iter().any(|name| name == GIT) };
        for kind in KINDS {
            for name in kind.names.iter().map(|name| plain(name)).filter(|name| !removed.contains(name)) {
                protection.add(&name, kind.at, kind.what);
            }
        }
        for name in &settings.add {
            // A path is meant as it stands; a bare name wherever it is.
            let at = if name.trim_end_matches('/').contains('/') { At::Top } else { At::Anywhere };
            protection.add(&plain(name), at, "protected by tools.exec.protected");
        }
        protection
    }

    fn add(&mut self, name: &str, at: At, what: &'static str) {
        let mut parents: Vec<String> = name.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let Some(last) = parents.pop() else { return };
        self.names.entry(last).or_default().push(Rule { parents, at, what });
    }

    /// Whether Git directories are protected.
    #[must_use]
    pub fn covers_git(&self) -> bool {
        self.git
    }

    /// What the file or folder at `path`, seen from the workspace, is, if it is one of the list. What is in such a
    /// folder is protected with it.
    #[must_use]
    pub fn entry(&self, path: &Path) -> Option<&'static str> {
        let mut parts = path.components().rev().filter_map(|part| match part {
            Component::Normal(name) => Some(name),
            _ => None,
        });
        let last = parts.next()?.to_str()?;
        // Some file systems do not tell letters apart by case.
        let rules = if last.bytes().any(|byte| byte.is_ascii_uppercase()) {
            self.names.get(&last.to_ascii_lowercase())?
        } else {
            self.names.get(last)?
        };
        let rule = rules.iter().find(|rule| {
            let mut above = parts.clone();
            let fits = rule
                .parents
                .iter()
                .rev()
                .all(|parent| above.next().is_some_and(|name| name.eq_ignore_ascii_case(parent)));
            fits && (rule.at == At::Anywhere || above.next().is_none())
        })?;
        Some(rule.what)
    }

    /// The same for a path that may lie in a folder of the list.
    #[must_use]
    pub fn covering(&self, path: &Path) -> Option<&'static str> {
        path.ancestors().filter(|above| *above != Path::new("")).find_map(|above| self.entry(above))
    }
}

/// Whether a folder is a Git directory, by what it `has`. A linked working tree's has a `commondir` instead of objects.
#[must_use]
pub fn is_git_dir(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// Where a `.git` file says that the Git directory is.
#[must_use]
pub fn gitdir_of(text: &str) -> Option<&str> {
    let path = text.strip_prefix("gitdir:")?.trim_matches([' ', '\t', '\n', '\r']);
    (!path.is_empty()).then_some(path)
}

fn plain(name: &str) -> String {
    name.trim().trim_matches('/').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_at_the_top_or_anywhere() {
        let protection = Protection::default();
        let covered = |path: &str| protection.covering(Path::new(path)).is_some();
        for path in [
            "AGENTS.md",
            "agents.md",
            "memory.md",
            "skills/x/SKILL.md",
            ".vscode",
            "sub/.vscode/tasks.json",
            "a/b/.envrc",
            ".github/workflows/ci.yml",
            "sub/.github/workflows",
            ".GitHub/Workflows/x",
            ".bashrc",
            ".config/fish/config.fish",
            "Jenkinsfile",
            ".mcp.json",
            "x/.claude/settings.json",
            ".husky/pre-commit",
            ".openclaw/plugins/x",
            "sub/AGENTS.md",
            "a/b/claude.md",
            "sub/.cargo/config.toml",
            ".npmrc",
            "web/.yarnrc.yml",
            "mise.toml",
            ".pdbrc",
            "sub/.gdbinit",
        ] {
            assert!(covered(path), "{path}");
        }
        for path in [
            "src/main.rs",
            "docs/SOUL.md",
            "Cargo.toml",
            ".cargo/credentials.toml",
            "config.toml",
            "lib/skills/x",
            "sub/.bashrc",
            ".github/dependabot.yml",
            "workflows/ci.yml",
            "vscode/tasks.json",
            ".vscode-test",
            "",
            "sub/.config/fish/x",
            "CLAUDE.md.bak",
        ] {
            assert!(!covered(path), "{path}");
        }
        assert!(protection.entry(Path::new(".vscode/tasks.json")).is_none(), "the folder is the entry");
    }

    #[test]
    fn the_operator_changes_the_list() {
        let settings = ProtectedSettings {
            add: vec!["deploy.sh".to_owned(), "/infra/".to_owned(), "ops/secrets".to_owned()],
            remove: vec![".vscode/".to_owned(), ".git".to_owned(), ".GITHUB/workflows".to_owned()],
        };
        let protection = Protection::new(&settings);
        let covered = |path: &str| protection.covering(Path::new(path)).is_some();
        assert!(covered("a/deploy.sh") && covered("infra/main.tf") && covered("ops/secrets/x"));
        assert!(!covered("x/infra/main.tf") && !covered("x/ops/secrets"));
        assert!(!covered(".vscode/tasks.json") && !covered(".github/workflows/ci.yml") && covered(".github/actions/x"));
        assert!(!protection.covers_git() && Protection::default().covers_git());
    }

    #[test]
    fn a_git_directory_is_known_by_what_it_has() {
        let is = |names: &[&str]| is_git_dir(|name| names.contains(&name));
        assert!(is(&["HEAD", "objects", "refs", "config"]) && is(&["HEAD", "commondir", "gitdir"]));
        assert!(!is(&["objects", "refs", "config"]) && !is(&["HEAD", "refs"]) && !is(&[]));
        assert_eq!(gitdir_of("gitdir: ../x/.git\n"), Some("../x/.git"));
        assert_eq!(gitdir_of("x"), None);
        assert_eq!(gitdir_of("gitdir: \n"), None);
    }

    #[test]
    fn the_table_names_nothing_twice() {
        let mut names: Vec<String> = KINDS.iter().flat_map(|kind| kind.names).map(|name| plain(name)).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
