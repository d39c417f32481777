//! The door: how many may come in at once?

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use crate::caller::Network;

/// Counts who is connected and who has not been let in yet.
#[derive(Debug)]
pub(crate) struct Door {
    connections: usize,
    strangers: usize,
    /// Proxies that we trust, behind which there are many.
    proxies: Vec<Network>,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    open: usize,
    strangers: HashMap<IpAddr, usize>,
}

/// The right to be connected, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Ticket {
    door: Arc<Door>,
    stranger: Mutex<Option<IpAddr>>,
}

/// Why somebody is not even listened to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Full {
    /// There are as many connections as there may be.
    Connections,
    /// Too many from that address have not said who they are.
    Strangers,
}

impl Door {
    pub(crate) fn new(connections: usize, strangers: usize, proxies: &[Network]) -> Arc<Self> {
        Arc::new(Self { connections, strangers, proxies: proxies.to_vec(), counts: Mutex::default() })
    }

    /// A place for somebody from that address.
    pub(crate) fn open(self: &Arc<Self>, from: IpAddr) -> Result<Ticket, Full> {
        let from = from.to_canonical();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.open >= self.connections {
            return Err(Full::Connections);
        }
        // Programs on this machine may come all at once, and could do worse than that. A proxy brings those of many
        // others, and one of them must not keep the rest out.
        let is_proxy = || self.proxies.iter().any(|network| network.contains(from));
        let stranger = Some(from).filter(|from| !from.is_loopback() && !is_proxy());
        if let Some(from) = stranger {
            let waiting = counts.strangers.entry(from).or_default();
            if *waiting >= self.strangers {
                return Err(Full::Strangers);
            }
            *waiting += 1;
        }
        counts.open += 1;
        Ok(Ticket { door: Arc::clone(self), stranger: Mutex::new(stranger) })
    }

    fn forget(&self, stranger: Option<IpAddr>) {
        let Some(from) = stranger else { return };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(waiting) = counts.strangers.get_mut(&from) {
            *waiting -= 1;
            if *waiting == 0 {
                counts.strangers.remove(&from);
            }
        }
    }
}

impl Ticket {
    /// Whoever has it was let in, and is no stranger any more.
    pub(crate) fn known(&self) {
        self.door.forget(self.stranger.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.known();
        self.door.counts.lock().unwrap_or_else(PoisonError::into_inner).open -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const NEAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn there_are_only_so_many_places_and_they_are_given_back() {
        let door = Door::new(2, 2, &[]);
        let first = door.open(NEAR).expect("a place");
        let _second = door.open(FAR).expect("a place");
        assert_eq!(door.open(NEAR).expect_err("full"), Full::Connections);
        drop(first);
        assert!(door.open(NEAR).is_ok());
    }

    #[test]
    fn strangers_from_one_address_are_few_until_they_are_known() {
        let door = Door::new(100, 2, &[]);
        let first = door.open(FAR).expect("a place");
        let _second = door.open(FAR).expect("a place");
        assert_eq!(door.open(FAR).expect_err("too many strangers"), Full::Strangers);
        assert!(door.open(IpAddr::from([192, 0, 2, 2])).is_ok());
        first.known();
        first.known();
        let _third = door.open(FAR).expect("a place");
        assert_eq!(door.open(FAR).expect_err("too many strangers"), Full::Strangers);
    }

    #[test]
    fn programs_on_this_machine_and_proxies_are_no_strangers() {
        let proxy = Network::parse("192.0.2.0/24").expect("a network");
        for (from, proxies) in [(NEAR, &[][..]), (FAR, &[proxy])] {
            let door = Door::new(100, 2, proxies);
            let tickets: Vec<_> = (0..50).map(|_| door.open(from).expect("a place")).collect();
            assert_eq!(tickets.len(), 50);
            drop(tickets);
            let counts = door.counts.lock().expect("not poisoned");
            assert_eq!((counts.open, counts.strangers.len()), (0, 0));
        }
    }
}
