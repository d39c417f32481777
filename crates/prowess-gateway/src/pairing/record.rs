//! Records of devices: what is known of each, in OpenClaw's words?
//!
//! What we do not know is kept as it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Approval, PairingError, allows, fresh_token};
use crate::device::settled;
use crate::scope::Role;

/// What a device that proved itself wants.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) device: String,
    pub(crate) public_key: String,
    pub(crate) role: Role,
    pub(crate) scopes: Vec<String>,
    pub(crate) display_name: Option<String>,
    pub(crate) platform: String,
    pub(crate) family: Option<String>,
    pub(crate) client: String,
    pub(crate) mode: String,
    pub(crate) remote_ip: Option<String>,
    /// Who approves it if it has to be approved.
    pub(crate) approval: Approval,
}

/// A device that waits for a person's word.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Pending {
    pub(crate) request_id: String,
    pub(crate) device_id: String,
    pub(crate) public_key: String,
    #[serde(flatten)]
    pub(crate) looks: Looks,
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) silent: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) is_repair: Option<bool>,
    pub(crate) ts: u64,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// What a device says about itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Looks {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) display_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) platform: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) device_family: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) client_mode: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) roles: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) remote_ip: Option<String>,
}

/// A device that may come in.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Paired {
    pub(crate) device_id: String,
    pub(crate) public_key: String,
    #[serde(flatten)]
    pub(crate) looks: Looks,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) scopes: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approved_scopes: Option<Vec<String>>,
    #[serde(default)]
    pub(crate) tokens: BTreeMap<String, DeviceToken>,
    #[serde(default)]
    created_at_ms: u64,
    #[serde(default)]
    pub(crate) approved_at_ms: u64,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// What a device knows that nobody else does, for one role.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeviceToken {
    pub(crate) token: String,
    pub(crate) role: String,
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    #[serde(default)]
    pub(crate) created_at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) rotated_at_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revoked_at_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_used_at_ms: Option<u64>,
}

impl Pending {
    pub(super) fn read(value: &Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }

    pub(crate) fn write(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    pub(super) fn new(wish: &Wish, now: u64, approval: Approval) -> Self {
        Self {
            request_id: uuid::Uuid::new_v4().to_string(),
            device_id: wish.device.clone(),
            public_key: wish.public_key.clone(),
            looks: Looks { roles: Some(vec![wish.role.as_str().to_owned()]), ..Looks::of(wish) },
            scopes: wish.scopes.clone(),
            silent: Some(approval == Approval::Silent),
            is_repair: None,
            ts: now,
            other: Map::new(),
        }
    }

    /// The same request, asked once more. What was to be approved by a person still is. One that asks for more than
    /// before is another request, so that nobody approves what they have not seen.
    pub(super) fn merged(self, wish: &Wish, now: u64, approval: Approval) -> Self {
        let request_id = if self.covers(wish) { self.request_id.clone() } else { uuid::Uuid::new_v4().to_string() };
        let role = self.looks.role.clone().or_else(|| Some(wish.role.as_str().to_owned()));
        let roles = self.looks.roles.iter().flatten().chain(&self.looks.role).cloned();
        let roles = distinct(roles.chain([wish.role.as_str().to_owned()]));
        Self {
            request_id,
            looks: Looks { role, roles: Some(roles), ..self.looks.renewed(wish) },
            public_key: wish.public_key.clone(),
            scopes: distinct(self.scopes.iter().chain(&wish.scopes).cloned()),
            silent: Some(self.silent == Some(true) && approval == Approval::Silent),
            ts: now,
            ..self
        }
    }

    /// Whether whoever approves this approves `wish`, too.
    pub(super) fn covers(&self, wish: &Wish) -> bool {
        let mut roles = self.looks.roles.iter().flatten().chain(&self.looks.role);
        let scopes = distinct(wish.scopes.iter().cloned());
        self.public_key == wish.public_key
            && roles.any(|role| role.trim() == wish.role.as_str())
            && scopes.iter().all(|wanted| self.scopes.iter().any(|scope| scope.trim() == wanted))
    }
}

impl Looks {
    fn of(wish: &Wish) -> Self {
        Self {
            display_name: wish.display_name.clone(),
            platform: Some(wish.platform.clone()),
            device_family: wish.family.clone(),
            client_id: Some(wish.client.clone()),
            client_mode: Some(wish.mode.clone()),
            role: Some(wish.role.as_str().to_owned()),
            roles: None,
            remote_ip: wish.remote_ip.clone(),
        }
    }

