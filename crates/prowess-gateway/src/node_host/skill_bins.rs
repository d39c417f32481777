//! Programs of skills: which may run here because a skill needs them?
//!
//! The gateway knows their names; where they are is found out here, and kept. A program of the same name that turns up
//! elsewhere later, even in a folder that comes first, is not the one that was recorded.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prowess_exec::lookup::Disk;
use prowess_policy::SkillBin;
use prowess_policy::lookup::Lookup;
use serde_json::{Value, json};

use super::bench::Failed;
use super::link::Link;
use crate::aside::blocking;
use crate::client::CallError;

/// How long the list counts.
const LIFETIME: Duration = Duration::from_secs(90);

/// How long the gateway may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// After how long a gateway that did not tell is asked again.
const AGAIN: Duration = Duration::from_secs(30);

/// After how long a program that was not there is looked for again.
const MISSING: Duration = Duration::from_secs(10);

/// The most programs that are recorded.
const MAX_BINS: usize = 4096;

/// The programs of skills on this machine.
#[derive(Default)]
pub(super) struct SkillBins {
    kept: Arc<Mutex<Kept>>,
    /// Whoever has it asks the gateway; the others wait for the same answer.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Kept {
    /// Until when the gateway need not be asked.
    until: Option<Instant>,
    /// The names that the gateway told last.
    names: Vec<String>,
    /// Where each was when it was first looked for.
    found: HashMap<String, PathBuf>,
    /// When each that is not there was looked for.
    missing: HashMap<String, Instant>,
}

impl SkillBins {
    /// The programs, asked for again when the list is too old. `path` is where programs are looked for, and `open` are
    /// folders that commands may change: what is there is nobody's program.
    pub(super) async fn get(&self, link: &Link, path: &str, open: &Path) -> Result<Vec<SkillBin>, Failed> {
        self.refresh(link).await;
        let (kept, path, open) = (Arc::clone(&self.kept), path.to_owned(), open.to_owned());
        let bins = blocking(move || {
            let mut kept = lock(&kept);
            kept.record(&path, &open, Instant::now());
            kept.bins()
        });
        Ok(bins.await?)
    }

    /// Asks the gateway, unless it was asked a moment ago. What was known before counts until it answers.
    async fn refresh(&self, link: &Link) {
        let _asking = self.asking.lock().await;
        if lock(&self.kept).is_fresh(Instant::now()) {
            return;
        }
        let asked = tokio::time::timeout(PATIENCE, link.call("skills.bins", json!({}))).await;
        let mut kept = lock(&self.kept);
        match asked {
            Ok(Ok(answer)) => {
                kept.names = names(&answer);
                kept.until = Some(Instant::now() + LIFETIME);
            }
            // The next connection may have an answer, so it is asked.
            Ok(Err(
                error @ (CallError::Gone(_)
                | CallError::Insecure(_)
                | CallError::Encrypted(_)
                | CallError::Certificate { .. }),
            )) => {
                tracing::warn!("cannot get the list of skill programs from the gateway: {error}");
            }
            Ok(Err(error @ (CallError::Refused { .. } | CallError::Late { .. }))) => {
                tracing::warn!("the gateway did not tell the programs of skills: {error}");
                kept.until = Some(Instant::now() + AGAIN);
            }
            Err(_) => {
                tracing::warn!("the gateway did not tell the programs of skills in time");
                kept.until = Some(Instant::now() + AGAIN);
            }
        }
    }
}

impl Kept {
    fn is_fresh(&self, now: Instant) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Looks for what is not recorded yet. Looks at the disk.
    fn record(&mut self, path: &str, open: &Path, now: Instant) {
        let is_due = |at: &Instant| now.saturating_duration_since(*at) >= MISSING;
        self.missing.retain(|_, at| !is_due(at));
        let disk = Disk::new(path, Path::new("/")).open_to_runs([open.to_owned()]);
        for name in self.names.iter().filter(|name| !name.contains(['/', '\\'])) {
            if self.found.len() >= MAX_BINS {
                return;
            }
            if self.found.contains_key(name) || self.missing.contains_key(name) {
                continue;
            }
            match disk.program(name).filter(prowess_policy::lookup::Program::is_trusted) {
                Some(program) => drop(self.found.insert(name.clone(), program.real)),
                None => drop(self.missing.insert(name.clone(), now)),
            }
        }
    }

    fn bins(&self) -> Vec<SkillBin> {
        let found = self.names.iter().filter_map(|name| Some((name, self.found.get(name)?)));
        found.map(|(name, real)| SkillBin { name: name.clone(), real: real.clone() }).collect()
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

fn names(answer: &Value) -> Vec<String> {
    let names = answer["bins"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::trim);
    names.filter(|name| !name.is_empty()).take(MAX_BINS).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use prowess_testkit::Tree;

    use super::*;

    #[test]
    fn an_answer_counts_for_a_while_and_no_longer() {
        let told = Instant::now();
        let kept = Kept { until: Some(told + LIFETIME), ..Kept::default() };
        assert!(!Kept::default().is_fresh(told), "nobody was asked yet");
        assert!(kept.is_fresh(told) && kept.is_fresh(told + LIFETIME / 2));
        assert!(!kept.is_fresh(told + LIFETIME), "it is asked again");
    }

    #[test]
    fn what_is_not_there_is_looked_for_now_and_then_and_what_is_there_once() {
        let tree = Tree::new().file("bin/there", "").file("bin/late", "");
        let programs = tree.root().join("bin");
        let allow = |name: &str| {
            std::fs::set_permissions(programs.join(name), PermissionsExt::from_mode(0o755)).expect("the mode is set");
        };
        allow("there");
        let path = programs.to_string_lossy().into_owned();
        let mut kept = Kept { names: ["there", "late"].map(str::to_owned).to_vec(), ..Kept::default() };
        let begin = Instant::now();
        let mut names = |after: Duration| {
            kept.record(&path, Path::new("/nowhere"), begin + after);
            kept.bins().into_iter().map(|bin| bin.name).collect::<Vec<_>>()
        };
        assert_eq!(names(Duration::ZERO), ["there"]);
        allow("late");
        assert_eq!(names(MISSING / 2), ["there"], "nobody looks again so soon");
        assert_eq!(names(MISSING), ["there", "late"]);
        std::fs::remove_file(programs.join("there")).expect("removed");
        assert_eq!(names(2 * MISSING), ["there", "late"], "it stays where it was");
    }
}
