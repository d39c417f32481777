//! The plan: which folders are watched, and what matters in each?
//!
//! Every folder that discovery looked at, every folder that decides where a root, a link or a file of the configuration
//! is, the folders of plugins, and those of programs: each once, however many reasons there are, and no more than
//! [`MAX_WATCHES`]. What lies inside a skill is nobody's business but the skill's, so its files are never counted.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use prowess_skills::{MANIFEST, Memory, Place, Root, wanted_bins};

use super::heard::Kind;
use super::way;
use crate::context::{Context, View, link_targets, plugin_places};

/// Folders that are watched for one agent. What is beyond is asked about now and then.
pub const MAX_WATCHES: usize = 8_192;
/// Ways that are followed for one plan.
const MAX_WAYS: usize = 4_096;
/// Folders of one place of plugins that are watched.
const MAX_PLUGINS: usize = 256;

/// Folders that hold what was made or fetched. They are not watched, unless there is a skill in them.
/// Those whose names begin with a dot never count.
const IGNORED: [&str; 5] = ["node_modules", "dist", "venv", "__pycache__", "build"];

/// The file that makes a folder a skill.
pub(crate) const SKILL: &str = "SKILL.md";

/// What matters in one folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Interest {
    /// Whether folders and links that come and go matter, whatever they are called.
    lists: bool,
    /// Names that matter, sorted.
    names: Vec<OsString>,
    /// Whether it matters what is in the files of these names.
    reads: bool,
}

impl Interest {
    /// Everything that could be, or lead to, a skill.
    fn in_skills() -> Self {
        Self { lists: true, names: vec![SKILL.into()], reads: true }
    }

    /// A file, and what is in it.
    fn in_file(name: impl Into<OsString>) -> Self {
        Self { lists: false, names: vec![name.into()], reads: true }
    }

    /// Whether something of these names is there, and may be used.
    fn in_names(names: impl IntoIterator<Item = OsString>) -> Self {
        let mut names: Vec<OsString> = names.into_iter().collect();
        names.sort();
        Self { lists: false, names, reads: false }
    }

    /// Both.
    pub(crate) fn merge(&mut self, other: Self) {
        self.lists |= other.lists;
        self.reads |= other.reads;
        for name in other.names {
            if let Err(place) = self.names.binary_search(&name) {
                self.names.insert(place, name);
            }
        }
    }

    /// Whether it matters what is in files, and not only which there are.
    pub(crate) fn reads(&self) -> bool {
        self.reads
    }

    /// Whether a change of this kind to what is called `name` matters.
    pub(crate) fn minds(&self, name: &OsStr, kind: Kind, is_dir: bool) -> bool {
        if self.names.binary_search_by(|known| known.as_os_str().cmp(name)).is_ok() {
            return true;
        }
        let may_count = is_dir || kind == Kind::Shape || name.eq_ignore_ascii_case(SKILL);
        self.lists && may_count && !name.as_encoded_bytes().starts_with(b".") && !is_ignored(name)
    }
}

fn is_ignored(name: &OsStr) -> bool {
    IGNORED.iter().any(|ignored| name == *ignored)
}

/// Folders by their paths without links, with what matters in each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// By path, as text: a path is hashed name by name, which takes long.
    dirs: HashMap<OsString, Interest>,
    ways: usize,
    /// Whether something is left out, because there is too much of it.
    is_cut: bool,
    /// Where the roots are, as far as they are there.
    roots: Vec<PathBuf>,
}

impl Plan {
    /// What `view` hangs on, which was loaded with `memory`.
    pub(crate) fn of(view: &View, memory: &Memory) -> Self {
        let mut plan = Self::default();
        // From the most important to what can best be done without.
        for file in config_files(&view.context) {
            plan.follow_file(&file);
        }
        plan.add_roots(&view.roots);
        for target in link_targets(&view.context, &view.settings) {
            plan.follow(&target);
        }
        plan.add_places(memory.places());
        plan.add_plugins(&view.context);
        plan.add_programs(view);
        plan
    }

    /// A plan for these alone.
    #[cfg(test)]
    pub(crate) fn of_places(places: &[Place]) -> Self {
        let mut plan = Self::default();
        plan.add_places(places);
        plan
    }

    /// The folders, and what matters in each.
    pub(crate) fn dirs(&self) -> impl Iterator<Item = (&Path, &Interest)> {
        self.dirs.iter().map(|(dir, interest)| (Path::new(dir), interest))
    }

