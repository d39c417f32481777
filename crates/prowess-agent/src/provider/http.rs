//! HTTP: how do bytes get to a provider and back, without waiting or reading for ever?

use std::collections::VecDeque;
use std::error::Error as _;
use std::io::Cursor;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _, stream};
use jiff::Timestamp;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Response, Url};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use serde_json::Value;
use sse_stream::SseByteStream;
use thiserror::Error;

use super::clients::{Clients, IDLE};
use super::fault::{self, Refusal};
use super::{Endpoint, Reader};
use crate::model::{Api, Delta, ModelError};

/// The longest answer, in bytes on the wire.
pub const MAX_REPLY: u64 = 32 * 1024 * 1024;
/// How much of an error's body is read.
const MAX_ERROR_BODY: usize = 16 * 1024;
/// How long the end of an answer is waited for when all of it is there, so that the connection can be used again.
const LINGER: Duration = Duration::from_millis(100);

/// Why a provider cannot be spoken to at all.
#[derive(Debug, Error)]
pub enum SetupError {
    /// The base URL is none.
    #[error("the base URL of {provider} is invalid: {why}; use one such as http://127.0.0.1:11434/v1")]
    BaseUrl {
        /// Who.
        provider: String,
        /// What is wrong.
        why: String,
    },
    /// The key has characters that no header can have.
    #[error("the key of {provider} has characters that cannot be sent; was it copied with a line break?")]
    Key {
        /// Who.
        provider: String,
    },
    /// A header cannot be sent.
    #[error("the header {name} of {provider} cannot be sent; check its name and value in the configuration")]
    Header {
        /// Who.
        provider: String,
        /// Which.
        name: String,
    },
    /// Encrypted connections cannot be made.
    #[error("no encrypted connection to {provider} is possible: {why}; are the system's root certificates installed?")]
    Tls {
        /// Who.
        provider: String,
        /// Why.
        why: String,
    },
    /// The model is in this program.
    #[error("{provider} has no wire format; choose anthropic-messages, openai-completions or openai-responses")]
    NoWire {
        /// Who.
        provider: String,
    },
}

/// What the token of a login at Anthropic begins with; it is shown in another header than a key.
const LOGIN: &str = "sk-ant-oat";

/// One way to one provider.
pub(super) struct Http {
    provider: String,
    client: Client,
    url: Url,
    headers: HeaderMap,
}

/// The bytes of an answer, as they come.
type Bytes = BoxStream<'static, Result<Vec<u8>, ModelError>>;

impl Http {
    pub(super) fn new(endpoint: &Endpoint, clients: &Clients) -> Result<Self, SetupError> {
        let provider = endpoint.provider.clone();
        let url = url(endpoint).map_err(|why| SetupError::BaseUrl { provider: provider.clone(), why })?;
        let headers = headers(endpoint)?;
        let client = clients.get(&url).map_err(|why| SetupError::Tls { provider: provider.clone(), why })?;
        Ok(Self { provider, client, url, headers })
    }

    /// Sends a request and gives back the bytes of the answer, if it is one.
    pub(super) async fn post(&self, body: &Value) -> Result<Bytes, ModelError> {
        let body = serde_json::to_vec(body)
            .map_err(|error| ModelError::Malformed { provider: self.provider.clone(), why: error.to_string() })?;
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body);
        let response = request.send().await.map_err(|error| self.unreachable(error))?;
        let status = response.status();
        if status.is_redirection() {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("another place");
            let why = format!("it points to {}; if that is right, make it the base URL", fault::clean(to, 200));
            return Err(ModelError::Malformed { provider: self.provider.clone(), why });
        }
        if !status.is_success() {
            let after = asked_wait(&response);
            let body = beginning(response).await;
            return Err(fault::of_status(&self.provider, &Refusal { status: status.as_u16(), body: &body, after }));
        }
        let provider = self.provider.clone();
        let bytes = response.bytes_stream().map(move |chunk| match chunk {
            Ok(chunk) => Ok(Vec::from(chunk)),
            Err(error) if error.is_timeout() => Err(silent(&provider)),
            Err(_) => Err(ModelError::Cut { provider: provider.clone() }),
        });
        Ok(bytes.boxed())
    }

    fn unreachable(&self, error: reqwest::Error) -> ModelError {
        if error.is_timeout() && !error.is_connect() {
            return silent(&self.provider);
        }
        let why = fault::clean(&reasons(error), 300);
        ModelError::Connection { provider: self.provider.clone(), why }
    }
}

