//! Probing: when are nodes asked for programs, and who is told what they have?

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use prowess_skills::{Machine, wanted_bins};
use serde_json::json;

use super::eligibility::{Offer, note, parse, script};
use super::invoke::Invocation;
use super::registry::{Node, Nodes};
use crate::aside::blocking;
use crate::gateway::Gateway;

/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(15);

/// How often somebody looks whether an answer is too old or a failed node may be asked again.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// The most programs that are asked for.
const MAX_BINS: usize = 2000;

/// Asks nodes and tells agents, whenever something happened that may matter.
pub(super) async fn look_after(gateway: &Arc<Gateway>) {
    let nodes = &gateway.nodes;
    let mut told = None;
    loop {
        let connected: Vec<Arc<Node>> = nodes.connected().into_iter().filter(|node| node.can("system.run")).collect();
        if !connected.is_empty() || told.is_some() {
            if let Some(wanted) = wanted(gateway).await {
                for node in &connected {
                    ask(gateway, node, &wanted);
                }
            }
            let offers = offers(nodes, &connected);
            let (machines, note) = (machines(&offers), note(&offers));
            let now = Some((fingerprint(&machines), note.clone()));
            if told != now {
                tell(gateway, machines, note).await;
                told = now.filter(|_| !connected.is_empty());
            }
        }
        tokio::select! {
            () = nodes.stirred.notified() => {}
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = gateway.stop.cancelled() => return,
        }
    }
}

/// What the skills of all agents ask for.
async fn wanted(gateway: &Arc<Gateway>) -> Option<BTreeSet<String>> {
    let gateway = Arc::clone(gateway);
    let look = move || {
        let mut bins = BTreeSet::new();
        for id in gateway.agents.names()?.0 {
            let view = gateway.agents.get(Some(&id))?.view();
            bins.extend(wanted_bins(&view.catalog).into_iter().map(str::to_owned));
        }
        let is_plain = |bin: &String| !bin.contains(['/', '\\', '\0', '\n']) && !bin.starts_with('-');
        Ok::<_, crate::wire::Refusal>(bins.into_iter().filter(is_plain).take(MAX_BINS).collect())
    };
    blocking(look).await.ok()?.ok()
}

/// Asks one node in a task of its own, if it is time to.
fn ask(gateway: &Arc<Gateway>, node: &Arc<Node>, wanted: &BTreeSet<String>) {
    let conn = node.guest.conn.clone();
    let nodes = &gateway.nodes;
    {
        let mut known = nodes.eligibility.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.begin(&node.id, &conn, wanted, Instant::now()) {
            return;
        }
    }
    let (gateway, node, wanted) = (Arc::clone(gateway), Arc::clone(node), wanted.clone());
    gateway.tasks.clone().spawn(async move {
        let found = tokio::select! {
            found = bins(&gateway.nodes, &node, &wanted) => found,
            () = gateway.stop.cancelled() => return,
        };
        {
            let mut known = gateway.nodes.eligibility.lock().unwrap_or_else(PoisonError::into_inner);
            match found {
                Some(bins) => known.found(&node.id, &conn, bins, Instant::now()),
                None => known.failed(&node.id, &conn, Instant::now()),
            }
        }
        gateway.nodes.stirred.notify_one();
    });
}

/// Which of `wanted` a node has.
async fn bins(nodes: &Nodes, node: &Node, wanted: &BTreeSet<String>) -> Option<HashSet<String>> {
    if wanted.is_empty() {
        return Some(HashSet::new());
    }
    let (command, params) = if node.can("system.which") {
        ("system.which", json!({"bins": wanted}))
    } else {
        let script = script(wanted.iter().map(String::as_str));
        ("system.run", json!({"command": ["/bin/sh", "-lc", script], "rawCommand": script}))
    };
    match nodes.invoke(Invocation::new(&node.id, command, params).timeout(PATIENCE)).await {
        Ok(reply) => Some(parse(&reply.payload)),
        Err(error) => {
            tracing::warn!(node = node.id, "cannot get a node's programs: {error}");
            None
        }
    }
}

fn offers(nodes: &Nodes, connected: &[Arc<Node>]) -> Vec<Offer> {
    let known = nodes.eligibility.lock().unwrap_or_else(PoisonError::into_inner);
    let offer = |node: &Arc<Node>| Offer {
        name: nodes.name(node),
        system: node.kind().name(),
        machine: Machine { os: node.kind().os(&node.guest.about), bins: known.bins(&node.id, &node.guest.conn) },
    };
    connected.iter().map(offer).collect()
}

fn machines(offers: &[Offer]) -> Vec<Machine> {
    offers.iter().map(|offer| offer.machine.clone()).collect()
}

fn fingerprint(machines: &[Machine]) -> Vec<(String, BTreeSet<String>)> {
    machines.iter().map(|machine| (machine.os.clone(), machine.bins.iter().cloned().collect())).collect()
}

async fn tell(gateway: &Arc<Gateway>, machines: Vec<Machine>, note: Option<String>) {
    let gateway = Arc::clone(gateway);
    // What could not be read stays as it was, and is reported where it is read.
    let _ = blocking(move || gateway.agents.set_remote(&machines, note.as_deref())).await;
}
