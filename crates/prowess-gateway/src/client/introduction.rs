//! The introduction: who connects, and what do they know?

use std::path::{Path, PathBuf};

use prowess_agent::message::now;
use prowess_config::Env;
use serde_json::{Value, json};

use super::Trust;
use crate::device::Statement;
use crate::identity::Identity;
use crate::presence::host_name;
use crate::tls::Fingerprint;
use crate::wire::PROTOCOL;

/// Who connects, and what they know.
#[derive(Clone)]
pub struct Introduction {
    /// The parameters of `connect`, without the protocol and the device.
    pub params: Value,
    identity: Option<Identity>,
    /// Where it keeps what gateways give its device.
    pub(super) state_dir: Option<PathBuf>,
    pub(super) trust: Trust,
    /// The only certificate that counts.
    pub(super) pin: Option<Fingerprint>,
}

/// What a node says about itself.
#[derive(Debug, Clone, Default)]
pub struct Node {
    /// The name that people are shown; that of the machine, if none is given.
    pub name: Option<String>,
    /// What it can do.
    pub commands: Vec<String>,
    /// In which matters.
    pub caps: Vec<String>,
    /// Where it looks for programs.
    pub path_env: Option<String>,
}

impl Introduction {
    /// An operator who knows `token` and may do everything.
    #[must_use]
    pub fn operator(token: &str) -> Self {
        Self::new("cli", "cli").with_token(token)
    }

    /// A program of this installation that talks to its own gateway.
    #[must_use]
    pub fn backend(token: &str) -> Self {
        Self::new("gateway-client", "backend").with_token(token)
    }

    /// A machine that runs commands.
    #[must_use]
    pub fn node(identity: Identity, node: Node) -> Self {
        let mut own = Self::new("node-host", "node");
        own.params["role"] = "node".into();
        own.params["scopes"] = json!([]);
        own.params["caps"] = node.caps.into();
        own.params["commands"] = node.commands.into();
        own.params["client"]["displayName"] = node.name.unwrap_or_else(host_name).into();
        own.params["client"]["instanceId"] = identity.id().into();
        if let Some(path) = node.path_env {
            own.params["pathEnv"] = path.into();
        }
        own.with_identity(identity)
    }

    fn new(id: &str, mode: &str) -> Self {
        let params = json!({
            "client": {
                "id": id,
                "version": env!("CARGO_PKG_VERSION"),
                "platform": std::env::consts::OS,
                "mode": mode,
            },
            "role": "operator",
            "scopes": ["operator.admin", "operator.read", "operator.write", "operator.approvals", "operator.pairing"],
            "caps": ["tool-events"],
        });
        Self { params, identity: None, state_dir: None, trust: Trust::ThisMachine, pin: None }
    }

    /// It hears only of the sessions that it follows, and each piece of text once.
    #[must_use]
    pub fn with_deltas(mut self) -> Self {
        self.params["caps"] = json!(["tool-events", crate::hub::DELTAS]);
        self
    }

    /// Its runs say nothing of a reply before the reply is complete, as a program wants it.
    #[must_use]
    pub fn with_whole_replies(mut self) -> Self {
        if let Some(caps) = self.params["caps"].as_array_mut() {
            caps.push(crate::hub::WHOLE_REPLIES.into());
        }
        self
    }

    /// It knows the gateway's token.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.params["auth"]["token"] = token.into();
        self
    }

    /// It knows the gateway's password.
    #[must_use]
    pub fn with_password(mut self, password: &str) -> Self {
        self.params["auth"]["password"] = password.into();
        self
    }

    /// It has the token that this gateway gave to its device.
    #[must_use]
    pub fn with_device_token(mut self, token: &str) -> Self {
        self.params["auth"]["deviceToken"] = token.into();
        self
    }

    /// It has this device.
    #[must_use]
    pub fn with_identity(self, identity: Identity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// It keeps the token that a gateway gives its device, and shows it there when it knows no other secret.
    #[must_use]
    pub fn remembering(self, state_dir: &Path) -> Self {
        Self { state_dir: Some(state_dir.to_owned()), ..self }
    }

    /// Whether it knows any secret.
    pub(super) fn knows_something(&self) -> bool {
        let is_known = |name: &str| self.params["auth"][name].as_str().is_some_and(|secret| !secret.trim().is_empty());
        ["token", "password", "deviceToken"].into_iter().any(is_known)
    }

    /// It wants to do this, and nothing else.
    #[must_use]
    pub fn with_scopes(mut self, scopes: &[&str]) -> Self {
        self.params["scopes"] = scopes.into();
        self
    }

    /// It sends secrets without encryption where the variables say that it may.
    #[must_use]
    pub fn trusting(self, env: &Env) -> Self {
        let is_set = env.text("OPENCLAW_ALLOW_INSECURE_PRIVATE_WS") == Some("1");
        Self { trust: if is_set { Trust::PrivateNetworks } else { self.trust }, ..self }
    }

    /// Only the certificate with this fingerprint counts.
    #[must_use]
    pub fn pinned(self, pin: Option<Fingerprint>) -> Self {
        Self { pin: pin.or(self.pin), ..self }
    }

    /// Its device, if it has one.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// The parameters of `connect`, as the answer to a challenge.
    #[must_use]
    pub fn answer_to(&self, nonce: &str) -> Value {
        let mut params = self.params.clone();
        params["minProtocol"] = PROTOCOL.into();
        params["maxProtocol"] = PROTOCOL.into();
        if let Some(identity) = &self.identity {
            params["device"] = self.prove(identity, nonce);
        }
        params
    }

    fn prove(&self, identity: &Identity, nonce: &str) -> Value {
        let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
        let (client, auth) = (&self.params["client"], &self.params["auth"]);
        let scopes: Vec<String> = self.params["scopes"].as_array().into_iter().flatten().map(text).collect();
        let token = auth["token"].as_str().or_else(|| auth["deviceToken"].as_str()).unwrap_or_default();
        identity.prove(&Statement {
            device: identity.id(),
            client: &text(&client["id"]),
            mode: &text(&client["mode"]),
            role: &text(&self.params["role"]),
            scopes: &scopes,
            signed_at: now(),
            token,
            nonce,
            platform: &text(&client["platform"]),
            family: &text(&client["deviceFamily"]),
        })
    }
}

/// Without what it knows.
impl std::fmt::Debug for Introduction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let client = &self.params["client"]["id"];
        f.debug_struct("Introduction").field("client", client).field("identity", &self.identity).finish_non_exhaustive()
    }
}
