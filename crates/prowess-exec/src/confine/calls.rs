//! System calls: which may a confined run make?
//!
//! All but those with which a process gets at other processes, at the kernel, at mounts or at sockets. Programs are used
//! to being told "not permitted" and carry on; two are answered differently, so that programs take another way.

use std::collections::BTreeMap;

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, sock_filter,
};

use crate::sandbox::{Confinement, Proxy, Refused};

/// Refused whatever the arguments.
const NEVER: &[c_long] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    // Files by number instead of by name.
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    // The kernel itself, and what it does on behalf of others.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
    OPEN_TREE_ATTR,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// `open_tree_attr`, the same number on every processor.
const OPEN_TREE_ATTR: c_long = 467;

/// `fchmodat2`, the same number on every processor.
const FCHMODAT2: c_long = 452;

/// New namespaces, as flags of `clone`.
const NAMESPACES: &[libc::c_int] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Calls that set a file's mode, and which argument that is.
const MODES: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
];

/// An old word for raw packets.
const SOCK_PACKET: libc::c_int = 10;

/// Calls that make a file with a mode, and which argument that is.
const MAKES: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
];

/// Calls that change how another process is scheduled, by its number. 0 is the caller.
const SCHEDULING: &[c_long] =
    &[libc::SYS_sched_setaffinity, libc::SYS_sched_setattr, libc::SYS_sched_setparam, libc::SYS_sched_setscheduler];

/// Ways to open a file, with the place of their flags; the mode of a file that is made comes next.
const OPENS: &[(c_long, u8)] = &[
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
    (libc::SYS_openat, 2),
];

/// From this level on, Landlock guards files against being cut short.
const GUARDS_LENGTH: u8 = 3;

/// Types of internet sockets that bypass TCP and UDP.
const ODD_TYPES: &[libc::c_int] = &[libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, libc::SOCK_DCCP, SOCK_PACKET];

/// The bits of a socket's type that are not flags.
const TYPE: u64 = 0xf;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Whether we know the calls of this processor.
pub(super) fn is_known_processor() -> bool {
    TargetArch::try_from(std::env::consts::ARCH).is_ok()
}

/// Filters the calls of this process and of all it starts. `level` is how much Landlock does of it.
pub(super) fn filter(confinement: &Confinement, level: u8) -> Result<(), Refused> {
    let refused =
        |error: seccompiler::Error| Refused::new("sandbox", format!("system calls cannot be filtered: {error}"));
    for program in programs(confinement, level).map_err(|error| refused(error.into()))? {
        seccompiler::apply_filter(&program).map_err(refused)?;
    }
    Ok(())
}

fn programs(confinement: &Confinement, level: u8) -> Result<[BpfProgram; 2], seccompiler::BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let answer = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    // Calls in another processor's numbering end the process.
    let filter = SeccompFilter::new(forbidden(confinement, level)?, SeccompAction::Allow, answer, arch)?;
    Ok([special_answers(confinement), filter.try_into()?])
}

/// The calls that are answered with something else than "not permitted". A filter of its own, because the compiler knows
/// one answer for all.
fn special_answers(confinement: &Confinement) -> BpfProgram {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const ERRNO: u32 = 0x0005_0000;
    /// On one kind of processor the same calls have a second numbering (x32). Nobody else's numbers are as high.
    const SECOND: u32 = 0x4000_0000;
    let absent = ERRNO | libc::ENOSYS.unsigned_abs();
    let number = |call: c_long| u32::try_from(call).unwrap_or(u32::MAX);
    // Without a network namespace, the session is what tells the parent which processes belong to the run. Nobody leaves
    // it; everybody may believe so.
    let setsid = if confinement.proxy == Proxy::None { ERRNO } else { ALLOW };
    [
        (LOAD_NUMBER, 0, 0, 0),
        (JUMP_IF_AT_LEAST, 4, 0, SECOND),
        // Their flags are in memory, where no filter can look. Programs fall back to `clone` and `openat`.
        (JUMP_IF_EQUAL, 3, 0, number(libc::SYS_clone3)),
        (JUMP_IF_EQUAL, 2, 0, number(libc::SYS_openat2)),
        (JUMP_IF_EQUAL, 2, 0, number(libc::SYS_setsid)),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, absent),
        (RETURN, 0, 0, setsid),
    ]
    .map(|(code, jt, jf, k)| sock_filter { code, jt, jf, k })
    .into()
}

