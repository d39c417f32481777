//! Eligibility: which programs do nodes have, as far as skills ask for them?
//!
//! Pure: what was found out about each node, when it has to be found out again, and what agents are told of it. Any node
//! that runs commands counts, whatever its system.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use prowess_policy::shown;
use prowess_skills::Machine;
use serde_json::Value;

/// How long an answer counts.
pub(crate) const LIFETIME: Duration = Duration::from_secs(30 * 60);

/// How long to wait after a failure, the first time and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(15), Duration::from_secs(300));

/// How many nodes are named to a model.
const MAX_NAMED: usize = 8;

/// How much of a node's name is told to a model, in characters.
const MAX_NAME: usize = 64;

/// What is known about the programs of nodes.
#[derive(Debug, Default)]
pub(crate) struct Eligibility {
    probes: HashMap<String, Probe>,
}

#[derive(Debug)]
struct Probe {
    /// The connection that was asked.
    conn: String,
    wanted: BTreeSet<String>,
    bins: HashSet<String>,
    /// How many times in a row it did not answer.
    failures: u32,
    state: Asked,
}

#[derive(Debug)]
enum Asked {
    /// An answer is on its way.
    Now,
    /// It answered.
    Answered(Instant),
    /// It did not.
    Failed(Instant),
}

impl Eligibility {
    /// Whether a node has to be asked now. If so it counts as being asked, until [`found`](Self::found) or
    /// [`failed`](Self::failed).
    pub(crate) fn begin(&mut self, node: &str, conn: &str, wanted: &BTreeSet<String>, now: Instant) -> bool {
        let before = self.probes.get(node).filter(|probe| probe.conn == conn);
        let is_due = before.is_none_or(|probe| match probe.state {
            Asked::Now => false,
            Asked::Answered(at) => probe.wanted != *wanted || now.duration_since(at) >= LIFETIME,
            Asked::Failed(at) => now.duration_since(at) >= backoff(probe.failures),
        });
        if !is_due {
            return false;
        }
        let bins = before.map(|probe| probe.bins.clone()).unwrap_or_default();
        let failures = before.map_or(0, |probe| probe.failures);
        let conn = conn.to_owned();
        self.probes.insert(node.to_owned(), Probe { conn, wanted: wanted.clone(), bins, failures, state: Asked::Now });
        true
    }

    /// A node answered.
    pub(crate) fn found(&mut self, node: &str, conn: &str, bins: HashSet<String>, now: Instant) {
        if let Some(probe) = self.probes.get_mut(node).filter(|probe| probe.conn == conn) {
            // What nobody asked for is nobody's business.
            probe.bins = bins.into_iter().filter(|bin| probe.wanted.contains(bin)).collect();
            probe.failures = 0;
            probe.state = Asked::Answered(now);
        }
    }

    /// A node did not answer; what it had counts no longer.
    pub(crate) fn failed(&mut self, node: &str, conn: &str, now: Instant) {
        if let Some(probe) = self.probes.get_mut(node).filter(|probe| probe.conn == conn) {
            probe.bins.clear();
            probe.failures = probe.failures.saturating_add(1);
            probe.state = Asked::Failed(now);
        }
    }

    /// A node is gone.
    pub(crate) fn forget(&mut self, node: &str) {
        self.probes.remove(node);
    }

    /// The programs of a node.
    pub(crate) fn bins(&self, node: &str, conn: &str) -> HashSet<String> {
        let probe = self.probes.get(node).filter(|probe| probe.conn == conn);
        probe.map(|probe| probe.bins.clone()).unwrap_or_default()
    }
}

fn backoff(times: u32) -> Duration {
    BACKOFF.0.saturating_mul(2_u32.saturating_pow(times.saturating_sub(1))).min(BACKOFF.1)
}

/// The script that says which of `bins` are there, for nodes that cannot be asked directly.
pub(crate) fn script<'a>(bins: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = bins.into_iter().map(|bin| format!("'{}'", bin.replace('\'', r"'\''"))).collect();
    format!(r#"for b in {}; do if command -v "$b" >/dev/null 2>&1; then echo "$b"; fi; done"#, quoted.join(" "))
}

