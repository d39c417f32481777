//! A home with a workspace and an agent whose skills are kept up to date.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use prowess_config::Env;
use prowess_host::{Context, Flags, Ground, Live, View, Watching};
use prowess_testkit::{Tree, eventually};

/// What is there when a program starts.
pub(crate) struct Stage {
    pub(crate) tree: Tree,
    env: Vec<(String, String)>,
}

impl Stage {
    /// A home with this configuration, a workspace, one extra folder and no bundled skills.
    pub(crate) fn new(config: &str) -> Self {
        let tree = Tree::new().dir("ws").dir("bundled").dir("bin").file("home/.openclaw/openclaw.json", config);
        let env = [
            ("HOME", tree.path("home")),
            ("PATH", tree.path("bin")),
            ("OPENCLAW_BUNDLED_SKILLS_DIR", tree.path("bundled")),
        ];
        let env = env.map(|(name, path)| (name.to_owned(), path.to_string_lossy().into_owned())).into();
        Self { tree, env }
    }

    /// With a debounce that is over at once.
    pub(crate) fn quick() -> Self {
        Self::new("{skills: {load: {watchDebounceMs: 5}}}")
    }

    /// With another variable.
    pub(crate) fn var(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn ground(&self) -> Ground {
        let env: Env = self.env.iter().cloned().collect();
        let flags = Flags { workspace: Some(self.tree.path("ws")), ..Flags::default() };
        Ground { flags, env, cwd: self.tree.path("home") }
    }

    pub(crate) fn live(&self) -> Arc<Live> {
        Live::start(self.ground(), Watching::Configured).expect("skills that can be loaded")
    }

    /// The skills as somebody sees them who has just started.
    pub(crate) fn fresh(&self) -> View {
        let context = Context::load(&self.ground()).expect("a configuration");
        View::load(context, None).expect("skills")
    }

    /// Writes a file, making the folders above it.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.tree.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }

    /// Writes a skill.
    pub(crate) fn skill(&self, dir: &str, description: &str) {
        self.write(&format!("{dir}/SKILL.md"), &text(dir, description));
    }
}

/// The text of a skill that is called like its folder.
pub(crate) fn text(dir: &str, description: &str) -> String {
    let name = Path::new(dir).file_name().expect("a name").to_string_lossy();
    format!("---\nname: {name}\ndescription: {description}\n---\nbody\n")
}

/// Waits until everything is watched, so that nothing is seen any more that was not heard of.
pub(crate) fn settle(live: &Live) {
    eventually("it watches, and looks again", || live.stats().watches > 0 && live.stats().refreshes > 1);
    // That look may still go on, and this comes after it.
    live.refresh_now();
}

/// The skills that models are told of, as `name: description`.
pub(crate) fn told(live: &Live) -> Vec<String> {
    let skills = live.skills().current();
    skills.snapshot.skills().iter().map(|skill| format!("{}: {}", skill.name, skill.description)).collect()
}

/// Whether both tell the same.
pub(crate) fn are_same(a: &View, b: &View) -> bool {
    a.catalog == b.catalog && a.problems == b.problems && a.world == b.world && a.roots == b.roots
}
