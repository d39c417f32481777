//! Auth profiles: which of the credentials that OpenClaw keeps for an agent is used?
//!
//! OpenClaw keeps keys, tokens and OAuth logins in `agents/<id>/agent/auth-profiles.json`. The agent's own file comes before
//! that of `main`. Prowess reads it in the same order and never writes it, so it cannot renew a login that has expired.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use prowess_skills::Secret;
use serde_json::{Map, Value};

use super::{Key, KeySource};
use crate::message::now;

/// How much of a file is read.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The agent whose file all agents share.
const MAIN: &str = "main";

/// The credentials of an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AuthProfiles {
    profiles: Vec<(String, Profile)>,
    /// Which profiles to use, by provider, as the file says.
    order: Map<String, Value>,
    stats: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq)]
struct Profile {
    provider: String,
    kind: Kind,
    /// The key, the token, or the access token.
    secret: Option<Secret>,
    /// The variable that has it.
    variable: Option<String>,
    /// When it ends, in milliseconds since 1970.
    expires: Option<u64>,
    /// Whether a login could be renewed by OpenClaw.
    can_renew: bool,
}

/// A kind of credential, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    OAuth,
    Token,
    ApiKey,
}

impl AuthProfiles {
    /// Reads the files of `agent` below `state_dir`. What is not there or cannot be read counts as empty.
    #[must_use]
    pub fn load(state_dir: &Path, agent: &str) -> Self {
        let read = |agent: &str| {
            let path = state_dir.join("agents").join(agent).join("agent").join("auth-profiles.json");
            let mut text = String::new();
            File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text)).ok()?;
            serde_json::from_str::<Value>(&text).ok()
        };
        let shared = read(MAIN).unwrap_or_default();
        if agent == MAIN {
            return Self::parse(&[shared]);
        }
        Self::parse(&[shared, read(agent).unwrap_or_default()])
    }

    /// The profiles of these files; a later file wins over an earlier one.
    #[must_use]
    pub fn parse(files: &[Value]) -> Self {
        let mut found = Self::default();
        for file in files {
            for (id, written) in file["profiles"].as_object().into_iter().flatten() {
                let Some(profile) = Profile::parse(written) else { continue };
                found.profiles.retain(|(known, _)| known != id);
                found.profiles.push((id.clone(), profile));
            }
            for (part, place) in [("order", &mut found.order), ("usageStats", &mut found.stats)] {
                place.extend(file[part].as_object().cloned().unwrap_or_default());
            }
        }
        found
    }

    /// The key for `provider`, if a profile has one: `auth` is that section of the configuration.
    pub(super) fn key(&self, provider: &str, auth: &Value, env: &dyn Fn(&str) -> Option<String>) -> Option<Key> {
        let mut expired = None;
        for id in self.ordered(provider, auth) {
            let Some(profile) = self.find(id) else { continue };
            if profile.is_over() {
                expired.get_or_insert_with(|| Key::Expired(id.to_owned()));
                continue;
            }
            let given = profile.variable.as_deref().and_then(env).map(Secret::new);
            if let Some(secret) = profile.secret.clone().or(given) {
                return Some(Key::Present(secret, KeySource::Profile(id.to_owned())));
            }
        }
        expired
    }

    fn find(&self, id: &str) -> Option<&Profile> {
        self.profiles.iter().find(|(known, _)| known == id).map(|(_, profile)| profile)
    }

    /// The profiles of `provider` in the order in which they are tried. Those that were told to wait come last.
    fn ordered<'a>(&'a self, provider: &str, auth: &'a Value) -> Vec<&'a str> {
        let provider = canonical(provider);
        let is_own = |id: &&str| {
            let Some(profile) = self.find(id) else { return false };
            canonical(&profile.provider) == provider && profile.fits(&auth["profiles"][*id])
        };
        let named = named(&self.order, &provider).or_else(|| named(auth["order"].as_object()?, &provider));
        let declared = || -> Vec<&str> {
            let declared = auth["profiles"].as_object().into_iter().flatten();
            let own = declared.filter(|(_, one)| one["provider"].as_str().is_some_and(|of| canonical(of) == provider));
            own.map(|(id, _)| id.as_str()).collect()
        };
        let all = || self.profiles.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>();
        let is_named = named.is_some();
        let mut ids = named.unwrap_or_else(declared);
        if ids.iter().all(|id| self.find(id).is_none()) && (!is_named || ids.is_empty()) {
            ids = all();
        }
        let mut ids: Vec<&str> = ids.into_iter().filter(is_own).collect();
        if !is_named {
            ids.sort_by_key(|id| (self.find(id).map(|profile| profile.kind), self.stat(id, "lastUsed")));
        }
        ids.sort_by_key(|id| self.waits_until(id, &provider));
        ids
    }

    fn stat(&self, id: &str, name: &str) -> u64 {
        self.stats.get(id).and_then(|stats| stats[name].as_f64()).map_or(0, millis)
    }

    /// Until when a profile should not be used; 0 when it may.
    fn waits_until(&self, id: &str, provider: &str) -> u64 {
        let until = self.stat(id, "cooldownUntil").max(self.stat(id, "disabledUntil"));
        // OpenRouter has many providers behind one key.
        if provider == "openrouter" || until <= now() { 0 } else { until }
    }
}