fn forbidden(confinement: &Confinement, level: u8) -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = NEVER.iter().map(|&call| (call, Vec::new())).collect();
    let mut forbid = |call: c_long, conditions: Vec<SeccompCondition>| {
        rules.entry(call).or_default().push(SeccompRule::new(conditions)?);
        Ok::<(), seccompiler::BackendError>(())
    };
    for &flag in NAMESPACES {
        forbid(libc::SYS_clone, vec![has(0, word(flag))?])?;
    }
    // 0xffffffff only asks.
    forbid(libc::SYS_personality, vec![is_not(0, 0)?, is_not(0, 0xffff_ffff)?])?;
    // Typing on someone's terminal.
    for request in [libc::TIOCSTI, libc::TIOCLINUX] {
        forbid(libc::SYS_ioctl, vec![is(1, request & 0xffff_ffff)?])?;
    }
    // Nobody else's limits.
    forbid(libc::SYS_prlimit64, vec![is_not(0, 0)?])?;
    // A program that runs as its owner, for whoever starts it.
    for bit in [libc::S_ISUID, libc::S_ISGID].map(u64::from) {
        for &(call, mode) in MODES.iter().chain(MAKES) {
            forbid(call, vec![has(mode, bit)?])?;
        }
        // Unless a file is made, nobody sets the mode.
        for &(call, flags) in OPENS {
            for making in [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY] {
                forbid(call, vec![has(flags, word(making))?, has(flags + 1, bit)?])?;
            }
        }
    }
    // Processes outside run as before.
    for &call in SCHEDULING {
        forbid(call, vec![is_not(0, 0)?])?;
    }
    // `PRIO_PROCESS` and `IOPRIO_WHO_PROCESS`: the others mean groups, or all processes of a user.
    for (call, process) in [(libc::SYS_setpriority, 0), (libc::SYS_ioprio_set, 1)] {
        forbid(call, vec![is_not(1, 0)?])?;
        forbid(call, vec![is_not(0, process)?])?;
    }
    if level < GUARDS_LENGTH {
        // A file that is opened to be written is guarded by that. It can be cut short by other ways of opening it too:
        // to be read, or with the fourth access mode, which grants neither.
        for &(call, flags) in OPENS {
            for access in [libc::O_RDONLY, libc::O_ACCMODE] {
                let mask = word(libc::O_ACCMODE | libc::O_TRUNC);
                forbid(call, vec![masked(flags, mask, word(access | libc::O_TRUNC))?])?;
            }
        }
        rules.insert(libc::SYS_truncate, Vec::new());
    }
    if level < 6 {
        rules.insert(libc::SYS_kill, vec![SeccompRule::new(vec![is(0, 0xffff_ffff)?])?]);
    }
    rules.extend(sockets(confinement)?);
    Ok(rules)
}

