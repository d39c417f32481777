//! Pairing: which devices may come in, as what, and with which scopes?
//!
//! Two files in the state directory, in OpenClaw's shapes: who is paired, and who would like to be; and one of our own: who
//! was removed. They are read anew for each step, because OpenClaw's own commands change them, too. A file that cannot be
//! read lets nobody in.

mod record;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prowess_files::Lock;
use serde_json::{Map, Value};
use thiserror::Error;

pub(crate) use record::{DeviceToken, Paired, Pending, Wish};

use crate::device::encode;
use crate::files::{self, FileError};
use crate::scope::{Role, covers};

/// How long a request to be paired is good, in milliseconds.
const PENDING_TTL: u64 = 300_000;

/// How long a request that was rejected is not asked again, in milliseconds.
const REJECTED_TTL: u64 = 30_000;

/// How long to wait for another process that writes.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many requests wait at once.
const MAX_PENDING: usize = 64;

/// How many devices that were removed are remembered.
const MAX_REMOVED: usize = 1_000;

/// Who is paired, and who would like to be.
#[derive(Debug)]
pub(crate) struct Pairing {
    folder: PathBuf,
    turn: Mutex<()>,
    /// Requests that were rejected a moment ago, and when.
    rejected: Mutex<Vec<(Pending, u64)>>,
}

/// Why a device has to be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It is unknown.
    NotPaired,
    /// It was let in as something else.
    RoleUpgrade,
    /// It wants to do more than it was let in for.
    ScopeUpgrade,
    /// It says that it is another kind of machine.
    MetadataUpgrade,
}

/// Who approves a device that has to be approved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Approval {
    /// Nobody has to, if it is only new or wants more: it is on this machine and knows the secret.
    Silent,
    /// A person.
    Asked,
}

/// What comes of a device that wants to come in.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It is known.
    Known(DeviceToken),
    /// It was approved just now.
    Approved { token: DeviceToken, request: String },
    /// A person has to approve it.
    Asked { pending: Box<Pending>, reason: Reason, is_new: bool },
}

/// Pairing came to nothing.
#[derive(Debug, Error)]
pub(crate) enum PairingError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("too many devices are waiting for approval; approve or reject some first")]
    Full,
    #[error("the request was refused a moment ago")]
    Rejected,
    #[error("unknown requestId")]
    UnknownRequest,
    #[error("unknown deviceId")]
    UnknownDevice,
    #[error("unknown deviceId/role")]
    UnknownRole,
    #[error("missing scope: {0}")]
    BeyondOwn(String),
    #[error("the system cannot provide random numbers")]
    Random,
}

impl Reason {
    /// As it is written.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NotPaired => "not-paired",
            Self::RoleUpgrade => "role-upgrade",
            Self::ScopeUpgrade => "scope-upgrade",
            Self::MetadataUpgrade => "metadata-upgrade",
        }
    }

    /// Whether a device on this machine needs a person's word for it.
    fn may_be_silent(self) -> bool {
        match self {
            Self::NotPaired | Self::ScopeUpgrade => true,
            Self::RoleUpgrade | Self::MetadataUpgrade => false,
        }
    }
}

/// Both files, as they are.
#[derive(Default, PartialEq, Clone)]
struct State {
    pending: Map<String, Value>,
    paired: Map<String, Value>,
    /// When devices were removed, in milliseconds. They do not come back without a person's word.
    removed: Map<String, Value>,
}

