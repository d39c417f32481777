//! Providers: how is a model on the other end of a wire asked, and how is its answer read?
//!
//! One common message shape inside, three wire formats outside. Each format is two pure halves: a `body` that renders a
//! request, and a `Reader` that takes one event of the answer. Sockets, bounds and statuses are in `http`.

pub mod anthropic;
pub mod chat;
mod clients;
mod fault;
mod http;
mod probe;
pub mod responses;

use std::fmt;

use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use prowess_skills::Secret;
use serde_json::Value;

pub use clients::Clients;
pub use http::{MAX_REPLY, SetupError, answer, is_loopback, tls_config};
pub use probe::Wrong;

use crate::image::Image;
use crate::message::{Assistant, Block, Cost, StopReason};
use crate::model::facts::{Effort, Facts};
use crate::model::{About, Api, Delta, Model, ModelError, Request, Thinking};

/// Values shorter than this are not hidden in error texts: they are placeholders such as `ollama`, not secrets.
const SHORTEST_SECRET: usize = 8;

/// The largest number of tokens that is believed; sums of it never run over.
const MAX_TOKENS: u64 = 1 << 40;

/// Where a model is and how it is reached.
#[derive(Clone)]
pub struct Endpoint {
    /// Who runs it, as the configuration names them.
    pub provider: String,
    /// Where, for example `https://api.openai.com/v1` or `http://127.0.0.1:11434`.
    pub base_url: String,
    /// The key, if one is needed.
    pub key: Option<Secret>,
    /// More headers; they win over ours.
    pub headers: Vec<(String, String)>,
    /// The model's name there.
    pub model: String,
    /// The wire format.
    pub api: Api,
    /// How many tokens fit into one call; 0 when nobody knows.
    pub context_window: u64,
    /// How many tokens one answer may have; 0 when nobody knows.
    pub max_tokens: u64,
    /// Whether it can look at images. If not, it is told that there was one.
    pub takes_images: bool,
    /// Whether it thinks. If not, it is never asked to.
    pub reasoning: bool,
    /// Dollars for a million tokens, where known.
    pub price: Option<Cost>,
    /// What else is known from its name.
    pub facts: Facts,
}

/// A model on the other end of a wire.
pub struct Remote {
    endpoint: Endpoint,
    about: About,
    http: http::Http,
}

impl Endpoint {
    /// A model without a key, whose limits nobody knows.
    #[must_use]
    pub fn new(provider: impl Into<String>, base_url: impl Into<String>, api: Api, model: impl Into<String>) -> Self {
        let model = model.into();
        let facts = Facts::of(&model);
        Self {
            provider: provider.into(),
            base_url: base_url.into(),
            key: None,
            headers: Vec::new(),
            model,
            api,
            context_window: 0,
            max_tokens: 0,
            takes_images: false,
            reasoning: facts.reasons(),
            price: None,
            facts,
        }
    }

    /// Whether `message` came from this very model, so that its signatures mean something to it.
    fn wrote(&self, message: &Assistant) -> bool {
        message.provider == self.provider && message.model == self.model && message.api == self.api.word()
    }

    /// A model whose limits are those that its name stands for.
    fn known(provider: &str, base_url: &str, api: Api, model: impl Into<String>, key: Secret) -> Self {
        let endpoint = Self::new(provider, base_url, api, model);
        let Facts { window, answer, takes_images, price, .. } = endpoint.facts;
        Self { key: Some(key), context_window: window, max_tokens: answer, takes_images, price, ..endpoint }
    }

    /// Whether this is OpenAI itself, which takes more than those who speak like it.
    fn is_openai(&self) -> bool {
        http::host(&self.base_url).as_deref() == Some("api.openai.com")
    }

    /// Whether this is OpenAI at Microsoft's.
    fn is_azure(&self) -> bool {
        let host = http::host(&self.base_url).unwrap_or_default();
        [".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"]
            .iter()
            .any(|end| host.ends_with(end))
    }