/// Which sockets a run may not open.
fn sockets(confinement: &Confinement) -> Result<Rules, seccompiler::BackendError> {
    let (inet, inet6, netlink, unix) =
        (word(libc::AF_INET), word(libc::AF_INET6), word(libc::AF_NETLINK), word(libc::AF_UNIX));
    let mut allowed = Vec::new();
    // In a network of its own a run may open what it likes: there is nobody to talk to but the proxy.
    let has_network = confinement.network || confinement.proxy != Proxy::None;
    if has_network {
        // Looking up names asks the kernel for routes.
        allowed.extend([inet, inet6, netlink]);
    }
    if confinement.has_unix_sockets() {
        allowed.push(unix);
    }
    let mut socket = Vec::new();
    if !allowed.is_empty() {
        let others = allowed.iter().map(|&domain| is_not(0, domain)).collect::<Result<_, _>>()?;
        socket.push(SeccompRule::new(others)?);
    }
    if has_network {
        for domain in [inet, inet6] {
            for &odd in ODD_TYPES {
                socket.push(SeccompRule::new(vec![is(0, domain)?, masked(1, TYPE, word(odd))?])?);
            }
        }
        socket.push(SeccompRule::new(vec![is(0, netlink)?, is_not(2, word(libc::NETLINK_ROUTE))?])?);
    }
    let mut pair = vec![SeccompRule::new(vec![is_not(0, unix)?])?];
    if !confinement.has_unix_sockets() {
        // One half of such a pair can be pointed at any service; `SOCK_RAW` is another word for it.
        for datagram in [libc::SOCK_DGRAM, libc::SOCK_RAW] {
            pair.push(SeccompRule::new(vec![masked(1, TYPE, word(datagram))?])?);
        }
    }
    Ok(BTreeMap::from([(libc::SYS_socket, socket), (libc::SYS_socketpair, pair)]))
}

