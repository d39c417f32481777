//! `prowess egress`: which hosts did commands reach?

use prowess_exec::connections::{ConnectionLog, ConnectionQuery};
use prowess_host::Failure;
use serde_json::{Value, json};

use crate::cli::{self, EgressLog, Globals};
use crate::output::{Report, safe, table};
use crate::remote::target::Target;
use crate::remote::{call, with};

/// How much of a command a row shows, in characters.
const MAX_COMMAND: usize = 60;

pub(crate) fn run(command: &cli::Egress, globals: &Globals) -> Result<Report, Failure> {
    match command {
        cli::Egress::Log(args) => log(args, globals),
    }
}

/// Shows the newest connections: of the gateway that is named, or else of the commands that ran here.
fn log(args: &EgressLog, globals: &Globals) -> Result<Report, Failure> {
    let outcome = args.refused.then_some("refused");
    if let Some((target, _)) = Target::asked(globals)? {
        return with(&target, async |client| {
            let mut params = json!({"limit": args.limit});
            for (name, value) in
                [("host", args.host.as_deref()), ("skill", args.skill.as_deref()), ("outcome", outcome)]
            {
                if let Some(value) = value {
                    params[name] = value.into();
                }
            }
            report(call(&client, "egress.log", params).await?, args, globals)
        });
    }
    let query = ConnectionQuery {
        limit: Some(args.limit),
        cursor: None,
        host: args.host.clone(),
        skill: args.skill.clone(),
        outcome: outcome.map(str::to_owned),
    };
    let page = ConnectionLog::in_state_dir(&globals.ground()?.locations()?.state_dir).page(&query);
    let page = page.map_err(|error| Failure::input(format!("cannot read the log of connections: {error}")))?;
    report(page, args, globals)
}

fn report(mut page: Value, args: &EgressLog, globals: &Globals) -> Result<Report, Failure> {
    if let Some(entries) = page["entries"].as_array_mut() {
        entries.reverse();
    }
    if globals.json {
        return Report::json(&page);
    }
    let entries = page["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    if entries.is_empty() {
        let is_filtered = args.refused || args.host.is_some() || args.skill.is_some();
        return Ok(Report::text(if is_filtered {
            "No connection matches.\n"
        } else {
            "No connections yet. Each connection that a command in the sandbox makes is recorded here.\n"
        }));
    }
    let rows = entries.iter().map(row).collect();
    Ok(Report::text(table(&["When", "Skill", "Host", "Up", "Down", "Outcome", "Command"], &[], rows)))
}

fn row(entry: &Value) -> Vec<String> {
    let text = |name: &str| safe(entry[name].as_str().unwrap_or_default());
    let host = match (text("host"), entry["port"].as_u64()) {
        (host, _) if host.is_empty() => "?".to_owned(),
        (host, None) => host,
        (host, Some(port)) if host.contains(':') => format!("[{host}]:{port}"),
        (host, Some(port)) => format!("{host}:{port}"),
    };
    let outcome = match text("reason") {
        reason if reason.is_empty() => text("outcome"),
        reason => format!("{}: {reason}", text("outcome")),
    };
    let mut command = text("command");
    if let Some((end, _)) = command.char_indices().nth(MAX_COMMAND) {
        command.replace_range(end.., "…");
    }
    let bytes = |name: &str| size(entry[name].as_u64().unwrap_or_default());
    vec![when(&entry["at"]), text("skill"), host, bytes("up"), bytes("down"), outcome, command]
}

/// Bytes for people: `512 B`, `12.3 kB`, `4.5 GB`.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut tenths = bytes / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

fn when(at: &Value) -> String {
    let time = jiff::Timestamp::from_millisecond(at.as_i64().unwrap_or_default()).unwrap_or_default();
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let table = [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (12_345, "12.3 kB"), (999_999, "999.9 kB")];
        for (bytes, text) in table.into_iter().chain([(1_000_000, "1.0 MB"), (16 << 30, "17.1 GB")]) {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn a_row_is_safe_and_whole() {
        let entry = json!({"at": 0, "skill": null, "host": "::1", "port": 443, "up": 5, "down": 0, "outcome": "refused",
            "reason": "not allowed: no rule \u{1b}[2Jallows it", "command": "curl x\nrm y"});
        let row = row(&entry);
        assert_eq!(row[2], "[::1]:443");
        assert!(row[5].starts_with("refused: not allowed") && !row[5].contains('\u{1b}'), "{row:?}");
    }
}