/// Reads an answer of `provider` from its bytes, wherever they are cut: events, or one JSON object of a server that does
/// not stream. It ends with an error unless the model said that it is done.
pub fn answer<S, B>(
    api: Api,
    provider: &str,
    bytes: S,
) -> impl Stream<Item = Result<Delta, ModelError>> + Send + use<S, B>
where
    S: Stream<Item = Result<B, ModelError>> + Send + 'static,
    B: Into<Vec<u8>> + AsRef<[u8]>,
{
    let start = Answer {
        provider: provider.to_owned(),
        reader: Reader::new(api, provider),
        bytes: Source::Unknown(limited(provider.to_owned(), bytes)),
        ready: VecDeque::new(),
    };
    stream::unfold(Some(start), async |answer| {
        let mut answer = answer?;
        match answer.next().await? {
            Ok(delta) => Some((Ok(delta), Some(answer))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

type Events = BoxStream<'static, Result<sse_stream::Sse, sse_stream::Error>>;

/// An answer that is being read.
struct Answer {
    provider: String,
    reader: Reader,
    bytes: Source,
    ready: VecDeque<Delta>,
}

/// What the bytes are.
enum Source {
    /// Not known before the first of them is seen.
    Unknown(Bytes),
    /// Server-sent events.
    Events(Events),
    /// All is read.
    Done,
}

impl Answer {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Some(Ok(delta));
            }
            match std::mem::replace(&mut self.bytes, Source::Done) {
                Source::Unknown(bytes) => match self.begin(bytes).await {
                    Ok(source) => self.bytes = source,
                    Err(error) => return Some(Err(error)),
                },
                Source::Events(events) if self.reader.is_over() => linger(events).await,
                Source::Events(events) => match self.advance(events).await {
                    Ok(source) => self.bytes = source,
                    Err(error) => return Some(Err(error)),
                },
                Source::Done => return None,
            }
        }
    }

    /// Looks at the first byte that is not blank: an object, a web page, or events.
    async fn begin(&mut self, mut bytes: Bytes) -> Result<Source, ModelError> {
        let mut mark = "\u{feff}".as_bytes();
        let mut head: Vec<u8> = Vec::new();
        let first = loop {
            // Half a byte order mark says nothing yet.
            if head.len() >= mark.len() || !mark.starts_with(&head) {
                // Blanks in front of an answer mean nothing, and there may be many.
                head = head.strip_prefix(mark).unwrap_or(&head).trim_ascii_start().to_vec();
                mark = b"";
                if let Some(first) = head.first() {
                    break *first;
                }
            }
            match bytes.next().await {
                Some(chunk) => head.extend_from_slice(&chunk?),
                None => return Err(ModelError::Cut { provider: self.provider.clone() }),
            }
        };
        match first {
            b'{' | b'[' => self.whole(head, bytes).await,
            b'<' => {
                // Its title may come a little later; what cannot be read counts as not said.
                while head.len() < MAX_ERROR_BODY
                    && let Some(Ok(chunk)) = bytes.next().await
                {
                    head.extend_from_slice(&chunk);
                }
                let why = fault::web_page(&String::from_utf8_lossy(&head));
                Err(ModelError::Malformed { provider: self.provider.clone(), why })
            }
            _ => {
                let head = stream::iter([Ok(Cursor::new(head))]);
                let rest = bytes.map(|chunk| chunk.map(Cursor::new));
                Ok(Source::Events(SseByteStream::new(head.chain(rest)).boxed()))
            }
        }
    }

    async fn whole(&mut self, mut text: Vec<u8>, mut bytes: Bytes) -> Result<Source, ModelError> {
        while let Some(chunk) = bytes.next().await {
            text.extend_from_slice(&chunk?);
        }
        let answer: Value = match serde_json::from_slice(&text) {
            Ok(answer) => answer,
            Err(error) if error.is_eof() => return Err(ModelError::Cut { provider: self.provider.clone() }),
            Err(error) => {
                let what = format!("it is not JSON ({error})");
                return Err(fault::unreadable(&self.provider, &what, &String::from_utf8_lossy(&text)));
            }
        };
        self.ready.extend(self.reader.whole(&answer)?);
        Ok(Source::Done)
    }

    /// Takes the next event.
    async fn advance(&mut self, mut events: Events) -> Result<Source, ModelError> {
        let event = match events.next().await {
            Some(Ok(event)) => event,
            // Whatever happens to the line after the last word does no harm.
            None | Some(Err(_)) if self.reader.has_stopped() => return Ok(Source::Done),
            None => return Err(ModelError::Cut { provider: self.provider.clone() }),
            Some(Err(error)) => return Err(self.broken(error)),
        };
        if let Some(data) = &event.data {
            self.ready.extend(self.reader.event(event.event.as_deref().unwrap_or(""), data)?);
        }
        Ok(Source::Events(events))
    }

    fn broken(&self, error: sse_stream::Error) -> ModelError {
        let why = match error {
            sse_stream::Error::Body(error) => match error.downcast::<ModelError>() {
                Ok(error) => return *error,
                Err(error) => error.to_string(),
            },
            other => other.to_string(),
        };
        fault::unreadable(&self.provider, "its events cannot be read", &why)
    }
}

/// Reads what is left, so that the connection can be used again; a server that does not hang up is not waited for.
async fn linger(mut events: Events) {
    let rest = async { while let Some(Ok(_)) = events.next().await {} };
    // Out of time only means that the next call opens a connection of its own.
    drop(tokio::time::timeout(LINGER, rest).await);
}

/// `bytes`, but not more of them than [`MAX_REPLY`].
fn limited<S, B>(provider: String, bytes: S) -> Bytes
where
    S: Stream<Item = Result<B, ModelError>> + Send + 'static,
    B: Into<Vec<u8>> + AsRef<[u8]>,
{
    let mut seen: u64 = 0;
    bytes
        .map(move |chunk| {
            let chunk = chunk?;
            seen = seen.saturating_add(u64::try_from(chunk.as_ref().len()).unwrap_or(u64::MAX));
            if seen > MAX_REPLY {
                return Err(ModelError::TooLong { provider: provider.clone(), limit: MAX_REPLY });
            }
            Ok(chunk.into())
        })
        .boxed()
}

/// The host of a URL, if it is one.
pub(super) fn host(base_url: &str) -> Option<String> {
    Url::parse(base_url.trim()).ok()?.host_str().map(str::to_owned)
}

/// Where requests go. A base that is only a host gets `/v1`; otherwise only Anthropic's, unless it already ends in it.
fn url(endpoint: &Endpoint) -> Result<Url, String> {
    let mut url = Url::parse(endpoint.base_url.trim()).map_err(|error| error.to_string())?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("it does not begin with http:// or https:// and a host".to_owned());
    }
    let base = url.path().trim_end_matches('/').to_owned();
    let path = match endpoint.api {
        Api::Anthropic if base.ends_with("/v1") => format!("{base}/messages"),
        Api::Anthropic => format!("{base}/v1/messages"),
        Api::Chat if base.is_empty() => "/v1/chat/completions".to_owned(),
        Api::Chat => format!("{base}/chat/completions"),
        Api::Responses if base.is_empty() => "/v1/responses".to_owned(),
        Api::Responses | Api::Embedded => format!("{base}/responses"),
    };
    url.set_path(&path);
    url.set_fragment(None);
    Ok(url)
}

fn headers(endpoint: &Endpoint) -> Result<HeaderMap, SetupError> {
    let provider = || endpoint.provider.clone();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let key = endpoint.key.as_ref().map(|key| key.expose().trim()).filter(|key| !key.is_empty());
    let (name, value) = match endpoint.api {
        Api::Anthropic => {
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
            if let Some(token) = key.filter(|key| key.starts_with(LOGIN)) {
                headers.insert("anthropic-beta", HeaderValue::from_static("oauth-2025-04-20"));
                (AUTHORIZATION, Some(format!("Bearer {token}")))
            } else {
                (HeaderName::from_static("x-api-key"), key.map(str::to_owned))
            }
        }
        Api::Chat | Api::Responses => (AUTHORIZATION, key.map(|key| format!("Bearer {key}"))),
        Api::Embedded => return Err(SetupError::NoWire { provider: provider() }),
    };
    if let Some(value) = value {
        let mut value = HeaderValue::from_str(&value).map_err(|_| SetupError::Key { provider: provider() })?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    for (name, value) in &endpoint.headers {
        let bad = || SetupError::Header { provider: provider(), name: fault::clean(name, 60) };
        let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?, value);
    }
    Ok(headers)
}

/// How to speak to `url` safely.
///
/// Certificates are loaded only where they are needed: a machine without any can still speak to a model of its own.
pub fn tls_config(url: &Url) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    if url.scheme() == "https" {
        return Ok(builder.with_platform_verifier()?.with_no_client_auth());
    }
    Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

/// Whether an address is on this machine.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

fn asked_wait(response: &Response) -> Option<Duration> {
    let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    fault::retry_after(header("retry-after-ms"), header(RETRY_AFTER.as_str()), Timestamp::now())
}

/// The beginning of an error's body; what cannot be read counts as not said.
async fn beginning(mut response: Response) -> String {
    let mut body = Vec::new();
    while body.len() < MAX_ERROR_BODY {
        let Ok(Some(chunk)) = response.chunk().await else { break };
        let room = MAX_ERROR_BODY - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    String::from_utf8_lossy(&body).into_owned()
}

fn silent(provider: &str) -> ModelError {
    ModelError::Connection { provider: provider.to_owned(), why: format!("no data for {} seconds", IDLE.as_secs()) }
}

/// An error and its causes in one line. Its URL is left out: it can carry a key.
pub(super) fn reasons(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut reasons = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let text = next.to_string();
        if !reasons.contains(&text) {
            reasons = format!("{reasons}: {text}");
        }
        cause = next.source();
    }
    reasons
}

#[cfg(test)]
mod tests {
    use prowess_skills::Secret;

    use super::*;

    #[test]
    fn every_base_url_leads_to_the_right_place() {
        let table = [
            (Api::Anthropic, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"),
            (Api::Anthropic, "https://api.anthropic.com/v1/", "https://api.anthropic.com/v1/messages"),
            (Api::Anthropic, "https://h/anthropic", "https://h/anthropic/v1/messages"),
            (Api::Chat, "https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            (Api::Chat, " http://127.0.0.1:11434/ ", "http://127.0.0.1:11434/v1/chat/completions"),
            (Api::Chat, "https://openrouter.ai/api/v1//", "https://openrouter.ai/api/v1/chat/completions"),
            (Api::Chat, "https://h/openai/x?api-version=2", "https://h/openai/x/chat/completions?api-version=2"),
            (Api::Responses, "https://api.openai.com/v1", "https://api.openai.com/v1/responses"),
            (Api::Responses, "http://[::1]:8080#x", "http://[::1]:8080/v1/responses"),
        ];
        for (api, base, expected) in table {
            assert_eq!(url(&Endpoint::new("p", base, api, "m")).expect(base).as_str(), expected);
        }
        for base in ["", "localhost:8080", "ftp://h", "file:///x", "http://"] {
            assert!(url(&Endpoint::new("p", base, Api::Chat, "m")).is_err(), "{base}");
        }
    }

    #[test]
    fn what_cannot_be_sent_is_said_before_sending() {
        let endpoint = |key: &str, header: (&str, &str)| Endpoint {
            key: Some(Secret::new(key)),
            headers: vec![(header.0.to_owned(), header.1.to_owned())],
            ..Endpoint::new("p", "http://h", Api::Chat, "m")
        };
        assert!(matches!(headers(&endpoint("a\nb", ("x", "y"))), Err(SetupError::Key { .. })));
        assert!(matches!(headers(&endpoint("k", ("x y", "y"))), Err(SetupError::Header { .. })));
        assert!(matches!(headers(&endpoint("k", ("x", "y\u{0}"))), Err(SetupError::Header { .. })));
        let embedded = Endpoint::new("p", "http://h", Api::Embedded, "m");
        assert!(matches!(headers(&embedded), Err(SetupError::NoWire { .. })));
        // One that the operator wrote wins over ours.
        let own = headers(&endpoint("k\n", ("Authorization", "Basic x"))).expect("headers");
        assert_eq!(own.get(AUTHORIZATION).map(HeaderValue::as_bytes), Some("Basic x".as_bytes()));
    }

    #[test]
    fn this_machine_is_never_asked_through_a_proxy() {
        let table = [
            ("http://localhost:1", true),
            ("http://127.0.0.2", true),
            ("http://[::1]", true),
            ("http://10.0.0.1", false),
            ("https://localhost.example.org", false),
        ];
        for (address, expected) in table {
            assert_eq!(is_loopback(&Url::parse(address).expect("a URL")), expected, "{address}");
        }
    }
}
