//! `approvals watch` and `approvals resolve`: what do the agents of a gateway want to run, and may they?

use prowess_gateway::client::{Backoff, Client, Event};
use prowess_host::Failure;
use prowess_policy::Answer;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;

use crate::chat::tell;
use crate::cli::{Decision, Globals};
use crate::output::{DIM, Report, json, paint, safe};
use crate::remote::questions::{self, Desk, Pending};
use crate::remote::target::Target;
use crate::remote::{refused, with};
use crate::wish::Wish;

/// The events of questions.
const REQUESTED: &str = "exec.approval.requested";
const RESOLVED: &str = "exec.approval.resolved";

/// The shortest beginning of an id that names it.
const MIN_PREFIX: usize = 4;

/// Answers one question.
pub(super) fn resolve(id: &str, decision: Decision, globals: &Globals) -> Result<Report, Failure> {
    let target = Target::meant(globals)?;
    with(&target, async |client| {
        let id = whole(&client, id).await?;
        let settled = questions::resolve(&client, &id, decision.word()).await;
        settled.map_err(|error| {
            refused("exec.approval.resolve", &error).hint("it may already be answered, or the run may have ended")
        })?;
        if globals.json {
            return Report::json(&json!({"ok": true, "id": id, "decision": decision.word()}));
        }
        Ok(Report::text(format!("{}: {}\n", safe(&id), decision.word())))
    })
}

/// The id that begins so, where the gateway tells which questions there are.
async fn whole(client: &Client, id: &str) -> Result<String, Failure> {
    let Ok(listed) = client.call("exec.approval.list", json!({})).await else { return Ok(id.to_owned()) };
    let known = waiting(&listed).into_iter().map(|pending| pending.id);
    let fitting: Vec<String> =
        known.filter(|known| known == id || (id.len() >= MIN_PREFIX && known.starts_with(id))).collect();
    match fitting.as_slice() {
        [one] => Ok(one.clone()),
        [] => Ok(id.to_owned()),
        _ => {
            Err(Failure::input(format!("several approval requests start with `{}`", safe(id)))
                .hint("give more of the id"))
        }
    }
}

/// The questions of a list.
fn waiting(listed: &Value) -> Vec<Pending> {
    let rows = listed.as_array().or_else(|| listed["approvals"].as_array()).or_else(|| listed["pending"].as_array());
    rows.into_iter().flatten().filter_map(Pending::read).collect()
}

/// Shows questions as they come, and takes answers, until somebody wants it to end.
pub(super) fn watch(globals: &Globals) -> Result<Report, Failure> {
    let target = Target::meant(globals)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(Failure::ours)?;
    let watched = runtime.block_on(async {
        let mut wish = Wish::listen().map_err(Failure::ours)?;
        // The first time it has to work; what is lost later is looked for again.
        let first = target.connect().await?;
        // Who wants JSON is a program, and answers with `approvals resolve`.
        let desk = if globals.json { Desk::default() } else { Desk::new(None) };
        let watch = Watch { target, json: globals.json, unread: CancellationToken::new() };
        let unread = watch.unread.clone();
        tokio::select! {
            () = watch.go_on(first, desk) => {}
            () = unread.cancelled() => {}
            () = wish.comes() => {}
        }
        Ok(Report::text(""))
    });
    // A thread may still wait for an answer that nobody will type.
    runtime.shutdown_background();
    watched
}

struct Watch {
    target: Target,
    json: bool,
    /// Nobody reads any more what is printed.
    unread: CancellationToken,
}

impl Watch {
    async fn go_on(&self, first: Client, mut desk: Desk) {
        let mut client = first;
        loop {
            self.one_connection(&client, &mut desk).await;
            self.note("lost the gateway; reconnecting");
            let mut backoff = Backoff::default();
            client = loop {
                tokio::time::sleep(backoff.pause()).await;
                if let Ok(client) = self.target.dial().await {
                    break client;
                }
            };
        }
    }

    /// Until the connection ends.
    async fn one_connection(&self, client: &Client, desk: &mut Desk) {
        let mut heard = client.events();
        desk.clear();
        if let Ok(listed) = client.call("exec.approval.list", json!({})).await {
            for pending in waiting(&listed) {
                let payload = json!({"id": pending.id, "request": pending.request()});
                self.hear(&Event { name: REQUESTED.to_owned(), payload, seq: None }, desk);
            }
        }
        self.note(&format!("watching {}", safe(&self.target.url)));
        loop {
            tokio::select! {
                event = heard.recv() => match event {
                    Ok(event) => self.hear(&event, desk),
                    Err(RecvError::Lagged(_)) => self.note("some events were skipped because they arrived too fast"),
                    Err(RecvError::Closed) => return,
                },
                _ = client.ended() => return,
                (id, answer) = desk.answered() => self.tell_gateway(client, &id, answer).await,
            }
        }
    }

    fn hear(&self, event: &Event, desk: &mut Desk) {
        match event.name.as_str() {
            REQUESTED => {
                self.show(event, desk);
                if let Some(pending) = Pending::read(&event.payload) {
                    desk.put(pending);
                }
            }
            RESOLVED => {
                self.show(event, desk);
                desk.take_away(event.payload["id"].as_str().unwrap_or_default());
            }
            _ => {}
        }
    }

    async fn tell_gateway(&self, client: &Client, id: &str, answer: Option<Answer>) {
        let Some(answer) = answer else { return self.note(&questions::unanswered(id, &self.target.url)) };
        if let Err(error) = questions::resolve(client, id, questions::word(answer)).await {
            self.note(&format!("the gateway did not accept the answer: {}", safe(&error.to_string())));
        }
    }

    fn show(&self, event: &Event, desk: &Desk) {
        if self.json {
            let mut out = std::io::stdout().lock();
            if json::write_line(&mut out, &json!({"event": event.name, "payload": event.payload})).is_err() {
                self.unread.cancel();
            }
            return;
        }
        let id = safe(event.payload["id"].as_str().unwrap_or_default());
        if event.name == RESOLVED {
            let said = |name: &str| safe(event.payload[name].as_str().unwrap_or("nobody"));
            self.note(&format!("{id}: {} by {}", said("decision"), said("resolvedBy")));
        } else if !desk.has_person()
            && let Some(pending) = Pending::read(&event.payload)
        {
            tell(&pending.spoken().asked);
            self.note(&format!("answer it with: prowess approvals resolve {id} allow-once"));
        }
    }

    fn note(&self, text: &str) {
        if !self.json {
            tell(&paint(DIM, text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_found_in_either_list() {
        let one = json!({"id": "a3b2", "request": {"command": "x"}});
        for listed in [json!([one]), json!({"approvals": [one]}), json!({"pending": [one, {"id": ""}]})] {
            assert_eq!(waiting(&listed).len(), 1, "{listed}");
        }
        assert!(waiting(&json!({})).is_empty());
    }
}
