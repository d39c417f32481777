//! The index: which session is behind a key?
//!
//! `sessions.json`, an object with one entry a key. Two programs write it, so what this one does not know stays as it is.
//! Writers take a lock, read it again, and put a new file in its place. An index that cannot be read is kept aside and
//! made again from the transcripts.

mod view;

use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use super::key::SessionKey;
use super::lock::{Lock, LockError};
use super::{IndexError, files};
use crate::event::End;
use crate::message::{Usage, now};
use crate::model::About;

use view::{Content, Entries, Files};

/// How long other writers are waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// How often a lock that another program holds is tried again.
const RETRY: Duration = Duration::from_millis(20);

/// The largest index that is read. The peer's entries have tens of kilobytes each.
const MAX_BYTES: u64 = 256 * 1_024 * 1_024;

/// How many broken indexes are kept aside before the oldest name is used again.
const MAX_BROKEN: usize = 1_000;

/// What of an entry belongs to one session and not to its key; a new session begins without it.
const OF_THE_SESSION: [&str; 14] = [
    "sessionFile",
    "systemSent",
    "abortedLastRun",
    "skillsSnapshot",
    "systemPromptReport",
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "totalTokensFresh",
    "contextTokens",
    "cacheRead",
    "cacheWrite",
    "compactionCount",
    "cliSessionIds",
];

/// The index of one agent's sessions. Clones share what was read last.
#[derive(Debug, Clone)]
pub(crate) struct Index {
    folder: PathBuf,
    files: Files,
}

/// A session as the index knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) id: String,
    pub(crate) file: Option<String>,
    pub(crate) updated: u64,
    pub(crate) model: Option<String>,
}

/// A session that was found or made, and what had to be mended for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) known: Known,
    pub(crate) mended: Option<String>,
}

/// What a turn was, in the words of the index: lists of sessions show it, here and in OpenClaw.
#[derive(Debug, Clone, Copy)]
pub struct Spent<'a> {
    /// Who answered.
    pub about: &'a About,
    /// Tokens of all calls of the model.
    pub usage: &'a Usage,
    /// Tokens of the last one.
    pub last: &'a Usage,
    /// How it ended.
    pub end: &'a End,
}

/// Something that the index says of a session.
pub(crate) type Field = (&'static str, Value);

impl Spent<'_> {
    pub(crate) fn fields(&self) -> Vec<Field> {
        let mut fields = vec![
            ("modelProvider", self.about.provider.as_str().into()),
            ("model", self.about.model.as_str().into()),
            ("abortedLastRun", (*self.end == End::Interrupted).into()),
        ];
        if self.about.context_window > 0 {
            fields.push(("contextTokens", self.about.context_window.into()));
        }
        // A turn without the model leaves the counts of the one before.
        if self.usage.total_tokens > 0 {
            let context = self.last.input + self.last.cache_read + self.last.cache_write;
            fields.extend([
                ("inputTokens", self.usage.input.into()),
                ("outputTokens", self.usage.output.into()),
                ("cacheRead", self.usage.cache_read.into()),
                ("cacheWrite", self.usage.cache_write.into()),
                ("totalTokens", context.into()),
                ("totalTokensFresh", (context > 0).into()),
            ]);
        }
        fields
    }
}

