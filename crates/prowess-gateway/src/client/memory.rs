//! Memory: what did a gateway give our device, and what is it worth now?
//!
//! A device that was let in gets a token of its own, so it does not have to know the gateway's secret any longer.

use std::path::Path;

use serde_json::Value;

use super::{CallError, Introduction};
use crate::aside::blocking;
use crate::files::FileError;
use crate::identity::Identity;

/// The introduction, with the token that the gateway at `url` gave last time if no other secret is known.
pub(super) async fn recall(introduction: &Introduction, url: &str) -> Introduction {
    let introduction = introduction.clone();
    if introduction.knows_something() {
        return introduction;
    }
    let gateway = url.to_owned();
    let token = aside(&introduction, move |identity, state_dir, role| identity.token(state_dir, role, &gateway));
    match token.await.flatten() {
        Some(token) => introduction.with_device_token(token.expose()),
        None => introduction,
    }
}

/// Keeps the token that came with the answer of the gateway at `url`, or forgets the one that is worth nothing.
pub(super) async fn learn(introduction: &Introduction, url: &str, answer: &Result<Value, CallError>) {
    match answer {
        Ok(hello) => {
            let (gateway, auth) = (url.to_owned(), hello["auth"].clone());
            aside(introduction, move |identity, state_dir, _| identity.keep_token(state_dir, &gateway, &auth)).await;
        }
        Err(error) if error.details()["code"] == "AUTH_DEVICE_TOKEN_MISMATCH" => {
            aside(introduction, Identity::forget_token).await;
        }
        Err(_) => {}
    }
}

/// Does something with the files of whoever keeps what it is given. Without them it goes on, too.
async fn aside<T: Send + 'static>(
    introduction: &Introduction,
    work: impl FnOnce(&Identity, &Path, &str) -> Result<T, FileError> + Send + 'static,
) -> Option<T> {
    let (identity, state_dir) = (introduction.identity()?.clone(), introduction.state_dir.clone()?);
    let role = introduction.params["role"].as_str().unwrap_or_default().to_owned();
    let done = blocking(move || work(&identity, &state_dir, &role)).await.ok()?;
    done.inspect_err(|error| tracing::warn!("cannot save this device's token: {error}")).ok()
}
