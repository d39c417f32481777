//! Programs of skills: which may run here because a skill needs them?
//!
//! The gateway knows their names; where they are is found out here, and kept. A program of the same name that turns up
//! elsewhere later, even in a folder that comes first, is not the one that was recorded.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prowess_exec::lookup::Disk;
use prowess_policy::SkillBin;
use prowess_policy::lookup::Lookup;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::link::Link;

/// How long the list counts.
const LIFETIME: Duration = Duration::from_secs(90);

/// How long the gateway may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The most programs that are recorded.
const MAX_BINS: usize = 4096;

/// The programs of skills on this machine.
#[derive(Default)]
pub(super) struct SkillBins(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    fetched: Option<Instant>,
    /// The names that the gateway told last.
    names: Vec<String>,
    /// Where each was when it was first looked for.
    found: HashMap<String, PathBuf>,
}

impl SkillBins {
    /// The programs, asked for again when the list is too old. `path` is where programs are looked for, and `open` are
    /// folders that commands may change: what is there is nobody's program.
    pub(super) async fn get(&self, link: &Link, path: &str, open: &Path) -> Vec<SkillBin> {
        let mut kept = self.0.lock().await;
        if kept.fetched.is_none_or(|at| at.elapsed() >= LIFETIME) {
            let asked = tokio::time::timeout(PATIENCE, link.call("skills.bins", json!({}))).await;
            match asked {
                Ok(Ok(answer)) => {
                    kept.names = names(&answer);
                    kept.fetched = Some(Instant::now());
                }
                // What was known before still counts; the next run asks again.
                Ok(Err(error)) => tracing::warn!("the gateway did not tell the programs of skills: {error}"),
                Err(_) => tracing::warn!("the gateway did not tell the programs of skills in time"),
            }
        }
        kept.record(path, open);
        let bins = kept.names.iter().filter_map(|name| Some((name, kept.found.get(name)?)));
        bins.map(|(name, real)| SkillBin { name: name.clone(), real: real.clone() }).collect()
    }
}

impl Kept {
    fn record(&mut self, path: &str, open: &Path) {
        let disk = Disk::new(path, Path::new("/")).open_to_runs([open.to_owned()]);
        for name in self.names.iter().filter(|name| !name.contains(['/', '\\'])) {
            if self.found.len() < MAX_BINS
                && !self.found.contains_key(name)
                && let Some(program) = disk.program(name).filter(prowess_policy::lookup::Program::is_trusted)
            {
                self.found.insert(name.clone(), program.real);
            }
        }
    }
}

fn names(answer: &Value) -> Vec<String> {
    let names = answer["bins"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::trim);
    names.filter(|name| !name.is_empty()).take(MAX_BINS).map(str::to_owned).collect()
}