impl Index {
    /// The index in `folder`.
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), files: Files::new(folder) }
    }

    /// All sessions by their keys. A broken index gives what the transcripts say, and stays as it is.
    pub(crate) fn load(&self) -> Result<Vec<(String, Known)>, IndexError> {
        Ok(self.entries()?.iter().filter_map(|(key, entry)| Some((key.clone(), known(entry)?))).collect())
    }

    /// The same, with everything that is written of each.
    pub(super) fn entries(&self) -> Result<Arc<Entries>, IndexError> {
        Ok(match self.files.read().map_err(|error| self.io(error))? {
            Content::Entries(entries) => entries,
            Content::Missing | Content::Broken => Arc::new(self.rebuild()),
        })
    }

    /// Puts changes that wait beside the file into it, so that OpenClaw sees them, too.
    pub(crate) fn settle(&self) -> Result<(), IndexError> {
        if !self.files.has_changes() {
            return Ok(());
        }
        let _locked = self.lock(PATIENCE)?;
        match self.files.read().map_err(|error| self.io(error))? {
            Content::Entries(entries) => {
                self.files.write_whole(Entries::clone(&entries)).map_err(|error| self.io(error))
            }
            // The next change keeps a broken index aside.
            Content::Missing | Content::Broken => Ok(()),
        }
    }

    /// The session behind `key`, made by `fresh` if there is none yet.
    pub(crate) fn find(&self, key: &SessionKey, fresh: impl FnOnce() -> String) -> Result<Found, IndexError> {
        let look = |entries: &Entries| known(entries.get(&name_of(entries, key))?);
        // Whoever only looks needs no lock, for the file is always a whole one.
        if let Content::Entries(entries) = self.files.read().map_err(|error| self.io(error))?
            && let Some(found) = look(&entries)
        {
            return Ok(Found { known: found, mended: None });
        }
        let (known, mended) = self.update(PATIENCE, key, |entry| match entry.as_ref().and_then(known) {
            Some(found) => found,
            None => self.begin(entry, fresh()),
        })?;
        Ok(Found { known, mended })
    }

    /// A new session behind `key`. The transcript of the old one stays.
    pub(crate) fn reset(&self, key: &SessionKey, id: String) -> Result<Found, IndexError> {
        let (known, mended) = self.update(PATIENCE, key, |entry| {
            if let Some(entry) = entry.as_mut().and_then(Value::as_object_mut) {
                entry.retain(|field, _| !OF_THE_SESSION.contains(&field.as_str()));
            }
            self.begin(entry, id)
        })?;
        Ok(Found { known, mended })
    }

    /// Notes that the session was used just now, and what for, unless another took its place or somebody else is
    /// writing. Says whether there is nothing left to note.
    pub(crate) fn touch(&self, key: &SessionKey, id: &str, fields: &[Field]) -> Result<bool, IndexError> {
        let touched = self.update(Duration::ZERO, key, |entry| {
            if entry.as_ref().and_then(known).is_some_and(|known| known.id == id) {
                set(entry, "updatedAt", now().into());
                for (field, value) in fields {
                    set(entry, field, value.clone());
                }
            }
        });
        match touched {
            Err(IndexError::Busy { .. }) => Ok(false),
            other => other.map(|_| true),
        }
    }

    pub(super) fn begin(&self, entry: &mut Option<Value>, id: String) -> Known {
        let file = self.folder.join(files::name(&id)).to_string_lossy().into_owned();
        let updated = now();
        set(entry, "sessionId", id.clone().into());
        set(entry, "updatedAt", updated.into());
        set(entry, "sessionFile", file.clone().into());
        Known { id, file: Some(file), updated, model: None }
    }

    /// Changes the entry of `key`; none is no entry. Nobody else writes between the reading and the writing. Also says
    /// what had to be mended.
    pub(super) fn update<T>(
        &self,
        patience: Duration,
        key: &SessionKey,
        change: impl FnOnce(&mut Option<Value>) -> T,
    ) -> Result<(T, Option<String>), IndexError> {
        let _locked = self.lock(patience)?;
        let work = || {
            let (entries, mended) = match self.files.read()? {
                Content::Entries(entries) => (entries, None),
                // Somebody may have been killed after keeping it aside.
                Content::Missing => (Arc::new(self.rebuild()), None),
                Content::Broken => {
                    let kept = self.keep_aside()?;
                    let told = "the index of sessions was broken and was rebuilt from the transcripts";
                    (Arc::new(self.rebuild()), Some(format!("{told}; the old one is kept as {}", kept.display())))
                }
            };
            let name = name_of(&entries, key);
            let mut entry = entries.get(&name).map(|entry| Value::clone(entry));
            let done = change(&mut entry);
            self.files.write(&entries, &name, entry.as_ref())?;
            Ok((done, mended))
        };
        work().map_err(|error| self.io(error))
    }

    /// Keeps other threads and other programs from writing. No thread is kept waiting for longer than it is willing to
    /// because another one waits for a program.
    fn lock(&self, patience: Duration) -> Result<(MutexGuard<'_, ()>, Lock), IndexError> {
        let until = Instant::now() + patience;
        loop {
            let writing = self.files.writing.lock().unwrap_or_else(PoisonError::into_inner);
            match Lock::wait(&self.files.path, Duration::ZERO) {
                Ok(lock) => return Ok((writing, lock)),
                Err(LockError::Held(pid)) if Instant::now() >= until => {
                    return Err(IndexError::Busy { path: self.files.path.clone(), pid });
                }
                Err(LockError::Held(_)) => {}
                Err(LockError::Io(path, source)) => return Err(IndexError::Io { path, source }),
            }
            drop(writing);
            std::thread::sleep(RETRY);
        }
    }

    /// Moves a broken index out of the way. Says where it is then.
    fn keep_aside(&self) -> std::io::Result<PathBuf> {
        let name = |number: usize| self.folder.join(format!("sessions.json.broken-{number}"));
        let free = (1..MAX_BROKEN).map(name).find(|path| std::fs::symlink_metadata(path).is_err());
        let kept = free.unwrap_or_else(|| name(MAX_BROKEN));
        std::fs::rename(&self.files.path, &kept)?;
        Ok(kept)
    }

    /// What the first lines of the transcripts say. Where a key had several sessions, the newest counts.
    fn rebuild(&self) -> Entries {
        let mut found: Vec<_> = files::list(&self.folder)
            .into_iter()
            .filter_map(|file| Some((file.changed, files::key_of(&file.path)?, file.id)))
            .collect();
        found.sort();
        let mut entries = Entries::new();
        for (changed, key, id) in found {
            let mut entry = entries.shift_remove(&key).map(Arc::unwrap_or_clone);
            self.begin(&mut entry, id);
            set(&mut entry, "updatedAt", changed.into());
            entries.extend(entry.map(|entry| (key, Arc::new(entry))));
        }
        entries
    }

    fn io(&self, source: std::io::Error) -> IndexError {
        IndexError::Io { path: self.files.path.clone(), source }
    }
}

