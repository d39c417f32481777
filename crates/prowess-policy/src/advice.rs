//! Advice: may a hint propose to allow this program for good?
//!
//! A rule for a program covers every later call of it. That is fine for `curl` or `jq`; for a program that destroys data,
//! changes the system or runs whatever it is given, a hint must not propose it.

use std::path::Path;

use crate::reach::{Called, Reach, reach};
use crate::wrapper::Tail;

/// Programs whose ordinary use destroys data, stops the machine, changes who may do what, or starts whatever they are given.
const HARMFUL: &[&str] = &[
    "adduser",
    "badblocks",
    "blkdiscard",
    "cfdisk",
    "chattr",
    "chgrp",
    "chmod",
    "chown",
    "chpasswd",
    "crontab",
    "cryptsetup",
    "dd",
    "debugfs",
    "deluser",
    "fdisk",
    "fsck",
    "gdisk",
    "groupadd",
    "groupdel",
    "halt",
    "hdparm",
    "insmod",
    "iptables",
    "kill",
    "killall",
    "launchctl",
    "ln",
    "losetup",
    "lvremove",
    "mkswap",
    "modprobe",
    "mount",
    "mv",
    "nft",
    "parallel",
    "parted",
    "passwd",
    "pkill",
    "poweroff",
    "reboot",
    "rm",
    "rmdir",
    "rmmod",
    "rsync",
    "service",
    "setfacl",
    "sfdisk",
    "sgdisk",
    "shred",
    "shutdown",
    "srm",
    "swapoff",
    "systemctl",
    "tee",
    "truncate",
    "ufw",
    "umount",
    "unlink",
    "useradd",
    "userdel",
    "usermod",
    "vgremove",
    "visudo",
    "wipe",
    "wipefs",
    "xargs",
    "zpool",
];

/// Whether a hint may propose to allow `program` for good: it neither destroys things nor runs other code by its nature.
#[must_use]
pub fn may_propose(program: &Path) -> bool {
    let name = program.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    if name.is_empty() || HARMFUL.contains(&name.as_str()) || name.starts_with("mkfs") || name.starts_with("fsck.") {
        return false;
    }
    // What runs code when it is given nothing at all is a shell, an interpreter or a launcher.
    reach(Called { token: &name, real: program, text: "" }, &[], Tail::Closed) == Reach::Plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_harmful_is_proposed() {
        let harmful = [
            "rm",
            "dd",
            "mkfs.ext4",
            "shred",
            "sudo",
            "doas",
            "su",
            "bash",
            "sh",
            "zsh",
            "fish",
            "python3",
            "node",
            "perl",
            "ruby",
            "env",
            "xargs",
            "ssh",
            "busybox",
            "systemctl",
            "kill",
            "chmod",
            "shutdown",
            "mv",
            "RM",
        ];
        for name in harmful {
            assert!(!may_propose(&Path::new("/usr/bin").join(name)), "{name}");
        }
        for name in ["curl", "jq", "git", "gh", "ls", "figlet", "rg"] {
            assert!(may_propose(&Path::new("/usr/bin").join(name)), "{name}");
        }
    }
}
