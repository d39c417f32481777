//! Bindings: to which skill does an entry under `skills.entries` belong?
//!
//! An entry is found by a name, and any skill can take that name or claim it with `skillKey`. So what an entry gives (keys,
//! variables, grants) belongs to the skill that was there when prowess first saw the entry. That skill is told by its
//! *source*: tier and place, and the publisher where a registry recorded one. A bundled skill is the program's own, so a
//! newer version of it is the same source.
//!
//! The source must also declare no more than it did then: programs, variables, hosts, directories and sockets. A digest of the
//! whole manifest, or of the text, would ask again after every edit of a sentence, and people would learn to say yes. What a
//! declaration can widen is which commands get the key and where they can send it; a narrower one needs no question.
//!
//! The record is `skill-bindings.json` beside the leases. Without that file prowess has not run here before: whoever
//! gets an entry in OpenClaw keeps it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prowess_exec::leases::Leases;
use prowess_files::Lock;
use prowess_policy::lease::{HeldLease, Lease};
use prowess_skills::{Catalog, Problem, ProblemKind, Root, Skill, Tier};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::context::View;
use crate::failure::Failure;
use crate::fix;

/// The file in the state directory.
const FILE: &str = "skill-bindings.json";

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The longest text of a declaration that is stored as it is; of longer ones, a digest.
const MAX_ITEM: usize = 200;

/// The most that is read of what a registry recorded about a skill.
const MAX_ORIGIN: u64 = 16 * 1024;

/// How long to wait for another writer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The skills that each entry belongs to, by key. An empty list is an entry that was there before any skill of that key.
type Entries = BTreeMap<String, Vec<Binding>>;

#[derive(Serialize, Deserialize)]
struct BindingFile {
    version: u32,
    entries: Entries,
}

/// One skill that an entry belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Binding {
    source: String,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    declares: BTreeSet<String>,
    /// When it was recorded, in milliseconds since 1970.
    at: u64,
}

/// Which skill an entry belongs to, from the point of view of one skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryOwner {
    /// This skill's.
    This,
    /// That of the skills with these sources.
    Another(Vec<String>),
    /// This skill's, but it declares these things besides.
    Wider(Vec<String>),
    /// Nothing was recorded for it.
    Unrecorded,
}

/// What was recorded about the entries under `skills.entries`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bindings {
    entries: Entries,
    roots: Vec<(Tier, PathBuf)>,
}

/// The files that no command may see or change.
pub(crate) fn files(state_dir: &Path) -> [PathBuf; 2] {
    let file = state_dir.join(FILE);
    [file.with_extension("json.lock"), file]
}

/// Reads what was recorded, and records the entries that are new. What stands against that, and the skills that get
/// nothing of the entry with their key, are problems.
pub(crate) fn load(state_dir: &Path, section: &Value, catalog: &Catalog, roots: &[Root]) -> (Bindings, Vec<Problem>) {
    let roots = roots.iter().map(|root| (root.tier, root.path.clone())).collect();
    let mut bindings = Bindings { entries: Entries::new(), roots };
    let claims = claims(section, catalog);
    let file = state_dir.join(FILE);
    let stored = match read(&file) {
        Ok(stored) => stored,
        Err(why) => {
            let reason = format!("cannot read which skills the entries belong to, so they get no keys: {why}");
            let problem = Problem::new(ProblemKind::Setting, &file, reason, "correct the file, or move it away");
            return (bindings, vec![problem]);
        }
    };
    let is_first_run = stored.is_none();
    bindings.entries = stored.unwrap_or_default();
    let added = bindings.additions(&claims, is_first_run);
    let mut problems = Vec::new();
    if is_first_run || !added.is_empty() {
        match record(&file, &added) {
            Ok(entries) => bindings.entries = entries,
            // Without entries there is nothing to record that would be missed.
            Err(_) if added.is_empty() => {}
            Err(why) => {
                let reason = format!("cannot record which skills the entries belong to, so they get no keys: {why}");
                problems.push(Problem::new(ProblemKind::Setting, &file, reason, "make the folder writable"));
            }
        }
    }
    let strangers = claims.values().flatten().filter_map(|skill| Some((skill, bindings.objection(skill)?)));
    let strangers: Vec<(&&Skill, Problem)> = strangers.collect();
    if !strangers.is_empty() {
        // Who was given a key for good is no stranger any more. Leases that cannot be read are reported where they count.
        let leases = Leases::in_state_dir(state_dir).load().unwrap_or_default();
        let is_leased = |skill: &Skill| !leased(&leases, skill, &bindings.lease_source(skill)).keys.is_empty();
        problems.extend(strangers.into_iter().filter(|(skill, _)| !is_leased(skill)).map(|(_, problem)| problem));
    }
    (bindings, problems)
}

/// What a person allowed a skill from `source` for good, for any agent.
fn leased(leases: &[HeldLease], skill: &Skill, source: &str) -> Lease {
    let held = leases.iter().filter(|held| held.is_held_by(&held.agent, Some(skill.name.as_str()), Some(source)));
    held.fold(Lease::default(), |lease, held| lease.and(&held.lease))
}

