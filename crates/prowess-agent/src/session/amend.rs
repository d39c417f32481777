//! Amending: how do others change what the index says of a session?

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::index::{PATIENCE, known, name_of};
use super::{IndexError, OpenError, SessionKey, Sessions, files, fresh_id};
use crate::message::now;

/// What happens to the transcript of a session that is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transcripts {
    /// It stays where it is.
    Keep,
    /// It gets another name, under which it is no session any more.
    SetAside,
}

/// A session that was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    /// Whether there was one.
    pub was_there: bool,
    /// Where its transcript is now.
    pub set_aside: Vec<PathBuf>,
}

impl Sessions {
    /// Everything that the index says, by key. What is no session is left out. The entries are shared, not copied.
    pub fn entries(&self) -> Result<Vec<(String, Arc<Value>)>, IndexError> {
        let entries = self.index.entries()?;
        let sessions = entries.iter().filter(|(_, entry)| known(entry).is_some());
        Ok(sessions.map(|(key, entry)| (key.clone(), Arc::clone(entry))).collect())
    }

    /// What the index says of one session.
    pub fn entry(&self, key: &SessionKey) -> Result<Option<Value>, IndexError> {
        let entries = self.index.entries()?;
        Ok(entries.get(&name_of(&entries, key)).filter(|entry| known(entry).is_some()).map(|entry| Value::clone(entry)))
    }

    /// Brings everything that the index says into `sessions.json` itself.
    pub fn settle(&self) -> Result<(), IndexError> {
        self.index.settle()
    }

    /// Changes what the index says of a session, which is made if there is none. Gives back what it says then. Who
    /// refuses the change leaves everything as it was.
    pub fn amend<E>(
        &self,
        key: &SessionKey,
        change: impl FnOnce(&mut Map<String, Value>) -> Result<(), E>,
    ) -> Result<Result<Value, E>, OpenError> {
        self.check(key)?;
        self.make_folder()?;
        let (amended, _) = self.index.update(PATIENCE, key, |entry| {
            let before = entry.clone();
            if before.as_ref().and_then(known).is_none() {
                self.index.begin(entry, fresh_id());
            }
            let Some(fields) = entry.as_mut().and_then(Value::as_object_mut) else { return Ok(Value::Null) };
            match change(fields) {
                Ok(()) => {
                    fields.insert("updatedAt".to_owned(), now().into());
                    Ok(Value::Object(fields.clone()))
                }
                Err(refused) => {
                    *entry = before;
                    Err(refused)
                }
            }
        })?;
        Ok(amended)
    }

    /// Takes a session out of the index. Nobody may have it open.
    pub fn remove(&self, key: &SessionKey, transcripts: Transcripts) -> Result<Removed, OpenError> {
        self.check(key)?;
        self.make_folder()?;
        let (gone, _) = self.index.update(PATIENCE, key, |entry| entry.take().as_ref().and_then(known))?;
        let Some(gone) = gone else { return Ok(Removed::default()) };
        let mut removed = Removed { was_there: true, set_aside: Vec::new() };
        let path = files::path_of(&self.folder, &gone.id, gone.file.as_deref());
        if transcripts == Transcripts::SetAside && path.is_file() {
            let mut name = path.clone().into_os_string();
            name.push(format!(".deleted.{}", now()));
            let aside = PathBuf::from(name);
            std::fs::rename(&path, &aside).map_err(|source| OpenError::Io { path, source })?;
            removed.set_aside.push(aside);
        }
        Ok(removed)
    }
}

#[cfg(test)]
mod tests {
    use prowess_testkit::Tree;
    use serde_json::json;

    use super::*;

    fn place() -> (Tree, Sessions, SessionKey) {
        let tree = Tree::new();
        let sessions = Sessions::new(&tree.path("state"), "main");
        (tree, sessions, SessionKey::new("main", "work"))
    }

    #[test]
    fn an_entry_is_made_changed_and_read() {
        let (_tree, sessions, key) = place();
        assert_eq!(sessions.entry(&key).expect("an index"), None);
        let amended = sessions.amend(&key, |entry| {
            entry.insert("label".to_owned(), json!("Work"));
            Ok::<(), ()>(())
        });
        let entry = amended.expect("an index").expect("nobody refused");
        assert_eq!(entry["label"], "Work");
        assert_eq!(sessions.entry(&key).expect("an index").as_ref(), Some(&entry));
        assert_eq!(sessions.entries().expect("an index"), [(key.to_string(), Arc::new(entry))]);
    }

    #[test]
    fn a_change_that_is_refused_leaves_nothing_behind() {
        let (_tree, sessions, key) = place();
        let refused = sessions.amend(&key, |entry| {
            entry.insert("label".to_owned(), json!("Work"));
            Err("no")
        });
        assert_eq!(refused.expect("an index"), Err("no"));
        assert_eq!(sessions.entry(&key).expect("an index"), None);
    }

    #[test]
    fn a_removed_session_is_gone_and_its_transcript_set_aside() {
        let (tree, sessions, key) = place();
        drop(sessions.open(&key, &tree.path("")).expect("a session"));
        let removed = sessions.remove(&key, Transcripts::SetAside).expect("an index");
        assert!(removed.was_there && removed.set_aside[0].is_file(), "{removed:?}");
        assert_eq!(sessions.list().expect("an index"), []);
        assert_eq!(sessions.remove(&key, Transcripts::SetAside).expect("an index"), Removed::default());
    }
}