    /// The word for how much to think, if the model is to be asked.
    fn effort(&self, thinking: Thinking) -> Option<&'static str> {
        self.facts.effort(thinking).filter(|_| self.reasoning).map(Effort::word)
    }

    /// How long an answer to `request` may be. An answer that was not asked to be long leaves room for the question.
    fn answer_tokens(&self, request: &Request<'_>) -> Option<u64> {
        let known = |tokens: u64| (tokens > 0).then_some(tokens);
        let room = known(self.context_window / 2);
        let most = known(self.max_tokens);
        match request.max_tokens {
            Some(asked) => Some(asked.min(most.unwrap_or(asked)).max(1)),
            None => most.map(|most| most.min(room.unwrap_or(most))),
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            // A URL can carry a password or a key.
            .field("host", &http::host(&self.base_url))
            .field("key", &self.key)
            .field("headers", &headers)
            .field("model", &self.model)
            .field("api", &self.api)
            .field("context_window", &self.context_window)
            .field("max_tokens", &self.max_tokens)
            .field("takes_images", &self.takes_images)
            .field("reasoning", &self.reasoning)
            .field("price", &self.price)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

impl Remote {
    /// The model at `endpoint`. Nothing is sent before it is asked.
    pub fn new(endpoint: Endpoint) -> Result<Self, SetupError> {
        Self::sharing(endpoint, &Clients::default())
    }

    /// The same, over a wire that others use as well.
    pub fn sharing(endpoint: Endpoint, clients: &Clients) -> Result<Self, SetupError> {
        let http = http::Http::new(&endpoint, clients)?;
        let about = About {
            provider: endpoint.provider.clone(),
            model: endpoint.model.clone(),
            api: endpoint.api,
            context_window: endpoint.context_window,
            max_tokens: endpoint.max_tokens,
            takes_images: endpoint.takes_images,
        };
        Ok(Self { endpoint, about, http })
    }

    /// A model of Anthropic.
    pub fn anthropic(key: Secret, model: impl Into<String>) -> Result<Self, SetupError> {
        Self::new(Endpoint::known("anthropic", "https://api.anthropic.com", Api::Anthropic, model, key))
    }

    /// A model of OpenAI, over its Responses API.
    pub fn openai(key: Secret, model: impl Into<String>) -> Result<Self, SetupError> {
        Self::new(Endpoint::known("openai", "https://api.openai.com/v1", Api::Responses, model, key))
    }

    /// What would be sent for `request`.
    #[must_use]
    pub fn body(&self, request: &Request<'_>) -> Value {
        self.render(request).0
    }

    /// What is sent for `request`, and what is remembered of it with the answer.
    fn render(&self, request: &Request<'_>) -> (Value, Option<Delta>) {
        match self.endpoint.api {
            Api::Anthropic => {
                let (body, prefix) = anthropic::render(request, &self.endpoint);
                let remembered = Delta::Data { block: None, field: anthropic::PREFIX, value: prefix.into() };
                (body, self.endpoint.facts.preserved.then_some(remembered))
            }
            Api::Chat => (chat::body(request, &self.endpoint), None),
            // `Http::new` lets no embedded model through.
            Api::Responses | Api::Embedded => (responses::body(request, &self.endpoint), None),
        }
    }

    async fn ask<'a>(&'a self, request: Request<'a>) -> Result<BoxStream<'a, Result<Delta, ModelError>>, ModelError> {
        let (body, remembered) = self.render(&request);
        let bytes = self.http.post(&body).await?;
        let answer = answer(self.endpoint.api, &self.endpoint.provider, bytes);
        Ok(stream::iter(remembered.map(Ok)).chain(answer).boxed())
    }

    /// `delta` with the price of its tokens.
    fn priced(&self, delta: Delta) -> Delta {
        let Delta::Usage(usage) = delta else { return delta };
        let Some(price) = self.endpoint.price else { return delta };
        let is_long = |above: u64| usage.read() > above && self.endpoint.facts.price == Some(price);
        let long = self.endpoint.facts.long_price.filter(|(above, _)| is_long(*above)).map(|(_, price)| price);
        Delta::Usage(usage.priced(&long.unwrap_or(price)))
    }

    /// `error` without anything that was given to us as a secret.
    fn hush(&self, error: ModelError) -> ModelError {
        let key = self.endpoint.key.iter().map(Secret::expose);
        let secrets: Vec<&str> = key
            .chain(self.endpoint.headers.iter().map(|(_, value)| value.as_str()))
            .map(str::trim)
            .filter(|secret| secret.len() >= SHORTEST_SECRET)
            .collect();
        map_words(error, |words| secrets.iter().fold(words, |words, secret| words.replace(secret, "…")))
    }
}

impl Model for Remote {
    fn about(&self) -> &About {
        &self.about
    }

    fn stream<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Delta, ModelError>> {
        let deltas = stream::once(self.ask(request)).try_flatten();
        deltas.map_ok(|delta| self.priced(delta)).map_err(|error| self.hush(error)).boxed()
    }
}

/// Reads the events of one answer, in the format it comes in.
#[derive(Debug)]
pub enum Reader {
    /// Anthropic Messages.
    Anthropic(anthropic::Reader),
    /// OpenAI Chat Completions.
    Chat(chat::Reader),
    /// OpenAI Responses.
    Responses(responses::Reader),
}

impl Reader {
    /// For an answer of `provider`. An embedded model has no wire; it counts as one that speaks the newest format.
    #[must_use]
    pub fn new(api: Api, provider: &str) -> Self {
        match api {
            Api::Anthropic => Self::Anthropic(anthropic::Reader::new(provider)),
            Api::Chat => Self::Chat(chat::Reader::new(provider)),
            Api::Responses | Api::Embedded => Self::Responses(responses::Reader::new(provider)),
        }
    }

    /// Takes one event. `name` is empty when the event has none.
    pub fn event(&mut self, name: &str, data: &str) -> Result<Vec<Delta>, ModelError> {
        match self {
            Self::Anthropic(reader) => reader.event(name, data),
            Self::Chat(reader) => reader.event(data),
            Self::Responses(reader) => reader.event(name, data),
        }
    }

    /// Takes a whole answer of a server that does not stream.
    pub fn whole(&mut self, answer: &Value) -> Result<Vec<Delta>, ModelError> {
        match self {
            Self::Anthropic(reader) => reader.whole(answer),
            Self::Chat(reader) => reader.whole(answer),
            Self::Responses(reader) => reader.whole(answer),
        }
    }

    /// Whether the model said that it is done.
    #[must_use]
    pub fn has_stopped(&self) -> bool {
        match self {
            Self::Anthropic(reader) => reader.stopped,
            Self::Chat(reader) => reader.stopped,
            Self::Responses(reader) => reader.stopped,
        }
    }

    /// Whether nothing more can come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        match self {
            Self::Anthropic(reader) => reader.over,
            Self::Chat(reader) => reader.over,
            Self::Responses(reader) => reader.over,
        }
    }
}