impl View {
    /// What a person allowed `skill` for good. Leases that cannot be read allow nothing.
    #[must_use]
    pub fn leased(&self, skill: &Skill) -> Lease {
        let leases = Leases::in_state_dir(&self.context.locations.state_dir).load().unwrap_or_default();
        leased(&leases, skill, &self.bindings.lease_source(skill))
    }
}

/// The keys of entries that give something, with the skills that have these keys.
fn claims<'a>(section: &'a Value, catalog: &'a Catalog) -> BTreeMap<&'a str, Vec<&'a Skill>> {
    let gives = |entry: &Value| {
        let is_there = |name: &str| match &entry[name] {
            Value::Null => false,
            Value::Object(map) => !map.is_empty(),
            _ => true,
        };
        ["apiKey", "env", "sandbox", "capabilities"].into_iter().any(is_there)
    };
    let entries = section.as_object().into_iter().flatten().filter(|(_, entry)| gives(entry));
    let mut claims: BTreeMap<&str, Vec<&Skill>> = entries.map(|(key, _)| (key.as_str(), Vec::new())).collect();
    if !claims.is_empty() {
        for skill in catalog.skills() {
            if let Some(skills) = claims.get_mut(skill.key()) {
                skills.push(skill);
            }
        }
    }
    claims
}

/// Of several skills with one key, the one whose name it is; a single one otherwise.
fn natural<'a>(key: &str, claimants: &[&'a Skill]) -> Option<&'a Skill> {
    let named = claimants.iter().find(|skill| skill.name.as_str() == key);
    match claimants {
        [one] => Some(one),
        _ => named.copied(),
    }
}

impl Bindings {
    /// What has to be recorded: entries that are seen for the first time, and skills that were installed for an entry that
    /// was there before them. What appears in a workspace later is not an installation: a cloned project may have
    /// brought it, or an agent written it.
    fn additions(&self, claims: &BTreeMap<&str, Vec<&Skill>>, is_first_run: bool) -> Entries {
        let mut added = Entries::new();
        for (&key, claimants) in claims {
            let owners: Vec<&Skill> = match self.entries.get(key).map(Vec::as_slice) {
                None if is_first_run => claimants.clone(),
                None => natural(key, claimants).into_iter().collect(),
                Some([]) => {
                    let installed =
                        |skill: &&Skill| matches!(skill.tier, Tier::Bundled | Tier::Managed | Tier::Personal);
                    let owner = natural(key, claimants).filter(installed);
                    match owner {
                        Some(owner) => vec![owner],
                        None => continue,
                    }
                }
                Some(_) => continue,
            };
            added.insert(key.to_owned(), owners.into_iter().map(|skill| self.binding(skill)).collect());
        }
        added
    }

    fn binding(&self, skill: &Skill) -> Binding {
        Binding { source: self.source(skill), declares: stored(&declares(skill)), at: now() }
    }

    /// Where a skill comes from. Places below the state directory and the home are relative, so that a home can move.
    #[must_use]
    pub fn source(&self, skill: &Skill) -> String {
        let tier = skill.tier;
        let place = match tier {
            Tier::Bundled => return format!("bundled:{}", skill.name),
            Tier::Managed | Tier::Personal => {
                let mut roots = self.roots.iter().filter(|(root, _)| *root == tier);
                roots.find_map(|(_, root)| skill.dir().strip_prefix(root).ok()).unwrap_or(skill.dir())
            }
            Tier::Extra | Tier::Project | Tier::Workspace => skill.dir(),
        };
        let published = publisher(skill.dir()).map(|publisher| format!(" from {publisher}")).unwrap_or_default();
        format!("{}:{}{published}", tier.word(), place.display())
    }

    /// What leases for a skill are bound to: its source and, where it declares more than when its entry was recorded, that
    /// declaration.
    #[must_use]
    pub fn lease_source(&self, skill: &Skill) -> String {
        let source = self.source(skill);
        match self.owner(skill) {
            EntryOwner::Wider(_) => {
                let declared: Vec<String> = declares(skill).into_iter().collect();
                let digest = blake3::hash(declared.join("\n").as_bytes()).to_hex();
                format!("{source}#{}", &digest[..12])
            }
            EntryOwner::This | EntryOwner::Another(_) | EntryOwner::Unrecorded => source,
        }
    }

    /// Whose the entry with the key of `skill` is.
    #[must_use]
    pub fn owner(&self, skill: &Skill) -> EntryOwner {
        let Some(bound) = self.entries.get(skill.key()) else { return EntryOwner::Unrecorded };
        let source = self.source(skill);
        let Some(binding) = bound.iter().find(|binding| binding.source == source) else {
            return EntryOwner::Another(bound.iter().map(|binding| binding.source.clone()).collect());
        };
        let is_new = |item: &String| !binding.declares.contains(&stored_item(item));
        let more: Vec<String> = declares(skill).into_iter().filter(is_new).collect();
        if more.is_empty() { EntryOwner::This } else { EntryOwner::Wider(more) }
    }