impl Pairing {
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self { folder: state_dir.join("devices"), turn: Mutex::default(), rejected: Mutex::default() }
    }

    /// Everybody: who waits, and who is paired, the newest first.
    pub(crate) fn list(&self, now: u64) -> Result<(Vec<Pending>, Vec<Paired>), PairingError> {
        let state = self.load(now)?;
        let mut pending: Vec<Pending> = state.pending.values().filter_map(Pending::read).collect();
        pending.sort_by_key(|pending| std::cmp::Reverse(pending.ts));
        let mut paired: Vec<Paired> = state.paired.values().filter_map(Paired::read).collect();
        paired.sort_by_key(|paired| std::cmp::Reverse(paired.approved_at_ms));
        Ok((pending, paired))
    }

    /// Lets a device in that has proven itself and knows a secret, or asks a person to.
    pub(crate) fn admit(&self, wish: &Wish, now: u64) -> Result<Admission, PairingError> {
        self.change(now, |state| {
            let reason = match state.paired(&wish.device) {
                Some(paired) => objection(&paired, wish),
                None => Some(Reason::NotPaired),
            };
            let Some(reason) = reason else {
                let mut paired = state.paired(&wish.device).ok_or(PairingError::UnknownDevice)?;
                paired.seen(wish);
                let token = paired.token_for(wish.role, &wish.scopes, now)?;
                state.put(&paired);
                return Ok(Admission::Known(token));
            };
            let is_silent = reason.may_be_silent() && !state.removed.contains_key(&wish.device);
            let approval = if is_silent { wish.approval } else { Approval::Asked };
            if approval == Approval::Asked && self.was_rejected(wish, now) {
                return Err(PairingError::Rejected);
            }
            let (pending, is_new) = state.ask(wish, approval, now)?;
            if pending.silent != Some(true) {
                return Ok(Admission::Asked { pending: Box::new(pending), reason, is_new });
            }
            let mut paired = state.approve(&pending, now)?;
            let token = paired.token_for(wish.role, &wish.scopes, now)?;
            state.put(&paired);
            Ok(Admission::Approved { token, request: pending.request_id })
        })
    }

    /// Whether that is the token of a device for that role and these scopes.
    pub(crate) fn knows_token(
        &self,
        device: &str,
        role: Role,
        scopes: &[String],
        token: &str,
        now: u64,
    ) -> Result<bool, PairingError> {
        self.change(now, |state| {
            let Some(mut paired) = state.paired(device) else { return Ok(false) };
            let Some(own) = paired.tokens.get_mut(role.as_str()) else { return Ok(false) };
            let is_known = own.revoked_at_ms.is_none()
                && crate::auth::is_equal(token, &own.token)
                && allows(role, scopes, &own.scopes);
            if is_known {
                own.last_used_at_ms = Some(now);
                state.put(&paired);
            }
            Ok(is_known)
        })
    }

    /// Whether a device that was let in has not been removed or lost its token for that role since.
    pub(crate) fn is_known(&self, device: &str, role: Role, now: u64) -> Result<bool, PairingError> {
        let paired = self.load(now)?.paired(device);
        let token = paired.as_ref().and_then(|paired| paired.tokens.get(role.as_str()));
        Ok(token.is_some_and(|token| token.revoked_at_ms.is_none()))
    }

    /// Approves a request, if `may_give` says yes to each scope it asks for.
    pub(crate) fn approve(
        &self,
        request: &str,
        may_give: impl Fn(&str) -> bool,
        now: u64,
    ) -> Result<Paired, PairingError> {
        self.change(now, |state| {
            let pending = state.pending.get(request).and_then(Pending::read).ok_or(PairingError::UnknownRequest)?;
            if let Some(beyond) = pending.scopes.iter().find(|scope| !may_give(scope)) {
                return Err(PairingError::BeyondOwn(beyond.clone()));
            }
            state.approve(&pending, now)
        })
    }

    /// Forgets a request, and returns whose it was.
    pub(crate) fn reject(&self, request: &str, now: u64) -> Result<String, PairingError> {
        let pending = self.change(now, |state| {
            let pending = state.pending.shift_remove(request);
            pending.as_ref().and_then(Pending::read).ok_or(PairingError::UnknownRequest)
        })?;
        let device = pending.device_id.clone();
        let mut rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        rejected.retain(|(old, at)| old.device_id != device && now.abs_diff(*at) < REJECTED_TTL);
        rejected.truncate(MAX_PENDING - 1);
        rejected.push((pending, now));
        Ok(device)
    }

    /// Whether a person said no to that a moment ago. A device that asks again and again would ask them again and again.
    fn was_rejected(&self, wish: &Wish, now: u64) -> bool {
        let rejected = self.rejected.lock().unwrap_or_else(PoisonError::into_inner);
        rejected
            .iter()
            .any(|(old, at)| old.device_id == wish.device && now.abs_diff(*at) < REJECTED_TTL && old.covers(wish))
    }

    /// Forgets a device.
    pub(crate) fn remove(&self, device: &str, now: u64) -> Result<(), PairingError> {
        self.change(now, |state| {
            state.paired.shift_remove(device).ok_or(PairingError::UnknownDevice)?;
            while state.removed.len() >= MAX_REMOVED {
                let Some(oldest) = state.removed.keys().next().cloned() else { break };
                state.removed.shift_remove(&oldest);
            }
            state.removed.insert(device.to_owned(), now.into());
            Ok(())
        })
    }

    /// Gives a device a new token for a role, which makes the old one useless.
    pub(crate) fn rotate(
        &self,
        device: &str,
        role: &str,
        scopes: Option<Vec<String>>,
        may_give: impl Fn(&str) -> bool,
        now: u64,
    ) -> Result<DeviceToken, PairingError> {
        self.change(now, |state| {
            let mut paired = state.paired(device).ok_or(PairingError::UnknownRole)?;
            let role = paired.role_named(role).ok_or(PairingError::UnknownRole)?;
            let before = paired.tokens.get(role.as_str());
            let scopes = scopes.or_else(|| before.map(|token| token.scopes.clone()));
            let scopes = record::sorted(scopes.unwrap_or_else(|| paired.approved().to_vec()));
            if !allows(role, &scopes, paired.approved()) {
                return Err(PairingError::UnknownRole);
            }
            if let Some(beyond) = scopes.iter().find(|scope| !may_give(scope)) {
                return Err(PairingError::BeyondOwn(beyond.clone()));
            }
            let token = DeviceToken { rotated_at_ms: Some(now), ..DeviceToken::new(role, scopes, before, now)? };
            paired.tokens.insert(role.as_str().to_owned(), token.clone());
            state.put(&paired);
            Ok(token)
        })
    }

    /// Makes the token of a device for a role useless.
    pub(crate) fn revoke(&self, device: &str, role: &str, now: u64) -> Result<(), PairingError> {
        self.change(now, |state| {
            let mut paired = state.paired(device).ok_or(PairingError::UnknownRole)?;
            let token = paired.tokens.get_mut(role).ok_or(PairingError::UnknownRole)?;
            token.revoked_at_ms = Some(now);
            state.put(&paired);
            Ok(())
        })
    }

    /// Changes what is in the files. Nobody else of us writes between the reading and the writing.
    fn change<T>(
        &self,
        now: u64,
        change: impl FnOnce(&mut State) -> Result<T, PairingError>,
    ) -> Result<T, PairingError> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let _lock = Lock::acquire(&self.folder.join(".lock"), PATIENCE).map_err(FileError::from)?;
        let mut state = self.load(now)?;
        let before = state.clone();
        let done = change(&mut state)?;
        if state.paired != before.paired {
            files::write_json(&self.folder.join("paired.json"), &Value::Object(state.paired))?;
        }
        if state.pending != before.pending {
            files::write_json(&self.folder.join("pending.json"), &Value::Object(state.pending))?;
        }
        if state.removed != before.removed {
            files::write_json(&self.folder.join("removed.json"), &Value::Object(state.removed))?;
        }
        Ok(done)
    }

    fn load(&self, now: u64) -> Result<State, PairingError> {
        let read = |name: &str| -> Result<Map<String, Value>, PairingError> {
            let path = self.folder.join(name);
            match files::read_json(&path)? {
                None => Ok(Map::new()),
                Some(Value::Object(records)) => Ok(records),
                Some(_) => Err(FileError::Broken { path, why: "it is not an object".to_owned() }.into()),
            }
        };
        let (pending, paired) = (read("pending.json")?, read("paired.json")?);
        let mut state = State { pending, paired, removed: read("removed.json")? };
        state.pending.retain(|_, pending| {
            Pending::read(pending).is_some_and(|pending| now.saturating_sub(pending.ts) <= PENDING_TTL)
        });
        Ok(state)
    }
}

