//! Models: which are configured, and which one is meant?
//!
//! Providers come from `models.providers` of the configuration, from keys in the environment, and from a short list
//! that is built in. Reading them never fails: what makes no sense is a [`Settings::problems`] entry. Choosing one says
//! what is missing when it cannot be used.

mod built_in;
mod choose;
mod profiles;
mod read;

use std::fmt;

use prowess_skills::Secret;

pub use choose::{Choice, ChoiceError, choose};
pub use profiles::AuthProfiles;

use crate::message::Cost;
use crate::model::{About, Api, Thinking};
use crate::provider::Endpoint;

/// What is configured.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Every model that is known by name, in the order in which they would be chosen.
    pub models: Vec<Configured>,
    /// The providers, also those without a model of their own.
    pub providers: Vec<Provider>,
    /// The model to use when nobody says which, as written.
    pub primary: Option<String>,
    /// The models to try when that one fails, as written.
    pub fallbacks: Vec<String>,
    /// Short names: alias and `provider/model`.
    pub aliases: Vec<(String, String)>,
    /// How much to think when nobody says.
    pub thinking: Option<Thinking>,
    /// What makes no sense in the configuration.
    pub problems: Vec<String>,
}

/// Somebody who runs models.
#[derive(Debug, Clone, PartialEq)]
pub struct Provider {
    /// Their name in the configuration.
    pub id: String,
    /// Where they are.
    pub base_url: String,
    /// The wire format they speak, unless a model says otherwise.
    pub api: Api,
    /// The key.
    pub key: Key,
    /// Headers that go with every call.
    pub headers: Vec<(String, Secret)>,
    /// How the key is shown to them.
    pub auth: Auth,
    /// Where this is known from.
    pub origin: Origin,
}

/// A model that could be asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Configured {
    /// Who runs it.
    pub provider: String,
    /// Where.
    pub base_url: String,
    /// The key; `None` where there is none or none is needed.
    pub key: Option<Secret>,
    /// Headers that go with every call.
    pub headers: Vec<(String, Secret)>,
    /// How the key is shown to them.
    pub auth: Auth,
    /// Its name there.
    pub model: String,
    /// Its name for people.
    pub name: Option<String>,
    /// The short name that it was given.
    pub alias: Option<String>,
    /// The wire format.
    pub api: Api,
    /// How many tokens fit into one call.
    pub context_window: u64,
    /// How many tokens one answer may have.
    pub max_tokens: u64,
    /// Whether it can think first.
    pub reasoning: bool,
    /// Whether it can look at images.
    pub takes_images: bool,
    /// Dollars for a million tokens, where known.
    pub price: Option<Cost>,
    /// Where this is known from.
    pub origin: Origin,
    /// Whether it can be called.
    pub access: Key,
}

/// Where something is known from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// Built in.
    BuiltIn,
    /// A variable of the environment.
    Environment,
    /// The configuration file.
    Config,
}

/// What is known about a key. It does not show the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// It is there, and comes from there.
    Present(Secret, KeySource),
    /// None is needed.
    NotNeeded,
    /// It would come from this variable, which is not set.
    Unset(String),
    /// It is kept where this program does not fetch it from.
    Elsewhere(String),
    /// The login of this auth profile has expired.
    Expired(String),
    /// Nothing says where it is.
    Missing,
}

/// Where a key comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeySource {
    /// The configuration has it.
    Config,
    /// This variable of the environment.
    Variable(String),
    /// This profile in the agent's `auth-profiles.json`.
    Profile(String),
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config => f.write_str("configuration"),
            Self::Variable(name) => f.write_str(name),
            Self::Profile(id) => write!(f, "auth profile {id}"),
        }
    }
}

/// How a key is shown to a provider.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Auth {
    /// As the wire format has it.
    #[default]
    Usual,
    /// In an `Authorization: Bearer` header.
    Bearer,
}

impl Configured {
    /// `provider/model`.
    #[must_use]
    pub fn id(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }

    /// Who it is, for the conversation.
    #[must_use]
    pub fn about(&self) -> About {
        About {
            provider: self.provider.clone(),
            model: self.model.clone(),
            api: self.api,
            context_window: self.context_window,
            max_tokens: self.max_tokens,
            takes_images: self.takes_images,
        }
    }

    /// Whether a call could be tried.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.access.is_enough()
    }
}

impl From<&Configured> for Endpoint {
    /// Where it is, with its key as the provider wants to see it.
    fn from(model: &Configured) -> Self {
        let mut headers: Vec<(String, String)> =
            model.headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
        let mut key = model.access.secret().cloned();
        if model.auth == Auth::Bearer
            && let Some(secret) = key.take()
        {
            headers.push(("authorization".to_owned(), format!("Bearer {}", secret.expose())));
        }
        Self {
            key,
            headers,
            context_window: model.context_window,
            max_tokens: model.max_tokens,
            takes_images: model.takes_images,
            reasoning: model.reasoning,
            price: model.price,
            ..Self::new(&model.provider, &model.base_url, model.api, &model.model)
        }
    }
}

impl Key {
    /// Whether a call could be tried with it.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        match self {
            Self::Present(..) | Self::NotNeeded => true,
            Self::Unset(_) | Self::Elsewhere(_) | Self::Expired(_) | Self::Missing => false,
        }
    }

    /// The key itself.
    #[must_use]
    pub fn secret(&self) -> Option<&Secret> {
        match self {
            Self::Present(secret, _) => Some(secret),
            Self::NotNeeded | Self::Unset(_) | Self::Elsewhere(_) | Self::Expired(_) | Self::Missing => None,
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Present(_, from) => from.fmt(f),
            Self::NotNeeded => f.write_str("no key needed"),
            Self::Unset(variable) => write!(f, "{variable} is not set"),
            Self::Elsewhere(place) => write!(f, "the key is kept in {place}, which is not read here"),
            Self::Expired(id) => write!(f, "the login of auth profile {id} has expired"),
            Self::Missing => f.write_str("no key"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "built in",
            Self::Environment => "environment",
            Self::Config => "configuration",
        })
    }
}
