//! `prowess node`: this machine for a gateway, and the machines that a gateway has.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use prowess_gateway::client::Client;
use prowess_gateway::node_host::{Connected, NodeHost, NodeHostError, Options, WhenLost};
use prowess_host::Failure;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::cli::{self, Globals, NodeArgs};
use crate::output::{DIM, GOOD, Report, WARN, paint, safe, table};
use crate::remote::target::{Kind, Target, advice};
use crate::remote::{call, with};
use crate::wish::Wish;

/// The shortest beginning of an id that names it.
const MIN_PREFIX: usize = 4;

pub(crate) fn run(command: &cli::Node, globals: &Globals) -> Result<Report, Failure> {
    match command {
        cli::Node::Run(args) => serve(args, globals),
        cli::Node::List => with(&Target::meant(globals)?, async |client| list(&client, globals.json).await),
        cli::Node::Approve { id } => {
            with(&Target::meant(globals)?, async |client| approve(&client, id, globals.json).await)
        }
        cli::Node::Remove { id } => {
            with(&Target::meant(globals)?, async |client| remove(&client, id, globals.json).await)
        }
    }
}

/// From the command line; the log begins here, too.
fn options(target: Target, args: &NodeArgs, globals: &Globals) -> Result<Options, Failure> {
    crate::log::begin(&globals.context()?, "node", args.log);
    let name = args.name.as_deref().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let when_lost = if args.keep_running { WhenLost::GoOn } else { WhenLost::End };
    let options = Options::new(globals.ground()?, target.url).map_err(Failure::ours)?;
    let (token, password) = match target.secret {
        Some((Kind::Token, token)) => (Some(token), None),
        Some((Kind::Password, password)) => (None, Some(password)),
        None => (None, None),
    };
    Ok(Options { token, password, display_name: name, when_lost, ..options })
}

/// Serves until somebody wants it to end.
fn serve(args: &NodeArgs, globals: &Globals) -> Result<Report, Failure> {
    let target = Target::meant(globals)?;
    let url = target.url.clone();
    let mut options = options(target, args, globals)?;
    let (tell, mut told) = mpsc::unbounded_channel();
    options.connected = globals.json.then_some(tell);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Failure::ours)?;
    runtime.block_on(async {
        let mut wish = Wish::listen().map_err(Failure::ours)?;
        let stop = CancellationToken::new();
        let mut serving = std::pin::pin!(NodeHost::run(options, stop.clone()));
        let served = loop {
            tokio::select! {
                served = &mut serving => break served,
                // One line each, so that a program can wait for it.
                Some(connected) = told.recv() => line(&connected)?.print()?,
                () = wish.comes() => {
                    stop.cancel();
                    break serving.await;
                }
            }
        };
        served.map(|()| Report::text("")).map_err(|error| refused(&url, &error))
    })
}

/// A connection as a program is told of it.
fn line(connected: &Connected) -> Result<Report, Failure> {
    Report::json_line(&json!({
        "event": "connected", "url": connected.url, "nodeId": connected.node_id, "displayName": connected.name,
    }))
}

/// Why this machine cannot serve, and what to do about it.
fn refused(url: &str, error: &NodeHostError) -> Failure {
    let failure = Failure::input(safe(&error.to_string()));
    let NodeHostError::Refused(error) = error else { return failure };
    advice(url, error.details()).into_iter().fold(failure, Failure::hint)
}

async fn list(client: &Client, json: bool) -> Result<Report, Failure> {
    let nodes = call(client, "node.list", json!({})).await?;
    // Who may not see requests still sees the machines.
    let waiting = client.call("device.pair.list", json!({})).await.unwrap_or_default();
    let waiting: Vec<&Value> = waiting["pending"].as_array().into_iter().flatten().collect();
    if json {
        return Report::json(&json!({"nodes": nodes["nodes"], "pending": waiting}));
    }
    let rows: Vec<Vec<String>> = nodes["nodes"].as_array().into_iter().flatten().map(row).collect();
    let mut text = if rows.is_empty() {
        "No machines yet. To add one, run on it: prowess node run --gateway URL\n".to_owned()
    } else {
        table(&["State", "Machine", "System", "Commands", "Id"], &[0, 2], rows)
    };
    for one in waiting {
        let id = safe(one["requestId"].as_str().unwrap_or_default());
        let _ = writeln!(text, "{} {}: prowess node approve {id}", paint(WARN, "?"), wish(one));
    }
    Ok(Report::text(text))
}

