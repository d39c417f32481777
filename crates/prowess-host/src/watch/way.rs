//! A way: which folders decide where a path leads?
//!
//! A path is followed as the system follows it, one name after the other and through every link. Each name is looked up
//! in a folder, so watching those folders for those names notices everything that can make the path lead elsewhere: a
//! root that is made late, a folder above it that is renamed, a link that is turned to another place.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Links that are followed on one way, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// One name on the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// The folder it is looked up in, a path without links.
    pub(crate) dir: PathBuf,
    /// The name.
    pub(crate) name: OsString,
}

/// A way, as it is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Way {
    /// Its steps, up to the first that leads nowhere.
    pub(crate) steps: Vec<Step>,
    /// What it leads to, a path without links, if it leads somewhere.
    pub(crate) end: Option<PathBuf>,
}

/// Follows `path`. One that is not absolute has no way.
pub(crate) fn look(path: &Path) -> Way {
    let mut way = Way::default();
    if !path.is_absolute() {
        return way;
    }
    let mut here = PathBuf::new();
    let mut ahead: VecDeque<PathBuf> = parts(path).collect();
    let mut links = 0;
    while let Some(part) = ahead.pop_front() {
        match part.components().next() {
            Some(Component::Normal(name)) => way.steps.push(Step { dir: here.clone(), name: name.to_owned() }),
            Some(Component::ParentDir) => {
                here.pop();
                continue;
            }
            Some(Component::RootDir | Component::Prefix(_)) => {
                here.push(&part);
                continue;
            }
            Some(Component::CurDir) | None => continue,
        }
        let next = here.join(&part);
        let Ok(metadata) = next.symlink_metadata() else { return way };
        if !metadata.is_symlink() {
            here = next;
            continue;
        }
        links += 1;
        let Ok(target) = next.read_link() else { return way };
        if links > MAX_LINKS {
            return way;
        }
        for part in parts(&target).rev() {
            ahead.push_front(part);
        }
    }
    way.end = Some(here);
    way
}

/// The names of a path, each a path of its own; that of an absolute one begins with its root.
fn parts(path: &Path) -> impl DoubleEndedIterator<Item = PathBuf> {
    path.components().map(|part| PathBuf::from(part.as_os_str()))
}

#[cfg(all(test, unix))]
mod tests {
    use prowess_testkit::Tree;

    use super::*;

    /// The steps below the tree, and the end.
    fn check(tree: &Tree, path: &str) -> String {
        let way = look(&tree.path(path));
        let show = |path: &Path| path.strip_prefix(tree.root()).ok().map(|path| path.display().to_string());
        let steps = way.steps.iter().filter_map(|step| {
            let dir = show(&step.dir)?;
            Some(format!("{dir}:{}", step.name.display()))
        });
        let end = way.end.as_deref().and_then(show).unwrap_or_else(|| "nowhere".to_owned());
        format!("{} -> {end}", steps.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn every_name_is_looked_up_somewhere() {
        let tree = Tree::new().dir("a/b");
        assert_eq!(check(&tree, "a/b"), ":a a:b -> a/b");
        assert_eq!(check(&tree, "a/x/y"), ":a a:x -> nowhere");
        let steps = look(&tree.path("a/b")).steps;
        assert_eq!(steps[0].dir, Path::new("/"));
    }

    #[test]
    fn links_lead_through_other_folders() {
        let tree = Tree::new().dir("real/deep/skills").symlink("ws", "real/deep").symlink("real/up", "../ws/skills");
        assert_eq!(check(&tree, "ws/skills"), ":ws :real real:deep real/deep:skills -> real/deep/skills");
        assert_eq!(check(&tree, "real/up"), ":real real:up :ws :real real:deep real/deep:skills -> real/deep/skills");
    }

    #[test]
    fn an_absolute_link_begins_anew() {
        let tree = Tree::new().dir("x/y");
        let target = tree.path("x");
        let tree = tree.symlink("link", target);
        assert!(check(&tree, "link/y").ends_with(":link :x x:y -> x/y"));
    }

    #[test]
    fn links_in_a_circle_lead_nowhere() {
        let tree = Tree::new().symlink("a", "b").symlink("b", "a").symlink("gone", "x/y");
        assert!(check(&tree, "a").ends_with("nowhere"));
        assert_eq!(check(&tree, "gone"), ":gone :x -> nowhere");
        assert_eq!(look(Path::new("relative")), Way::default());
    }
}
