//! The hub: who is connected, and who hears what?

mod members;
mod outbox;

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio_tungstenite::tungstenite::Utf8Bytes;

pub(crate) use members::{DELTAS, EVERY_SESSION, MAX_FOLLOWED, WHOLE_REPLIES};
pub(crate) use outbox::{Batch, Farewell, Mail, Out, Outbox, Piece, Urgency};

use members::Members;

use crate::approvals::Answerer;
use crate::pairing::Wish;
use crate::scope::{Role, Scope, Scopes};
use crate::wire::{self, StateVersion};

/// After how many calls in a row that somebody of its kind may never make a client is sent away.
const MAX_STRIKES: u32 = 10;

/// Who is connected, by connection.
#[derive(Default)]
pub(crate) struct Hub {
    members: Mutex<Members>,
    /// The number of the last event that went to everybody.
    seq: AtomicU64,
    /// How often signs of life were asked for.
    ticks: AtomicU64,
}

/// What a client said about itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    pub(crate) id: String,
    pub(crate) display_name: Option<String>,
    pub(crate) version: String,
    pub(crate) platform: String,
    pub(crate) device_family: Option<String>,
    pub(crate) model_identifier: Option<String>,
    pub(crate) mode: String,
    pub(crate) instance_id: Option<String>,
}

/// Somebody who is connected and was let in.
#[derive(Debug)]
pub(crate) struct Guest {
    /// The connection.
    pub(crate) conn: String,
    pub(crate) about: About,
    pub(crate) role: Role,
    pub(crate) scopes: Scopes,
    /// What it can be given beyond them.
    pub(crate) ceiling: Ceiling,
    /// Its device, if it showed one.
    pub(crate) device: Option<String>,
    /// The user that a trusted proxy named.
    pub(crate) user: Option<String>,
    pub(crate) caps: Vec<String>,
    /// What a node says it can do.
    pub(crate) commands: Vec<String>,
    /// Where a node looks for programs.
    pub(crate) path_env: Option<String>,
    pub(crate) permissions: Option<Value>,
    /// From where it came, if that is worth telling.
    pub(crate) remote_ip: Option<String>,
    /// When, in milliseconds since 1970.
    pub(crate) connected_at: u64,
    pub(crate) outbox: Outbox,
    pub(crate) conduct: Conduct,
}

/// Which scopes a connection can be given while it lasts.
#[derive(Debug)]
pub(crate) enum Ceiling {
    /// Any: it showed the gateway's own secret.
    Any,
    /// These, which the operator has set for the user that a proxy named.
    Listed(Scopes),
    /// Those that are approved for its device, or will be.
    Device(Box<Wish>),
}

/// How somebody behaves.
#[derive(Debug, Default)]
pub(crate) struct Conduct {
    /// Requests that are being worked on.
    in_flight: AtomicUsize,
    /// Calls in a row that somebody of its kind may never make.
    strikes: AtomicU32,
    /// The tick at which it was heard last.
    heard: AtomicU64,
}

/// A request that is being worked on, until this is dropped.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Guest>);

