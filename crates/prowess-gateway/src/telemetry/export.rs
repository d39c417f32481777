//! The exporter: how do spans get to a collector that may be slow, or away?

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prowess_agent::provider::{is_loopback, tls_config};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Span, TelemetrySettings, otlp};

/// How many spans one request has at most.
const MAX_BATCH: usize = 256;

/// How long the collector may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long it may take when the gateway ends.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Gathers spans and sends them.
#[derive(Debug)]
pub(crate) struct Exporter {
    settings: TelemetrySettings,
    waiting: mpsc::Receiver<Span>,
    stop: CancellationToken,
    dropped: Arc<AtomicU64>,
}

/// Whether the collector took what it was sent last, so that its absence is told once and not with every batch.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Collector {
    Well,
    Away,
}

impl Exporter {
    pub(super) fn new(
        settings: TelemetrySettings,
        waiting: mpsc::Receiver<Span>,
        stop: CancellationToken,
        dropped: Arc<AtomicU64>,
    ) -> Self {
        Self { settings, waiting, stop, dropped }
    }

    /// Sends until it is told to stop, and then what is left.
    pub(crate) async fn run(mut self) {
        let client = match client(&self.settings) {
            Ok(client) => client,
            Err(why) => {
                tracing::warn!("traces are disabled: {why}");
                return;
            }
        };
        let mut collector = Collector::Well;
        loop {
            let mut batch = Vec::new();
            let first = tokio::select! {
                first = self.waiting.recv() => first,
                () = self.stop.cancelled() => None,
            };
            let Some(first) = first else { break };
            batch.push(first);
            // A batch is what comes within the time for gathering, or as much as fits.
            let gathered = tokio::time::timeout(self.settings.gather, async {
                while batch.len() < MAX_BATCH {
                    match self.waiting.recv().await {
                        Some(span) => batch.push(span),
                        None => break,
                    }
                }
            });
            tokio::select! {
                _ = gathered => {}
                () = self.stop.cancelled() => {}
            }
            // Both wait as long as the collector may: a gateway that ends does not wait for one that is away.
            let sent = tokio::select! {
                sent = send(&client, &self.settings, &batch, PATIENCE) => sent,
                () = ended(&self.stop) => Err("the gateway has stopped".to_owned()),
            };
            collector = self.note(collector, sent, batch.len());
        }
        self.finish(&client, collector).await;
    }

    async fn finish(mut self, client: &reqwest::Client, collector: Collector) {
        let mut batch = Vec::new();
        while let Ok(span) = self.waiting.try_recv() {
            batch.push(span);
        }
        if batch.is_empty() || collector == Collector::Away {
            return;
        }
        let sent = send(client, &self.settings, &batch, LAST_PATIENCE).await;
        self.note(collector, sent, batch.len());
    }

    fn note(&self, before: Collector, sent: Result<(), String>, spans: usize) -> Collector {
        let Err(why) = sent else {
            if before == Collector::Away {
                tracing::info!("the trace collector is reachable again");
            }
            return Collector::Well;
        };
        self.dropped.fetch_add(u64::try_from(spans).unwrap_or(u64::MAX), Ordering::Relaxed);
        if before == Collector::Well {
            tracing::warn!("dropping traces: the collector does not accept them: {why}");
        }
        Collector::Away
    }
}

/// Waits until the gateway has ended and the last patience is over.
async fn ended(stop: &CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(LAST_PATIENCE).await;
}

fn client(settings: &TelemetrySettings) -> Result<reqwest::Client, String> {
    let url = reqwest::Url::parse(&settings.url)
        .map_err(|error| format!("`{}` is not a valid URL: {error}", settings.url))?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in &settings.headers {
        let is_no_header = |_| format!("the header `{name}` of diagnostics.otel.headers cannot be sent");
        let value = HeaderValue::from_str(value.expose()).map_err(|error| is_no_header(error.to_string()))?;
        let name = HeaderName::try_from(name.as_str()).map_err(|error| is_no_header(error.to_string()))?;
        headers.insert(name, value);
    }
    let tls = tls_config(&url).map_err(|error| error.to_string())?;
    let mut builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(reqwest::redirect::Policy::none())
        .default_headers(headers)
        .user_agent(concat!("prowess/", env!("CARGO_PKG_VERSION")));
    if is_loopback(&url) {
        builder = builder.no_proxy();
    }
    builder.build().map_err(|error| error.without_url().to_string())
}

async fn send(
    client: &reqwest::Client,
    settings: &TelemetrySettings,
    spans: &[Span],
    patience: Duration,
) -> Result<(), String> {
    let body = otlp::body(&settings.service, spans).to_string();
    let sent = client.post(&settings.url).timeout(patience).body(body).send().await;
    let answer = sent.map_err(|error| error.without_url().to_string())?;
    let status = answer.status();
    if status.is_success() { Ok(()) } else { Err(format!("it answers with {status}")) }
}