impl State {
    fn paired(&self, device: &str) -> Option<Paired> {
        self.paired.get(device).and_then(Paired::read)
    }

    fn put(&mut self, paired: &Paired) {
        self.paired.insert(paired.device_id.clone(), paired.write());
    }

    /// Notes that a device wants in; one request per device. Tells whether people have to hear of it.
    fn ask(&mut self, wish: &Wish, approval: Approval, now: u64) -> Result<(Pending, bool), PairingError> {
        let waiting = self.pending.values().filter_map(Pending::read);
        let existing = waiting.into_iter().find(|pending| pending.device_id == wish.device);
        let before = existing.as_ref().map(|pending| pending.request_id.clone());
        if before.is_none() && self.pending.len() >= MAX_PENDING {
            return Err(PairingError::Full);
        }
        let mut pending = match existing {
            Some(pending) => pending.merged(wish, now, approval),
            None => Pending::new(wish, now, approval),
        };
        let is_new = before.as_ref() != Some(&pending.request_id);
        if let Some(before) = before.filter(|_| is_new) {
            self.pending.shift_remove(&before);
        }
        pending.is_repair = Some(pending.is_repair == Some(true) || self.paired.contains_key(&wish.device));
        self.pending.insert(pending.request_id.clone(), pending.write());
        Ok((pending, is_new))
    }

    fn approve(&mut self, pending: &Pending, now: u64) -> Result<Paired, PairingError> {
        let paired = Paired::approved_from(pending, self.paired(&pending.device_id), now)?;
        self.pending.shift_remove(&pending.request_id);
        self.removed.shift_remove(&pending.device_id);
        self.put(&paired);
        Ok(paired)
    }
}

/// Why a known device has to be approved again.
fn objection(paired: &Paired, wish: &Wish) -> Option<Reason> {
    if paired.public_key != wish.public_key {
        return Some(Reason::NotPaired);
    }
    if paired.is_other_machine(wish) {
        return Some(Reason::MetadataUpgrade);
    }
    if !paired.has_role(wish.role) {
        return Some(Reason::RoleUpgrade);
    }
    (!allows(wish.role, &wish.scopes, paired.scopes.as_deref().unwrap_or(paired.approved())))
        .then_some(Reason::ScopeUpgrade)
}

/// Whether who was given `allowed` may have `wanted`.
fn allows(role: Role, wanted: &[String], allowed: &[String]) -> bool {
    wanted.iter().all(|wanted| match role {
        Role::Operator => allowed.iter().any(|allowed| covers(allowed, wanted)),
        Role::Node => allowed.contains(wanted),
    })
}

/// A token that nobody can guess.
pub(crate) fn fresh_token() -> Result<String, PairingError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| PairingError::Random)?;
    Ok(encode(&bytes))
}

#[cfg(test)]
pub(crate) mod tests;
