//! The exec tool: what did the model ask to run, and how long does it wait for it?
//!
//! Reading a call, deciding its folder, its time and its window, and shaping results are values from values. Whether a
//! command may run is decided in [`exec`](crate::exec); [`wait`] takes a command that runs.

mod preflight;
mod result;

use std::path::{Path, PathBuf};
use std::time::Duration;

use prowess_policy::Host;
use prowess_policy::posture::{Ask, Security};
use serde_json::{Value, json};

pub(crate) use preflight::script_text;
pub use preflight::{MAX_PREFLIGHT_BYTES, preflight};
pub use result::{Pending, approval_pending, finished, not_started, running};
pub(crate) use result::{millis, whole_millis};

use crate::job::Handle;
use crate::tool::{Args, ToolResult};

/// The tool's name.
pub const NAME: &str = "exec";

/// How long a call waits before its command goes on in the background: default, least and most, in milliseconds.
const WINDOW: (f64, f64, f64) = (10_000.0, 10.0, 120_000.0);

/// How long a command may take if nobody says otherwise.
const TIMEOUT: Duration = Duration::from_secs(1_800);

/// The longest timeout. Longer ones mean the same to everybody alive.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// What the model asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExecCall {
    /// The command text; never blank.
    pub command: String,
    /// The folder, as written.
    pub workdir: Option<String>,
    /// Variables, in the order they were given.
    pub env: Vec<(String, String)>,
    /// How long to wait before going on in the background, in milliseconds.
    pub yield_ms: Option<f64>,
    /// Whether to go on in the background at once.
    pub background: bool,
    /// How long the command may take, in seconds; zero and less mean for ever.
    pub timeout: Option<f64>,
    /// Whether it needs a terminal.
    pub pty: bool,
    /// Whether it asks for elevated rights.
    pub elevated: bool,
    /// Where it is to run, if the word is known.
    pub host: Option<Host>,
    /// How strict to be, at least.
    pub security: Option<Security>,
    /// When to ask, at least.
    pub ask: Option<Ask>,
    /// Which other machine.
    pub node: Option<String>,
}

impl ExecCall {
    /// Reads the arguments of a call; what cannot be read is answered.
    pub fn parse(given: &Value) -> Result<Self, ToolResult> {
        let mut args = Args::new(NAME, given);
        let call = Self {
            command: args.required("command"),
            workdir: args.text("workdir"),
            env: args.pairs("env"),
            yield_ms: args.number("yieldMs"),
            background: args.flag("background").unwrap_or_default(),
            timeout: args.number("timeout"),
            pty: args.flag("pty").unwrap_or_default(),
            elevated: args.flag("elevated").unwrap_or_default(),
            host: args.text("host").and_then(|word| Host::parse(&word)),
            security: args.text("security").and_then(|word| Security::parse(&word)),
            ask: args.text("ask").and_then(|word| Ask::parse(&word)),
            node: args.text("node"),
        };
        // The newer name; one who gives both means it.
        let timeout = args.number("timeoutSeconds").or(call.timeout);
        args.finish()?;
        if call.command.trim().is_empty() {
            return Err(ToolResult::error(NAME, "Provide a command to start."));
        }
        Ok(Self { timeout, ..call })
    }

    /// How long to wait, and how long it may take.
    #[must_use]
    pub fn plan(&self, defaults: &Defaults) -> Plan {
        let asked = self.background || self.yield_ms.is_some();
        let can = defaults.background == Background::Allowed;
        let mut warnings = Vec::new();
        if asked && !can {
            warnings.push("Warning: background execution is disabled; running synchronously.".to_owned());
        }
        let window = match defaults.background {
            Background::NotAllowed => Window::Never,
            Background::Allowed if self.background => Window::AtOnce,
            Background::Allowed => {
                let wait = self.yield_ms.or(defaults.yield_ms).unwrap_or(WINDOW.0);
                Window::After(Duration::from_secs_f64(wait.clamp(WINDOW.1, WINDOW.2) / 1_000.0))
            }
        };
        let timeout = match self.timeout {
            Some(seconds) => positive(seconds),
            None if asked && can => None,
            None => Some(defaults.timeout_seconds.and_then(positive).unwrap_or(TIMEOUT)),
        };
        Plan { window, timeout, warnings }
    }
}

