//! What can a test do with the program while it runs?

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use crate::watchdog::Watched;
use crate::{Output, Prowess};

/// How long a test waits for something that should happen; far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program under test, while it runs. It is killed when nobody waits for its end.
#[derive(Debug)]
#[must_use = "it is killed when this is dropped"]
pub struct Running<'a> {
    prowess: &'a Prowess,
    line: String,
    child: Option<Watched>,
}

impl<'a> Running<'a> {
    pub(crate) fn new(prowess: &'a Prowess, line: &str, child: Child) -> Self {
        Self { prowess, line: line.to_owned(), child: Some(Watched::new(child)) }
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, Watched::id)
    }

    /// What it wrote to stdout so far.
    #[must_use]
    pub fn stdout(&self) -> String {
        self.prowess.mask(&self.child.as_ref().map(Watched::stdout).unwrap_or_default())
    }

    /// Waits for its end.
    #[track_caller]
    #[must_use = "an output that nobody looks at tests nothing"]
    pub fn wait(mut self) -> Output {
        let limit = self.prowess.limit;
        let child = self.child.take().expect("nobody has waited before");
        let ended = child.wait(limit).unwrap_or_else(|error| panic!("cannot wait for the child: {error}"));
        let output = Output {
            line: self.line.clone(),
            status: ended.status,
            stdout: self.prowess.mask(&ended.stdout),
            stderr: self.prowess.mask(&ended.stderr),
        };
        assert!(output.status.is_some(), "did not end within {limit:?} and was killed\n{output}");
        output
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself meanwhile.
            drop(child.kill());
        }
    }
}

/// Waits until `is` says yes; a test in which it never does fails with `what`.
#[track_caller]
pub fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}
