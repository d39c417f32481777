//! `approvals log`: who approved what, from where, and when?

use prowess_gateway::{ApprovalLog, LogQuery};
use prowess_host::Failure;
use serde_json::{Value, json};

use crate::cli::Globals;
use crate::output::{Report, safe, table};
use crate::remote::target::Target;
use crate::remote::{call, with};

/// Shows the newest answers: of the gateway that is named, or else of the one that has its files here.
pub(super) fn show(limit: usize, search: Option<&str>, globals: &Globals) -> Result<Report, Failure> {
    if let Some((target, _)) = Target::asked(globals)? {
        return with(&target, async |client| {
            let mut params = json!({"limit": limit});
            if let Some(search) = search {
                params["search"] = search.into();
            }
            report(&call(&client, "exec.approval.log", params).await?, globals)
        });
    }
    let state_dir = globals.ground()?.locations()?.state_dir;
    let query = LogQuery { limit: Some(limit), cursor: None, search: search.map(str::to_owned) };
    let page = ApprovalLog::in_state_dir(&state_dir).page(&query);
    report(&page.map_err(|error| Failure::input(format!("cannot read the approval log: {error}")))?, globals)
}

fn report(page: &Value, globals: &Globals) -> Result<Report, Failure> {
    if globals.json {
        return Report::json(page);
    }
    let entries = page["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    if entries.is_empty() {
        return Ok(Report::text("No approvals yet. The gateway records here who approves or denies commands.\n"));
    }
    let rows = entries.iter().map(row).collect();
    Ok(Report::text(table(&["When", "Decision", "By", "Device", "Command"], &[4], rows)))
}

fn row(entry: &Value) -> Vec<String> {
    let text = |value: &Value| safe(value.as_str().unwrap_or_default());
    let by = &entry["by"];
    let who = [&by["user"], &by["name"]].into_iter().map(text).find(|name| !name.is_empty());
    let who = who.unwrap_or_else(|| why_unanswered(entry["why"].as_str().unwrap_or_default()));
    let device = text(&by["deviceId"]).chars().take(8).collect::<String>();
    let from = match (device.is_empty(), text(&by["address"])) {
        (true, address) => address,
        (false, address) => format!("{device} at {address}"),
    };
    let decision = entry["decision"].as_str().map_or_else(|| "no answer".to_owned(), safe);
    let command = text(&entry["command"]).lines().next().unwrap_or_default().to_owned();
    vec![when(&entry["at"]), decision, who, from, command]
}

/// Why a question got no answer, in words.
fn why_unanswered(why: &str) -> String {
    match why {
        "auto-expire:no-approver-clients" => "no client could approve".to_owned(),
        "timeout" => "it expired".to_owned(),
        "withdrawn" => "it was withdrawn".to_owned(),
        other => safe(other),
    }
}

fn when(at: &Value) -> String {
    let millis = at.as_i64().unwrap_or_default();
    let time = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
    time.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}