/// What a model that takes no images is told in place of one.
const NO_IMAGE: &str = "[There is an image here, but this model does not accept images.]";

/// The image as a `data:` URL.
fn image_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.mime_type, image.data)
}

/// What a model is told in place of a block that it cannot be given.
fn placeholder(value: &Value) -> String {
    match value["type"].as_str() {
        Some(kind) => format!("[something that is not shown here: {}]", fault::clean(kind, 40)),
        None => "[something that is not shown here]".to_owned(),
    }
}

/// The images in a tool's result, if the model takes any.
fn images<'a>(blocks: &'a [Block], endpoint: &Endpoint) -> Vec<&'a Image> {
    let image = |block: &'a Block| match block {
        Block::Image(image) if endpoint.takes_images => Some(image),
        _ => None,
    };
    blocks.iter().filter_map(image).collect()
}

/// The text of a tool's result for those who take nothing else; never empty, for some refuse that.
fn result_text(blocks: &[Block], endpoint: &Endpoint) -> String {
    let texts: Vec<String> = blocks
        .iter()
        .filter_map(|block| match block {
            Block::Text { text, .. } => Some(text.clone()),
            Block::Image(_) => (!endpoint.takes_images).then(|| NO_IMAGE.to_owned()),
            Block::Other(value) => Some(placeholder(value)),
            Block::Thinking { .. } | Block::ToolCall(_) => None,
        })
        .collect();
    let text = texts.join("\n");
    if text.trim().is_empty() { "(no output)".to_owned() } else { text }
}

