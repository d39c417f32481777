//! Namespaces: what of the rest of the machine does a run see, as root and as an ordinary user?

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use prowess_exec::sandbox::Kind;

use crate::escape::room::{Room, helper, is_root, kinds, survey};
use crate::escape::{text, words};

/// A user with no rights of its own.
const NOBODY: u32 = 65534;

/// Rooms of everyone this process can be: itself, and for root also an ordinary user.
pub(crate) fn rooms() -> Vec<Room> {
    let mut rooms = vec![Room::new()];
    // The user `nobody` may not be able to enter the build directory.
    let mut helper = Command::new(helper());
    if is_root() && helper.arg("__namespaces").uid(NOBODY).gid(NOBODY).output().is_ok_and(|it| it.status.success()) {
        rooms.push(Room::new().of_user(NOBODY));
    } else {
        eprintln!("skipped: no other user can start the helper");
    }
    rooms
}

/// Every kind but bubblewrap, which needs a helper that the other user may read.
fn here() -> impl Iterator<Item = Kind> {
    kinds().into_iter().filter(|kind| *kind != Kind::Bubblewrap)
}

pub(crate) fn has_own_view() -> bool {
    let finding = survey().view().clone();
    if !finding.works {
        eprintln!("skipped: {}", finding.what);
    }
    finding.works
}

#[test]
fn modes_and_times_of_files_outside_stay_for_an_ordinary_user_too() {
    if !has_own_view() {
        return;
    }
    for kind in here() {
        for room in rooms() {
            let said = room.attempt(&kind, &words(&["chmod", &text(&room.secret()), "666"]));
            assert_eq!(said.starts_with("ok"), kind == Kind::None, "{kind}: {said}");
            let script = "touch -d 2001-01-01 \"$0\" && echo touched";
            let said = room.run(&kind, Path::new("/bin/sh"), &words(&["-c", script, &text(&room.secret())])).stdout;
            assert_eq!(said.contains("touched"), kind == Kind::None, "{kind}: {said}");
            let meta = fs::metadata(room.secret()).unwrap();
            assert_eq!(meta.permissions().mode() & 0o777 == 0o666, kind == Kind::None, "{kind}");
            assert_eq!(meta.mtime() < 1_000_000_000, kind == Kind::None, "{kind}");
        }
    }
}

#[test]
fn a_run_in_a_user_namespace_is_still_its_user() {
    for kind in here() {
        for room in rooms() {
            let script = "id -u; echo mine > made; chmod 755 made; cat made";
            let outcome = room.run(&kind, Path::new("/bin/sh"), &words(&["-c", script]));
            let owner = fs::metadata(room.workspace()).unwrap().uid();
            assert_eq!(outcome.stdout, format!("{owner}\nmine\n"), "{kind}: {outcome:?}");
            let made = fs::metadata(room.workspace().join("made")).unwrap();
            assert_eq!((made.uid(), made.permissions().mode() & 0o777), (owner, 0o755), "{kind}");
        }
    }
}

#[test]
fn a_user_namespace_gives_no_powers() {
    for kind in here().filter(|kind| *kind != Kind::None) {
        for room in rooms() {
            let said = room.attempt(&kind, &words(&["read", "/proc/self/status"]));
            for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
                let line = said.lines().find(|line| line.starts_with(set)).expect("a field");
                assert!(line.ends_with("0000000000000000"), "{kind}: {line}");
            }
            for words in [words(&["namespace"]), words(&["user-namespace"]), words(&["mount", &text(room.workspace())])]
            {
                let said = room.attempt(&kind, &words);
                assert!(said.starts_with("failed"), "{kind}: {words:?} {said}");
            }
        }
    }
}

/// A segment of System V shared memory of this process, removed in the end.
struct Segment(String);

impl Segment {
    fn new() -> Self {
        let output = Command::new("/usr/bin/ipcmk").args(["-M", "64", "-p", "0666"]).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        Self(said.trim().rsplit(' ').next().unwrap_or_default().to_owned())
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let _ = Command::new("/usr/bin/ipcrm").args(["-m", &self.0]).status();
    }
}

#[test]
fn shared_memory_of_others_is_out_of_reach() {
    if !survey().shared_memory().works || !Path::new("/usr/bin/ipcmk").exists() {
        eprintln!("skipped: {}", survey().shared_memory().what);
        return;
    }
    for kind in here() {
        for room in rooms() {
            let segment = Segment::new();
            let script = "ipcrm -m \"$0\" && echo removed";
            let said = room.run(&kind, Path::new("/bin/sh"), &words(&["-c", "cat /proc/sysvipc/shm"])).stdout;
            let is_seen = said.lines().any(|line| line.split_whitespace().nth(1) == Some(segment.0.as_str()));
            assert_eq!(is_seen, kind == Kind::None, "{kind}: {said}");
            let outcome = room.run(&kind, Path::new("/bin/sh"), &words(&["-c", script, &segment.0]));
            assert!(kind == Kind::None || !outcome.stdout.contains("removed"), "{kind}: {outcome:?}");
        }
    }
}

#[test]
fn trying_it_changes_nothing_here() {
    let here = || {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        (fs::read_link("/proc/self/ns/mnt").unwrap(), fs::read_link("/proc/self/ns/user").unwrap(), mounts)
    };
    let (view, user, _) = here();
    let survey = survey();
    let found = (survey.view().works, survey.shared_memory().works, survey.metadata().works);
    assert_eq!((here().0, here().1), (view, user));
    // What was found out is what a run gets.
    let room = Room::new();
    let own = |name: &str| {
        let script = format!("readlink /proc/self/ns/{name}");
        let said = room.run(&Kind::Landlock, Path::new("/bin/sh"), &words(&["-c", &script])).stdout;
        said.trim() != fs::read_link(format!("/proc/self/ns/{name}")).unwrap().to_str().unwrap()
    };
    assert_eq!((own("mnt"), own("ipc")), (found.0, found.1), "{found:?}");
    assert!(!found.2 || found.0, "modes are safe only in a view of one's own");
}

#[test]
fn one_process_does_not_get_all_the_memory() {
    for kind in kinds().into_iter().filter(|kind| *kind != Kind::None) {
        let said = Room::new().attempt(&kind, &words(&["read", "/proc/self/limits"]));
        let line = said.lines().find(|line| line.starts_with("Max data size")).expect("a limit");
        assert!(!line.contains("unlimited"), "{kind}: {line}");
    }
}
