//! `gateway status` and `gateway call`: a gateway is asked.

use std::fmt::Write as _;
use std::time::Duration;

use prowess_gateway::client::{CallError, Client};
use prowess_host::Failure;
use serde_json::{Value, json};

use crate::cli::Globals;
use crate::output::{BAD, DIM, GOOD, Report, paint, safe};
use crate::remote::target::Target;
use crate::remote::{refused, with};

/// Which answer is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    First,
    Last,
}

/// Calls a method.
pub(super) fn call(method: &str, params: &str, wait: Wait, millis: u64, globals: &Globals) -> Result<Report, Failure> {
    let params: Value = serde_json::from_str(params).map_err(|error| {
        Failure::usage(format!("the parameters are not valid JSON: {error}")).hint("write them as '{\"key\": 1}'")
    })?;
    if !params.is_object() {
        let what = format!("the parameters are not a JSON object: {}", safe(&params.to_string()));
        return Err(Failure::usage(what).hint("write them as '{\"key\": 1}', or leave them out"));
    }
    let target = Target::meant(globals)?;
    with(&target, async |client| {
        let limit = Duration::from_millis(millis);
        let answer = tokio::time::timeout(limit, answer(&client, method, &params, wait)).await;
        let late = |_| Failure::input(format!("no answer within {millis} ms")).hint("allow more time with --timeout");
        match answer.map_err(late)? {
            Ok(answer) => Report::json(&answer),
            Err(CallError::Refused { error, payload }) if globals.json => {
                let told = json!({"ok": false, "error": error, "payload": payload});
                Ok(Report::json(&told)?.code(1))
            }
            Err(error) => Err(refused(method, &error)),
        }
    })
}

async fn answer(client: &Client, method: &str, params: &Value, wait: Wait) -> Result<Value, CallError> {
    let mut answers = client.ask(method, params)?;
    loop {
        let answer = answers.next().await?;
        if wait == Wait::First || answer["status"] != "accepted" {
            return Ok(answer);
        }
    }
}

/// Says whether it is up.
pub(super) fn status(globals: &Globals) -> Result<Report, Failure> {
    let target = Target::meant(globals)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::ours)?;
    let found = runtime.block_on(async {
        let client = target.connect().await?;
        let status = client.call("status", json!({})).await.map_err(|error| refused("status", &error))?;
        let presence = client.call("system-presence", json!({})).await.unwrap_or_default();
        Ok::<_, Failure>((client.hello().clone(), status, presence))
    });
    let url = safe(&target.url);
    let (hello, status, presence) = match found {
        Ok(found) => found,
        Err(failure) if globals.json => {
            let told = json!({"ok": false, "url": target.url, "error": failure.message, "hints": failure.hints});
            return Ok(Report::json(&told)?.code(1));
        }
        Err(failure) => {
            let mut text = format!("{} {}\n", paint(BAD, "✗"), failure.message);
            for hint in &failure.hints {
                let _ = writeln!(text, "  {}", paint(DIM, hint));
            }
            return Ok(Report::text(text).code(1));
        }
    };
    let shape = Shape::of(&hello, &status, &presence);
    if globals.json {
        return Report::json(&json!({
            "ok": true,
            "url": target.url,
            "version": shape.version,
            "uptimeMs": shape.uptime,
            "methods": hello["features"]["methods"].as_array().map_or(0, Vec::len),
            "connections": status["gateway"]["connections"],
            "clients": shape.clients,
            "sessions": status["sessions"]["count"],
            "tlsFingerprint": status["gateway"]["tlsFingerprint"],
        }));
    }
    Ok(Report::text(human(&url, &shape, &status)))
}

/// What is told of a gateway that is up.
struct Shape {
    version: String,
    uptime: Option<u64>,
    clients: Vec<Value>,
}

impl Shape {
    /// Ours says who is connected with its status, OpenClaw's with its presence.
    fn of(hello: &Value, status: &Value, presence: &Value) -> Self {
        let list = |value: &Value| value.as_array().cloned();
        Self {
            version: safe(hello["server"]["version"].as_str().unwrap_or("unknown")),
            uptime: status["gateway"]["uptimeMs"].as_u64().or(hello["snapshot"]["uptimeMs"].as_u64()),
            clients: list(&status["gateway"]["clients"]).or_else(|| list(presence)).unwrap_or_default(),
        }
    }
}

fn human(url: &str, shape: &Shape, status: &Value) -> String {
    let mut text = format!("{} the gateway at {url} is up, version {}", paint(GOOD, "✓"), shape.version);
    if let Some(uptime) = shape.uptime {
        let _ = write!(text, ", for {}", lasted(Duration::from_millis(uptime)));
    }
    text.push('\n');
    if let Some(count) = status["sessions"]["count"].as_u64() {
        let _ = writeln!(text, "  sessions   {count}");
    }
    if let Some(print) = status["gateway"]["tlsFingerprint"].as_str() {
        let _ = writeln!(text, "  TLS        SHA-256 {}", safe(print));
    }
    let _ = writeln!(text, "  connected  {}", shape.clients.len());
    for client in &shape.clients {
        let said = |names: &[&str]| names.iter().find_map(|name| client[*name].as_str()).map(safe).unwrap_or_default();
        let _ = writeln!(
            text,
            "    {:<9} {} {}",
            said(&["role", "mode"]),
            said(&["name", "host"]),
            paint(DIM, &said(&["platform"]))
        );
    }
    text
}

/// A time as people say it.
fn lasted(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    match (minutes / (24 * 60), minutes / 60 % 24, minutes % 60) {
        (0, 0, 0) => format!("{} s", time.as_secs()),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_short() {
        let table = [(5, "5 s"), (61, "1 min"), (3_700, "1 h 1 min"), (200_000, "2 d 7 h")];
        for (seconds, expected) in table {
            assert_eq!(lasted(Duration::from_secs(seconds)), expected);
        }
    }

    #[test]
    fn openclaws_gateway_is_understood_too() {
        let hello = json!({"server": {"version": "2026.3.2"}, "snapshot": {"uptimeMs": 65_000}});
        let presence = json!([{"host": "box", "mode": "gateway", "platform": "linux"}]);
        let shape = Shape::of(&hello, &json!({"sessions": {"count": 2}}), &presence);
        let text =
            anstream::adapter::strip_str(&human("ws://x", &shape, &json!({"sessions": {"count": 2}}))).to_string();
        assert_eq!(
            text,
            "✓ the gateway at ws://x is up, version 2026.3.2, for 1 min\n  sessions   2\n  connected  1\n    gateway   box linux\n"
        );
    }
}