/// Who hears an event.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Audience<'a> {
    /// Everybody, nodes too.
    Everybody,
    /// All operators.
    Operators,
    /// Operators with that scope.
    With(Scope),
    /// These connections; their events have no number.
    Only(&'a [String]),
    /// Operators who may read and hear whole texts.
    Whole,
    /// Clients that follow this session and have all of these capabilities; their events have no number.
    Followers(&'a str, &'a [&'a str]),
}

impl About {
    /// Makes one line of each text that others are shown: a line break in a name could fake a sentence of ours.
    pub(crate) fn tidy(&mut self) {
        let texts =
            [&mut self.display_name, &mut self.device_family, &mut self.model_identifier, &mut self.instance_id];
        for text in texts {
            *text = text.take().map(|text| one_line(&text)).filter(|text| !text.is_empty());
        }
        self.platform = one_line(&self.platform);
        self.version = one_line(&self.version);
    }
}

/// A short text from outside as one line without characters that cannot be seen.
pub(crate) fn one_line(text: &str) -> String {
    const LONGEST: usize = 120;
    let is_hidden = |c: char| {
        matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
    };
    let seen = text.chars().filter(|c| !is_hidden(*c)).map(|c| if c.is_control() { ' ' } else { c });
    let line = seen.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(LONGEST).collect()
}

impl Guest {
    /// Whether it may do what takes `scope`.
    pub(crate) fn may(&self, scope: Scope) -> bool {
        self.role == Role::Operator && self.scopes.cover(scope)
    }

    /// Whether it hears each piece of text once, of the sessions that it follows.
    pub(crate) fn wants_deltas(&self) -> bool {
        self.has(DELTAS)
    }

    /// Whether it said that it can do that.
    pub(crate) fn has(&self, cap: &str) -> bool {
        self.caps.iter().any(|own| own == cap)
    }

    /// The name that others are told.
    pub(crate) fn name(&self) -> &str {
        self.about.display_name.as_deref().unwrap_or(&self.about.id)
    }

    /// Who it is, for the log of approvals.
    pub(crate) fn answerer(&self) -> Answerer {
        Answerer {
            name: self.name().to_owned(),
            client: self.about.id.clone(),
            device: self.device.clone(),
            device_name: self.about.display_name.clone(),
            user: self.user.clone(),
            address: self.remote_ip.clone(),
            conn: self.conn.clone(),
        }
    }

    /// A place for one more request, unless `max` are being worked on.
    pub(crate) fn begin(self: &Arc<Self>, max: usize) -> Option<InFlight> {
        let before = self.conduct.in_flight.fetch_add(1, Ordering::Relaxed);
        let place = InFlight(Arc::clone(self));
        (before < max).then_some(place)
    }

    /// It asked for what somebody of its kind may never do. Whoever goes on like that is sent away.
    pub(crate) fn strike(&self) {
        if self.conduct.strikes.fetch_add(1, Ordering::Relaxed) >= MAX_STRIKES {
            tracing::warn!(conn = self.conn, "disconnected after calls that it may not make");
            self.outbox.close(1008, "repeated unauthorized calls");
        }
    }

    /// It asked for something that it may do.
    pub(crate) fn behaved(&self) {
        self.conduct.strikes.store(0, Ordering::Relaxed);
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.conduct.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Hub {
    pub(crate) fn enter(&self, guest: &Arc<Guest>) {
        self.heard(guest);
        self.lock().enter(guest);
    }

    pub(crate) fn leave(&self, conn: &str) {
        self.lock().leave(conn);
    }

    /// How many are here now.
    pub(crate) fn count(&self) -> usize {
        self.lock().guests.len()
    }

    /// Everybody who is here now.
    pub(crate) fn guests(&self) -> Vec<Arc<Guest>> {
        self.lock().guests.values().cloned().collect()
    }

    /// Whether any client hears whole texts.
    pub(crate) fn has_whole(&self) -> bool {
        self.lock().has_whole()
    }

    /// `guest` follows the session `key` from now on. Says whether there is room for that.
    pub(crate) fn follow(&self, guest: &Arc<Guest>, key: &str) -> bool {
        self.lock().follow(guest, key)
    }

    /// Whether `guest` follows the session `key`, or all of them.
    pub(crate) fn follows(&self, guest: &Guest, key: &str) -> bool {
        self.lock().followers(key).any(|one| one.conn == guest.conn)
    }

    /// `guest` no longer follows the session `key`.
    pub(crate) fn unfollow(&self, guest: &Guest, key: &str) {
        self.lock().unfollow(guest, key);
    }

    /// Sends a piece of text to the clients that follow the session `key`.
    pub(crate) fn tell_piece(&self, key: &str, piece: &Piece) {
        let members = self.lock();
        for guest in members.followers(key).filter(|guest| guest.may(Scope::Read)) {
            guest.outbox.send_piece(piece.clone());
        }
    }

    /// Tells an event to `audience`. It is written once, whoever hears it.
    pub(crate) fn tell(&self, audience: Audience<'_>, name: &str, payload: &Value, urgency: Urgency) {
        self.tell_state(audience, name, payload, urgency, None);
    }

    /// The same, with the state that the event belongs to.
    pub(crate) fn tell_state(
        &self,
        audience: Audience<'_>,
        name: &str,
        payload: &Value,
        urgency: Urgency,
        state: Option<StateVersion>,
    ) {
        // Nobody waits for it to be written, for it may be long.
        let event = wire::Event::write(name, payload);
        let send = |text: &Utf8Bytes, guest: &Guest| guest.outbox.send(text.clone(), urgency);
        let members = self.lock();
        match audience {
            Audience::Only(conns) => {
                let text = Utf8Bytes::from(event.finish(None, state));
                conns.iter().filter_map(|conn| members.guests.get(conn)).for_each(|guest| send(&text, guest));
            }
            Audience::Followers(key, caps) => {
                let text = Utf8Bytes::from(event.finish(None, state));
                let hears = |guest: &&Arc<Guest>| guest.may(Scope::Read) && caps.iter().all(|cap| guest.has(cap));
                members.followers(key).filter(hears).for_each(|guest| send(&text, guest));
            }
            Audience::Everybody | Audience::Operators | Audience::With(_) | Audience::Whole => {
                // The number is given under the lock, so that all clients hear events in their order.
                let seq = self.seq.fetch_add(1, Ordering::Relaxed) + 1;
                let text = Utf8Bytes::from(event.finish(Some(seq), state));
                let hears = |guest: &&Arc<Guest>| match audience {
                    Audience::Operators => guest.role == Role::Operator,
                    Audience::With(scope) => guest.may(scope),
                    Audience::Whole => guest.may(Scope::Read) && !guest.wants_deltas(),
                    Audience::Everybody | Audience::Only(_) | Audience::Followers(..) => true,
                };
                members.guests.values().filter(hears).for_each(|guest| send(&text, guest));
            }
        }
    }

    /// Somebody gave a sign of life.
    pub(crate) fn heard(&self, guest: &Guest) {
        guest.conduct.heard.store(self.ticks.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Asks everybody for a sign of life, and sends away who has given none for `missed` times.
    pub(crate) fn tick(&self, missed: u64) {
        let tick = self.ticks.fetch_add(1, Ordering::Relaxed) + 1;
        for guest in self.lock().guests.values() {
            if tick - guest.conduct.heard.load(Ordering::Relaxed) > missed {
                guest.outbox.cut(1001, "no sign of life");
            } else {
                guest.outbox.ping();
            }
        }
    }

    /// Ends the connections of those that `is` says yes to, after what waits for them.
    pub(crate) fn close(&self, is: impl Fn(&Guest) -> bool, code: u16, reason: &str) {
        self.lock().guests.values().filter(|guest| is(guest)).for_each(|guest| guest.outbox.close(code, reason));
    }

    /// Ends the connections of those that `is` says yes to at once; what waits for them is lost.
    pub(crate) fn cut(&self, is: impl Fn(&Guest) -> bool, code: u16, reason: &str) {
        self.lock().guests.values().filter(|guest| is(guest)).for_each(|guest| guest.outbox.cut(code, reason));
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Members> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_client_says_about_itself_is_one_line_each() {
        let table =
            [("a\r\nb", "a b"), ("  x\t y ", "x y"), ("safe\u{202e}txt\u{200b}", "safetxt"), ("\u{1b}[2J", "[2J")];
        for (said, shown) in table {
            assert_eq!(one_line(said), shown, "{said:?}");
        }
        assert_eq!(one_line(&"ä".repeat(500)).chars().count(), 120);
    }

    /// An operator without scopes, and what it would hear.
    pub(crate) fn guest(conn: &str) -> (Guest, Mail) {
        let (outbox, mail) = Outbox::new(10_000);
        let guest = Guest {
            conn: conn.to_owned(),
            about: About { id: "test".into(), mode: "test".into(), ..About::default() },
            role: Role::Operator,
            scopes: Scopes::default(),
            ceiling: Ceiling::Any,
            device: None,
            user: None,
            caps: Vec::new(),
            commands: Vec::new(),
            path_env: None,
            permissions: None,
            remote_ip: None,
            connected_at: 1,
            outbox,
            conduct: Conduct::default(),
        };
        (guest, mail)
    }

    fn enter(hub: &Hub, conn: &str, change: impl FnOnce(&mut Guest)) -> (Arc<Guest>, Mail) {
        let (mut guest, mail) = guest(conn);
        change(&mut guest);
        let guest = Arc::new(guest);
        hub.enter(&guest);
        (guest, mail)
    }

    /// Everything that was told, after the hub has let go.
    async fn heard(hub: &Hub, guest: Arc<Guest>, mut mail: Mail) -> Vec<(String, Option<u64>)> {
        hub.leave(&guest.conn);
        drop(guest);
        let mut heard = Vec::new();
        while let Some(Out::Text(text)) = mail.next().await {
            let frame: Value = serde_json::from_str(&text).expect("JSON");
            heard.push((frame["event"].as_str().expect("an event").to_owned(), frame["seq"].as_u64()));
        }
        heard
    }

    #[tokio::test]
    async fn everybody_hears_what_is_for_them_in_order() {
        let hub = Hub::default();
        let (reader, reader_mail) = enter(&hub, "r", |guest| guest.scopes.grant(Scope::Read));
        let (admin, admin_mail) = enter(&hub, "a", |guest| guest.scopes.grant(Scope::Admin));
        let (node, node_mail) = enter(&hub, "n", |guest| guest.role = Role::Node);
        let tell = |audience: Audience<'_>, name: &str| hub.tell(audience, name, &json!({}), Urgency::Needed);
        tell(Audience::Everybody, "tick");
        tell(Audience::Operators, "chat");
        tell(Audience::With(Scope::Pairing), "device.pair.requested");
        tell(Audience::Only(&["n".to_owned(), "gone".to_owned()]), "node.invoke.request");
        let own = |name: &str, seq: u64| (name.to_owned(), Some(seq));
        assert_eq!(heard(&hub, reader, reader_mail).await, [own("tick", 1), own("chat", 2)]);
        let all = [own("tick", 1), own("chat", 2), own("device.pair.requested", 3)];
        assert_eq!(heard(&hub, admin, admin_mail).await, all);
        assert_eq!(heard(&hub, node, node_mail).await, [own("tick", 1), ("node.invoke.request".into(), None)]);
    }

    #[tokio::test]
    async fn who_gives_no_sign_of_life_is_sent_away() {
        let hub = Hub::default();
        let (alive, mut alive_mail) = enter(&hub, "a", |_| ());
        let (_dead, mut dead_mail) = enter(&hub, "d", |_| ());
        for _ in 0..4 {
            hub.tick(3);
            hub.heard(&alive);
        }
        assert!(matches!(alive_mail.next().await, Some(Out::Ping)));
        assert!(matches!(dead_mail.next().await, Some(Out::Close(farewell)) if farewell.code == 1001));
    }

    #[tokio::test]
    async fn ten_wrong_calls_in_a_row_are_too_many_and_a_right_one_makes_up_for_nine() {
        let hub = Hub::default();
        let (guest, mut mail) = enter(&hub, "a", |_| ());
        (0..MAX_STRIKES).for_each(|_| guest.strike());
        guest.behaved();
        (0..MAX_STRIKES).for_each(|_| guest.strike());
        guest.outbox.ping();
        assert!(matches!(mail.next().await, Some(Out::Ping)), "still here");
        guest.strike();
        assert!(
            matches!(mail.next().await, Some(Out::Close(farewell)) if farewell.reason == "repeated unauthorized calls")
        );
    }

    #[test]
    fn only_so_many_requests_are_worked_on_at_once() {
        let guest = Arc::new(guest("a").0);
        let first = guest.begin(2);
        let second = guest.begin(2);
        assert!(first.is_some() && second.is_some());
        assert!(guest.begin(2).is_none());
        drop(first);
        assert!(guest.begin(2).is_some());
    }
}
