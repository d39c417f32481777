//! An order: what is this machine asked to run?
//!
//! Pure. A request has an argument list. If it is nothing but a shell with a text, then that text is the command, and the
//! judge reads it like any other; else the list is quoted into a command, wrappers and all.

use std::time::Duration;

use prowess_exec::exec_tool::ExecCall;
use prowess_policy::env::{EnvSource, refusal};
use prowess_policy::posture::Ask;
use prowess_policy::system_run::{SystemRun, resolve};
use prowess_policy::{Answer, quote};
use serde_json::Value;

/// The most arguments, and the most bytes of all of them.
const MAX_ARGV: (usize, usize) = (4096, 1024 * 1024);

/// Shells whose text the judge reads as the shell itself would.
const SHELLS: [&str; 10] = [
    "sh",
    "/bin/sh",
    "/usr/bin/sh",
    "bash",
    "/bin/bash",
    "/usr/bin/bash",
    "dash",
    "/bin/dash",
    "/usr/bin/dash",
    "/bin/ash",
];

/// Options with which such a shell runs a text and nothing else.
const INLINE: [&str; 2] = ["-c", "-lc"];

/// A request to run something.
#[derive(Clone)]
pub(super) struct Order {
    pub(super) run: SystemRun,
    /// The text to judge and to run.
    pub(super) text: String,
    pub(super) cwd: Option<String>,
    pub(super) env: Vec<(String, String)>,
    /// Variables of the skills in use.
    pub(super) skill_env: Vec<(String, String)>,
    pub(super) agent: Option<String>,
    pub(super) session: Option<String>,
    pub(super) id: String,
    /// What a person answered, as the gateway vouches.
    pub(super) answer: Option<Answer>,
    /// What the person saw, as this machine sealed it.
    pub(super) seal: Option<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) wants_screen: bool,
}

impl Order {
    /// Reads the parameters of `system.run` or `system.run.prepare`; the reason if they make no sense.
    pub(super) fn parse(params: &Value) -> Result<Self, String> {
        let text = |name: &str| params[name].as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let argv = argv(&params["command"])?;
        let run = resolve(&argv, params["rawCommand"].as_str()).map_err(|error| error.to_string())?;
        if argv.is_empty() {
            return Err("INVALID_REQUEST: command required".to_owned());
        }
        let answer = match params["approvalDecision"].as_str() {
            Some("allow-always") => Some(Answer::Always),
            Some("allow-once") => Some(Answer::Once),
            _ if params["approved"] == true => Some(Answer::Once),
            _ => None,
        };
        Ok(Self {
            text: command(&argv),
            run,
            cwd: text("cwd"),
            // As in the peer, what a caller may not set is left out, and the rest counts.
            env: pairs(&params["env"], EnvSource::Caller),
            skill_env: pairs(&params["skillEnv"], EnvSource::Skill),
            agent: text("agentId"),
            session: text("sessionKey"),
            id: text("runId").unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
            answer,
            seal: text("seal"),
            timeout: params["timeoutMs"].as_u64().filter(|millis| *millis > 0).map(Duration::from_millis),
            wants_screen: params["needsScreenRecording"] == true,
        })
    }

    /// The call that it is for the judge. What a person approved is asked about even where nobody is asked otherwise:
    /// then there is somebody who answers.
    pub(super) fn call(&self) -> ExecCall {
        ExecCall {
            command: self.text.clone(),
            workdir: self.cwd.clone(),
            env: self.env.clone(),
            timeout: self.timeout.map(|timeout| timeout.as_secs_f64()),
            ask: self.answer.map(|_| Ask::OnMiss),
            ..ExecCall::default()
        }
    }
}

fn argv(value: &Value) -> Result<Vec<String>, String> {
    let Value::Array(items) = value else {
        return if value.is_null() {
            Ok(Vec::new())
        } else {
            Err("INVALID_REQUEST: command must be a list".to_owned())
        };
    };
    let argv: Vec<String> =
        items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned)).collect();
    if argv.len() > MAX_ARGV.0 || argv.iter().map(String::len).sum::<usize>() > MAX_ARGV.1 {
        return Err("INVALID_REQUEST: command too long".to_owned());
    }
    Ok(argv)
}

/// The command text that an argument list means.
fn command(argv: &[String]) -> String {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    match words.as_slice() {
        [shell, option, text] if SHELLS.contains(shell) && INLINE.contains(option) => (*text).to_owned(),
        [shell, "-l", "-c", text] if SHELLS.contains(shell) => (*text).to_owned(),
        _ => argv.iter().map(|arg| quote(arg)).collect::<Vec<_>>().join(" "),
    }
}

fn pairs(value: &Value, source: EnvSource) -> Vec<(String, String)> {
    let vars = value.as_object().into_iter().flatten();
    let texts = vars.filter_map(|(name, value)| Some((name.trim().to_owned(), value.as_str()?.to_owned())));
    texts.filter(|(name, value)| refusal(name, value, source).is_none()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Order;

    fn text(command: &[&str]) -> String {
        Order::parse(&json!({"command": command})).map_or_else(|why| why, |order| order.text)
    }

    #[test]
    fn a_shell_with_nothing_but_a_text_is_its_text() {
        assert_eq!(text(&["/bin/sh", "-lc", "uname -s | head -n 1"]), "uname -s | head -n 1");
        assert_eq!(text(&["bash", "-l", "-c", "x"]), "x");
        for more in [&["sh", "-c", "$0", "evil"][..], &["./sh", "-c", "x"], &["zsh", "-c", "x"], &["sh", "-ic", "x"]] {
            assert!(text(more).starts_with(more[0]) && text(more).contains('-'), "{more:?}");
        }
        assert_eq!(text(&["timeout", "5", "sh", "-c", "a b"]), "timeout 5 sh -c 'a b'");
        assert_eq!(text(&["echo", "$HOME", ";", "id"]), "echo '$HOME' ';' id");
    }

    #[test]
    fn what_claims_to_be_the_command_has_to_be_it() {
        let lie = Order::parse(&json!({"command": ["/bin/sh", "-lc", "id"], "rawCommand": "ls"})).err();
        assert_eq!(lie.as_deref(), Some("INVALID_REQUEST: rawCommand does not match command"));
        assert!(Order::parse(&json!({})).is_err());
        assert!(Order::parse(&json!({"command": "id"})).is_err());
    }

    #[test]
    fn variables_that_steer_programs_are_left_out() {
        let env = json!({"FOO": "1", "PATH": "/evil", "LD_PRELOAD": "x"});
        let order = Order::parse(&json!({"command": ["id"], "env": env})).expect("an order");
        assert_eq!(order.env, [("FOO".to_owned(), "1".to_owned())]);
    }
}