    /// What a skill is told that gets nothing of the entry with its key.
    fn objection(&self, skill: &Skill) -> Option<Problem> {
        let entry = fix::entry_path(skill.key());
        let reason = match self.owner(skill) {
            EntryOwner::This | EntryOwner::Unrecorded => return None,
            EntryOwner::Another(sources) if sources.is_empty() => {
                format!("gets nothing of {entry}, which is older than this skill")
            }
            EntryOwner::Another(sources) => {
                format!("gets nothing of {entry}, which belongs to {}", sources.join(" and "))
            }
            EntryOwner::Wider(more) => {
                format!("gets nothing of {entry} any more: it now also declares {}", more.join(", "))
            }
        };
        let fix = format!("if you trust it, run: {}", fix::bind_skill(skill));
        Some(Problem::new(ProblemKind::Unbound, &skill.file, reason, fix))
    }
}

/// Gives `skill` what the entry with its key gives, from now on and as it declares itself now.
pub fn bind(view: &View, skill: &Skill) -> Result<(), Failure> {
    let file = view.context.locations.state_dir.join(FILE);
    let binding = view.bindings.binding(skill);
    let bound = change(&file, |entries| {
        let bindings = entries.entry(skill.key().to_owned()).or_default();
        bindings.retain(|other| other.source != binding.source);
        bindings.push(binding);
    });
    bound.map(|_| ()).map_err(|why| Failure::input(why).hint("make the folder writable, or correct the file"))
}

fn record(file: &Path, added: &Entries) -> Result<Entries, String> {
    change(file, |entries| {
        for (key, bindings) in added {
            // Another process may have been faster; what it recorded stays.
            let recorded = entries.entry(key.clone()).or_default();
            if recorded.is_empty() {
                recorded.clone_from(bindings);
            }
        }
    })
}

fn change(file: &Path, change: impl FnOnce(&mut Entries)) -> Result<Entries, String> {
    let dir = file.parent().unwrap_or(file);
    std::fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    let _lock = Lock::acquire(&file.with_extension("json.lock"), PATIENCE).map_err(|error| error.to_string())?;
    let mut entries = read(file)?.unwrap_or_default();
    change(&mut entries);
    let text = serde_json::to_string_pretty(&BindingFile { version: 1, entries: entries.clone() })
        .map_err(|error| error.to_string())?;
    prowess_files::replace(file, text.as_bytes()).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(entries)
}

/// What is recorded, if anything ever was.
fn read(file: &Path) -> Result<Option<Entries>, String> {
    let text = match std::fs::metadata(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
        Ok(meta) if meta.len() > MAX_BYTES => return Err("it is too large".to_owned()),
        Ok(_) => std::fs::read_to_string(file).map_err(|error| error.to_string())?,
    };
    let read: BindingFile = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    if read.version == 1 { Ok(Some(read.entries)) } else { Err("its `version` is not 1".to_owned()) }
}

/// What a skill declares that can widen who gets its keys and where they go. That of a bundled skill is the program's own.
fn declares(skill: &Skill) -> BTreeSet<String> {
    if skill.tier == Tier::Bundled {
        return BTreeSet::new();
    }
    let metadata = &skill.metadata;
    let programs = metadata.needs.bins.iter().chain(&metadata.needs.any_bins).map(|name| format!("the program {name}"));
    let variables = metadata.declared_env().map(|name| format!("the variable {name}"));
    let mut all: BTreeSet<String> = programs.chain(variables).collect();
    if let Some(declared) = &metadata.capabilities {
        all.extend(declared.network.iter().map(|(host, ports)| match ports.as_slice() {
            [] => format!("the host {host}"),
            ports => format!("the host {host}:{}", ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",")),
        }));
        all.extend(declared.reads.iter().map(|path| format!("reading {path}")));
        all.extend(declared.writes.iter().map(|path| format!("changing {path}")));
        all.extend(declared.sockets.iter().map(|path| format!("the socket {path}")));
        all.extend(declared.keeps_running.then(|| "running in the background".to_owned()));
    }
    all
}

fn stored(declares: &BTreeSet<String>) -> BTreeSet<String> {
    declares.iter().map(|item| stored_item(item)).collect()
}

fn stored_item(item: &str) -> String {
    if item.len() <= MAX_ITEM { item.to_owned() } else { blake3::hash(item.as_bytes()).to_hex().to_string() }
}

/// Who published the skill in `dir`, as the registry recorded it when it was installed. A skill can forge this, and gains
/// nothing: a publisher only tells two skills in one place apart.
fn publisher(dir: &Path) -> Option<String> {
    let file = [".clawhub", ".clawdhub"]
        .into_iter()
        .find_map(|name| std::fs::File::open(dir.join(name).join("origin.json")).ok())?;
    let mut text = String::new();
    file.take(MAX_ORIGIN).read_to_string(&mut text).ok()?;
    let origin: Value = serde_json::from_str(&text).ok()?;
    let part = |name: &str| origin[name].as_str().map(str::to_owned);
    let parts: Vec<String> = [part("registry"), part("ownerHandle"), part("slug")].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("/"))
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
