//! `prowess node`: this machine for a gateway, and the machines that a gateway has.

use std::fmt::Write as _;

use prowess_gateway::client::Client;
use prowess_gateway::node_host::{Connected, NodeHost, NodeHostError, Options, WhenLost};
use prowess_host::Failure;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::cli::{self, Globals, NodeArgs};
use crate::devices::{approve, remove, request_line, texts};
use crate::output::{DIM, GOOD, Report, WARN, paint, safe, table};
use crate::remote::target::{Kind, Target, advice};
use crate::remote::{call, with};
use crate::wish::Wish;

pub(crate) fn run(command: &cli::Node, globals: &Globals) -> Result<Report, Failure> {
    match command {
        cli::Node::Run(args) => serve(args, globals),
        cli::Node::List => with(&Target::meant(globals)?, async |client| list(&client, globals.json).await),
        cli::Node::Approve { id } => {
            with(&Target::meant(globals)?, async |client| approve(&client, Some(id), globals.json).await)
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
    Ok(Options { token, password, tls_fingerprint: target.pin, display_name: name, when_lost, ..options })
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
        let _ = writeln!(text, "{}", request_line(one));
    }
    Ok(Report::text(text))
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

#[cfg(test)]
mod tests {
    use super::*;

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