/// Who wants to be let in, and as what.
fn wish(pending: &Value) -> String {
    let said = |name: &str| pending[name].as_str().map(safe);
    let name = said("displayName").or_else(|| said("clientId")).unwrap_or_default();
    format!("{name} asks for access as {}", standing(pending))
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

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(safe).collect()
}

fn row(node: &Value) -> Vec<String> {
    let text = |name: &str| safe(node[name].as_str().unwrap_or_default());
    let is = |name: &str| node[name] == true;
    let state = match (is("connected"), is("paired")) {
        (true, _) => paint(GOOD, "✓ online"),
        (false, true) => paint(DIM, "offline"),
        (false, false) => paint(WARN, "not approved"),
    };
    let commands = texts(&node["commands"]);
    let id: String = text("nodeId").chars().take(12).collect();
    vec![state, text("displayName"), text("platform"), commands.join(", "), id]
}

async fn approve(client: &Client, id: &str, json: bool) -> Result<Report, Failure> {
    let waiting = call(client, "device.pair.list", json!({})).await?;
    let ids: Vec<&str> = waiting["pending"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|one| one["requestId"].as_str())
        .filter(|known| *known == id || (id.len() >= MIN_PREFIX && known.starts_with(id)))
        .collect();
    let request = match ids.as_slice() {
        [one] => *one,
        [] => {
            return Err(Failure::input(format!("there is no access request `{}`", safe(id)))
                .hint("prowess node list shows the requests; they expire after five minutes"));
        }
        _ => {
            return Err(
                Failure::input(format!("several requests start with `{}`", safe(id))).hint("give more of the id")
            );
        }
    };
    let answer = call(client, "device.pair.approve", json!({"requestId": request})).await?;
    if json {
        return Report::json(&answer);
    }
    let device = &answer["device"];
    let name = device["displayName"].as_str().or_else(|| device["deviceId"].as_str()).unwrap_or(request);
    Ok(Report::text(format!("{} has access as {}\n", safe(name), standing(device))))
}

async fn remove(client: &Client, wanted: &str, json: bool) -> Result<Report, Failure> {
    let nodes = call(client, "node.list", json!({})).await?;
    let devices = call(client, "device.pair.list", json!({})).await?;
    let (id, name) = meant(&nodes, &devices, wanted)?;
    let answer = call(client, "device.pair.remove", json!({"deviceId": id})).await?;
    if json {
        return Report::json(&json!({"deviceId": id, "displayName": name, "answer": answer}));
    }
    let (id, name) = (safe(&id), safe(&name));
    let who = if name.is_empty() || name == id { id } else { format!("{name} ({id})") };
    Ok(Report::text(format!("removed {who}; it needs a new approval to come back\n")))
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
        [] => Err(Failure::input(format!("the gateway has no machine `{shown}`"))
            .hint("prowess node list shows them; give an id, at least its first four characters, or a name")),
        several => {
            let ids: Vec<String> = several.iter().map(|(id, _)| safe(id)).collect();
            Err(Failure::input(format!("`{shown}` matches several machines: {}", ids.join(", "))).hint("give the id"))
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
    fn a_machine_is_a_row() {
        let node = json!({
            "nodeId": "0123456789abcdef", "displayName": "box\u{1b}[2J", "platform": "linux", "connected": true,
            "paired": true, "commands": ["system.run", "system.which"],
        });
        let row: Vec<String> = row(&node).iter().map(|cell| anstream::adapter::strip_str(cell).to_string()).collect();
        assert_eq!(row, ["✓ online", "box[2J", "linux", "system.run, system.which", "0123456789ab"]);
    }
}
