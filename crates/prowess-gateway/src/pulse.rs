//! The pulse: what happens by itself while a gateway runs?

use std::sync::Arc;
use std::time::Duration;

use prowess_agent::message::now;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use crate::gateway::Gateway;
use crate::hub::{Audience, Urgency};
use crate::scope::Scope;

/// How long comings and goings are gathered before everybody is told: many come and go at once. The more hear of it, the
/// longer it takes to tell them, up to a bound.
const GATHER: Duration = Duration::from_millis(250);
const GATHER_FOR_EACH: Duration = Duration::from_millis(1);
const LONGEST_GATHER: Duration = Duration::from_secs(3);

/// How long connections of commands are gathered before clients are told, and how often they are told of bytes.
const GATHER_TRAFFIC: Duration = Duration::from_millis(300);
const TRAFFIC_EVERY: Duration = Duration::from_secs(1);

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

fn gather(guests: usize) -> Duration {
    let for_all = GATHER_FOR_EACH.saturating_mul(u32::try_from(guests).unwrap_or(u32::MAX));
    GATHER.saturating_add(for_all).min(LONGEST_GATHER)
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
            () = sleep(gather(gateway.hub.count())) => {}
        }
        let payload = json!({"presence": gateway.presence.list()});
        let state = Some(gateway.presence.version());
        gateway.hub.tell_state(Audience::Operators, "presence", &payload, Urgency::Droppable, state);
    }
}

/// Tells clients which hosts commands talk to.
pub(crate) async fn traffic(gateway: Arc<Gateway>) {
    loop {
        tokio::select! {
            () = gateway.stop.cancelled() => return,
            () = gateway.traffic.changed(TRAFFIC_EVERY) => {}
        }
        tokio::select! {
            () = gateway.stop.cancelled() => return,
            () = sleep(GATHER_TRAFFIC) => {}
        }
        if let Some(news) = gateway.traffic.news() {
            gateway.hub.tell(Audience::With(Scope::Read), "egress.traffic", &news, Urgency::Droppable);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_there_are_the_less_often_they_are_told_who_comes_and_goes() {
        let millis = [0, 100, 1_000, 1_000_000].map(|guests| gather(guests).as_millis());
        assert_eq!(millis, [250, 350, 1_250, 3_000]);
    }
}