impl Profile {
    fn parse(written: &Value) -> Option<Self> {
        let text = |names: &[&str]| {
            let found = names.iter().find_map(|name| written[*name].as_str());
            found.map(str::trim).filter(|text| !text.is_empty())
        };
        let (kind, secret, reference) = match text(&["type", "mode"])? {
            "api_key" => (Kind::ApiKey, text(&["key", "apiKey"]), &written["keyRef"]),
            "token" => (Kind::Token, text(&["token"]), &written["tokenRef"]),
            "oauth" => (Kind::OAuth, text(&["access"]), &Value::Null),
            _ => return None,
        };
        let is_variable = reference["source"] == "env";
        Some(Self {
            provider: text(&["provider"])?.to_owned(),
            kind,
            secret: secret.map(Secret::new),
            variable: reference["id"].as_str().filter(|_| is_variable).map(str::to_owned),
            expires: written["expires"].as_f64().map(millis).filter(|expires| *expires > 0),
            can_renew: text(&["refresh"]).is_some(),
        })
    }

    /// Whether the configuration, which may say what kind a profile is, agrees.
    fn fits(&self, declared: &Value) -> bool {
        let agrees = |mode: &str| match self.kind {
            Kind::ApiKey => mode == "api_key",
            Kind::Token => matches!(mode, "token" | "oauth"),
            Kind::OAuth => mode == "oauth",
        };
        let is_same = declared["provider"].as_str().is_none_or(|of| canonical(of) == canonical(&self.provider));
        is_same && declared["mode"].as_str().is_none_or(agrees)
    }

    /// Whether it has ended: a token or a login that would have to be renewed.
    fn is_over(&self) -> bool {
        let has_ended = self.expires.is_some_and(|expires| expires <= now());
        match self.kind {
            Kind::ApiKey => false,
            Kind::Token => has_ended,
            Kind::OAuth => has_ended || (self.secret.is_none() && self.can_renew),
        }
    }
}

/// The list under the name of `provider`, if it says anything.
fn named<'a>(lists: &'a Map<String, Value>, provider: &str) -> Option<Vec<&'a str>> {
    let (_, list) = lists.iter().find(|(name, _)| canonical(name) == provider)?;
    let ids: Vec<&str> = list.as_array()?.iter().filter_map(Value::as_str).map(str::trim).collect();
    let ids: Vec<&str> = ids.into_iter().filter(|id| !id.is_empty()).collect();
    (!ids.is_empty()).then_some(ids)
}

/// The one name of a provider that has several.
fn canonical(provider: &str) -> String {
    let name = provider.trim().to_lowercase();
    let one = match name.as_str() {
        "z.ai" | "z-ai" => "zai",
        "opencode-zen" => "opencode",
        "qwen" => "qwen-portal",
        "kimi-code" => "kimi-coding",
        "bedrock" | "aws-bedrock" => "amazon-bedrock",
        "bytedance" | "doubao" | "volcengine-plan" => "volcengine",
        "byteplus-plan" => "byteplus",
        other => other,
    };
    one.to_owned()
}

