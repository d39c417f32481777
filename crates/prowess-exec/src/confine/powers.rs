//! Powers: how much may the run use, and what may it do as this user?

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::sandbox::{Limits, Refused};

/// Sets the limits that its descendants inherit. Limits are only ever lowered.
pub(super) fn limit(limits: &Limits) -> Result<(), Refused> {
    // A core dump writes the memory of the run, with its secrets, to a file.
    lower(Resource::Core, Some(0))?;
    lower(Resource::Nofile, limits.files)?;
    lower(Resource::Fsize, limits.file_size)?;
    lower(Resource::As, limits.memory)?;
    lower(Resource::Data, limits.memory_percent.map(share_of_memory))?;
    lower(Resource::Cpu, limits.cpu_seconds)?;
    // The kernel counts all processes of the user, not those of the run.
    lower(Resource::Nproc, limits.processes.map(|processes| processes.saturating_add(running())))
}

fn lower(resource: Resource, limit: Option<u64>) -> Result<(), Refused> {
    let Some(limit) = limit else { return Ok(()) };
    let maximum = getrlimit(resource).maximum.map_or(limit, |maximum| maximum.min(limit));
    setrlimit(resource, Rlimit { current: Some(maximum), maximum: Some(maximum) })
        .map_err(|error| Refused::new("limits", format!("the limit {resource:?} cannot be set: {error}")))
}

/// So many bytes of the machine's memory, and never so few that a compiler would not start.
fn share_of_memory(percent: u8) -> u64 {
    const LEAST: u64 = 2 << 30;
    let system = rustix::system::sysinfo();
    #[expect(clippy::useless_conversion, reason = "the type differs between processors")]
    let total = u64::from(system.totalram).saturating_mul(u64::from(system.mem_unit));
    (total / 100).saturating_mul(u64::from(percent)).max(LEAST)
}

/// Processes and threads of the whole machine: in one read an upper bound of this user's.
fn running() -> u64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let tasks = load.split_ascii_whitespace().nth(3).and_then(|tasks| tasks.split_once('/'));
    tasks.and_then(|(_, all)| all.parse().ok()).unwrap_or(4096)
}

/// Gives up every capability, for good: no program started from here gains any, by being root or by its file's mode.
#[cfg(target_os = "linux")]
pub(super) fn drop_all() -> Result<(), Refused> {
    use rustix::thread::{
        CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    };
    let refused = |error: rustix::io::Errno| Refused::new("sandbox", format!("privileges cannot be given up: {error}"));
    set_no_new_privs(true).map_err(refused)?;
    for bit in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match capability_is_in_bounding_set(capability) {
            // Only root may; for others the set has no effect, because no program gains anything any more.
            Ok(true) if remove_capability_from_bounding_set(capability).is_err() => break,
            Ok(_) => {}
            Err(_) => break,
        }
    }
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, sets).map_err(refused)?;
    if capabilities(None).map_err(refused)? != sets {
        return Err(Refused::new("sandbox", "privileges remained after they were given up"));
    }
    Ok(())
}
