//! The log: what is written down while a gateway runs, where, and how is it kept small and free of secrets?
//!
//! Events of our own crates go to a file of JSON lines and, shorter, to the terminal. What other crates say is only
//! taken from warnings on: on their lower levels some of them write whole frames, and frames have tokens in them.

mod file;
mod line;
mod record;

use std::path::{Path, PathBuf};

use prowess_config::{Config, Locations, Secret, secrets};
use serde_json::Value;
use tracing::level_filters::LevelFilter;

pub use file::LogFile;
pub use record::{Console, Recorder};

/// How large a log grows when nothing is said.
const MAX_FILE: u64 = 10 * 1024 * 1024;

/// A text shorter than this is not looked for in lines: it would be found everywhere.
const MIN_SECRET: usize = 6;

/// What is logged, and where to.
#[derive(Debug, Clone)]
pub struct LogSettings {
    /// The file.
    pub file: PathBuf,
    /// How large it grows before it is set aside.
    pub max_bytes: u64,
    /// What is worth the file.
    pub level: LevelFilter,
    /// What is worth the terminal.
    pub console: LevelFilter,
    /// What must not be in any line.
    pub secrets: Vec<Secret>,
}

impl LogSettings {
    /// From the configuration: the log of the program called `name`. `level` is what the command line says.
    #[must_use]
    pub fn read(config: &Config, locations: &Locations, name: &str, level: Option<LevelFilter>) -> Self {
        let logging = &config.tree()["logging"];
        let written = |value: &Value| value.as_str().and_then(parse_level);
        let asked = level.or_else(|| config.env().text("OPENCLAW_LOG_LEVEL").and_then(parse_level));
        let level = asked.or_else(|| written(&logging["level"])).unwrap_or(LevelFilter::INFO);
        let console = asked.or_else(|| written(&logging["consoleLevel"])).unwrap_or(level);
        Self {
            file: file_of(config, locations, name),
            max_bytes: logging["maxFileBytes"].as_u64().filter(|&bytes| bytes > 0).unwrap_or(MAX_FILE),
            level,
            console,
            secrets: known_secrets(config),
        }
    }
}

/// Where the program called `name` writes its log.
#[must_use]
pub fn file_of(config: &Config, locations: &Locations, name: &str) -> PathBuf {
    let named = config.tree()["logging"]["file"].as_str().map(str::trim).filter(|path| !path.is_empty());
    match named {
        Some(path) => locations.expand(path),
        None => locations.state_dir.join("logs").join(Path::new(name).with_extension("log")),
    }
}

/// A level by its name.
#[must_use]
pub fn parse_level(name: &str) -> Option<LevelFilter> {
    Some(match name.trim().to_ascii_lowercase().as_str() {
        "silent" => LevelFilter::OFF,
        "fatal" | "error" => LevelFilter::ERROR,
        "warn" => LevelFilter::WARN,
        "info" => LevelFilter::INFO,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        _ => return None,
    })
}

/// All secrets of the configuration that can be told from other text.
fn known_secrets(config: &Config) -> Vec<Secret> {
    let tree = config.tree();
    let written = secrets(tree).into_iter().filter_map(|path| {
        let found = path.segments().iter().try_fold(tree, |value, segment| match value {
            Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
            other => other.get(segment),
        });
        found.and_then(Value::as_str).map(str::to_owned)
    });
    let variables = ["OPENCLAW_GATEWAY_TOKEN", "OPENCLAW_GATEWAY_PASSWORD"];
    let given = variables.into_iter().filter_map(|name| config.env().text(name).map(str::to_owned));
    written.chain(given).filter(|text| text.len() >= MIN_SECRET).map(|text| Secret::new(&text)).collect()
}
