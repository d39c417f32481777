//! Skills in a conversation: which are there, and which has this turn used?

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use prowess_exec::SkillShare;
use prowess_skills::{Budget, Catalog, Command, Filters, Gate, Limits, Skill, SkillsConfig, Snapshot, World};
use tokio::sync::watch;

use crate::event::How;

/// The skills of a conversation, frozen.
pub struct SkillSet {
    /// Which there are, and what the model is told of them.
    pub snapshot: Snapshot,
    /// Their slash commands.
    pub commands: Vec<Command>,
    /// What a skill brings to its commands. Looked up when it is used, so that a key is fetched only then.
    share: ShareOf,
    /// Which skills each folder without links holds, by their places in the snapshot.
    folders: OnceLock<HashMap<PathBuf, Vec<usize>>>,
}

/// Finds what a skill brings to its commands, or says why that cannot be had.
pub type ShareOf = Arc<dyn Fn(&Skill) -> Result<SkillShare, String> + Send + Sync>;

impl SkillSet {
    /// The skills of `snapshot`.
    pub fn new(snapshot: Snapshot, commands: Vec<Command>, share: ShareOf) -> Self {
        Self { snapshot, commands, share, folders: OnceLock::new() }
    }

    /// The skill of that name, hidden ones included.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<Skill>> {
        self.snapshot.skills().iter().find(|skill| skill.name.as_str() == name)
    }

    /// The skill in whose folder `real` is, a path without links: of several the innermost. `asked` is how it was
    /// called, which decides where one folder is that of several skills.
    #[must_use]
    pub fn around(&self, asked: &Path, real: &Path) -> Option<&Arc<Skill>> {
        let all = self.snapshot.skills();
        let places = real.ancestors().find_map(|folder| self.folders().get(folder))?;
        let is_named = |place: &&usize| all.get(**place).is_some_and(|skill| asked.starts_with(skill.dir()));
        let place = places.iter().find(is_named).or_else(|| places.first())?;
        all.get(*place)
    }

    /// Where the folders of the skills really are; looked up once, for there can be thousands.
    fn folders(&self) -> &HashMap<PathBuf, Vec<usize>> {
        self.folders.get_or_init(|| {
            let mut folders: HashMap<PathBuf, Vec<usize>> = HashMap::new();
            for (place, skill) in self.snapshot.skills().iter().enumerate() {
                // A folder that is gone holds nothing.
                if let Ok(real) = skill.dir().canonicalize() {
                    folders.entry(real).or_default().push(place);
                }
            }
            folders
        })
    }

    /// What `skill` brings to its commands.
    pub fn share(&self, skill: &Skill) -> Result<SkillShare, String> {
        (self.share)(skill)
    }
}

impl Default for SkillSet {
    /// No skills.
    fn default() -> Self {
        let (world, config, filters) = (World::default(), SkillsConfig::default(), Filters::default());
        let gate = Gate { world: &world, config: &config, filters: &filters };
        let budget = Budget::from(&Limits::default());
        let snapshot = Snapshot::take(&Catalog::merge(Vec::new()), &gate, None, &budget);
        Self::new(snapshot, Vec::new(), Arc::new(|_| Ok(SkillShare::default())))
    }
}

impl std::fmt::Debug for SkillSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SkillSet").field("fingerprint", &self.snapshot.fingerprint()).finish_non_exhaustive()
    }
}

/// Where the newest skills are. Conversations take from it when a turn begins; whoever notices a change puts it there.
#[derive(Debug, Clone)]
pub struct SkillStore(Arc<watch::Sender<Arc<SkillSet>>>);

impl SkillStore {
    /// With these skills to begin with.
    #[must_use]
    pub fn new(skills: SkillSet) -> Self {
        Self(Arc::new(watch::Sender::new(Arc::new(skills))))
    }

    /// The newest.
    #[must_use]
    pub fn current(&self) -> Arc<SkillSet> {
        Arc::clone(&self.0.borrow())
    }

    /// Puts newer ones in their place. Skills with the same fingerprint change nothing.
    pub fn replace(&self, skills: SkillSet) {
        self.0.send_if_modified(|current| {
            let is_new = current.snapshot.fingerprint() != skills.snapshot.fingerprint();
            if is_new {
                *current = Arc::new(skills);
            }
            is_new
        });
    }

    /// Tells of every change.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Arc<SkillSet>> {
        self.0.subscribe()
    }
}

/// One use of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Its name.
    pub skill: String,
    /// Its `SKILL.md`.
    pub path: PathBuf,
    /// How it came to that.
    pub how: How,
}

/// The skills that one turn uses: from when they are taken up, by one of the ways in [`How`], to the end of the turn.
/// Copies share what they know.
#[derive(Debug, Clone, Default)]
pub struct Uses(Arc<Mutex<Vec<Used>>>);

/// A use, and of which skill.
type Used = (Use, Arc<Skill>);

impl Uses {
    /// Notes that `skill` is used. Says whether that is news.
    pub fn note(&self, skill: &Arc<Skill>, how: How) -> bool {
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if uses.iter().any(|(known, used)| used.name == skill.name && known.how == how) {
            return false;
        }
        let one = Use { skill: skill.name.to_string(), path: skill.file.clone(), how };
        uses.push((one, Arc::clone(skill)));
        true
    }

    /// Whether `skill` is used already.
    #[must_use]
    pub fn has(&self, skill: &Skill) -> bool {
        let uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        uses.iter().any(|(_, used)| used.name == skill.name)
    }

    /// The skills that are used, in the order in which they came into use.
    #[must_use]
    pub fn skills(&self) -> Vec<Arc<Skill>> {
        let uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut skills: Vec<Arc<Skill>> = Vec::new();
        for (_, skill) in uses.iter() {
            // A skill that was called on and then read is one skill.
            if !skills.iter().any(|known| known.name == skill.name) {
                skills.push(Arc::clone(skill));
            }
        }
        skills
    }

    /// Their names.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.skills().iter().map(|skill| skill.name.to_string()).collect()
    }

    /// All of it.
    #[must_use]
    pub fn all(&self) -> Vec<Use> {
        let uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        uses.iter().map(|(one, _)| one.clone()).collect()
    }
}
