//! The page of numbers, in the text form that Prometheus reads.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use super::histogram::{ENDS, Histogram};
use super::{Decided, Ended, Method, Metrics, Outcome, TOOLS};

/// Who is connected at this moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Connected {
    pub(crate) operators: usize,
    pub(crate) nodes: usize,
}

const TOKENS: [&str; 4] = ["input", "output", "cache_read", "cache_write"];

impl Metrics {
    /// All of it as text.
    pub(crate) fn page(&self, connected: Connected) -> String {
        let mut page = Page::default();
        page.family("prowess_build_info", "gauge", "The running program");
        page.line("prowess_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        page.family("prowess_start_time_seconds", "gauge", "Start time of the gateway, in seconds since 1970");
        page.line("prowess_start_time_seconds", &[], self.started);
        page.family("prowess_connections", "gauge", "Open connections by role");
        page.line("prowess_connections", &[("role", "operator")], connected.operators as u64);
        page.line("prowess_connections", &[("role", "node")], connected.nodes as u64);
        page.family("prowess_connections_refused_total", "counter", "Connections that were refused");
        page.line("prowess_connections_refused_total", &[], self.refused_connections.load(Ordering::Relaxed));
        self.requests(&mut page);
        self.turns(&mut page);
        self.machines(&mut page);
        page.text
    }

    fn requests(&self, page: &mut Page) {
        let asked = || self.methods.iter().chain([&self.other]).filter(|method| method.took.show().count > 0);
        page.family("prowess_requests_total", "counter", "Requests by method and outcome");
        for Method { name, outcomes, .. } in asked() {
            for (outcome, word) in Outcome::ALL {
                let labels = [("method", *name), ("outcome", word)];
                page.line("prowess_requests_total", &labels, outcomes.get(outcome as usize));
            }
        }
        page.family("prowess_request_seconds", "histogram", "Duration of requests");
        for Method { name, took, .. } in asked() {
            page.histogram("prowess_request_seconds", Some(("method", name)), took);
        }
        page.family("prowess_http_responses_total", "counter", "HTTP responses by status class");
        for class in 1..=5 {
            let word = format!("{class}xx");
            page.line("prowess_http_responses_total", &[("status", &word)], self.http.get(class));
        }
    }

    fn turns(&self, page: &mut Page) {
        page.family("prowess_turns_total", "counter", "Agent turns by outcome");
        for (ended, word) in Ended::ALL {
            page.line("prowess_turns_total", &[("ended", word)], self.turns.get(ended as usize));
        }
        page.family("prowess_turn_seconds", "histogram", "Duration of turns");
        page.histogram("prowess_turn_seconds", None, &self.turn_took);
        page.family("prowess_tokens_total", "counter", "Tokens as counted by the providers");
        for (place, word) in TOKENS.into_iter().enumerate() {
            page.line("prowess_tokens_total", &[("kind", word)], self.tokens.get(place));
        }
        page.family("prowess_tool_calls_total", "counter", "Tool calls by outcome");
        for (tool, ends) in TOOLS.iter().zip(&self.tools) {
            for (ended, word) in Ended::ALL {
                page.line("prowess_tool_calls_total", &[("tool", tool), ("ended", word)], ends.get(ended as usize));
            }
        }
    }

    fn machines(&self, page: &mut Page) {
        page.family("prowess_approvals_total", "counter", "Approval requests by decision");
        for (decided, word) in Decided::ALL {
            page.line("prowess_approvals_total", &[("decision", word)], self.approvals.get(decided as usize));
        }
        page.family("prowess_node_invokes_total", "counter", "Node commands by outcome");
        for (ended, word) in Ended::ALL {
            page.line("prowess_node_invokes_total", &[("ended", word)], self.invokes.get(ended as usize));
        }
        page.family("prowess_node_invoke_seconds", "histogram", "Duration of node commands");
        page.histogram("prowess_node_invoke_seconds", None, &self.invoke_took);
        page.family("prowess_skill_refreshes_total", "counter", "Skill refreshes");
        page.line("prowess_skill_refreshes_total", &[], self.refreshes.load(Ordering::Relaxed));
        page.family("prowess_skill_refresh_seconds", "histogram", "Duration of skill refreshes");
        page.histogram("prowess_skill_refresh_seconds", None, &self.refresh_took);
    }
}

/// Text that grows line by line. Labels are words of ours and need no escapes.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn family(&mut self, name: &str, kind: &str, about: &str) {
        let _ = writeln!(self.text, "# HELP {name} {about}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &[(&str, &str)], value: u64) {
        let _ = writeln!(self.text, "{name}{} {value}", braced(labels));
    }