/// The programs that a node's answer names: a list, an object of paths, or lines of output.
pub(crate) fn parse(payload: &Value) -> HashSet<String> {
    let named = |name: &str| Some(name.trim().to_owned()).filter(|name| !name.is_empty());
    match &payload["bins"] {
        Value::Array(bins) => bins.iter().filter_map(Value::as_str).filter_map(named).collect(),
        Value::Object(bins) => {
            let found = bins.iter().filter(|(_, path)| path.as_str().is_some_and(|path| !path.trim().is_empty()));
            found.filter_map(|(name, _)| named(name)).collect()
        }
        _ => payload["stdout"].as_str().unwrap_or_default().lines().filter_map(named).collect(),
    }
}

/// A node that runs commands, as agents get to know it.
pub(crate) struct Offer {
    pub(crate) name: String,
    /// Its system, for people.
    pub(crate) system: &'static str,
    pub(crate) machine: Machine,
}

/// A sentence for models about the nodes; none without nodes.
pub(crate) fn note(offers: &[Offer]) -> Option<String> {
    if offers.is_empty() {
        return None;
    }
    let clean = |name: &str| {
        let short: String = name.chars().filter(|c| !matches!(c, '<' | '>' | '&' | '`')).take(MAX_NAME).collect();
        shown(&short).to_string()
    };
    let mut named: Vec<String> =
        offers.iter().take(MAX_NAMED).map(|offer| format!("{} ({})", clean(&offer.name), offer.system)).collect();
    if offers.len() > MAX_NAMED {
        named.push(format!("{} more", offers.len() - MAX_NAMED));
    }
    let many = if offers.len() == 1 {
        "Another machine is connected as a node"
    } else {
        "Other machines are connected as nodes"
    };
    Some(format!(
        "{many}: {}. If a skill needs a system or program that this machine lacks, run its commands there with exec host=node.",
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::{Duration, Instant};

    use prowess_testkit::{cases, check_all_but};
    use serde_json::{Value, json};

    use super::{Eligibility, LIFETIME, parse, script};

    #[test]
    fn answers_are_read_as_in_openclaw_or_better() {
        let deviations = [("object", "the headless node host of the peer answers with an object, and means it")];
        check_all_but(&deviations, cases(include_str!("../../tests/golden/remote-skills.json")), |case| {
            let found = if let Value::Array(bins) = &case["script"] {
                json!(script(bins.iter().filter_map(Value::as_str)))
            } else {
                let text = case["payload"].as_str().unwrap_or_default();
                let payload: Value = serde_json::from_str(text).unwrap_or_default();
                let mut found: Vec<String> = parse(&payload).into_iter().collect();
                found.sort();
                json!(found)
            };
            if found == case["output"] { Ok(()) } else { Err(format!("found {found}")) }
        });
        assert_eq!(parse(&json!({"bins": {"gh": "/usr/bin/gh", "jq": ""}})).len(), 1);
    }

    #[test]
    fn a_node_is_asked_once_and_again_only_when_that_may_change_something() {
        let mut known = Eligibility::default();
        let (start, wanted) = (Instant::now(), BTreeSet::from(["gh".to_owned()]));
        assert!(known.begin("n", "c1", &wanted, start));
        assert!(!known.begin("n", "c1", &wanted, start), "an answer is on its way");
        known.found("n", "c1", ["gh".to_owned(), "evil".to_owned()].into(), start);
        assert_eq!(known.bins("n", "c1"), ["gh".to_owned()].into(), "only what was asked for");
        assert!(!known.begin("n", "c1", &wanted, start + LIFETIME / 2));
        assert!(known.begin("n", "c1", &BTreeSet::from(["jq".to_owned()]), start), "other skills ask for more");
        assert!(known.begin("n", "c2", &wanted, start), "another connection may be another machine");
        known.failed("n", "c2", start);
        assert!(!known.begin("n", "c2", &wanted, start + Duration::from_secs(14)));
        assert!(known.begin("n", "c2", &wanted, start + Duration::from_secs(15)));
        for _ in 0..9 {
            known.failed("n", "c2", start);
        }
        assert!(!known.begin("n", "c2", &wanted, start + Duration::from_secs(299)));
        assert!(known.begin("n", "c2", &wanted, start + Duration::from_secs(300)));
    }
}
