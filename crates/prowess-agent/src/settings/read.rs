//! Reading the configuration tree and the environment.

use prowess_skills::Secret;
use serde_json::{Map, Value};

use super::built_in::{self, BuiltIn, CONTEXT_WINDOW, MAX_TOKENS};
use super::{Auth, AuthProfiles, Configured, Key, KeySource, Origin, Provider, Settings};
use crate::message::Cost;
use crate::model::facts::Facts;
use crate::model::{Api, Thinking};

/// The most providers, models of one provider, headers, aliases and fallbacks that are read.
const MAX_PROVIDERS: usize = 200;
const MAX_MODELS: usize = 2_000;
const MAX_HEADERS: usize = 64;
const MAX_ALIASES: usize = 2_000;
const MAX_FALLBACKS: usize = 32;

impl Settings {
    /// Reads the configuration tree for one agent. `env` looks up a variable of the environment.
    #[must_use]
    pub fn read(tree: &Value, agent: Option<&str>, env: impl Fn(&str) -> Option<String>) -> Self {
        Self::read_with(tree, agent, &AuthProfiles::default(), env)
    }

    /// The same, with the credentials that OpenClaw keeps for the agent. They come before all other keys.
    #[must_use]
    pub fn read_with(
        tree: &Value,
        agent: Option<&str>,
        profiles: &AuthProfiles,
        env: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let env = |name: &str| env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
        let mut reader = Reader { env: &env, profiles, auth: &tree["auth"], settings: Self::default() };
        reader.aliases(&tree["agents"]["defaults"]["models"]);
        reader.configured(&tree["models"]["providers"]);
        reader.built_in();
        let defaults = &tree["agents"]["defaults"];
        reader.preference(&defaults["model"], "agents.defaults.model");
        reader.thinking(&defaults["thinkingDefault"], "agents.defaults.thinkingDefault");
        if let Some((place, own)) = agent.and_then(|agent| own(tree, agent)) {
            reader.preference(&own["model"], &format!("{place}.model"));
            reader.thinking(&own["thinkingDefault"], &format!("{place}.thinkingDefault"));
        }
        reader.named();
        reader.settings
    }

    /// A model of a known provider that nothing lists: whoever names it knows that it is there.
    pub(super) fn model_of(&self, provider: &Provider, model: &str) -> Configured {
        let facts = Facts::of(model);
        let known = |size: u64, usual: u64| if size > 0 { size } else { usual };
        let id = format!("{}/{model}", provider.id);
        Configured {
            provider: provider.id.clone(),
            base_url: provider.base_url.clone(),
            key: provider.key.secret().cloned(),
            headers: provider.headers.clone(),
            auth: provider.auth,
            model: model.to_owned(),
            name: None,
            alias: self.aliases.iter().find(|(_, of)| *of == id).map(|(alias, _)| alias.clone()),
            api: provider.api,
            context_window: known(facts.window, CONTEXT_WINDOW),
            max_tokens: known(facts.answer, MAX_TOKENS),
            reasoning: facts.reasons(),
            takes_images: facts.takes_images,
            price: facts.price,
            origin: provider.origin,
            access: provider.key.clone(),
        }
    }
}

/// The section of one agent, and where it is.
fn own<'a>(tree: &'a Value, agent: &str) -> Option<(String, &'a Value)> {
    let listed = tree["agents"]["list"].as_array().into_iter().flatten().enumerate();
    let mut listed =
        listed.filter(|(_, one)| one["id"].as_str().is_some_and(|id| id.trim().eq_ignore_ascii_case(agent)));
    if let Some((place, one)) = listed.next() {
        return Some((format!("agents.list.{place}"), one));
    }
    let mut entries = tree["agents"]["entries"].as_object().into_iter().flatten();
    let (id, one) = entries.find(|(id, _)| id.trim().eq_ignore_ascii_case(agent))?;
    Some((format!("agents.entries.{id}"), one))
}

struct Reader<'e> {
    env: &'e dyn Fn(&str) -> Option<String>,
    profiles: &'e AuthProfiles,
    auth: &'e Value,
    settings: Settings,
}