    fn histogram(&mut self, name: &str, label: Option<(&str, &str)>, histogram: &Histogram) {
        let shown = histogram.show();
        let labels: Vec<(&str, &str)> = label.into_iter().collect();
        for (end, number) in ENDS.iter().zip(shown.within) {
            let end = seconds(*end);
            let bucket = [labels.as_slice(), &[("le", end.as_str())]].concat();
            self.line(&format!("{name}_bucket"), &bucket, number);
        }
        let all = [labels.as_slice(), &[("le", "+Inf")]].concat();
        self.line(&format!("{name}_bucket"), &all, shown.count);
        let _ = writeln!(self.text, "{name}_sum{} {}", braced(&labels), shown.seconds);
        self.line(&format!("{name}_count"), &labels, shown.count);
    }
}

fn braced(labels: &[(&str, &str)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    format!("{{{}}}", pairs.join(","))
}

fn seconds(millis: u64) -> String {
    std::time::Duration::from_millis(millis).as_secs_f64().to_string()
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use prowess_agent::message::Usage;

    use super::*;

    fn number(page: &str, line: &str) -> Option<f64> {
        page.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok())
    }

    #[test]
    fn everything_that_happens_is_counted() {
        let metrics = Metrics::new(&["status", "health"]);
        metrics.request_ended("health", Outcome::Ok, Instant::now());
        metrics.request_ended("status", Outcome::Refused, Instant::now());
        let usage = Usage { input: 7, output: 3, ..Usage::default() };
        metrics.turn_ended(Ended::Done, Duration::from_millis(30), &usage);
        metrics.tool_ended("exec", Ended::Failed);
        metrics.tool_ended("a tool\"} of somebody", Ended::Done);
        metrics.approval_ended(Decided::AllowAlways);
        metrics.invoke_ended(Ended::Stopped, Duration::from_secs(2));
        metrics.refreshed(Duration::from_millis(3));
        metrics.http_ended(404);
        metrics.turned_away();
        let page = metrics.page(Connected { operators: 2, nodes: 1 });
        for (line, expected) in [
            ("prowess_connections{role=\"operator\"}", 2.0),
            ("prowess_connections{role=\"node\"}", 1.0),
            ("prowess_connections_refused_total", 1.0),
            ("prowess_requests_total{method=\"health\",outcome=\"ok\"}", 1.0),
            ("prowess_requests_total{method=\"status\",outcome=\"refused\"}", 1.0),
            ("prowess_request_seconds_count{method=\"health\"}", 1.0),
            ("prowess_turns_total{ended=\"done\"}", 1.0),
            ("prowess_turn_seconds_bucket{le=\"0.025\"}", 0.0),
            ("prowess_turn_seconds_bucket{le=\"0.05\"}", 1.0),
            ("prowess_turn_seconds_sum", 0.03),
            ("prowess_tokens_total{kind=\"input\"}", 7.0),
            ("prowess_tool_calls_total{tool=\"exec\",ended=\"failed\"}", 1.0),
            ("prowess_tool_calls_total{tool=\"other\",ended=\"done\"}", 1.0),
            ("prowess_approvals_total{decision=\"allow-always\"}", 1.0),
            ("prowess_node_invokes_total{ended=\"stopped\"}", 1.0),
            ("prowess_skill_refreshes_total", 1.0),
            ("prowess_http_responses_total{status=\"4xx\"}", 1.0),
        ] {
            assert_eq!(number(&page, line), Some(expected), "{line}\n{page}");
        }
    }

    #[test]
    fn whatever_clients_ask_for_the_page_does_not_grow() {
        let metrics = Metrics::new(&["health"]);
        for made_up in 0..1000 {
            metrics.request_ended(&format!("no.such.{made_up}"), Outcome::Refused, Instant::now());
        }
        let page = metrics.page(Connected::default());
        assert_eq!(number(&page, "prowess_requests_total{method=\"other\",outcome=\"refused\"}"), Some(1000.0));
        assert!(!page.contains("no.such"), "{page}");
    }

    #[test]
    fn every_line_has_a_type() {
        let page = Metrics::new(&[]).page(Connected::default());
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split(['{', ' ']).next().expect("a name");
            let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
            assert!(page.contains(&format!("# TYPE {family} ")), "{line}");
        }
    }
}