/// What holds for calls that do not say otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Defaults {
    /// How long to wait before going on in the background, in milliseconds.
    pub yield_ms: Option<f64>,
    /// How long commands may take, in seconds.
    pub timeout_seconds: Option<f64>,
    /// Whether commands may go on in the background.
    pub background: Background,
}

impl Default for Defaults {
    fn default() -> Self {
        Self { yield_ms: None, timeout_seconds: None, background: Background::Allowed }
    }
}

/// Whether commands may go on in the background: only where the process tool can be used to ask about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// They may.
    Allowed,
    /// They may not.
    NotAllowed,
}

/// When a command goes on in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// As soon as it has started.
    AtOnce,
    /// When it has run for this long.
    After(Duration),
    /// Not at all.
    Never,
}

/// How a call is to be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// When it goes on in the background.
    pub window: Window,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// What the model has to know besides the result.
    pub warnings: Vec<String>,
}

/// A folder to run in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workdir {
    /// Where it is.
    pub path: PathBuf,
    /// As it was written.
    pub shown: String,
}

/// The folder for a call: the one it names, seen from `default`, or `default` itself. Nothing is run in another folder
/// than the one that was asked for.
pub fn workdir(asked: Option<&str>, default: &Path, is_folder: impl Fn(&Path) -> bool) -> Result<Workdir, ToolResult> {
    let asked = asked.map(str::trim).filter(|asked| !asked.is_empty());
    let path = asked.map_or_else(|| default.to_owned(), |asked| default.join(asked));
    let shown = asked.map_or_else(|| default.display().to_string(), str::to_owned);
    if is_folder(&path) {
        return Ok(Workdir { path, shown });
    }
    let why = format!(
        "workdir \"{shown}\" is unavailable or not a directory: command was not executed. \
         Name a directory that exists (`~` and variables are not expanded), or leave workdir out."
    );
    Err(ToolResult::error(NAME, &why))
}

/// Waits for a command as long as `plan` says. Whoever stops waiting ends it.
pub async fn wait(handle: Handle, plan: &Plan) -> ToolResult {
    let outcome = match plan.window {
        Window::AtOnce => None,
        Window::After(wait) => tokio::time::timeout(wait, handle.job().wait()).await.ok(),
        Window::Never => Some(handle.job().wait().await),
    };
    if let Some(outcome) = outcome {
        return finished(&outcome, plan, &handle.job().cwd);
    }
    let job = handle.into_background();
    running(&job, &job.tail().await, &plan.warnings)
}

/// What the model is told about the tool.
#[must_use]
pub fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["command"],
        "properties": {
            "command": {"type": "string", "description": "The shell command to run."},
            "workdir": {"type": "string", "description": "The directory to run it in; it must exist. Default: the workspace."},
            "env": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Additional environment variables."
            },
            "yieldMs": {
                "type": "number",
                "description": "Milliseconds to wait before the command continues in the background (default 10000)."
            },
            "background": {"type": "boolean", "description": "Run in the background from the start; manage it with process."},
            "timeout": {"type": "number", "description": "Seconds after which the command is stopped; 0 for never."},
            "timeoutSeconds": {"type": "number", "description": "The same as timeout."},
            "pty": {"type": "boolean", "description": "Run it in a terminal, for programs that need one."},
            "elevated": {"type": "boolean", "description": "Run it outside the sandbox, where that is allowed."},
            "host": {"type": "string", "description": "Where to run it: sandbox, gateway or node."},
            "security": {"type": "string", "description": "Be stricter: deny, allowlist, contained or full."},
            "ask": {"type": "string", "description": "Ask more often: off, on-miss or always."},
            "node": {"type": "string", "description": "The node to run it on, with host=node."}
        }
    })
}

