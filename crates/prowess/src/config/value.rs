//! The value of `config set`: where does it come from, what does it mean, and does its key exist?

use std::io::{BufRead, IsTerminal, Read, Write};

use prowess_config::schema::{self, Kind};
use prowess_config::{Change, Config, ConfigFile, Env, KeyPath, WarningKind, parse_value};
use prowess_host::Failure;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::Value;

use crate::output::{WARN, paint, safe};

/// How much is read from stdin; far more than a setting has.
const MAX_STDIN_BYTES: u64 = 1024 * 1024;

/// A setting that is to be written.
pub(crate) struct Asked {
    pub(crate) path: KeyPath,
    pub(crate) value: Value,
    kind: Option<Kind>,
}

impl Asked {
    /// How a value of the right type is written, where that is not obvious.
    pub(crate) fn example(&self) -> Option<String> {
        let value = match self.kind? {
            Kind::Section | Kind::Open | Kind::Free => "'{ name: \"value\" }'",
            Kind::List => "'[{ name: \"value\" }]'",
            Kind::TextList | Kind::TextListOrFalse => "'[\"one\", \"two\"]'",
            _ => return None,
        };
        Some(format!("for example: prowess config set {} {value}", self.path))
    }
}

/// Finds out what is to be written where. A value that is not on the command line is read from stdin or asked for; secrets
/// are asked for without an echo. A key that is not known is refused unless `force` is given.
pub(crate) fn asked(path: &str, value: Option<&str>, stdin: bool, force: bool) -> Result<Asked, Failure> {
    let path: KeyPath = path.parse().map_err(Failure::usage)?;
    let kind = schema::find(path.segments()).map(|key| key.kind);
    if !force {
        check(&path, &Value::Null)?;
    }
    let is_secret = kind == Some(Kind::Secret);
    let text = match value {
        _ if stdin => from_stdin()?,
        Some("-") => from_stdin()?,
        Some(text) => {
            if is_secret && !text.contains("${") && std::io::stdin().is_terminal() {
                let advice = "this secret is now in your shell's history; leave the value out to be asked for it";
                let _ = writeln!(anstream::stderr(), "{} {advice}", paint(WARN, "warning:"));
            }
            text.to_owned()
        }
        None => typed(&path, is_secret)?,
    };
    let value = meaning(&text, kind)?;
    if !force {
        check(&path, &value)?;
    }
    Ok(Asked { path, value, kind })
}

fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().take(MAX_STDIN_BYTES + 1).read_to_string(&mut text);
    read.map_err(|error| Failure::input(format!("cannot read the value from stdin: {error}")))?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > MAX_STDIN_BYTES {
        return Err(Failure::input(format!("the value on stdin is longer than {MAX_STDIN_BYTES} bytes")));
    }
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Asks at the terminal.
fn typed(path: &KeyPath, is_secret: bool) -> Result<String, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!("no value for `{path}`"))
            .hint(format!("prowess config set {path} VALUE"))
            .hint(format!("or pipe it in: … | prowess config set {path} --stdin")));
    }
    let unread = |error: std::io::Error| Failure::input(format!("cannot read the value: {error}"));
    let text = if is_secret {
        let _silent = Silent::begin().map_err(unread)?;
        rpassword::prompt_password(format!("{path} (not shown): ")).map_err(unread)?
    } else {
        let _ = write!(anstream::stderr(), "{path}: ");
        let mut line = String::new();
        std::io::stdin().lock().take(MAX_STDIN_BYTES).read_line(&mut line).map_err(unread)?;
        line
    };
    let text = text.trim().to_owned();
    if text.is_empty() {
        return Err(Failure::input("nothing was typed, so nothing was changed"));
    }
    Ok(text)
}

/// The terminal without its echo, for as long as this lives. It begins before the prompt is shown, because a key may be
/// pasted as soon as it is.
struct Silent(Termios);

