//! Throttles: who tried too often?
//!
//! The time is passed in, in milliseconds, so nothing here looks at a clock.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// How many names a throttle remembers. When there are more, those that it can forget are forgotten.
const MAX_ENTRIES: usize = 10_000;

/// Which kind of secret was wrong; each is counted for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tried {
    /// The token or password of the gateway.
    SharedSecret,
    /// The token of a device.
    DeviceToken,
}

/// Who may try next, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Now.
    Go,
    /// After so many milliseconds.
    Wait(u64),
}

/// Keeps out whoever is wrong about secrets too often.
#[derive(Debug)]
pub(crate) struct Lockout {
    rule: LockoutRule,
    failures: Mutex<HashMap<(Tried, IpAddr), Failures>>,
}

/// How often one may be wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockoutRule {
    /// So often…
    pub(crate) attempts: usize,
    /// … within so many milliseconds.
    pub(crate) window: u64,
    /// After that one is kept out so long.
    pub(crate) locked: u64,
}

impl Default for LockoutRule {
    fn default() -> Self {
        Self { attempts: 10, window: 60_000, locked: 300_000 }
    }
}

#[derive(Debug, Default)]
struct Failures {
    at: Vec<u64>,
    locked_until: Option<u64>,
}

impl Lockout {
    pub(crate) fn new(rule: LockoutRule) -> Self {
        Self { rule, failures: Mutex::default() }
    }

    /// Whether `from` may try at all.
    pub(crate) fn check(&self, tried: Tried, from: IpAddr, now: u64) -> Verdict {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let until = failures.get(&(tried, from.to_canonical())).and_then(|failures| failures.locked_until);
        match until {
            Some(until) if now < until => Verdict::Wait(until - now),
            _ => Verdict::Go,
        }
    }

    /// It was wrong.
    pub(crate) fn failed(&self, tried: Tried, from: IpAddr, now: u64) {
        let mut all = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let LockoutRule { attempts, window, locked } = self.rule;
        make_room(&mut all, |failures| {
            failures.locked_until.is_some_and(|until| now < until)
                || failures.at.last().is_some_and(|at| now.saturating_sub(*at) < window)
        });
        let failures = all.entry((tried, from.to_canonical())).or_default();
        match failures.locked_until {
            Some(until) if now < until => return,
            Some(_) => *failures = Failures::default(),
            None => {}
        }
        failures.at.retain(|at| now.saturating_sub(*at) < window);
        failures.at.push(now);
        if failures.at.len() >= attempts {
            failures.locked_until = Some(now.saturating_add(locked));
        }
    }

    /// It was right, so what was wrong before is forgotten.
    pub(crate) fn succeeded(&self, tried: Tried, from: IpAddr) {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(&(tried, from.to_canonical()));
    }
}

/// A few calls per window for each caller.
#[derive(Debug)]
pub(crate) struct Allowance {
    calls: u32,
    window: u64,
    used: Mutex<HashMap<String, Used>>,
}

#[derive(Debug)]
struct Used {
    since: u64,
    calls: u32,
}

impl Allowance {
    /// So many calls within so many milliseconds.
    pub(crate) fn new(calls: u32, window: u64) -> Self {
        Self { calls, window, used: Mutex::default() }
    }

    /// Uses one call up, if there is one left.
    pub(crate) fn take(&self, caller: &str, now: u64) -> Verdict {
        let mut all = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        make_room(&mut all, |used| now.saturating_sub(used.since) < self.window);
        let used = all.entry(caller.to_owned()).or_insert(Used { since: now, calls: 0 });
        if now.saturating_sub(used.since) >= self.window {
            *used = Used { since: now, calls: 0 };
        }
        if used.calls >= self.calls {
            return Verdict::Wait(used.since.saturating_add(self.window).saturating_sub(now));
        }
        used.calls += 1;
        Verdict::Go
    }
}

/// Forgets what may be forgotten when there is too much, and all of it if that was not enough: who fills the memory with
/// ten thousand addresses cannot be stopped by counting addresses.
fn make_room<K: Eq + Hash, V>(entries: &mut HashMap<K, V>, is_needed: impl Fn(&V) -> bool) {
    if entries.len() < MAX_ENTRIES {
        return;
    }
    entries.retain(|_, entry| is_needed(entry));
    if entries.len() >= MAX_ENTRIES {
        entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAR: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const SHARED: Tried = Tried::SharedSecret;

    fn wrong(lockout: &Lockout, times: u64, from: IpAddr) {
        (0..times).for_each(|at| lockout.failed(SHARED, from, at));
    }

    #[test]
    fn the_tenth_wrong_secret_locks_an_address_out_for_five_minutes() {
        let lockout = Lockout::new(LockoutRule::default());
        wrong(&lockout, 9, FAR);
        assert_eq!(lockout.check(SHARED, FAR, 10), Verdict::Go);
        lockout.failed(SHARED, FAR, 10);
        assert_eq!(lockout.check(SHARED, FAR, 10), Verdict::Wait(300_000));
        assert_eq!(lockout.check(SHARED, FAR, 300_009), Verdict::Wait(1));
        assert_eq!(lockout.check(SHARED, FAR, 300_010), Verdict::Go);
        assert_eq!(
            lockout.check(Tried::DeviceToken, FAR, 10),
            Verdict::Go,
            "each kind of secret is counted for itself"
        );
        let other = IpAddr::from([192, 0, 2, 2]);
        assert_eq!(lockout.check(SHARED, other, 10), Verdict::Go);
    }

    #[test]
    fn old_mistakes_and_those_before_a_right_secret_do_not_count() {
        let lockout = Lockout::new(LockoutRule::default());
        wrong(&lockout, 9, FAR);
        lockout.failed(SHARED, FAR, 70_000);
        assert_eq!(lockout.check(SHARED, FAR, 70_000), Verdict::Go);
        wrong(&lockout, 8, FAR);
        lockout.succeeded(SHARED, FAR);
        lockout.failed(SHARED, FAR, 70_001);
        assert_eq!(lockout.check(SHARED, FAR, 70_001), Verdict::Go);
    }

    #[test]
    fn one_address_in_two_notations_is_one_address() {
        let lockout = Lockout::new(LockoutRule::default());
        wrong(&lockout, 10, "::ffff:192.0.2.1".parse().expect("an address"));
        assert!(matches!(lockout.check(SHARED, FAR, 10), Verdict::Wait(_)));
    }

    #[test]
    fn an_allowance_is_used_up_and_comes_back() {
        let allowance = Allowance::new(3, 60_000);
        let take = |now| allowance.take("a", now);
        assert_eq!([take(0), take(1), take(2)], [Verdict::Go; 3]);
        assert_eq!(take(10_000), Verdict::Wait(50_000));
        assert_eq!(allowance.take("b", 10_000), Verdict::Go);
        assert_eq!(take(60_000), Verdict::Go);
    }

    #[test]
    fn memory_is_bounded_however_many_come() {
        let allowance = Allowance::new(3, 60_000);
        (0..3 * MAX_ENTRIES).for_each(|index| _ = allowance.take(&index.to_string(), 0));
        assert!(allowance.used.lock().expect("not poisoned").len() <= MAX_ENTRIES);
    }
}
