//! The spinner: a sign of life on a terminal while something takes time.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How often it turns.
const TICK: Duration = Duration::from_millis(100);

/// Turns on stderr while there is something to wait for. Without a terminal it does nothing.
#[derive(Debug, Default)]
pub(crate) struct Spinner {
    bar: Option<ProgressBar>,
    label: Option<String>,
    /// How many want it not to be seen just now.
    hushed: usize,
}

impl Spinner {
    /// Turns with this label.
    pub(crate) fn turn(&mut self, label: &str) {
        self.label = Some(label.to_owned());
        match &self.bar {
            Some(bar) => bar.set_message(label.to_owned()),
            None if self.hushed == 0 => self.bar = Some(bar(label)),
            None => {}
        }
    }

    /// Is gone.
    pub(crate) fn stop(&mut self) {
        self.label = None;
        self.clear();
    }

    /// Does `write` while it is out of the way.
    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Is not seen until `unhush`.
    pub(crate) fn hush(&mut self) {
        self.hushed += 1;
        self.clear();
    }

    /// Is seen again, if it was and nobody else minds.
    pub(crate) fn unhush(&mut self) {
        self.hushed = self.hushed.saturating_sub(1);
        if let (0, Some(label)) = (self.hushed, &self.label) {
            self.bar = Some(bar(label));
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar(label: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{spinner:.dim} {wide_msg}") {
        bar.set_style(style);
    }
    bar.set_message(label.to_owned());
    bar.enable_steady_tick(TICK);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_hushes_it_is_waited_for() {
        let mut spinner = Spinner::default();
        spinner.turn("a");
        spinner.hush();
        spinner.hush();
        spinner.turn("b");
        spinner.unhush();
        assert!(spinner.bar.is_none(), "one still minds");
        spinner.unhush();
        assert_eq!(spinner.bar.as_ref().map(ProgressBar::message), Some("b".to_owned()));
        spinner.stop();
        spinner.hush();
        spinner.unhush();
        assert!(spinner.bar.is_none(), "there is nothing to wait for");
    }
}
