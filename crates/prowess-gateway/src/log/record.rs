//! The recorder: which events are taken, and where do they go?

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use prowess_config::Secret;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::line::{Line, covered};
use super::{LogFile, LogSettings};

/// Where lines for people go.
pub type Console = Box<dyn Write + Send>;

/// Takes events and writes them down.
pub struct Recorder {
    level: LevelFilter,
    console_level: LevelFilter,
    secrets: Vec<Secret>,
    /// Nothing where the file cannot be written.
    file: Option<Mutex<LogFile>>,
    console: Mutex<Console>,
}

impl Recorder {
    /// Writes as `settings` say. A log that cannot be opened is told to `console` and done without.
    #[must_use]
    pub fn new(settings: &LogSettings, mut console: Console) -> Self {
        let file = match LogFile::open(&settings.file, settings.max_bytes) {
            Ok(file) => Some(Mutex::new(file)),
            Err(error) => {
                // Nothing is left to do when the console has gone away too.
                let _ = writeln!(console, "cannot write the log {}: {error}", settings.file.display());
                None
            }
        };
        let (level, console_level) = (settings.level, settings.console);
        Self { level, console_level, secrets: settings.secrets.clone(), file, console: Mutex::new(console) }
    }
}

impl<S: Subscriber> Layer<S> for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>, _context: Context<'_, S>) -> bool {
        let is_ours = metadata.target().starts_with("prowess");
        metadata.is_event()
            && *metadata.level() <= self.level.max(self.console_level)
            && (is_ours || *metadata.level() <= Level::WARN)
    }

    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let line = Line::of(event);
        // A disk that is full, or a terminal that is gone, stops no gateway.
        if line.level <= self.level
            && let Some(file) = &self.file
        {
            let text = covered(line.json(), &self.secrets);
            let _ = file.lock().unwrap_or_else(PoisonError::into_inner).add(&text);
        }
        if line.level <= self.console_level {
            let text = covered(line.human(), &self.secrets);
            let _ = writeln!(self.console.lock().unwrap_or_else(PoisonError::into_inner), "{text}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    #[derive(Clone, Default)]
    struct Pane(Arc<Mutex<Vec<u8>>>);

    impl Write for Pane {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("a lock").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn each_place_gets_what_is_worth_it_and_no_secret() {
        let dir = tempfile::tempdir().expect("a directory");
        let settings = LogSettings {
            file: dir.path().join("gateway.log"),
            max_bytes: 100_000,
            level: LevelFilter::DEBUG,
            console: LevelFilter::INFO,
            secrets: vec![Secret::new("t0k-secret")],
        };
        let pane = Pane::default();
        let recorder = Recorder::new(&settings, Box::new(pane.clone()));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(recorder), || {
            tracing::info!(count = 3, "listening");
            tracing::debug!("a detail");
            tracing::trace!("too much");
            tracing::warn!("somebody said t0k-secret");
            tracing::debug!(target: "tungstenite::protocol", "a frame with a token");
        });
        let file = std::fs::read_to_string(&settings.file).expect("a log");
        let console = String::from_utf8(pane.0.lock().expect("a lock").clone()).expect("text");
        assert_eq!(file.lines().count(), 3, "{file}");
        assert_eq!(console.lines().count(), 2, "{console}");
        assert!(console.contains("info  listening count=3"), "{console}");
        for text in [&file, &console] {
            assert!(!text.contains("t0k-secret") && text.contains("said __OPENCLAW_REDACTED__"), "{text}");
        }
    }
}