impl Silent {
    fn begin() -> std::io::Result<Self> {
        let before = tcgetattr(std::io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(std::io::stdin(), OptionalActions::Now, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        // A terminal that is gone needs no echo.
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// What a text means for a setting of this kind: text settings take it as it is; others take JSON5, or else text.
fn meaning(text: &str, kind: Option<Kind>) -> Result<Value, Failure> {
    let trimmed = text.trim();
    let is_quoted = trimmed.starts_with(['"', '\'']);
    let is_nested = trimmed.starts_with(['{', '[']);
    let takes_text = matches!(kind, Some(Kind::Text | Kind::Secret | Kind::Choice(_) | Kind::ChoiceOrAddress(_)));
    if is_quoted && takes_text {
        // Quotes around a text are JSON's; a text that only begins with one is what it is.
        return Ok(parse_value(trimmed).unwrap_or_else(|_| Value::String(text.to_owned())));
    }
    if is_quoted || (is_nested && kind != Some(Kind::Text)) {
        return parse_value(trimmed).map_err(|error| {
            Failure::input(format!("the value is not valid JSON5: {}", safe(&error.to_string())))
                .hint("put single quotes around it, so that the shell leaves it alone")
        });
    }
    if takes_text {
        return Ok(Value::String(text.to_owned()));
    }
    Ok(serde_json::from_str(trimmed).unwrap_or_else(|_| Value::String(text.to_owned())))
}

/// Refuses keys that prowess does not know, also those inside of `value`.
fn check(path: &KeyPath, value: &Value) -> Result<(), Failure> {
    let file = ConfigFile::new("value");
    let Ok(text) = file.preview("{}", &[Change::Set(path.clone(), value.clone())]) else { return Ok(()) };
    let Ok(config) = Config::parse(&text, &Env::new()) else { return Ok(()) };
    let unknown = config.warnings().iter().chain(config.unused()).find_map(|warning| match &warning.kind {
        WarningKind::UnknownKey { suggestion } => Some((&warning.path, suggestion.as_deref())),
        WarningKind::NotUsed => Some((&warning.path, None)),
        _ => None,
    });
    let Some((unknown, suggestion)) = unknown else { return Ok(()) };
    let failure = Failure::input(format!("`{unknown}` is not a known key"));
    let failure = match suggestion {
        Some(near) => {
            let depth = unknown.segments().len();
            let parents = unknown.segments().iter().take(depth - 1).cloned();
            let below = path.segments().iter().skip(depth).cloned();
            let meant: KeyPath = parents.chain([near.to_owned()]).chain(below).collect();
            failure.hint(format!("did you mean `{meant}`?"))
        }
        None => failure,
    };
    Err(failure.hint("prowess config keys TEXT searches the known keys; --force writes it anyway"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_json5_or_text_as_its_key_wants_it() {
        let table = [
            ("skills.load.watch", "false", json!(false)),
            ("skills.limits.maxSkillsInPrompt", "20", json!(20)),
            ("skills.allowBundled", "['weather', 'tmux',]", json!(["weather", "tmux"])),
            ("skills.entries.x", "{enabled: false /* for now */}", json!({"enabled": false})),
            ("skills.entries.x.apiKey", "12345", json!("12345")),
            ("skills.entries.x.apiKey", "'12345'", json!("12345")),
            ("agents.defaults.workspace", "~/my work", json!("~/my work")),
            ("agents.defaults.workspace", "true", json!("true")),
        ];
        for (path, text, expected) in table {
            let asked = asked(path, Some(text), false, false).unwrap_or_else(|failure| panic!("{path}: {failure}"));
            assert_eq!(asked.value, expected, "{path} {text}");
        }
        let broken = asked("skills.entries.x", Some("{enabled: fal"), false, false).err().expect("broken");
        assert!(broken.message.starts_with("the value is not valid JSON5: value:1:"), "{broken}");
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_one_that_was_meant() {
        let table = [
            ("skills.entires.x.enabled", "false", Some("did you mean `skills.entries.x.enabled`?")),
            ("skills.load.wacth", "false", Some("did you mean `skills.load.watch`?")),
            ("skills.load", "{ wacth: false }", Some("did you mean `skills.load.watch`?")),
            ("bananas", "1", None),
        ];
        for (path, text, hint) in table {
            let failure = asked(path, Some(text), false, false).err().expect(path);
            assert!(failure.message.ends_with("is not a known key"), "{failure}");
            assert_eq!(failure.hints.len(), 1 + usize::from(hint.is_some()), "{failure}");
            assert!(hint.is_none_or(|hint| failure.hints[0] == hint), "{failure}");
            assert!(asked(path, Some(text), false, true).is_ok(), "--force");
        }
        assert!(asked("channels.telegram.botToken", Some("x"), false, false).is_ok(), "channels are open");
    }
}