    fn renewed(&self, wish: &Wish) -> Self {
        let new = Self::of(wish);
        Self {
            display_name: new.display_name.or_else(|| self.display_name.clone()),
            platform: new.platform.or_else(|| self.platform.clone()),
            device_family: new.device_family.or_else(|| self.device_family.clone()),
            remote_ip: new.remote_ip.or_else(|| self.remote_ip.clone()),
            ..new
        }
    }
}

impl Paired {
    pub(super) fn read(value: &Value) -> Option<Self> {
        Self::deserialize(value).ok()
    }

    pub(super) fn write(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Without its tokens, for people.
    pub(crate) fn shown(&self) -> Value {
        let tokens: Vec<Value> = self.tokens.values().map(DeviceToken::shown).collect();
        let mut shown = self.write();
        if let Value::Object(shown) = &mut shown {
            shown.shift_remove("approvedScopes");
            shown.shift_remove("tokens");
            if !tokens.is_empty() {
                shown.insert("tokens".to_owned(), tokens.into());
            }
        }
        shown
    }

    /// What it may have, whatever it has now.
    pub(super) fn approved(&self) -> &[String] {
        self.approved_scopes.as_deref().or(self.scopes.as_deref()).unwrap_or_default()
    }

    pub(super) fn has_role(&self, role: Role) -> bool {
        self.roles().any(|own| own == role.as_str())
    }

    /// The role of that name, if it is one that it has.
    pub(super) fn role_named(&self, name: &str) -> Option<Role> {
        Role::parse(name.trim()).filter(|role| self.has_role(*role) || self.tokens.contains_key(role.as_str()))
    }

    fn roles(&self) -> impl Iterator<Item = &String> {
        let listed = self.looks.roles.iter().flatten();
        listed.chain(self.looks.role.iter().filter(|_| self.looks.roles.is_none()))
    }

    /// Whether it says that it is another kind of machine than the one that was approved.
    pub(super) fn is_other_machine(&self, wish: &Wish) -> bool {
        let differs = |pinned: Option<&str>, claimed: &str| {
            pinned.map(settled).is_some_and(|pinned| !pinned.is_empty() && pinned != settled(claimed))
        };
        differs(self.looks.platform.as_deref(), &wish.platform)
            || differs(self.looks.device_family.as_deref(), wish.family.as_deref().unwrap_or_default())
    }

    /// Notes how it came in. What kind of machine it is stays as it was approved.
    pub(super) fn seen(&mut self, wish: &Wish) {
        let pinned = (self.looks.platform.clone(), self.looks.device_family.clone());
        let roles = distinct(self.roles().cloned().chain([wish.role.as_str().to_owned()]));
        let scopes = distinct(self.scopes.iter().flatten().chain(&wish.scopes).cloned());
        self.looks =
            Looks { platform: pinned.0, device_family: pinned.1, roles: Some(roles), ..self.looks.renewed(wish) };
        self.scopes = Some(scopes);
    }

    pub(super) fn approved_from(pending: &Pending, before: Option<Self>, now: u64) -> Result<Self, PairingError> {
        // Another key is another device, and inherits nothing.
        let before = before.filter(|before| before.public_key == pending.public_key);
        let old_roles = before.iter().flat_map(Self::roles).cloned();
        let new_roles = pending.looks.roles.iter().flatten().chain(&pending.looks.role).cloned();
        let roles = distinct(old_roles.chain(new_roles));
        let old_scopes = before.as_ref().map(|before| before.approved().to_vec()).unwrap_or_default();
        let scopes = distinct(old_scopes.into_iter().chain(pending.scopes.clone()));
        let mut tokens = before.as_ref().map(|before| before.tokens.clone()).unwrap_or_default();
        if let Some(role) = pending.looks.role.as_deref().and_then(Role::parse) {
            let old = tokens.get(role.as_str());
            let wanted = sorted(pending.scopes.clone());
            let kept = old.map_or_else(|| sorted(scopes.clone()), |old| old.scopes.clone());
            let scopes = if wanted.is_empty() && role == Role::Operator { kept } else { wanted };
            let token = match old.filter(|old| old.revoked_at_ms.is_none()) {
                // A device that was given more keeps its token, which it may be using at this moment.
                Some(old) => DeviceToken { scopes, ..old.clone() },
                None => DeviceToken::new(role, scopes, old, now)?,
            };
            tokens.insert(role.as_str().to_owned(), token);
        }
        Ok(Self {
            device_id: pending.device_id.clone(),
            public_key: pending.public_key.clone(),
            looks: Looks { roles: Some(roles), ..pending.looks.clone() },
            scopes: Some(scopes.clone()),
            approved_scopes: Some(scopes),
            tokens,
            created_at_ms: before.as_ref().map_or(now, |before| before.created_at_ms),
            approved_at_ms: now,
            other: before.map(|before| before.other).unwrap_or_default(),
        })
    }

    /// Its token for a role; a new one if there is none, or none for these scopes.
    pub(super) fn token_for(&mut self, role: Role, scopes: &[String], now: u64) -> Result<DeviceToken, PairingError> {
        let old = self.tokens.get(role.as_str());
        if let Some(old) = old.filter(|old| old.revoked_at_ms.is_none() && allows(role, scopes, &old.scopes)) {
            return Ok(old.clone());
        }
        let token = DeviceToken::new(role, sorted(scopes.to_vec()), old, now)?;
        self.tokens.insert(role.as_str().to_owned(), token.clone());
        Ok(token)
    }
}

impl DeviceToken {
    pub(super) fn new(role: Role, scopes: Vec<String>, old: Option<&Self>, now: u64) -> Result<Self, PairingError> {
        Ok(Self {
            token: fresh_token()?,
            role: role.as_str().to_owned(),
            scopes,
            created_at_ms: old.map_or(now, |old| old.created_at_ms),
            rotated_at_ms: old.map(|_| now),
            revoked_at_ms: None,
            last_used_at_ms: old.and_then(|old| old.last_used_at_ms),
        })
    }

    fn shown(&self) -> Value {
        let mut shown = json!({"role": self.role, "scopes": self.scopes, "createdAtMs": self.created_at_ms});
        let times = [
            ("rotatedAtMs", self.rotated_at_ms),
            ("revokedAtMs", self.revoked_at_ms),
            ("lastUsedAtMs", self.last_used_at_ms),
        ];
        for (name, at) in times {
            if let Some(at) = at {
                shown[name] = at.into();
            }
        }
        shown
    }
}

/// Without the token.
impl std::fmt::Debug for DeviceToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceToken").field("role", &self.role).field("scopes", &self.scopes).finish_non_exhaustive()
    }
}

/// Each once, in the order in which they came.
fn distinct(items: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = Vec::new();
    for item in items {
        let item = item.trim();
        if !item.is_empty() && !seen.iter().any(|seen| seen == item) {
            seen.push(item.to_owned());
        }
    }
    seen
}

/// Each once, in the order of letters.
pub(super) fn sorted(items: Vec<String>) -> Vec<String> {
    let mut items = distinct(items);
    items.sort();
    items
}
