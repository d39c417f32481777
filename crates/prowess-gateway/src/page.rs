//! The page: what does a browser get?
//!
//! A few files that are part of the program: no build step, nothing from elsewhere, no script or style within the HTML.
//! The page lives on the same methods and events as every other client, and has to show the same token.

mod assets;

use std::sync::{Arc, LazyLock, OnceLock};

use axum::extract::{Path, State};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::compress;
use crate::device::hex;
use crate::gateway::Gateway;
use crate::settings::{Auth, Settings};

pub(crate) use assets::ASSETS;

/// What the page may do: nothing that its own files do not, and never make markup or scripts of text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";

/// Where the page learns what it has to ask the person for.
const AUTH_MARK: &str = "data-auth=\"token\"";

/// One file of the page.
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) text: &'static str,
}

/// What is sent of each file, once a browser has asked for it.
static PACKED: LazyLock<Vec<OnceLock<Packed>>> = LazyLock::new(|| ASSETS.iter().map(|_| OnceLock::new()).collect());

/// A file as it is sent.
struct Packed {
    plain: Bytes,
    zipped: Bytes,
    mark: String,
}

impl Packed {
    fn new(plain: Bytes) -> Self {
        let mark = hex(&Sha256::digest(&plain)[..16]);
        Self { zipped: compress::gzip(&plain), plain, mark }
    }
}

/// The page itself, for whoever asks for it without a socket.
pub(crate) fn index(gateway: &Gateway, method: &Method, headers: &HeaderMap) -> Response {
    if !is_wanted(&gateway.settings) || !matches!(*method, Method::GET | Method::HEAD) {
        return missing();
    }
    let auth = match gateway.settings.auth {
        Auth::None | Auth::Unset | Auth::Proxy(_) => "none",
        Auth::Token(_) => "token",
        Auth::Password(_) => "password",
    };
    let print =
        gateway.tls.as_ref().map(|tls| format!(" data-fingerprint=\"{}\"", tls.fingerprint)).unwrap_or_default();
    let html = assets::INDEX.replacen(AUTH_MARK, &format!("data-auth=\"{auth}\"{print}"), 1);
    answer("text/html; charset=utf-8", &Packed::new(html.into()), headers)
}

/// A file that belongs to it.
pub(crate) async fn asset(
    State(gateway): State<Arc<Gateway>>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Response {
    let found = ASSETS.iter().zip(PACKED.iter()).find(|(asset, _)| asset.name == name);
    let packed = |(asset, slot): (&Asset, &'static OnceLock<Packed>)| {
        answer(asset.kind, slot.get_or_init(|| Packed::new(Bytes::from_static(asset.text.as_bytes()))), &headers)
    };
    found.filter(|_| is_wanted(&gateway.settings)).map_or_else(missing, packed)
}

/// Whether the operator wants a page at all.
fn is_wanted(settings: &Settings) -> bool {
    settings.section["controlUi"]["enabled"].as_bool().unwrap_or(true)
}

fn answer(kind: &'static str, file: &Packed, headers: &HeaderMap) -> Response {
    let is_zipped = takes_gzip(headers);
    let etag = if is_zipped { format!("\"{}-gz\"", file.mark) } else { format!("\"{}\"", file.mark) };
    let is_known = headers.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok()).is_some_and(|known| {
        known.split(',').any(|known| known.trim().trim_start_matches("W/") == etag || known.trim() == "*")
    });
    let body = if is_zipped { &file.zipped } else { &file.plain };
    let mut response = if is_known { StatusCode::NOT_MODIFIED.into_response() } else { body.clone().into_response() };
    if is_zipped && !is_known {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    let fixed = [
        (CONTENT_TYPE, kind),
        (CACHE_CONTROL, "no-cache"),
        (VARY, "accept-encoding"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=()"),
    ];
    for (name, value) in fixed {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        response.headers_mut().insert(ETAG, etag);
    }
    response
}

/// Whether the browser says that it unpacks gzip.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|one| {
        let mut parts = one.split(';').map(str::trim);
        parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"))
            && !parts.any(|part| matches!(part, "q=0" | "q=0.0"))
    })
}

fn missing() -> Response {
    (StatusCode::NOT_FOUND, [(X_CONTENT_TYPE_OPTIONS, "nosniff"), (REFERRER_POLICY, "no-referrer")], "Not Found")
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every way to make markup or a program of a text.
    const WAYS: &[&str] = &[
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
        "setHTML",
        "createContextualFragment",
        "DOMParser",
        "srcdoc",
        "javascript:",
        "setAttribute(\"on",
        "setAttribute('on",
        "setAttribute(\"style",
        "import(",
    ];

    #[test]
    fn text_is_never_made_into_markup() {
        for asset in ASSETS {
            let found: Vec<_> = WAYS.iter().filter(|way| asset.text.contains(**way)).collect();
            assert!(found.is_empty(), "{}: {found:?}", asset.name);
        }
    }

    #[test]
    fn nothing_comes_from_elsewhere() {
        let all = ASSETS.iter().map(|asset| (asset.name, asset.text)).chain([("index.html", assets::INDEX)]);
        for (name, text) in all {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for sign in ["http://", "https://", "url(", "@import", "//cdn"] {
                assert!(!text.contains(sign), "{name}: {sign}");
            }
        }
    }

    #[test]
    fn the_html_has_no_script_or_style_of_its_own() {
        let html = assets::INDEX;
        assert!(!html.contains("<style") && !html.contains(" style=") && !html.contains(" onclick"), "{html}");
        assert_eq!(html.matches("<script").count(), 1);
        assert!(html.contains("<script type=\"module\" src=\"/assets/app.js\"></script>"));
        assert!(html.contains(AUTH_MARK));
    }

    #[test]
    fn every_module_that_is_asked_for_is_there() {
        for asset in ASSETS.iter().filter(|asset| asset.kind.starts_with("text/javascript")) {
            for line in asset.text.lines().filter(|line| line.contains("from \"./")) {
                let name = line.split("from \"./").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
                assert!(ASSETS.iter().any(|asset| asset.name == name), "{}: {name}", asset.name);
            }
        }
    }
}
