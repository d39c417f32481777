//! Roots: in which folders are skills looked for, and in which order?

use std::path::{Path, PathBuf};

use crate::tier::Tier;

/// A folder whose children are skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The tier its skills belong to.
    pub tier: Tier,
    /// The folder.
    pub path: PathBuf,
    /// Who named it.
    pub origin: Origin,
}

/// Who named a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// It has its place by convention; nobody minds if it is not there.
    Convention,
    /// The configuration names it.
    Configured,
    /// The plugin with this id declares it.
    Plugin(String),
}

/// The folders skills may come from. Those left empty contribute nothing.
///
/// ```
/// use prowess_skills::{Places, Tier};
///
/// let places = Places { workspace: Some("/ws".into()), home: Some("/home/a".into()), ..Places::default() };
/// let tiers: Vec<Tier> = places.roots().iter().map(|root| root.tier).collect();
/// assert_eq!(tiers, [Tier::Personal, Tier::Project, Tier::Workspace]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// Folders from `skills.load.extraDirs`, already made absolute.
    pub extra: Vec<PathBuf>,
    /// Folders of enabled plugins, with the plugin's id.
    pub plugins: Vec<(String, PathBuf)>,
    /// The bundled skills.
    pub bundled: Option<PathBuf>,
    /// The managed skills.
    pub managed: Option<PathBuf>,
    /// The home directory, for personal skills.
    pub home: Option<PathBuf>,
    /// The agent's workspace, for project and workspace skills.
    pub workspace: Option<PathBuf>,
}

impl Places {
    /// The roots, lowest first; of two skills with one name, the one from the later root wins.
    #[must_use]
    pub fn roots(&self) -> Vec<Root> {
        let root = |tier, origin, path: PathBuf| Root { tier, path, origin };
        let by_convention = |tier, path: Option<PathBuf>| path.map(|path| root(tier, Origin::Convention, path));
        let below = |dir: &Option<PathBuf>, path: &str| dir.as_ref().map(|dir| dir.join(path));

        let mut roots: Vec<Root> =
            self.extra.iter().map(|path| root(Tier::Extra, Origin::Configured, path.clone())).collect();
        let plugins = self.plugins.iter();
        roots.extend(plugins.map(|(id, path)| root(Tier::Extra, Origin::Plugin(id.clone()), path.clone())));
        roots.extend(by_convention(Tier::Bundled, self.bundled.clone()));
        roots.extend(by_convention(Tier::Managed, self.managed.clone()));
        roots.extend(by_convention(Tier::Personal, below(&self.home, ".agents/skills")));
        roots.extend(by_convention(Tier::Project, below(&self.workspace, ".agents/skills")));
        roots.extend(by_convention(Tier::Workspace, below(&self.workspace, "skills")));
        roots
    }
}

/// The folder of bundled skills: the override if there is one, else `skills` beside the program.
#[must_use]
pub fn find_bundled(over: Option<&str>, program: Option<&Path>) -> Option<PathBuf> {
    if let Some(path) = over.map(crate::text::trim).filter(|path| !path.is_empty()) {
        return Some(PathBuf::from(path));
    }
    program.and_then(Path::parent).map(|dir| dir.join("skills")).filter(|dir| dir.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_tiers_in_order_with_plugins_beside_extra() {
        let places = Places {
            extra: vec!["/e1".into(), "/e2".into()],
            plugins: vec![("p".to_owned(), "/p".into())],
            bundled: Some("/b".into()),
            managed: Some("/m".into()),
            home: Some("/h".into()),
            workspace: Some("/w".into()),
        };
        let roots = places.roots();
        let got: Vec<(&str, &str)> =
            roots.iter().map(|root| (root.tier.word(), root.path.to_str().expect("utf-8"))).collect();
        assert_eq!(
            got,
            [
                ("extra", "/e1"),
                ("extra", "/e2"),
                ("extra", "/p"),
                ("bundled", "/b"),
                ("managed", "/m"),
                ("personal", "/h/.agents/skills"),
                ("project", "/w/.agents/skills"),
                ("workspace", "/w/skills"),
            ]
        );
        assert!(roots.is_sorted_by_key(|root| root.tier));
    }

    #[test]
    fn the_override_is_taken_unchecked() {
        assert_eq!(find_bundled(Some(" /x "), None), Some("/x".into()));
        assert_eq!(find_bundled(Some("  "), Some(Path::new("/nowhere/prowess"))), None);
    }
}
