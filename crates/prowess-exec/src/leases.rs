//! Leases on disk and in memory: what did people allow, and for how long?
//!
//! What is allowed for good is in `exec-leases.json` beside the approvals, written atomically under a lock. What is allowed
//! for a conversation is kept in memory and ends with the process.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use prowess_policy::approvals::MAIN;
use prowess_policy::lease::{HeldLease, Lease, Lifetime, Origin};
use prowess_policy::{Answer, quote};
use serde::{Deserialize, Serialize};

use crate::audit::now;
use crate::store::{LockedFile, StoreError};

/// The most conversations that are remembered.
const MAX_SESSIONS: usize = 10_000;

#[derive(Serialize, Deserialize)]
struct LeaseFile {
    version: u32,
    leases: Vec<HeldLease>,
}

/// The holder of leases: an agent in one session, for the commands of one skill or for those of no skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The agent.
    pub agent: String,
    /// The conversation.
    pub session: String,
    /// The skill's name, and where it comes from.
    pub skill: Option<(String, String)>,
}

impl Holder {
    fn holds(&self, held: &HeldLease) -> bool {
        let (name, source) = self.skill.as_ref().map(|(name, source)| (name.as_str(), source.as_str())).unzip();
        held.is_held_by(&self.agent, name, source)
    }

    /// The command that lets it use `lease` from now on.
    #[must_use]
    pub fn allow_command(&self, lease: &Lease) -> String {
        let mut words = vec!["prowess".to_owned(), "leases".to_owned(), "allow".to_owned()];
        if self.agent != MAIN {
            words.extend(["--agent".to_owned(), self.agent.clone()]);
        }
        if let Some((name, _)) = &self.skill {
            words.extend(["--skill".to_owned(), name.clone()]);
        }
        words.extend(lease.flags());
        words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
    }
}

/// All leases that people gave.
#[derive(Debug, Clone)]
pub struct Leases {
    file: LockedFile,
    sessions: Arc<Mutex<HashMap<String, Vec<HeldLease>>>>,
}

impl Leases {
    /// Those in this state directory.
    #[must_use]
    pub fn in_state_dir(state_dir: &Path) -> Self {
        Self { file: LockedFile::new(state_dir.join("exec-leases.json")), sessions: Arc::default() }
    }

    /// Where those that last are kept.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Where the lock of that file is.
    #[must_use]
    pub fn lock_path(&self) -> PathBuf {
        self.file.lock_path()
    }

    /// Those that last.
    pub fn load(&self) -> Result<Vec<HeldLease>, StoreError> {
        self.parse(self.file.read()?.as_deref())
    }

    fn parse(&self, text: Option<&str>) -> Result<Vec<HeldLease>, StoreError> {
        let Some(text) = text else { return Ok(Vec::new()) };
        let file: LeaseFile = serde_json::from_str(text).map_err(|error| self.file.broken(&error))?;
        if file.version != 1 {
            return Err(self.file.broken(&"its `version` is not 1"));
        }
        Ok(file.leases)
    }

    /// What `holder` holds, all together.
    pub fn held(&self, holder: &Holder) -> Result<Lease, StoreError> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let own = sessions.get(&holder.session).into_iter().flatten().cloned();
        let all: Vec<HeldLease> = self.load()?.into_iter().chain(own).collect();
        let mine = all.iter().filter(|held| holder.holds(held));
        Ok(mine.fold(Lease::default(), |lease, held| lease.and(&held.lease)))
    }

    /// Keeps what a person allowed beyond the sandbox for as long as they said.
    pub fn keep_answer(&self, holder: &Holder, lease: Lease, answer: Answer) -> Result<(), StoreError> {
        let lifetime = match answer {
            Answer::Session => Lifetime::Session,
            Answer::Always => Lifetime::Always,
            Answer::Once | Answer::No => return Ok(()),
        };
        if lease.is_empty() { Ok(()) } else { self.keep(holder, lease, (Origin::Answer, lifetime)) }
    }

    /// Keeps `lease` for `holder`.
    pub fn keep(
        &self,
        holder: &Holder,
        lease: Lease,
        (origin, lifetime): (Origin, Lifetime),
    ) -> Result<(), StoreError> {
        let (skill, source) = holder.skill.clone().unzip();
        let id = uuid::Uuid::new_v4().to_string();
        let held = HeldLease { id, agent: holder.agent.clone(), skill, source, lease, origin, lifetime, at: now() };
        match lifetime {
            Lifetime::Command => Ok(()),
            Lifetime::Session => {
                let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
                if sessions.len() < MAX_SESSIONS || sessions.contains_key(&holder.session) {
                    sessions.entry(holder.session.clone()).or_default().push(held);
                }
                Ok(())
            }
            Lifetime::Always => self.change(|leases| {
                let says_the_same = |one: &HeldLease| holder.holds(one) && !held.lease.is_wider_than(&one.lease);
                if !leases.iter().any(says_the_same) {
                    leases.push(held);
                }
            }),
        }
    }

    /// Revokes the lease whose id begins like this, or all that are for this skill or allow this host, path or key, and
    /// tells how many there were.
    pub fn revoke(&self, wanted: &str) -> Result<usize, StoreError> {
        let mut removed = 0;
        self.change(|leases| {
            let before = leases.len();
            leases.retain(|held| {
                let is_it = wanted.len() >= 4 && held.id.starts_with(wanted);
                let is_host =
                    |rule: &str| rule == wanted || rule.rsplit_once(':').is_some_and(|(host, _)| host == wanted);
                let names_it = held.lease.flags().iter().any(|value| is_host(value));
                !is_it && !names_it && held.skill.as_deref() != Some(wanted)
            });
            removed = before - leases.len();
        })?;
        Ok(removed)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<HeldLease>)) -> Result<(), StoreError> {
        self.file.update(|text| {
            let mut leases = self.parse(text)?;
            change(&mut leases);
            let text = serde_json::to_string_pretty(&LeaseFile { version: 1, leases });
            Ok((Some(text.map_err(|error| self.file.broken(&error))?), ()))
        })
    }
}