fn positive(seconds: f64) -> Option<Duration> {
    (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::time::Duration;

    use serde_json::json;

    use prowess_policy::Host;
    use prowess_policy::posture::Security;

    use super::{Background, Defaults, ExecCall, Window, workdir};

    #[test]
    fn words_nobody_knows_count_as_not_given() {
        let call = ExecCall::parse(&json!({
            "command": "x", "host": " Gateway ", "security": "FULL", "ask": "sometimes", "timeout": 1, "timeoutSeconds": "2"
        }));
        let call = call.unwrap();
        assert_eq!((call.host, call.security, call.ask), (Some(Host::Gateway), Some(Security::Full), None));
        assert_eq!(call.timeout, Some(2.0));
        let call = ExecCall::parse(&json!({"command": "x", "host": "moon"})).unwrap();
        assert_eq!(call.host, None);
    }

    #[test]
    fn there_has_to_be_a_command() {
        for given in [json!({"command": ""}), json!({"command": " \n"}), json!({"command": null})] {
            let answer = ExecCall::parse(&given).unwrap_err();
            assert_eq!((answer.text().as_str(), answer.is_error), ("Provide a command to start.", true), "{given}");
        }
        for given in [json!("text"), json!([]), json!({"command": ["a"]}), json!({"cmd": "a"})] {
            let answer = ExecCall::parse(&given).unwrap_err();
            assert!(answer.text().starts_with("Validation failed for tool \"exec\":\n  - "), "{given}");
        }
    }

    #[test]
    fn the_window_and_the_timeout() {
        let second = Duration::from_secs(1);
        let half_an_hour = Some(1_800 * second);
        let table = [
            (json!({}), Window::After(10 * second), half_an_hour),
            (json!({"background": true}), Window::AtOnce, None),
            (json!({"background": true, "timeout": 5}), Window::AtOnce, Some(5 * second)),
            (json!({"yieldMs": 500}), Window::After(second / 2), None),
            (json!({"yieldMs": 0}), Window::After(second / 100), None),
            (json!({"yieldMs": 1e9}), Window::After(120 * second), None),
            (json!({"timeout": 0}), Window::After(10 * second), None),
            (json!({"timeout": -1}), Window::After(10 * second), None),
            (json!({"timeoutSeconds": 0.5}), Window::After(10 * second), Some(second / 2)),
        ];
        for (mut given, window, timeout) in table {
            given["command"] = json!("x");
            let plan = ExecCall::parse(&given).unwrap().plan(&Defaults::default());
            assert_eq!((plan.window, plan.timeout, plan.warnings.len()), (window, timeout, 0), "{given}");
        }
    }

    #[test]
    fn without_the_process_tool_nothing_goes_on_in_the_background() {
        let defaults =
            Defaults { background: Background::NotAllowed, timeout_seconds: Some(7.0), ..Defaults::default() };
        for given in [json!({"command": "x", "background": true}), json!({"command": "x", "yieldMs": 10})] {
            let plan = ExecCall::parse(&given).unwrap().plan(&defaults);
            assert_eq!((plan.window, plan.timeout), (Window::Never, Some(Duration::from_secs(7))));
            assert_eq!(plan.warnings, ["Warning: background execution is disabled; running synchronously."]);
        }
        let plan = ExecCall::parse(&json!({"command": "x"})).unwrap().plan(&defaults);
        assert!(plan.warnings.is_empty());
    }

    #[test]
    fn the_folder_is_the_one_that_was_asked_for_or_none() {
        let exists = |path: &Path| path.starts_with("/ws");
        let here = |asked| workdir(asked, Path::new("/ws"), exists).map(|found| (found.path, found.shown));
        assert_eq!(here(None), Ok((PathBuf::from("/ws"), "/ws".to_owned())));
        assert_eq!(here(Some("  ")), Ok((PathBuf::from("/ws"), "/ws".to_owned())));
        assert_eq!(here(Some(" sub ")), Ok((PathBuf::from("/ws/sub"), "sub".to_owned())));
        let answer = here(Some("/else")).unwrap_err();
        let begin = "workdir \"/else\" is unavailable or not a directory: command was not executed. ";
        assert!(answer.is_error && answer.text().starts_with(begin), "{answer:?}");
    }
}