    /// Whether something is left out, because there is too much of it.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Where the roots are, as far as they are there.
    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    fn add(&mut self, dir: &Path, interest: Interest) {
        if let Some(known) = self.dirs.get_mut(dir.as_os_str()) {
            known.merge(interest);
        } else if self.dirs.len() < MAX_WATCHES {
            self.dirs.insert(dir.as_os_str().to_owned(), interest);
        } else {
            self.is_cut = true;
        }
    }

    /// Notices when `path` leads elsewhere.
    fn follow(&mut self, path: &Path) -> Option<PathBuf> {
        if self.ways >= MAX_WAYS {
            self.is_cut = true;
            return None;
        }
        self.ways += 1;
        let way = way::look(path);
        for step in way.steps {
            self.add(&step.dir, Interest::in_names([step.name]));
        }
        way.end
    }

    /// Notices also when what it leads to is written to.
    fn follow_file(&mut self, path: &Path) {
        if let Some(end) = self.follow(path)
            && let (Some(dir), Some(name)) = (end.parent(), end.file_name())
        {
            self.add(dir, Interest::in_file(name));
        }
    }

    fn add_roots(&mut self, roots: &[Root]) {
        let ends: Vec<PathBuf> = roots.iter().filter_map(|root| self.follow(&root.path)).collect();
        self.roots = ends;
    }

    fn add_places(&mut self, places: &[Place]) {
        let lively: HashSet<&Path> = places.iter().flat_map(|place| self.ignored_above(place)).collect();
        for place in places {
            match place {
                Place::Skill(dir) => self.add(dir, Interest::in_file(SKILL)),
                Place::Folder(dir) if self.is_below_ignored(dir) && !lively.contains(dir.as_path()) => {}
                Place::Folder(dir) => self.add(dir, Interest::in_skills()),
                Place::Link(link) => self.follow_link(link),
            }
        }
        for dir in lively {
            if let (Some(above), Some(name)) = (dir.parent(), dir.file_name()) {
                self.add(above, Interest::in_names([name.to_owned()]));
            }
        }
    }

    /// A link to a `SKILL.md` leads to a file, all others to folders that are places of their own.
    fn follow_link(&mut self, link: &Path) {
        if link.file_name() == Some(OsStr::new(SKILL)) {
            self.follow_file(link);
        } else {
            self.follow(link);
        }
    }

    /// A skill's folder and those above it that are, or are below, an ignored one.
    fn ignored_above<'a>(&self, place: &'a Place) -> Vec<&'a Path> {
        match place {
            Place::Skill(dir) => dir.ancestors().take_while(|dir| self.is_below_ignored(dir)).collect(),
            Place::Folder(_) | Place::Link(_) => Vec::new(),
        }
    }

    /// Whether a folder below a root is, or is below, an ignored one.
    fn is_below_ignored(&self, dir: &Path) -> bool {
        // Nearly always so, and there can be thousands to ask about.
        if !dir.iter().any(is_ignored) {
            return false;
        }
        let below = self.roots.iter().filter_map(|root| dir.strip_prefix(root).ok());
        // A root inside another root is looked at for its own sake.
        let shortest = below.min_by_key(|rest| rest.as_os_str().len());
        shortest.is_some_and(|rest| rest.iter().any(is_ignored))
    }

    fn add_plugins(&mut self, context: &Context) {
        let places = plugin_places(context);
        let own = [
            places.workspace.map(|workspace| workspace.join(".openclaw/extensions")),
            places.bundled,
            places.state.map(|state| state.join("extensions")),
        ];
        for place in places.configured.into_iter().chain(own.into_iter().flatten()) {
            let Some(dir) = self.follow(&place) else { continue };
            self.add(&dir, Interest { lists: true, ..Interest::in_file(MANIFEST) });
            let entries = dir.read_dir().into_iter().flatten().flatten();
            for entry in
                entries.filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b".")).take(MAX_PLUGINS)
            {
                if let Some(plugin) = self.follow(&entry.path()).filter(|plugin| plugin.is_dir()) {
                    self.add(&plugin, Interest { lists: true, ..Interest::in_file(MANIFEST) });
                }
            }
        }
    }

    fn add_programs(&mut self, view: &View) {
        let wanted = wanted_bins(&view.catalog);
        let path = view.context.config.env().get("PATH").unwrap_or_default();
        for dir in std::env::split_paths(path) {
            if let Some(dir) = self.follow(&dir) {
                self.add(&dir, Interest::in_names(wanted.iter().map(OsString::from)));
            }
        }
    }
}