/// The name under which `key` stands in the index: older programs did not write them in lower case.
pub(super) fn name_of(entries: &Entries, key: &SessionKey) -> String {
    let name = key.to_string();
    if entries.contains_key(&name) {
        return name;
    }
    let is_it = |other: &&String| {
        let other = other.trim();
        other.eq_ignore_ascii_case(&name) || (!other.is_ascii() && other.to_lowercase() == name)
    };
    entries.keys().find(is_it).cloned().unwrap_or(name)
}

/// Reads an entry. One whose id is none, or leads elsewhere, is no entry.
pub(super) fn known(entry: &Value) -> Option<Known> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).map(str::to_owned);
    let id = text("sessionId").filter(|id| files::is_id(id))?;
    let updated = entry.get("updatedAt").and_then(Value::as_u64).unwrap_or_default();
    Some(Known { id, file: text("sessionFile"), updated, model: text("model") })
}

fn set(entry: &mut Option<Value>, field: &str, value: Value) {
    let entry = entry.get_or_insert_with(|| Value::Object(Map::new()));
    if !entry.is_object() {
        *entry = Value::Object(Map::new());
    }
    if let Some(entry) = entry.as_object_mut() {
        entry.insert(field.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use prowess_testkit::Tree;
    use serde_json::json;

    use super::*;

    fn written(tree: &Tree) -> Value {
        serde_json::from_str(&std::fs::read_to_string(tree.path("sessions.json")).expect("an index")).expect("JSON")
    }

    fn main_key() -> SessionKey {
        SessionKey::new("main", "main")
    }

    #[test]
    fn what_is_not_known_stays() {
        let before = json!({
            "Agent:Main:Main": {"sessionId": "one", "updatedAt": 1, "chatType": "direct", "skillsSnapshot": {"prompt": "p"}},
            "global": {"sessionId": "two", "updatedAt": 2},
            "odd": [1, 2, 3]
        });
        let tree = Tree::new().file("sessions.json", before.to_string());
        let index = Index::new(&tree.path(""));
        let found = index.find(&main_key(), || panic!("there is one")).expect("an index");
        assert_eq!(found.known.id, "one");
        assert_eq!(written(&tree), before);
        index.touch(&main_key(), "one", &[]).expect("an index");
        let mut after = written(&tree);
        assert!(after["Agent:Main:Main"]["updatedAt"].as_u64() > Some(1));
        after["Agent:Main:Main"]["updatedAt"] = 1.into();
        assert_eq!(after, before);

        index.reset(&main_key(), "three".to_owned()).expect("an index");
        let entry = &written(&tree)["Agent:Main:Main"];
        assert_eq!((&entry["sessionId"], &entry["chatType"]), (&json!("three"), &json!("direct")));
        assert_eq!(entry.get("skillsSnapshot"), None);
    }

    #[test]
    fn a_broken_index_is_kept_and_made_again() {
        for broken in ["{\"agent:main:main\": {\"sess", "[]", "", "\0\0\0"] {
            let header = r#"{"type":"session","version":3,"id":"abc","sessionKey":"agent:main:main"}"#;
            let tree = Tree::new().file("sessions.json", broken).file("abc.jsonl", header);
            let index = Index::new(&tree.path(""));
            let loaded = index.load().expect("an index");
            assert_eq!(
                loaded.iter().map(|(key, one)| (key.as_str(), one.id.as_str())).collect::<Vec<_>>(),
                [("agent:main:main", "abc")]
            );
            assert!(!tree.path("sessions.json.broken-1").exists(), "looking changes nothing");
            assert_eq!(index.find(&main_key(), || panic!("there is one")).expect("an index").known.id, "abc");
            assert_eq!(std::fs::read_to_string(tree.path("sessions.json.broken-1")).expect("kept"), broken);
            assert_eq!(written(&tree)["agent:main:main"]["sessionId"], "abc");
            std::fs::remove_file(tree.path("sessions.json")).expect("it was there");
            assert_eq!(index.find(&main_key(), || panic!("there is one")).expect("an index").known.id, "abc");
        }
    }

    #[test]
    fn an_id_that_leads_elsewhere_is_none() {
        for id in ["../../etc/passwd", "", ".", "a/b", "-x", "a\0b"] {
            let before = json!({"agent:main:main": {"sessionId": id, "updatedAt": 1}});
            let tree = Tree::new().file("sessions.json", before.to_string());
            let found = Index::new(&tree.path("")).find(&main_key(), || "fresh".to_owned()).expect("an index");
            assert_eq!(found.known.id, "fresh", "{id:?}");
        }
    }

    /// The fields that OpenClaw 2026.3.2 writes after a turn of two calls, as it was seen to write them.
    #[test]
    fn a_turn_leaves_what_lists_show() {
        let tree = Tree::new();
        let index = Index::new(&tree.path(""));
        index.find(&main_key(), || "one".to_owned()).expect("an index");
        let about = About {
            provider: "loop".to_owned(),
            model: "m1".to_owned(),
            api: crate::model::Api::Chat,
            context_window: 64_000,
            max_tokens: 2_000,
            takes_images: false,
        };
        let call = Usage { input: 50, output: 5, ..Usage::default() }.totalled();
        let mut both = call;
        both += call;
        let spent = Spent { about: &about, usage: &both, last: &call, end: &End::Answered };
        index.touch(&main_key(), "one", &spent.fields()).expect("an index");
        let mut entry = written(&tree)["agent:main:main"].clone();
        for other in ["sessionId", "sessionFile", "updatedAt"] {
            entry.as_object_mut().expect("an entry").remove(other).expect("it is there");
        }
        let expected = json!({
            "modelProvider": "loop", "model": "m1", "contextTokens": 64_000, "abortedLastRun": false,
            "inputTokens": 100, "outputTokens": 10, "totalTokens": 50, "totalTokensFresh": true,
            "cacheRead": 0, "cacheWrite": 0,
        });
        assert_eq!(entry, expected);

        let nothing = Usage::default();
        let spent = Spent { usage: &nothing, last: &nothing, end: &End::Interrupted, ..spent };
        index.touch(&main_key(), "one", &spent.fields()).expect("an index");
        let entry = &written(&tree)["agent:main:main"];
        assert_eq!((&entry["abortedLastRun"], &entry["totalTokens"]), (&json!(true), &json!(50)));
    }

    /// An index of many sessions is not written for each of them, and nothing is lost when the program is killed.
    #[test]
    fn a_large_index_takes_changes_beside_it_and_every_reader_sees_them() {
        let before = large();
        let tree = Tree::new().file("sessions.json", Value::Object(before.clone()).to_string());
        let index = Index::new(&tree.path(""));
        let new = |number: usize| SessionKey::new("main", &format!("new{number}"));
        for number in 0..20 {
            index.find(&new(number), || format!("fresh{number}")).expect("an index");
        }
        index.touch(&SessionKey::new("main", "s7"), "id7", &[("model", "m".into())]).expect("an index");
        assert_eq!(written(&tree), Value::Object(before), "the file itself is as it was");
        // Another program, or this one after it was killed in the middle of a line.
        let changes = tree.path("sessions.json.changes");
        let torn = std::fs::read_to_string(&changes).expect("changes") + "{\"key\": \"agent:main:to";
        std::fs::write(&changes, torn).expect("written");
        let other = Index::new(&tree.path(""));
        assert_eq!(other.find(&new(3), || panic!("there is one")).expect("an index").known.id, "fresh3");
        assert_eq!(other.load().expect("an index").len(), 2_020);
        other.settle().expect("an index");
        let after = written(&tree);
        assert_eq!(
            (&after["agent:main:new19"]["sessionId"], &after["agent:main:s7"]["model"]),
            (&json!("fresh19"), &json!("m"))
        );
        assert!(!changes.exists());
        index.reset(&new(3), "again".to_owned()).expect("an index");
        assert_eq!(index.find(&new(3), || panic!("there is one")).expect("an index").known.id, "again");
    }

    fn large() -> Map<String, Value> {
        let entry = |number: usize| {
            (format!("agent:main:s{number}"), json!({"sessionId": format!("id{number}"), "x": "y".repeat(50)}))
        };
        (0..2_000).map(entry).collect()
    }

    #[test]
    fn what_openclaw_wrote_after_a_change_counts() {
        let tree = Tree::new().file("sessions.json", Value::Object(large()).to_string());
        let index = Index::new(&tree.path(""));
        let (reset, removed) = (SessionKey::new("main", "s7"), SessionKey::new("main", "s8"));
        index.reset(&reset, "ours".to_owned()).expect("an index");
        index.update(PATIENCE, &removed, |entry| *entry = None).expect("an index");
        assert!(tree.path("sessions.json.changes").exists());
        let mut theirs = large();
        for key in [&reset, &removed] {
            theirs.insert(key.to_string(), json!({"sessionId": "theirs", "updatedAt": now() + 10_000}));
        }
        std::fs::write(tree.path("sessions.json"), Value::Object(theirs).to_string()).expect("written");
        for key in [&reset, &removed] {
            assert_eq!(index.find(key, || panic!("there is one")).expect("an index").known.id, "theirs");
        }
        index.settle().expect("an index");
        assert_eq!(written(&tree)["agent:main:s7"]["sessionId"], "theirs");
    }

    #[test]
    fn changes_that_were_begun_anew_are_read_from_their_beginning() {
        let tree = Tree::new().file("sessions.json", Value::Object(large()).to_string());
        let index = Index::new(&tree.path(""));
        index.find(&SessionKey::new("main", "new"), || "fresh".to_owned()).expect("an index");
        let changes = tree.path("sessions.json.changes");
        let length = std::fs::read(&changes).expect("changes").len();
        let change = json!({"key": "agent:main:other", "set": {"sessionId": "theirs", "x": "y".repeat(length)}});
        std::fs::write(&changes, format!("{}\n{change}\n", json!({"series": "another"}))).expect("written");
        let found = index.find(&SessionKey::new("main", "other"), || panic!("there is one"));
        assert_eq!(found.expect("an index").known.id, "theirs");
    }

    #[test]
    fn a_broken_index_is_not_written_over_when_changes_are_brought_in() {
        let tree = Tree::new().file("sessions.json", "{\"half").file("sessions.json.changes", "{}\n");
        Index::new(&tree.path("")).settle().expect("nothing to do");
        assert_eq!(std::fs::read_to_string(tree.path("sessions.json")).expect("kept"), "{\"half");
    }

    #[test]
    fn touching_never_brings_an_old_session_back() {
        let tree = Tree::new();
        let index = Index::new(&tree.path(""));
        index.find(&main_key(), || "old".to_owned()).expect("an index");
        index.reset(&main_key(), "new".to_owned()).expect("an index");
        let before = written(&tree);
        index.touch(&main_key(), "old", &[]).expect("an index");
        assert_eq!(written(&tree), before);
    }
}