/// Whether a message was broken off: its text stays, its thoughts are halves that no provider takes back.
fn is_broken_off(message: &Assistant) -> bool {
    match message.stop_reason {
        StopReason::Error | StopReason::Aborted => true,
        StopReason::Stop | StopReason::Length | StopReason::ToolUse => false,
    }
}

fn map_words(error: ModelError, change: impl Fn(String) -> String) -> ModelError {
    match error {
        ModelError::Key { provider, said } => ModelError::Key { provider, said: change(said) },
        ModelError::Quota { provider, said } => ModelError::Quota { provider, said: change(said) },
        ModelError::Request { provider, status, said } => ModelError::Request { provider, status, said: change(said) },
        ModelError::Overflow { said } => ModelError::Overflow { said: change(said) },
        ModelError::Busy { provider, status, said, after } => {
            ModelError::Busy { provider, status, said: change(said), after }
        }
        ModelError::Server { provider, status, said, after } => {
            ModelError::Server { provider, status, said: change(said), after }
        }
        ModelError::Connection { provider, why } => ModelError::Connection { provider, why: change(why) },
        ModelError::Malformed { provider, why } => ModelError::Malformed { provider, why: change(why) },
        ModelError::Refused { provider, said } => ModelError::Refused { provider, said: change(said) },
        wordless @ (ModelError::Cut { .. } | ModelError::TooLong { .. }) => wordless,
    }
}

/// A number of tokens from a usage object; what is not there counts as nothing.
fn tokens(usage: &Value, path: &str) -> u64 {
    usage.pointer(path).and_then(Value::as_u64).unwrap_or(0).min(MAX_TOKENS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_not_print() {
        let endpoint = Endpoint {
            key: Some(Secret::new("sk-very-secret")),
            headers: vec![("x-extra".to_owned(), "also-secret".to_owned())],
            ..Endpoint::new("p", "https://me:password@example.org/v1?key=hidden", Api::Chat, "m")
        };
        let remote = Remote::new(endpoint).expect("a model");
        let shown = format!("{remote:?}");
        for secret in ["very-secret", "also-secret", "password", "hidden"] {
            assert!(!shown.contains(secret), "{shown}");
        }
        assert!(shown.contains("x-extra") && shown.contains("example.org"), "{shown}");
        let echo = ModelError::Key { provider: "p".to_owned(), said: "bad key sk-very-secret; also-secret".to_owned() };
        assert_eq!(remote.hush(echo), ModelError::Key { provider: "p".to_owned(), said: "bad key …; …".to_owned() });
    }

    #[test]
    fn an_answer_leaves_room_for_the_question() {
        let request = |max_tokens| Request {
            system: "",
            messages: &[],
            tools: &[],
            max_tokens,
            thinking: crate::model::Thinking::Off,
            session: "",
        };
        // window, most, asked → sent
        let table = [
            (0, 0, None, None),
            (0, 0, Some(5), Some(5)),
            (8000, 8000, None, Some(4000)),
            (8000, 1000, None, Some(1000)),
            (8000, 1000, Some(3000), Some(1000)),
            (8000, 1000, Some(0), Some(1)),
        ];
        for (context_window, max_tokens, asked, sent) in table {
            let endpoint = Endpoint { context_window, max_tokens, ..Endpoint::new("p", "http://h", Api::Chat, "m") };
            assert_eq!(endpoint.answer_tokens(&request(asked)), sent);
        }
    }
}