/// An `int` as a system call gets it.
fn word(value: libc::c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

fn is(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

fn is_not(argument: u8, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn has(argument: u8, bit: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    masked(argument, bit, bit)
}

fn masked(argument: u8, mask: u64, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_confinement_compiles() {
        for network in [false, true] {
            for unix_sockets in [false, true] {
                let confinement = Confinement { network, unix_sockets, ..Confinement::default() };
                for level in [1, 6] {
                    let sizes: Vec<usize> = programs(&confinement, level).unwrap().iter().map(Vec::len).collect();
                    assert!(sizes.iter().all(|&size| size > 0 && size < 1024), "{sizes:?}");
                }
            }
        }
    }

    const ALLOW: u32 = 0x7fff_0000;

    fn errno(error: i32) -> u32 {
        0x0005_0000 | error.unsigned_abs()
    }

    /// What the filters answer to a call: the strictest of their answers, as in the kernel.
    fn answer(level: u8, call: c_long, args: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(u32::try_from(call).unwrap().to_le_bytes());
        let arch: u32 = if cfg!(target_arch = "x86_64") { 0xc000_003e } else { 0xc000_00b7 };
        data.extend(arch.to_le_bytes());
        data.extend(0_u64.to_le_bytes());
        data.extend(args.iter().flat_map(|arg| arg.to_le_bytes()));
        let answers = programs(&Confinement::default(), level).unwrap().map(|program| interpret(&program, &data));
        answers.into_iter().min().unwrap()
    }

    /// As much of the kernel's machine as the filters use.
    fn interpret(program: &[sock_filter], data: &[u8]) -> u32 {
        let (mut at, mut value) = (0, 0_u32);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let mut jump = |condition: bool| at += usize::from(if condition { jt } else { jf });
            match code {
                0x20 => value = u32::from_le_bytes(data[k as usize..][..4].try_into().unwrap()),
                0x54 => value &= k,
                0x05 => at += k as usize,
                0x15 => jump(value == k),
                0x25 => jump(value > k),
                0x35 => jump(value >= k),
                0x06 => return k,
                other => panic!("instruction {other:#x} is not known"),
            }
        }
    }

    #[test]
    fn files_are_not_cut_short_where_landlock_does_not_guard_that() {
        let openat = |level, flags| answer(level, libc::SYS_openat, [0, 0, word(flags), 0, 0, 0]);
        for sneaky in [libc::O_RDONLY, libc::O_ACCMODE, libc::O_CREAT | libc::O_CLOEXEC] {
            assert_eq!(openat(2, sneaky | libc::O_TRUNC), errno(libc::EPERM), "{sneaky:#x}");
            assert_eq!(openat(6, sneaky | libc::O_TRUNC), ALLOW, "{sneaky:#x}");
            #[cfg(target_arch = "x86_64")]
            for (level, expected) in [(2, errno(libc::EPERM)), (6, ALLOW)] {
                let flags = word(sneaky | libc::O_TRUNC);
                assert_eq!(answer(level, libc::SYS_open, [0, flags, 0, 0, 0, 0]), expected, "{sneaky:#x}");
            }
        }
        for honest in [libc::O_RDONLY, libc::O_WRONLY | libc::O_TRUNC, libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC] {
            assert_eq!(openat(2, honest), ALLOW, "Landlock guards what is written: {honest:#x}");
        }
        assert_eq!(answer(2, libc::SYS_openat2, [0; 6]), errno(libc::ENOSYS));
        assert_eq!(answer(6, libc::SYS_openat2, [0; 6]), errno(libc::ENOSYS));
        assert_eq!(answer(2, libc::SYS_truncate, [0; 6]), errno(libc::EPERM));
        assert_eq!(answer(6, libc::SYS_truncate, [0; 6]), ALLOW);
        for level in [2, 6] {
            assert_eq!(answer(level, libc::SYS_clone3, [0; 6]), errno(libc::ENOSYS));
            assert_eq!(answer(level, libc::SYS_setsid, [0; 6]), errno(0));
            assert_eq!(answer(level, libc::SYS_mount, [0; 6]), errno(libc::EPERM));
            assert_eq!(answer(level, libc::SYS_read, [0; 6]), ALLOW);
        }
    }

    #[test]
    fn no_file_is_made_that_runs_as_its_owner_and_no_other_process_is_slowed_down() {
        let (setuid, plain) = (0o4755, 0o755);
        let make = word(libc::O_CREAT | libc::O_WRONLY);
        let temporary = word(libc::O_TMPFILE | libc::O_RDWR);
        for (call, args, expected) in [
            (libc::SYS_openat, [0, 0, make, setuid, 0, 0], errno(libc::EPERM)),
            (libc::SYS_openat, [0, 0, temporary, setuid, 0, 0], errno(libc::EPERM)),
            (libc::SYS_openat, [0, 0, make, 0o2755, 0, 0], errno(libc::EPERM)),
            (libc::SYS_openat, [0, 0, make, plain, 0, 0], ALLOW),
            (libc::SYS_openat, [0, 0, 0, setuid, 0, 0], ALLOW),
            (libc::SYS_openat, [0, 0, word(libc::O_DIRECTORY), setuid, 0, 0], ALLOW),
            (libc::SYS_mknodat, [0, 0, setuid, 0, 0, 0], errno(libc::EPERM)),
            (libc::SYS_mknodat, [0, 0, plain, 0, 0, 0], ALLOW),
            (libc::SYS_setpriority, [0, 0, 5, 0, 0, 0], ALLOW),
            (libc::SYS_setpriority, [0, 1, 5, 0, 0, 0], errno(libc::EPERM)),
            (libc::SYS_setpriority, [2, 0, 5, 0, 0, 0], errno(libc::EPERM)),
            (libc::SYS_sched_setaffinity, [0, 8, 0, 0, 0, 0], ALLOW),
            (libc::SYS_sched_setaffinity, [1, 8, 0, 0, 0, 0], errno(libc::EPERM)),
            (libc::SYS_ioprio_set, [1, 0, 0, 0, 0, 0], ALLOW),
            (libc::SYS_ioprio_set, [3, 0, 0, 0, 0, 0], errno(libc::EPERM)),
        ] {
            assert_eq!(answer(6, call, args), expected, "{call} {args:?}");
        }
    }

    #[test]
    fn without_a_grant_no_socket_is_opened_at_all() {
        assert_eq!(sockets(&Confinement::default()).unwrap()[&libc::SYS_socket], []);
        let network = Confinement { network: true, ..Confinement::default() };
        assert!(!sockets(&network).unwrap()[&libc::SYS_socket].is_empty());
    }
}
