//! Names of programs: which one is `python3.12`, `x86_64-linux-gnu-gcc-13` or `vim.basic`?

use crate::wrapper::plain_name;

/// Many programs in one file, which looks at the name it is called by.
const MANY_IN_ONE: &[&str] = &[
    "busybox",
    "toybox",
    "coreutils",
    "uutils",
    "rustup",
    "rustup-init",
    "volta-shim",
    "mise",
    "asdf",
    "snap",
    "ccache",
];

/// Programs that compile for other systems have those in front of their name.
const PREFIXED: &[&str] = &["gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "cpp", "ar", "nm", "gdb"];

/// Which build of a program it is, behind a dot.
const BUILDS: &[&str] = &["athena", "basic", "distrib", "gtk", "gtk3", "nox", "openbsd", "real", "tiny", "traditional"];

/// The name without folders, in small letters, without endings that only say how it is packed.
pub(super) fn normal(path: &str) -> String {
    let mut name = plain_name(path);
    for ending in [".cmd", ".bat", ".com", "-wrapped"] {
        if let Some(shorter) = name.strip_suffix(ending).filter(|shorter| !shorter.is_empty()) {
            name.truncate(shorter.len());
        }
    }
    match name.strip_prefix('.') {
        Some(rest) if !rest.is_empty() => rest.to_owned(),
        _ => name,
    }
}

/// Whether the file behind a link says nothing about the program, because the link's name decides.
pub(super) fn is_many_in_one(name: &str) -> bool {
    MANY_IN_ONE.contains(&name)
}

/// Names under which a table may know it, the most exact first.
pub(super) fn readings(name: &str) -> impl Iterator<Item = &str> {
    let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let build = name.rsplit_once('.').filter(|(_, build)| BUILDS.contains(build)).map(|(name, _)| name);
    let target = unversioned.rsplit_once('-').map(|(_, tool)| tool).filter(|tool| PREFIXED.contains(tool));
    [Some(name), Some(unversioned).filter(|short| !short.is_empty() && *short != name), build, target]
        .into_iter()
        .flatten()
}

/// What to call a shell when speaking of it.
pub(super) fn shell(name: &str) -> &'static str {
    const SHELLS: &[&str] =
        &["sh", "bash", "dash", "zsh", "fish", "ksh", "pwsh", "powershell", "cmd", "busybox", "toybox"];
    SHELLS.iter().find(|shell| **shell == name).copied().unwrap_or("this")
}

/// What to call a wrapper when speaking of it.
pub(super) fn carrier(name: &str) -> &'static str {
    const CARRIERS: &[&str] = &[
        "env", "nice", "nohup", "stdbuf", "time", "timeout", "xargs", "sudo", "doas", "su", "setsid", "strace", "gdb",
        "watch", "parallel", "flock", "script", "valgrind", "command", "chroot", "ionice", "taskset", "chrt",
    ];
    CARRIERS.iter().find(|carrier| **carrier == name).copied().unwrap_or("this")
}
