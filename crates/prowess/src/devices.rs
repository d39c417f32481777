//! `prowess devices`: which devices may connect to a gateway, and which ask to?

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use prowess_agent::message::now;
use prowess_gateway::client::Client;
use prowess_host::Failure;
use serde_json::{Value, json};

use crate::cli::{self, Globals};
use crate::output::{BAD, Report, WARN, paint, safe, table};
use crate::remote::target::Target;
use crate::remote::{call, with};

/// The shortest beginning of an id that names it.
const MIN_PREFIX: usize = 4;

/// How much of an id is shown.
const SHORT: usize = 12;

pub(crate) fn run(command: &cli::Devices, globals: &Globals) -> Result<Report, Failure> {
    let target = Target::meant(globals)?;
    let json = globals.json;
    with(&target, async |client| match command {
        cli::Devices::List => list(&client, json).await,
        cli::Devices::Approve { id } => approve(&client, id.as_deref(), json).await,
        cli::Devices::Reject { id } => reject(&client, id, json).await,
        cli::Devices::Remove { id } => remove(&client, id, json).await,
    })
}

async fn list(client: &Client, json: bool) -> Result<Report, Failure> {
    let devices = call(client, "device.pair.list", json!({})).await?;
    if json {
        return Report::json(&devices);
    }
    let rows: Vec<Vec<String>> = list_of(&devices, "paired").map(row).collect();
    let mut text = if rows.is_empty() {
        "No devices yet. A page, node or program on another machine requests access when it connects.\n".to_owned()
    } else {
        table(&["Device", "Name", "As", "System", "Last used"], &[0], rows)
    };
    for pending in list_of(&devices, "pending") {
        let _ = writeln!(text, "{}", request_line(pending));
    }
    Ok(Report::text(text))
}

fn list_of<'a>(devices: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    devices[name].as_array().into_iter().flatten()
}

fn row(device: &Value) -> Vec<String> {
    let text = |name: &str| safe(device[name].as_str().unwrap_or_default());
    let tokens = device["tokens"].as_array().into_iter().flatten();
    let used = tokens.filter_map(|token| token["lastUsedAtMs"].as_u64()).max();
    vec![short(&text("deviceId")), name(device), standing(device), text("platform"), used.map(ago).unwrap_or_default()]
}

fn short(id: &str) -> String {
    id.chars().take(SHORT).collect()
}

fn ago(millis: u64) -> String {
    let passed = Duration::from_millis(now().saturating_sub(millis));
    match passed.as_secs() {
        seconds @ 0..60 => format!("{seconds} s ago"),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} d ago", seconds / 86_400),
    }
}

/// A request as a line, with the command that approves it. One that asks for everything looks different.
pub(crate) fn request_line(pending: &Value) -> String {
    let id: String = safe(pending["requestId"].as_str().unwrap_or_default()).chars().take(8).collect();
    let is_admin = texts(&pending["scopes"]).iter().any(|scope| scope == "operator.admin");
    let sign = if is_admin { paint(BAD, "! full control:") } else { paint(WARN, "?") };
    let device = short(&safe(pending["deviceId"].as_str().unwrap_or_default()));
    let from = pending["remoteIp"].as_str().map(|ip| format!(", from {}", safe(ip))).unwrap_or_default();
    format!("{sign} {} ({device}{from}): prowess devices approve {id}", wish(pending))
}

/// Who asks to be let in, and as what.
fn wish(pending: &Value) -> String {
    format!("{} asks for access as {}", name(pending), standing(pending))
}

fn name(device: &Value) -> String {
    let said = |name: &str| device[name].as_str().map(safe);
    said("displayName").or_else(|| said("clientId")).unwrap_or_default()
}

/// What a device is, or wants to be: its roles, and what it may do in them.
fn standing(device: &Value) -> String {
    let mut roles = texts(&device["roles"]);
    let role = device["role"].as_str().map(safe);
    roles.extend(role.filter(|role| !roles.contains(role)));
    let roles = if roles.is_empty() { "nothing".to_owned() } else { roles.join(" and ") };
    let scopes = texts(&device["scopes"]);
    if scopes.is_empty() { roles } else { format!("{roles} with {}", scopes.join(", ")) }
}

pub(crate) fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(safe).collect()
}

/// The request that is meant by its id or the beginning of it; without one, the only one that waits.
async fn request(client: &Client, id: Option<&str>) -> Result<String, Failure> {
    let waiting = call(client, "device.pair.list", json!({})).await?;
    let all = list_of(&waiting, "pending").filter_map(|one| one["requestId"].as_str());
    let fits = |known: &&str| id.is_none_or(|id| *known == id || (id.len() >= MIN_PREFIX && known.starts_with(id)));
    let found: Vec<&str> = all.filter(fits).collect();
    let list = "prowess devices list shows the requests; they expire after five minutes";
    match (found.as_slice(), id) {
        ([one], _) => Ok((*one).to_owned()),
        ([], Some(id)) => Err(Failure::input(format!("there is no access request `{}`", safe(id))).hint(list)),
        ([], None) => Err(Failure::input("no device asks for access").hint(list)),
        (_, Some(id)) => {
            Err(Failure::input(format!("several requests start with `{}`", safe(id))).hint("give more of the id"))
        }
        (_, None) => {
            Err(Failure::input("several devices ask for access").hint("give the id of one: prowess devices list"))
        }
    }
}