/// The files that the configuration is made of.
pub(crate) fn config_files(context: &Context) -> Vec<PathBuf> {
    let dirs = [&context.locations.cwd, &context.locations.state_dir];
    let mut files: Vec<PathBuf> = context.config.files().to_vec();
    files.push(context.locations.config_path.clone());
    files.extend(dirs.map(|dir| dir.join(".env")));
    files.sort();
    files.dedup();
    files
}

#[cfg(all(test, unix))]
mod tests {
    use prowess_skills::{Catalog, Origin, Reach, Tier};
    use prowess_testkit::Tree;

    use super::*;

    /// What a plan for one root watches below the tree.
    fn check(tree: &Tree, root: &str) -> Vec<String> {
        let roots = [Root { tier: Tier::Managed, path: tree.path(root), origin: Origin::Convention }];
        let mut memory = Memory::default();
        // Only the places count here.
        let _ = Catalog::load_with(&roots, &Reach::default(), &mut memory);
        let mut plan = Plan::default();
        plan.add_roots(&roots);
        plan.add_places(memory.places());
        let mut shown: Vec<String> = plan
            .dirs()
            .filter_map(|(dir, interest)| {
                let dir = dir.strip_prefix(tree.root()).ok()?;
                let names: Vec<_> = interest.names.iter().map(|name| name.to_string_lossy()).collect();
                let all = if interest.lists { "* " } else { "" };
                Some(format!("{}: {all}{}", dir.display(), names.join(" ")))
            })
            .collect();
        shown.sort();
        shown
    }

    #[test]
    fn folders_are_listed_and_skills_are_read() {
        let tree = Tree::new().plant("root/a: d\nroot/group/b: d").file("root/a/assets/deep/file", "");
        assert_eq!(
            check(&tree, "root"),
            [": root", "root/a: SKILL.md", "root/group/b: SKILL.md", "root/group: * SKILL.md", "root: * SKILL.md"]
        );
    }

    #[test]
    fn a_root_that_is_not_there_is_awaited() {
        let tree = Tree::new().dir("home");
        assert_eq!(check(&tree, "home/.agents/skills"), [": home", "home: .agents"]);
    }

    #[test]
    fn links_are_followed_to_where_they_lead() {
        let tree = Tree::new().plant("far/real: d\nelse/s: d\nroot -> far\nfar/s -> ../else/s");
        assert_eq!(
            check(&tree, "root"),
            [": else far root", "else/s: SKILL.md", "else: s", "far/real: SKILL.md", "far: * SKILL.md s"]
        );
    }

    #[test]
    fn what_was_made_is_watched_only_where_a_skill_is_in_it() {
        let tree = Tree::new().dir("root/build/a/b").dir("root/.git/x").plant("root/dist/s: d");
        assert_eq!(
            check(&tree, "root"),
            [": root", "root/dist/s: SKILL.md", "root/dist: * SKILL.md s", "root: * SKILL.md dist"]
        );
    }

    #[test]
    fn the_number_of_watches_is_bounded() {
        let mut plan = Plan::default();
        for number in 0..MAX_WATCHES {
            plan.add(Path::new(&format!("/{number}")), Interest::in_file(SKILL));
        }
        assert!(!plan.is_cut());
        plan.add(Path::new("/0"), Interest::in_skills());
        assert!(!plan.is_cut());
        plan.add(Path::new("/more"), Interest::in_file(SKILL));
        assert!(plan.is_cut());
        assert_eq!(plan.dirs().count(), MAX_WATCHES);
    }

    #[test]
    fn not_every_change_matters() {
        let minds = |interest: &Interest, name: &str, kind| interest.minds(OsStr::new(name), kind, false);
        let (group, skill) = (Interest::in_skills(), Interest::in_file(SKILL));
        for (interest, name, content, shape) in [
            (&group, "SKILL.md", true, true),
            (&group, "skill.MD", true, true),
            (&group, "notes.txt", false, true),
            (&group, ".git", false, false),
            (&group, "node_modules", false, false),
            (&skill, "SKILL.md", true, true),
            (&skill, "SKILL.md~", false, false),
            (&skill, "assets", false, false),
        ] {
            assert_eq!(
                (minds(interest, name, Kind::Content), minds(interest, name, Kind::Shape)),
                (content, shape),
                "{name}"
            );
        }
        assert!(group.minds(OsStr::new("closed"), Kind::Content, true));
    }
}