impl Reader<'_> {
    fn problem(&mut self, place: &str, wanted: &str) {
        self.settings.problems.push(format!("{place} is not {wanted}; it is ignored"));
    }

    fn aliases(&mut self, models: &Value) {
        for (id, entry) in models.as_object().into_iter().flatten().take(MAX_ALIASES) {
            match &entry["alias"] {
                Value::Null => {}
                Value::String(alias) if !alias.trim().is_empty() => {
                    self.settings.aliases.push((alias.trim().to_owned(), id.trim().to_owned()));
                }
                _ => self.problem(&format!("agents.defaults.models.{id}.alias"), "text"),
            }
        }
    }

    fn configured(&mut self, providers: &Value) {
        match providers {
            Value::Null => {}
            Value::Object(providers) => {
                for (id, section) in providers.iter().take(MAX_PROVIDERS) {
                    self.provider(id, section);
                }
            }
            _ => self.problem("models.providers", "a section { }"),
        }
    }

    fn provider(&mut self, id: &str, section: &Value) {
        let place = format!("models.providers.{id}");
        let Value::Object(section) = section else { return self.problem(&place, "a section { }") };
        let built_in = built_in::find(id);
        let base_url = match (section.get("baseUrl"), built_in) {
            (Some(Value::String(url)), _) if is_address(url.trim()) => url.trim().trim_end_matches('/').to_owned(),
            (Some(_), _) => return self.problem(&format!("{place}.baseUrl"), "an address http(s)://…"),
            (None, Some(built_in)) => self.base_url(built_in),
            (None, None) => {
                return self.problem(&format!("{place}.baseUrl"), "set, and this provider has no default address");
            }
        };
        let api = self.api(section.get("api"), &format!("{place}.api"));
        let api = api.or(built_in.map(|built_in| built_in.api)).unwrap_or(Api::Chat);
        let provider = Provider {
            id: id.to_owned(),
            key: self.profile(id, |reader| reader.key(section.get("apiKey"), built_in, &place, &base_url)),
            headers: self.headers(section.get("headers"), &place),
            auth: if section.get("authHeader") == Some(&Value::Bool(true)) { Auth::Bearer } else { Auth::Usual },
            origin: Origin::Config,
            base_url,
            api,
        };
        self.models(&provider, section.get("models"), &place);
        self.settings.providers.push(provider);
    }

    fn models(&mut self, provider: &Provider, models: Option<&Value>, place: &str) {
        let models = match models {
            None | Some(Value::Null) => return,
            Some(Value::Array(models)) => models,
            Some(_) => return self.problem(&format!("{place}.models"), "a list of sections [ { } ]"),
        };
        for (number, model) in models.iter().take(MAX_MODELS).enumerate() {
            let place = format!("{place}.models.{number}");
            let Some(id) = model["id"].as_str().map(str::trim).filter(|id| !id.is_empty()) else {
                self.problem(&format!("{place}.id"), "the name of a model");
                continue;
            };
            let mut found = self.settings.model_of(provider, id);
            found.api = self.api(model.get("api"), &format!("{place}.api")).unwrap_or(found.api);
            found.name = model["name"].as_str().map(|name| name.trim().to_owned());
            found.context_window = size(&model["contextWindow"]).unwrap_or(found.context_window);
            found.max_tokens = size(&model["maxTokens"]).unwrap_or(found.max_tokens).min(found.context_window);
            found.reasoning = model["reasoning"].as_bool().unwrap_or(found.reasoning);
            if let Some(input) = model["input"].as_array() {
                found.takes_images = input.iter().any(|kind| kind == "image");
            }
            found.price = model["cost"].as_object().map(price).or(found.price);
            self.settings.models.push(found);
        }
    }

    /// Providers that need nothing but what is in the environment, unless the configuration has them.
    fn built_in(&mut self) {
        for built_in in built_in::PROVIDERS {
            if self.settings.providers.iter().any(|provider| provider.id == built_in.id) {
                continue;
            }
            let key = self.profile(built_in.id, |reader| reader.environment_key(built_in));
            let base_url = self.base_url(built_in);
            let is_set = matches!(key, Key::Present(..));
            let provider = Provider {
                id: built_in.id.to_owned(),
                // Another server that speaks OpenAI's language most often speaks the older one.
                api: if built_in.api == Api::Responses && base_url != built_in.base_url {
                    Api::Chat
                } else {
                    built_in.api
                },
                base_url,
                key,
                headers: Vec::new(),
                auth: Auth::Usual,
                origin: if is_set { Origin::Environment } else { Origin::BuiltIn },
            };
            for id in built_in.models {
                let model = self.settings.model_of(&provider, id);
                self.settings.models.push(model);
            }
            self.settings.providers.push(provider);
        }
    }

    /// Models that the configuration names without describing them.
    fn named(&mut self) {
        let aliased = self.settings.aliases.iter().map(|(_, id)| id);
        let named = self.settings.primary.iter().chain(&self.settings.fallbacks).chain(aliased);
        for id in named.cloned().collect::<Vec<_>>() {
            let Some((provider, model)) = id.split_once('/') else { continue };
            let Some(provider) = self.settings.providers.iter().find(|known| known.id == provider) else { continue };
            if !self.settings.models.iter().any(|known| known.id() == id) {
                let model = Configured { origin: Origin::Config, ..self.settings.model_of(provider, model) };
                self.settings.models.push(model);
            }
        }
    }

    fn preference(&mut self, value: &Value, place: &str) {
        let (primary, fallbacks) = match value {
            Value::Null => return,
            Value::String(_) => (value, &Value::Null),
            Value::Object(parts) => {
                (parts.get("primary").unwrap_or(&Value::Null), parts.get("fallbacks").unwrap_or(&Value::Null))
            }
            _ => return self.problem(place, "\"provider/model\" or { primary, fallbacks }"),
        };
        if let Some(primary) = primary.as_str().map(str::trim).filter(|primary| !primary.is_empty()) {
            self.settings.primary = Some(primary.to_owned());
        }
        // An agent's own empty list means: none.
        if let Some(list) = fallbacks.as_array() {
            let list = list.iter().filter_map(Value::as_str).map(|id| id.trim().to_owned());
            self.settings.fallbacks = list.filter(|id| !id.is_empty()).take(MAX_FALLBACKS).collect();
        }
    }

    fn thinking(&mut self, value: &Value, place: &str) {
        match value {
            Value::Null => {}
            value => match value.as_str().and_then(Thinking::parse) {
                Some(thinking) => self.settings.thinking = Some(thinking),
                None => self.problem(place, "one of off, minimal, low, medium, high, xhigh, adaptive"),
            },
        }
    }

    fn api(&mut self, value: Option<&Value>, place: &str) -> Option<Api> {
        let word = value?;
        let known = word.as_str().and_then(Api::parse).filter(|api| *api != Api::Embedded);
        if known.is_none() {
            self.problem(place, "one of anthropic-messages, openai-completions, openai-responses");
        }
        known
    }

    fn key(&mut self, value: Option<&Value>, built_in: Option<&BuiltIn>, place: &str, base_url: &str) -> Key {
        match value {
            None | Some(Value::Null) => match built_in {
                Some(built_in) => self.environment_key(built_in),
                // A server on this machine seldom wants one.
                None if is_local(base_url) => Key::NotNeeded,
                None => Key::Missing,
            },
            Some(Value::String(key)) => self.written(key.trim()),
            Some(Value::Object(reference)) => self.referred(reference, place),
            Some(_) => {
                self.problem(&format!("{place}.apiKey"), "text or a secret reference { source, id }");
                Key::Missing
            }
        }
    }

    /// The key of a profile; without one, what `other` finds. A login that has expired matters only when nothing else is there.
    fn profile(&mut self, provider: &str, other: impl FnOnce(&mut Self) -> Key) -> Key {
        match self.profiles.key(provider, self.auth, self.env) {
            Some(expired @ Key::Expired(_)) => Some(other(self)).filter(Key::is_enough).unwrap_or(expired),
            Some(key) => key,
            None => other(self),
        }
    }

    /// A key as text: itself, or the name of a variable.
    fn written(&self, key: &str) -> Key {
        let name = key.strip_prefix("${").and_then(|name| name.strip_suffix('}')).unwrap_or(key);
        let is_name = name.len() > 3
            && name.contains('_')
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_');
        if key.is_empty() {
            return Key::Missing;
        }
        if is_name {
            return (self.env)(name).map_or_else(|| Key::Unset(name.to_owned()), |key| present(key, name));
        }
        Key::Present(Secret::new(key), KeySource::Config)
    }

    fn referred(&mut self, reference: &Map<String, Value>, place: &str) -> Key {
        let part = |name: &str| reference.get(name).and_then(Value::as_str).map(str::trim).unwrap_or_default();
        match (part("source"), part("id")) {
            ("env", id) if !id.is_empty() => {
                (self.env)(id).map_or_else(|| Key::Unset(id.to_owned()), |key| present(key, id))
            }
            (source @ ("file" | "exec"), _) => Key::Elsewhere(format!("a secret source of kind {source:?}")),
            _ => {
                self.problem(&format!("{place}.apiKey"), "a secret reference { source: \"env\", id: \"NAME\" }");
                Key::Missing
            }
        }
    }

    fn environment_key(&self, built_in: &BuiltIn) -> Key {
        let Some(variable) = built_in.key else { return Key::NotNeeded };
        (self.env)(variable).map_or_else(|| Key::Unset(variable.to_owned()), |key| present(key, variable))
    }

    fn base_url(&mut self, built_in: &BuiltIn) -> String {
        let Some((variable, url)) = built_in.base_url_from.and_then(|name| Some((name, (self.env)(name)?))) else {
            return built_in.base_url.to_owned();
        };
        if !is_address(&url) {
            self.problem(variable, "an address http(s)://…");
            return built_in.base_url.to_owned();
        }
        url.trim_end_matches('/').to_owned()
    }

    fn headers(&mut self, value: Option<&Value>, place: &str) -> Vec<(String, Secret)> {
        let Some(headers) = value.filter(|value| !value.is_null()) else { return Vec::new() };
        let Some(headers) = headers.as_object() else {
            self.problem(&format!("{place}.headers"), "a section { }");
            return Vec::new();
        };
        let mut found = Vec::new();
        for (name, value) in headers.iter().take(MAX_HEADERS) {
            let key = match value {
                Value::String(text) => Some(Key::Present(Secret::new(text), KeySource::Config)),
                Value::Object(reference) => Some(self.referred(reference, &format!("{place}.headers.{name}"))),
                _ => None,
            };
            match key.as_ref().and_then(Key::secret) {
                Some(secret) => found.push((name.clone(), secret.clone())),
                None => self.problem(&format!("{place}.headers.{name}"), "available text"),
            }
        }
        found
    }
}

fn present(key: String, variable: &str) -> Key {
    Key::Present(Secret::new(key), KeySource::Variable(variable.to_owned()))
}

fn is_address(url: &str) -> bool {
    ["http://", "https://"].iter().any(|start| url.strip_prefix(start).is_some_and(|rest| !rest.is_empty()))
        && !url.contains(char::is_whitespace)
}

fn is_local(url: &str) -> bool {
    ["http://127.", "http://localhost", "http://[::1]"].iter().any(|start| url.starts_with(start))
}

fn size(value: &Value) -> Option<u64> {
    value.as_u64().filter(|size| *size > 0)
}

fn price(cost: &Map<String, Value>) -> Cost {
    let part = |name: &str| cost.get(name).and_then(Value::as_f64).filter(|price| *price >= 0.0).unwrap_or_default();
    Cost {
        input: part("input"),
        output: part("output"),
        cache_read: part("cacheRead"),
        cache_write: part("cacheWrite"),
        total: 0.0,
    }
}
