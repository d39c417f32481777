//! The pulse: what happens by itself while a gateway runs?

use std::sync::Arc;
use std::time::Duration;

use prowess_agent::message::now;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use crate::gateway::Gateway;
use crate::hub::{Audience, Urgency};

/// How long comings and goings are gathered before everybody is told: many come and go at once.
const GATHER: Duration = Duration::from_millis(250);

/// Gives signs of life, and asks for them.
pub(crate) async fn ticks(gateway: Arc<Gateway>) {
    let every = gateway.limits.tick;
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = gateway.stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        gateway.hub.tell(Audience::Everybody, "tick", &json!({"ts": now()}), Urgency::Droppable);
        gateway.hub.tick(gateway.limits.missed_ticks);
    }
}

/// Tells everybody who came and who went.
pub(crate) async fn presence(gateway: Arc<Gateway>) {
    loop {
        tokio::select! {
            () = gateway.stop.cancelled() => return,
            () = gateway.presence.changed.notified() => {}
        }
        tokio::select! {
            () = gateway.stop.cancelled() => return,
            () = sleep(GATHER) => {}
        }
        let payload = json!({"presence": gateway.presence.list()});
        let state = Some(gateway.presence.version());
        gateway.hub.tell_state(Audience::Operators, "presence", &payload, Urgency::Droppable, state);
    }
}
