//! Namespaces: which parts of the system does a run get to itself, and what of that worked here?
//!
//! [`WANTED`] is the whole list. A process with `CAP_SYS_ADMIN` enters each of them directly. Anyone else first enters a
//! user namespace, in which it has that capability: user and group are mapped to themselves, so files look as before,
//! except that files of other users appear to belong to nobody. The capability is dropped with all others before the
//! program starts.

use std::fs;
use std::io;

use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags, capabilities};

use crate::sandbox::{OwnView, Refused};

/// What a run gets to itself, besides a user namespace where it needs one: mounts, so that files outside can be made
/// read-only, and System V shared memory, semaphores and message queues, so that those of other processes are out of
/// reach.
const WANTED: UnshareFlags = UnshareFlags::NEWNS.union(UnshareFlags::NEWIPC);

/// Which namespaces were entered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Entered {
    /// A user namespace, which an ordinary user needs for the others.
    pub(super) user: bool,
    /// Mounts of its own.
    pub(super) mounts: bool,
    /// System V objects and message queues of its own.
    pub(super) ipc: bool,
}

/// Enters the namespaces of a run, as far as `view` asks and the kernel allows. The process must have one thread.
///
/// A user namespace cannot be left again, so one that was entered but is of no use is a refusal: in it, the program
/// would be nobody.
pub(super) fn enter(view: OwnView) -> Result<Entered, Refused> {
    let mut entered = Entered::default();
    if view == OwnView::No {
        return Ok(entered);
    }
    if !is_privileged() {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        if let Err(error) = unshare(UnshareFlags::NEWUSER) {
            return if view == OwnView::Required { Err(refused("a user namespace", &error)) } else { Ok(entered) };
        }
        map_to_itself(user, group).map_err(|error| refused("a user namespace with its own user", &error))?;
        entered.user = true;
    }
    for flag in WANTED.iter() {
        let result = unshare(flag);
        match result {
            Ok(()) => entered.note(flag),
            Err(error) if view == OwnView::Required => return Err(refused(name(flag), &error)),
            Err(_) => {}
        }
    }
    Ok(entered)
}

impl Entered {
    fn note(&mut self, flag: UnshareFlags) {
        self.mounts |= flag.contains(UnshareFlags::NEWNS);
        self.ipc |= flag.contains(UnshareFlags::NEWIPC);
    }
}

/// Whether this process needs no user namespace to enter others.
fn is_privileged() -> bool {
    capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN))
}

/// Makes the user and the group of the new user namespace the ones this process had outside.
fn map_to_itself(user: u32, group: u32) -> io::Result<()> {
    // Without this, a group that was taken away from the user could be given up to get at files it is denied.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

#[expect(deprecated, reason = "what makes the call unsound is a flag about open files, which is not used here")]
fn unshare(flag: UnshareFlags) -> io::Result<()> {
    Ok(rustix::thread::unshare(flag)?)
}

fn name(flag: UnshareFlags) -> &'static str {
    if flag.contains(UnshareFlags::NEWNS) { "a mount namespace" } else { "an IPC namespace" }
}

fn refused(what: &str, error: &io::Error) -> Refused {
    Refused::new(
        "sandbox",
        format!("the run cannot enter {what}: {error}; see `user.max_user_namespaces` and AppArmor"),
    )
}
