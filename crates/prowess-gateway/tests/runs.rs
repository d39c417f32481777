//! Turns over a gateway: sessions, runs, sub-agents and HTTP.

#[path = "runs/agents.rs"]
mod agents;
#[path = "runs/deltas.rs"]
mod deltas;
#[path = "runs/egress.rs"]
mod egress;
#[path = "runs/http.rs"]
mod http;
#[path = "runs/journal.rs"]
mod journal;
#[path = "runs/later.rs"]
mod later;
#[path = "runs/recorded.rs"]
mod recorded;
#[path = "runs/sessions.rs"]
mod sessions;
#[path = "runs/subagents.rs"]
mod subagents;
#[path = "runs/turns.rs"]
mod turns;
