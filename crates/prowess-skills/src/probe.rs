//! Probing: which programs does this host have?
//!
//! A program is a regular file that may be executed, in a folder of the search path, under its bare name.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::catalog::Catalog;
use crate::text::trim;

/// Names to look for, times folders to look in, from which on listing the folders is cheaper than trying each name.
const LIST_FROM: usize = 4096;

/// The programs to look for: those that some skill of the catalogue needs, and `brew`, which decides what can be installed.
#[must_use]
pub fn wanted_bins(catalog: &Catalog) -> BTreeSet<&str> {
    let needs = catalog.skills().iter().map(|skill| &skill.metadata.needs);
    let bins = needs.flat_map(|needs| needs.bins.iter().chain(&needs.any_bins)).map(String::as_str);
    bins.chain(std::iter::once("brew")).collect()
}

/// The programs that the skills of the catalogue declare: `requires.bins`, `requires.anyBins` and `install[].bins`.
#[must_use]
pub fn declared_bins(catalog: &Catalog) -> BTreeSet<&str> {
    let bins = catalog.skills().iter().flat_map(|skill| {
        let (needs, install) = (&skill.metadata.needs, &skill.metadata.install);
        let brought = install.iter().flat_map(|spec| &spec.bins);
        needs.bins.iter().chain(&needs.any_bins).chain(brought)
    });
    bins.map(|bin| trim(bin)).filter(|bin| !bin.is_empty()).collect()
}

/// Those of `wanted` that are programs in the folders of `path`. On Windows `extensions` is the value of `PATHEXT`.
#[must_use]
pub fn probe(wanted: &BTreeSet<&str>, path: &OsStr, extensions: Option<&str>) -> HashSet<String> {
    // Search paths often name one folder twice, as `/bin` and `/usr/bin`.
    let mut seen = HashSet::new();
    let folders = std::env::split_paths(path).filter_map(|dir| dir.canonicalize().ok());
    let folders: Vec<PathBuf> = folders.filter(|dir| dir.is_dir() && seen.insert(dir.clone())).collect();
    let endings = endings(extensions);
    let wanted: Vec<&str> = wanted.iter().copied().filter(|name| is_bare(name)).collect();
    let is_there = |name: &str| {
        let names = endings.iter().map(|ending| format!("{name}{ending}"));
        names.into_iter().any(|file| folders.iter().any(|dir| is_program(&dir.join(&file))))
    };
    if wanted.len() * folders.len() < LIST_FROM {
        return wanted.into_par_iter().with_min_len(16).filter(|name| is_there(name)).map(str::to_owned).collect();
    }
    let files: HashMap<String, &str> =
        wanted.iter().flat_map(|name| endings.iter().map(move |ending| (format!("{name}{ending}"), *name))).collect();
    folders.par_iter().map(|dir| matches(dir, &files)).reduce(HashSet::new, |mut all, some| {
        all.extend(some);
        all
    })
}

/// The wanted programs in one folder.
fn matches(dir: &Path, files: &HashMap<String, &str>) -> HashSet<String> {
    let Ok(entries) = dir.read_dir() else { return HashSet::new() };
    let found = entries.flatten().filter_map(|entry| {
        let name = entry.file_name();
        let bin = *files.get(name.to_str()?)?;
        is_program(&dir.join(&name)).then(|| bin.to_owned())
    });
    found.collect()
}

/// What may follow a program's name in its file name.
fn endings(extensions: Option<&str>) -> Vec<String> {
    let mut endings = vec![String::new()];
    if cfg!(windows) {
        let given = extensions.unwrap_or(".EXE;.CMD;.BAT;.COM").split(';').map(str::trim);
        endings.extend(given.filter(|ending| !ending.is_empty()).map(str::to_owned));
    }
    endings
}

/// A name that can only mean a file in a folder of the search path.
fn is_bare(name: &str) -> bool {
    !name.is_empty() && !matches!(name, "." | "..") && !name.contains(['/', '\\', '\0'])
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(all(test, unix))]
mod tests {
    use prowess_testkit::Tree;

    use super::*;
    use crate::discover::Reach;
    use crate::root::{Origin, Root};
    use crate::tier::Tier;

    fn tree() -> Tree {
        Tree::new()
            .exe("one/tool")
            .file("one/plain", "")
            .dir("one/folder")
            .exe("two/other")
            .symlink("two/link", "other")
    }

    fn found(wanted: &[&str], path: &str) -> Vec<String> {
        let mut found: Vec<String> =
            probe(&wanted.iter().copied().collect(), OsStr::new(path), None).into_iter().collect();
        found.sort();
        found
    }

    #[test]
    fn a_program_is_a_file_that_may_run_under_its_bare_name() {
        let tree = tree();
        let path = tree.expand("$ROOT/one::$ROOT/nowhere:$ROOT/two");
        let wanted =
            ["tool", "other", "link", "plain", "folder", "absent", "", ".", "..", "../one/tool", "/bin/sh", "a\\b"];
        assert_eq!(found(&wanted, &path), ["link", "other", "tool"]);
        assert_eq!(found(&wanted, ""), [""; 0]);
    }

    #[test]
    fn skills_declare_what_they_need_and_what_their_packages_bring_and_nothing_else() {
        let meta = |text: &str| format!("metadata: {{openclaw: {text}}}\n");
        let brew = "{kind: brew, formula: jq, bins: [' jq ', yq]}";
        let tree = Tree::new()
            .skill(
                "root/a",
                "d",
                &meta(&format!("{{requires: {{bins: [zip, curl], anyBins: [rg, grep]}}, install: [{brew}]}}")),
            )
            .skill("root/b", "d", &meta("{requires: {bins: [curl, ' ']}, install: [{kind: node, package: p}]}"))
            .skill("root/c", "d", "");
        let roots = [Root { tier: Tier::Workspace, path: tree.path("root"), origin: Origin::Convention }];
        let catalog = Catalog::load(&roots, &Reach::default());
        assert_eq!(catalog.problems(), []);
        assert_eq!(Vec::from_iter(declared_bins(&catalog)), ["curl", "grep", "jq", "rg", "yq", "zip"]);
        assert_eq!(Vec::from_iter(wanted_bins(&catalog)), ["brew", "curl", "grep", "rg", "zip"]);
    }

    #[test]
    fn listing_folders_finds_what_trying_names_finds() {
        let tree = tree();
        let many: Vec<String> = (0..LIST_FROM).map(|index| format!("absent-{index}")).collect();
        let mut wanted: Vec<&str> = many.iter().map(String::as_str).collect();
        wanted.extend(["tool", "other", "link", "plain", "folder", "..", ""]);
        assert_eq!(found(&wanted, &tree.expand("$ROOT/one:$ROOT/two:$ROOT/nowhere")), ["link", "other", "tool"]);
    }
}
