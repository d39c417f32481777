//! `connect`: what does a client say about itself, and what does it want?

use serde_json::Value;

use crate::auth::{Asker, Shown};
use crate::hub::About;
use crate::params::{ANY_TEXT, BOOL, Shape, TEXT, TEXTS, choice, integer_from, map, object, optional, required, shape};
use crate::scope::{Scope, covers};
use crate::wire::Refusal;

/// Programs that may connect.
const CLIENTS: &[&str] = &[
    "webchat-ui",
    "openclaw-control-ui",
    "webchat",
    "cli",
    "gateway-client",
    "openclaw-macos",
    "openclaw-ios",
    "openclaw-android",
    "node-host",
    "test",
    "fingerprint",
    "openclaw-probe",
];

/// What they are used as.
const MODES: &[&str] = &["webchat", "cli", "ui", "backend", "node", "probe", "test"];

const SHAPE: Shape = shape(&[
    required("minProtocol", integer_from(1)),
    required("maxProtocol", integer_from(1)),
    required(
        "client",
        object(&[
            required("id", choice(CLIENTS)),
            optional("displayName", TEXT),
            required("version", TEXT),
            required("platform", TEXT),
            optional("deviceFamily", TEXT),
            optional("modelIdentifier", TEXT),
            required("mode", choice(MODES)),
            optional("instanceId", TEXT),
        ]),
    ),
    optional("caps", TEXTS),
    optional("commands", TEXTS),
    optional("permissions", map(&BOOL)),
    optional("pathEnv", ANY_TEXT),
    optional("role", TEXT),
    optional("scopes", TEXTS),
    optional(
        "device",
        object(&[
            required("id", TEXT),
            required("publicKey", TEXT),
            required("signature", TEXT),
            required("signedAt", integer_from(0)),
            required("nonce", TEXT),
        ]),
    ),
    optional(
        "auth",
        object(&[optional("token", ANY_TEXT), optional("deviceToken", ANY_TEXT), optional("password", ANY_TEXT)]),
    ),
    optional("locale", ANY_TEXT),
    optional("userAgent", ANY_TEXT),
]);

/// The parameters of `connect`, after they were checked.
pub(crate) struct Connect {
    pub(super) protocols: (u64, u64),
    pub(super) about: About,
    pub(super) role: String,
    pub(super) scopes: Vec<String>,
    pub(super) caps: Vec<String>,
    pub(super) commands: Vec<String>,
    pub(super) permissions: Option<Value>,
    pub(super) path_env: Option<String>,
    pub(super) device: Option<Device>,
    token: Option<String>,
    device_token: Option<String>,
    password: Option<String>,
}

/// The device that a client shows.
pub(super) struct Device {
    pub(super) id: String,
    pub(super) public_key: String,
    pub(super) signature: String,
    pub(super) signed_at: u64,
    pub(super) nonce: String,
}

/// A token that may be a device's.
pub(super) enum Candidate<'a> {
    /// It says that it is one.
    Named(&'a str),
    /// It is not the gateway's, so it may be.
    Perhaps(&'a str),
}

impl Connect {
    pub(super) fn read(params: &Value) -> Result<Self, Refusal> {
        SHAPE.check("connect", params)?;
        let client = &params["client"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let number = |value: &Value| whole(value);
        let device = &params["device"];
        let auth = &params["auth"];
        Ok(Self {
            protocols: (number(&params["minProtocol"]), number(&params["maxProtocol"])),
            about: About {
                id: text(&client["id"]).unwrap_or_default(),
                display_name: text(&client["displayName"]),
                version: text(&client["version"]).unwrap_or_default(),
                platform: text(&client["platform"]).unwrap_or_default(),
                device_family: text(&client["deviceFamily"]),
                model_identifier: text(&client["modelIdentifier"]),
                mode: text(&client["mode"]).unwrap_or_default(),
                instance_id: text(&client["instanceId"]),
            },
            role: text(&params["role"]).unwrap_or_else(|| "operator".to_owned()),
            scopes: texts(&params["scopes"]),
            caps: texts(&params["caps"]),
            commands: texts(&params["commands"]),
            permissions: Some(params["permissions"].clone()).filter(Value::is_object),
            path_env: text(&params["pathEnv"]),
            device: device.is_object().then(|| Device {
                id: text(&device["id"]).unwrap_or_default(),
                public_key: text(&device["publicKey"]).unwrap_or_default(),
                signature: text(&device["signature"]).unwrap_or_default(),
                signed_at: number(&device["signedAt"]),
                nonce: text(&device["nonce"]).unwrap_or_default().trim().to_owned(),
            }),
            token: text(&auth["token"]),
            device_token: text(&auth["deviceToken"]),
            password: text(&auth["password"]),
        })
    }

    /// Keeps those of the scopes it asks for that `allowed` covers.
    pub(super) fn keep_scopes(&mut self, allowed: &[Scope]) {
        let is_allowed = |name: &String| allowed.iter().any(|own| covers(own.as_str(), name.trim()));
        self.scopes.retain(is_allowed);
    }

    pub(super) fn shown(&self) -> Shown<'_> {
        Shown { token: filled(self.token.as_ref()), password: filled(self.password.as_ref()) }
    }

    /// Whether it showed a token or password that is meant to be the gateway's.
    pub(super) fn has_shared_secret(&self) -> bool {
        self.shown().token.is_some() || self.shown().password.is_some()
    }

    /// The token that is signed.
    pub(super) fn signed_token(&self) -> &str {
        self.token.as_deref().or(self.device_token.as_deref()).unwrap_or_default()
    }

    /// The token that may be its device's.
    pub(super) fn candidate(&self) -> Option<Candidate<'_>> {
        self.device.as_ref()?;
        let named = filled(self.device_token.as_ref()).map(Candidate::Named);
        named.or_else(|| filled(self.token.as_ref()).map(Candidate::Perhaps))
    }

    /// Whether that is also what it showed as the gateway's token; OpenClaw's clients do so.
    pub(super) fn shows_as_token(&self, candidate: &Candidate<'_>) -> bool {
        let (Candidate::Named(token) | Candidate::Perhaps(token)) = candidate;
        self.shown().token == Some(token)
    }

    pub(super) fn asker(&self) -> Asker {
        if self.about.mode == "cli" {
            return Asker::CommandLine;
        }
        if self.is_page() || self.is_webchat() { Asker::Page } else { Asker::Other }
    }

    /// Whether it is the page that operates a gateway.
    pub(super) fn is_page(&self) -> bool {
        self.about.id == "openclaw-control-ui"
    }

    pub(super) fn is_webchat(&self) -> bool {
        self.about.mode == "webchat" || self.about.id == "webchat-ui"
    }

    /// Whether it is a program of this installation that talks to its own gateway.
    pub(super) fn is_backend(&self) -> bool {
        self.about.id == "gateway-client" && self.about.mode == "backend"
    }
}

fn filled(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// A whole number that is not negative; it may be written as 3.0.
fn whole(value: &Value) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it was checked, and a cast saturates")]
    value.as_u64().or_else(|| value.as_f64().map(|number| number as u64)).unwrap_or_default()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