/// Lets a device in that asked for it.
pub(crate) async fn approve(client: &Client, id: Option<&str>, json: bool) -> Result<Report, Failure> {
    let request = request(client, id).await?;
    let answer = call(client, "device.pair.approve", json!({"requestId": request})).await?;
    if json {
        return Report::json(&answer);
    }
    let device = &answer["device"];
    let name = device["displayName"].as_str().or_else(|| device["deviceId"].as_str()).unwrap_or(&request);
    Ok(Report::text(format!("{} has access as {}\n", safe(name), standing(device))))
}

async fn reject(client: &Client, id: &str, json: bool) -> Result<Report, Failure> {
    let request = request(client, Some(id)).await?;
    let answer = call(client, "device.pair.reject", json!({"requestId": request})).await?;
    if json {
        return Report::json(&answer);
    }
    let device = short(&safe(answer["deviceId"].as_str().unwrap_or_default()));
    Ok(Report::text(format!("refused access to device {device}\n")))
}

/// Takes back that a device was let in, and ends its connection.
pub(crate) async fn remove(client: &Client, wanted: &str, json: bool) -> Result<Report, Failure> {
    let nodes = call(client, "node.list", json!({})).await?;
    let devices = call(client, "device.pair.list", json!({})).await?;
    let (id, name) = meant(&nodes, &devices, wanted)?;
    let answer = call(client, "device.pair.remove", json!({"deviceId": id})).await?;
    if json {
        return Report::json(&json!({"deviceId": id, "displayName": name, "answer": answer}));
    }
    let (id, name) = (safe(&id), safe(&name));
    let who = if name.is_empty() || name == id { id } else { format!("{name} ({id})") };
    Ok(Report::text(format!("removed {who}; it needs a new approval to return\n")))
}

/// The machine that is meant by its id, the beginning of it or its name: its id, and what people call it.
fn meant(nodes: &Value, devices: &Value, wanted: &str) -> Result<(String, String), Failure> {
    let known = nodes["nodes"].as_array().into_iter().flatten().map(|node| (&node["nodeId"], &node["displayName"]));
    let paired = devices["paired"].as_array().into_iter().flatten();
    let known = known.chain(paired.map(|device| (&device["deviceId"], &device["displayName"])));
    let mut fitting: BTreeMap<&str, &str> = BTreeMap::new();
    for (id, name) in known {
        let (Some(id), name) = (id.as_str(), name.as_str().unwrap_or_default()) else { continue };
        if id == wanted {
            return Ok((id.to_owned(), name.to_owned()));
        }
        let begins = wanted.len() >= MIN_PREFIX && id.starts_with(wanted);
        if begins || (name == wanted && !name.is_empty()) {
            fitting.entry(id).or_insert(name);
        }
    }
    let shown = safe(wanted);
    match fitting.into_iter().collect::<Vec<_>>().as_slice() {
        [(id, name)] => Ok(((*id).to_owned(), (*name).to_owned())),
        [] => Err(Failure::input(format!("the gateway has no device `{shown}`"))
            .hint("prowess devices list and prowess node list show them; give an id, the first four or more characters of one, or a name")),
        several => {
            let ids: Vec<String> = several.iter().map(|(id, _)| safe(id)).collect();
            Err(Failure::input(format!("`{shown}` matches several devices: {}", ids.join(", "))).hint("give the id"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_to_be_let_in_is_told_with_what_they_ask_for() {
        let table = [
            (
                json!({"displayName": "box", "role": "node", "roles": ["node"], "scopes": []}),
                "box asks for access as node",
            ),
            (
                json!({"clientId": "cli\u{1b}[2J", "role": "node", "roles": ["node", "operator"], "scopes": ["operator.admin"]}),
                "cli[2J asks for access as node and operator with operator.admin",
            ),
            (json!({"displayName": "x", "scopes": ["a"]}), "x asks for access as nothing with a"),
        ];
        for (pending, expected) in table {
            assert_eq!(wish(&pending), expected);
        }
    }

    #[test]
    fn a_machine_is_meant_by_id_beginning_or_name() {
        let nodes = json!({"nodes": [
            {"nodeId": "aaaa1", "displayName": "box"}, {"nodeId": "aaaa12", "displayName": "twin"}, {"nodeId": "bbbb1"},
        ]});
        let devices = json!({"paired": [
            {"deviceId": "aaaa1", "displayName": "box"}, {"deviceId": "cccc1", "displayName": "twin"},
        ]});
        let table = [
            ("aaaa1", Some("aaaa1")),
            ("aaaa", None),
            ("box", Some("aaaa1")),
            ("twin", None),
            ("bbbb", Some("bbbb1")),
            ("cccc1", Some("cccc1")),
            ("ccc", None),
            ("", None),
        ];
        for (wanted, expected) in table {
            let found = meant(&nodes, &devices, wanted).ok();
            assert_eq!(found.as_ref().map(|(id, _)| id.as_str()), expected, "{wanted}");
        }
    }

    #[test]
    fn who_asks_for_full_control_looks_different() {
        let line = |scope: &str| {
            let pending = json!({
                "requestId": "0123456789ab", "deviceId": "fedcba9876543210", "displayName": "phone", "role": "operator",
                "scopes": [scope], "remoteIp": "192.0.2.7",
            });
            anstream::adapter::strip_str(&request_line(&pending)).to_string()
        };
        let expected = "? phone asks for access as operator with operator.read (fedcba987654, from 192.0.2.7): \
                        prowess devices approve 01234567";
        assert_eq!(line("operator.read"), expected);
        assert!(line("operator.admin").starts_with("! full control: phone"), "{}", line("operator.admin"));
    }
}
