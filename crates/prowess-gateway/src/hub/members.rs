//! Members: who is connected, and who follows which session?
//!
//! Most clients hear the text of every run, whole each time, as OpenClaw's clients expect it. A client that connects with
//! [`DELTAS`] hears only of the sessions that it follows, and each piece of text once.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::Guest;
use crate::scope::Role;

/// The capability of a client that wants each piece of text once.
pub(crate) const DELTAS: &str = "event-deltas";

/// The capability of a client whose runs say nothing of a reply before it is complete: a broken reply is asked for again.
pub(crate) const WHOLE_REPLIES: &str = "whole-replies";

/// How many sessions one client may follow.
pub(crate) const MAX_FOLLOWED: usize = 4_096;

/// The name that stands for every session.
pub(crate) const EVERY_SESSION: &str = "*";

/// Who is connected.
#[derive(Default)]
pub(super) struct Members {
    pub(super) guests: HashMap<String, Arc<Guest>>,
    /// The clients that follow a session, by its key or [`EVERY_SESSION`].
    followers: HashMap<String, Vec<Arc<Guest>>>,
    /// The sessions that each client follows.
    followed: HashMap<String, HashSet<String>>,
    /// How many clients hear whole texts.
    whole: usize,
}

impl Members {
    pub(super) fn enter(&mut self, guest: &Arc<Guest>) {
        self.whole += usize::from(wants_whole(guest));
        self.guests.insert(guest.conn.clone(), Arc::clone(guest));
    }

    pub(super) fn leave(&mut self, conn: &str) {
        let Some(guest) = self.guests.remove(conn) else { return };
        self.whole -= usize::from(wants_whole(&guest));
        for key in self.followed.remove(conn).unwrap_or_default() {
            self.forget(&key, conn);
        }
        if self.guests.is_empty() {
            // A crowd that is gone leaves its room behind.
            *self = Self::default();
        }
    }

    /// Whether any client hears whole texts.
    pub(super) fn has_whole(&self) -> bool {
        self.whole > 0
    }

    /// The clients that follow the session `key`.
    pub(super) fn followers(&self, key: &str) -> impl Iterator<Item = &Arc<Guest>> {
        let of = |key: &str| self.followers.get(key).map(Vec::as_slice).unwrap_or_default();
        let own = of(key);
        let everything = of(EVERY_SESSION).iter().filter(|guest| !own.iter().any(|one| one.conn == guest.conn));
        own.iter().chain(everything)
    }

    /// `guest` follows the session `key`. Says whether there is room for that.
    pub(super) fn follow(&mut self, guest: &Arc<Guest>, key: &str) -> bool {
        if !guest.wants_deltas() || !self.guests.contains_key(&guest.conn) {
            return true;
        }
        let followed = self.followed.entry(guest.conn.clone()).or_default();
        if followed.contains(key) {
            return true;
        }
        if followed.len() >= MAX_FOLLOWED {
            return false;
        }
        followed.insert(key.to_owned());
        self.followers.entry(key.to_owned()).or_default().push(Arc::clone(guest));
        true
    }

    pub(super) fn unfollow(&mut self, guest: &Guest, key: &str) {
        if let Some(followed) = self.followed.get_mut(&guest.conn) {
            followed.remove(key);
        }
        self.forget(key, &guest.conn);
    }

    fn forget(&mut self, key: &str, conn: &str) {
        let Some(clients) = self.followers.get_mut(key) else { return };
        clients.retain(|client| client.conn != conn);
        if clients.is_empty() {
            self.followers.remove(key);
        }
    }
}

/// Whether it may hear whole texts: what it may read can change while it is here.
fn wants_whole(guest: &Guest) -> bool {
    guest.role == Role::Operator && !guest.wants_deltas()
}

#[cfg(test)]
mod tests {
    use super::super::tests::guest;
    use super::*;

    fn client(conn: &str, caps: &[&str]) -> Arc<Guest> {
        let (mut guest, _) = guest(conn);
        guest.caps = caps.iter().map(|&cap| cap.to_owned()).collect();
        Arc::new(guest)
    }

    fn names<'a>(guests: impl Iterator<Item = &'a Arc<Guest>>) -> Vec<&'a str> {
        let mut names: Vec<&str> = guests.map(|guest| guest.conn.as_str()).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn a_client_hears_of_the_sessions_it_follows() {
        let mut members = Members::default();
        let (old, new, all) = (client("old", &[]), client("new", &[DELTAS]), client("all", &[DELTAS]));
        for guest in [&old, &new, &all] {
            members.enter(guest);
        }
        for (guest, key) in [(&old, "a"), (&new, "a"), (&new, "a"), (&all, EVERY_SESSION), (&all, "b")] {
            assert!(members.follow(guest, key));
        }
        assert_eq!(names(members.followers("a")), ["all", "new"]);
        assert_eq!(names(members.followers("b")), ["all"], "once, however it follows");
        assert!(members.has_whole());
        members.unfollow(&new, "a");
        members.unfollow(&new, "a");
        assert_eq!(names(members.followers("a")), ["all"]);
        members.leave("all");
        members.leave("old");
        assert!(!members.has_whole() && members.followers.is_empty());
    }

    #[test]
    fn there_is_an_end_to_what_one_client_follows() {
        let mut members = Members::default();
        let guest = client("a", &[DELTAS]);
        members.enter(&guest);
        assert!((0..MAX_FOLLOWED).all(|number| members.follow(&guest, &number.to_string())));
        assert!(!members.follow(&guest, "one more") && members.follow(&guest, "7"), "it follows that one already");
        members.unfollow(&guest, "7");
        assert!(members.follow(&guest, "one more"));
    }
}