fn millis(number: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is brought into range before")]
    let millis = number.clamp(0.0, 9e15) as u64;
    millis
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::Settings;

    const FAR: u64 = 9_000_000_000_000;

    fn used(file: &Value, auth: &Value) -> String {
        let env = |name: &str| (name == "OTHER_KEY").then(|| "k-env".to_owned());
        match AuthProfiles::parse(std::slice::from_ref(file)).key("anthropic", auth, &env) {
            Some(Key::Present(secret, KeySource::Profile(id))) => format!("{id}={}", secret.expose()),
            Some(Key::Expired(id)) => format!("{id} has expired"),
            other => format!("{other:?}"),
        }
    }

    fn key(key: &str) -> Value {
        json!({"type": "api_key", "provider": "anthropic", "key": key})
    }

    #[test]
    fn profiles_are_tried_in_openclaws_order() {
        let login = |expires: u64| json!({"type": "oauth", "provider": "anthropic", "access": "a", "refresh": "r", "expires": expires});
        let token = |expires: u64| json!({"type": "token", "provider": "Anthropic", "token": "t", "expires": expires});
        let table = [
            (json!({"a:k": key("1")}), json!({}), "a:k=1"),
            // Logins first, then tokens, then keys.
            (json!({"a:k": key("1"), "a:t": token(FAR), "a:o": login(FAR)}), json!({}), "a:o=a"),
            (json!({"a:k": key("1"), "a:t": token(FAR)}), json!({}), "a:t=t"),
            // What has expired is passed over, and named when nothing else is there.
            (json!({"a:k": key("1"), "a:t": token(1), "a:o": login(1)}), json!({}), "a:k=1"),
            (json!({"a:o": login(1)}), json!({}), "a:o has expired"),
            // Other spellings, and a reference.
            (json!({"a:m": {"mode": "api_key", "provider": "anthropic", "apiKey": "2"}}), json!({}), "a:m=2"),
            (
                json!({"a:r": {"type": "api_key", "provider": "anthropic", "keyRef": {"source": "env", "id": "OTHER_KEY"}}}),
                json!({}),
                "a:r=k-env",
            ),
            // The configuration orders, and says what kind a profile is.
            (json!({"a:1": key("1"), "a:2": key("2")}), json!({"order": {"anthropic": ["a:2", "a:1"]}}), "a:2=2"),
            (
                json!({"a:1": key("1"), "a:2": key("2")}),
                json!({"profiles": {"a:2": {"provider": "anthropic", "mode": "api_key"}}}),
                "a:2=2",
            ),
            (
                json!({"a:1": key("1")}),
                json!({"profiles": {"a:1": {"provider": "anthropic", "mode": "token"}}}),
                "None",
            ),
            (json!({"o:1": {"type": "api_key", "provider": "openai", "key": "x"}}), json!({}), "None"),
            (json!({"a:1": 5, "a:2": {"type": "api_key"}}), json!({}), "None"),
        ];
        for (profiles, auth, expected) in table {
            assert_eq!(used(&json!({"version": 1, "profiles": profiles}), &auth), expected, "{profiles} {auth}");
        }
    }

    #[test]
    fn those_that_wait_come_last_and_those_used_long_ago_first() {
        let profiles = json!({"a:1": key("1"), "a:2": key("2")});
        let with = |stats: Value| json!({"profiles": profiles, "usageStats": stats});
        assert_eq!(used(&with(json!({"a:1": {"lastUsed": 5}, "a:2": {"lastUsed": 3}})), &json!({})), "a:2=2");
        assert_eq!(used(&with(json!({"a:1": {"cooldownUntil": FAR}})), &json!({})), "a:2=2");
        assert_eq!(used(&with(json!({"a:1": {"cooldownUntil": 5}})), &json!({})), "a:1=1");
        let both = json!({"a:1": {"cooldownUntil": FAR}, "a:2": {"disabledUntil": FAR - 1}});
        assert_eq!(used(&with(both), &json!({})), "a:2=2", "better than none");
        let stored = json!({"profiles": profiles, "order": {"anthropic": ["a:2"]}});
        assert_eq!(used(&stored, &json!({"order": {"anthropic": ["a:1"]}})), "a:2=2", "the file's own order wins");
    }

    #[test]
    fn a_home_with_profiles_is_configured() {
        let home = tempfile::tempdir().expect("a folder");
        let write = |agent: &str, file: &Value| {
            let dir = home.path().join("agents").join(agent).join("agent");
            std::fs::create_dir_all(&dir).expect("a folder");
            std::fs::write(dir.join("auth-profiles.json"), file.to_string()).expect("a file");
        };
        write(
            "main",
            &json!({"profiles": {"anthropic:default": key("shared-key"), "o": {"type": "api_key", "provider": "openai", "key": "o"}}}),
        );
        write("work", &json!({"profiles": {"anthropic:default": key("work-key")}}));
        let keys = |agent: &str| {
            let profiles = AuthProfiles::load(home.path(), agent);
            let tree = json!({"models": {"providers": {"openai": {"apiKey": "written"}}}});
            let settings = Settings::read_with(&tree, Some(agent), &profiles, |name| {
                (name == "ANTHROPIC_API_KEY").then(|| "from-env".to_owned())
            });
            assert!(!format!("{settings:?}").contains("-key"), "it does not show them");
            let key = |name: &str| settings.find(name).expect("a model").access;
            let shown = |key: Key| (key.secret().map(|secret| secret.expose().to_owned()), key.to_string());
            (shown(key("anthropic/claude-opus-4-6")), shown(key("openai/gpt-5.2")))
        };
        let (anthropic, openai) = keys("main");
        assert_eq!(anthropic, (Some("shared-key".to_owned()), "auth profile anthropic:default".to_owned()));
        assert_eq!(openai.0.as_deref(), Some("o"), "a profile comes before the configuration");
        assert_eq!(keys("work").0.0.as_deref(), Some("work-key"), "the agent's own comes first");
        assert_eq!(AuthProfiles::load(home.path(), "none"), AuthProfiles::load(home.path(), "main"));
    }
}
