//! What does the operator want to be traced, and where does it go?

use std::time::Duration;

use prowess_config::{Config, Secret};
use serde_json::Value;

/// The collector when only traces are asked for and none is named, as OpenTelemetry has it.
const COLLECTOR: &str = "http://127.0.0.1:4318";

/// How long spans are gathered when nothing is said.
const GATHER: Duration = Duration::from_secs(5);

/// The most headers that are sent along.
const MAX_HEADERS: usize = 32;

/// Where spans go, and which.
#[derive(Debug, Clone)]
pub(crate) struct TelemetrySettings {
    /// The whole address, with `/v1/traces`.
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, Secret)>,
    /// The name that traces are sent under.
    pub(crate) service: String,
    /// The part of all traces that is sent, from 0 to 1.
    pub(crate) sampled: f64,
    /// How long spans are gathered before they are sent.
    pub(crate) gather: Duration,
}

impl TelemetrySettings {
    /// From `diagnostics`; nothing when no traces are wanted.
    pub(crate) fn read(config: &Config) -> Option<Self> {
        let diagnostics = &config.tree()["diagnostics"];
        let otel = &diagnostics["otel"];
        let is_on = diagnostics["enabled"] == true && otel["enabled"] == true && otel["traces"] != false;
        if !is_on {
            return None;
        }
        let env = config.env();
        let text = |value: &Value| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let variable = |name: &str| env.text(name).map(str::to_owned);
        let endpoint = text(&otel["endpoint"]).or_else(|| variable("OTEL_EXPORTER_OTLP_ENDPOINT"));
        let headers = otel["headers"].as_object().into_iter().flatten();
        let headers = headers.filter_map(|(name, value)| Some((name.clone(), Secret::new(value.as_str()?))));
        let service = text(&otel["serviceName"]).or_else(|| variable("OTEL_SERVICE_NAME"));
        let sampled = otel["sampleRate"].as_f64().filter(|part| (0.0..=1.0).contains(part));
        let gather = otel["flushIntervalMs"].as_u64().map(Duration::from_millis);
        Some(Self {
            url: traces_url(&endpoint.unwrap_or_else(|| COLLECTOR.to_owned())),
            headers: headers.take(MAX_HEADERS).collect(),
            service: service.unwrap_or_else(|| "prowess".to_owned()),
            sampled: sampled.unwrap_or(1.0),
            gather: gather.unwrap_or(GATHER),
        })
    }
}

/// The address for traces: an endpoint is where all signals go, unless it names one already.
fn traces_url(endpoint: &str) -> String {
    let plain = endpoint.split(['?', '#']).next().unwrap_or(endpoint);
    if plain.ends_with("/v1/traces") {
        return endpoint.to_owned();
    }
    format!("{}/v1/traces", endpoint.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use prowess_config::Env;

    use super::*;

    fn read(text: &str) -> Option<TelemetrySettings> {
        let env = Env::from_iter([("OTEL_SERVICE_NAME", "by-variable")]);
        TelemetrySettings::read(&Config::parse(text, &env).expect("a configuration"))
    }

    #[test]
    fn both_switches_have_to_be_on() {
        for off in [
            "{}",
            "{diagnostics: {otel: {enabled: true}}}",
            "{diagnostics: {enabled: true}}",
            "{diagnostics: {enabled: true, otel: {enabled: true, traces: false}}}",
        ] {
            assert!(read(off).is_none(), "{off}");
        }
        let on = read("{diagnostics: {enabled: true, otel: {enabled: true}}}").expect("traces");
        assert_eq!((on.url.as_str(), on.service.as_str()), ("http://127.0.0.1:4318/v1/traces", "by-variable"));
    }

    #[test]
    fn settings_are_those_of_openclaw() {
        let text = "{diagnostics: {enabled: true, otel: {enabled: true, endpoint: 'http://c:1/', serviceName: 's',
            sampleRate: 0.25, flushIntervalMs: 50, headers: {Authorization: 'Bearer x'}}}}";
        let on = read(text).expect("traces");
        assert_eq!((on.url.as_str(), on.service.as_str(), on.sampled), ("http://c:1/v1/traces", "s", 0.25));
        assert_eq!((on.gather, on.headers.len()), (Duration::from_millis(50), 1));
        assert!(!format!("{on:?}").contains("Bearer x"));
    }

    #[test]
    fn an_endpoint_may_name_the_path_itself() {
        assert_eq!(traces_url("http://c/v1/traces"), "http://c/v1/traces");
        assert_eq!(traces_url("http://c/otlp/"), "http://c/otlp/v1/traces");
    }
}
