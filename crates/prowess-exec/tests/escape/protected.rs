//! Protected files: can a run change what acts later, and does git still work?

use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use prowess_exec::sandbox::{Kind, ProtectedGuard};
use prowess_policy::protected::Protection;

use crate::escape::namespaces::{has_own_view, rooms};
use crate::escape::room::{Outcome, Room, kinds, prepare};
use crate::escape::words;

const IDENTITY: &str = "export HOME=/nonexistent GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a \
    GIT_COMMITTER_EMAIL=a@b GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=init.defaultBranch \
    GIT_CONFIG_VALUE_0=main GIT_CONFIG_KEY_1=safe.directory GIT_CONFIG_VALUE_1='*'";

/// Runs a script in the room the way the product does: with its protected files mounted, and checked in the end.
fn run(room: &Room, kind: &Kind, script: &str) -> Outcome {
    let script = format!("{IDENTITY}; {script}");
    let mut order = room.order(Path::new("/bin/bash"), &words(&["-c", &script]));
    let confinement = order.confinement.as_mut().expect("a confinement");
    let guard = (*kind != Kind::None).then(|| ProtectedGuard::new(confinement, Protection::default(), Arc::default()));
    if let Some(guard) = &guard {
        guard.apply(confinement).expect("not too many");
    }
    let mut prepared = prepare(kind, order);
    if let Some(guard) = guard {
        prepared.cleanup.guard(guard);
    }
    room.launch(prepared).finish()
}

/// Rooms of root and of an ordinary user; bubblewrap is tried as the user who runs this.
fn rooms_for(kind: &Kind) -> Vec<Room> {
    let mut rooms = rooms();
    if *kind == Kind::Bubblewrap {
        rooms.truncate(1);
    }
    rooms
}

/// A repository with hooks, a bare one, and files of the list, all owned by who owns the room.
fn furnish(room: &Room) -> bool {
    let script = format!(
        "{IDENTITY}; set -e; git init -q .; mkdir -p .git/hooks sub .vscode skills/a; echo '#!/bin/sh' > .git/hooks/pre-push; \
         chmod +x .git/hooks/pre-push; git init -q --bare sub/store; echo mine > AGENTS.md; echo mine > .envrc; \
         echo mine > .vscode/tasks.json; echo mine > skills/a/SKILL.md; echo one > a; git add a; git commit -qm one"
    );
    let made = Command::new("/bin/bash").args(["-c", &script]).current_dir(room.workspace()).output();
    let owner = fs::metadata(room.workspace()).expect("a workspace");
    hand_over(room.workspace(), &owner);
    made.is_ok_and(|made| made.status.success())
}

fn hand_over(path: &Path, owner: &fs::Metadata) {
    use std::os::unix::fs::MetadataExt;
    let _ = chown(path, Some(owner.uid()), Some(owner.gid()));
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            hand_over(&entry.path(), owner);
        } else {
            let _ = chown(entry.path(), Some(owner.uid()), Some(owner.gid()));
        }
    }
}

const GUARDED: [&str; 7] = [
    ".git/config",
    ".git/hooks/pre-push",
    "sub/store/config",
    "AGENTS.md",
    ".envrc",
    ".vscode/tasks.json",
    "skills/a/SKILL.md",
];

/// Everything that decides about later programs, by where it takes effect.
fn in_effect(room: &Room) -> Vec<String> {
    GUARDED.iter().map(|name| fs::read_to_string(room.workspace().join(name)).unwrap_or_default()).collect()
}

#[test]
fn files_that_act_later_cannot_be_changed() {
    if !has_own_view() {
        return;
    }
    let attacks = [
        "for f in $FILES; do echo evil >> $f; done",
        "for f in $FILES; do rm -f $f; echo evil > $f; done",
        "for f in $FILES; do echo evil > x; mv -f x $f; done",
        "for f in $FILES; do ln x2 y; echo evil > z; ln -sf $PWD/z $f; done",
        "for f in $FILES; do dd if=/dev/zero of=$f bs=1 count=3 conv=notrunc; truncate -s 0 $f; done",
        "git config core.fsmonitor 'touch evil'; git config --file sub/store/config core.pager evil",
        "for d in .git .vscode skills; do mv $d moved-$d; mkdir -p $d/hooks $d/a; echo evil > $d/config; done; \
         for f in $FILES; do echo evil > $f; done",
        "mv sub moved; mkdir -p sub/store/objects sub/store/refs; echo ref: refs/heads/x > sub/store/HEAD; \
         printf '[core]\\n\\tfsmonitor = evil\\n' > sub/store/config",
        "rm -rf .git .vscode skills AGENTS.md .envrc; git init -q .; printf '[core]\\n\\tfsmonitor = evil\\n' >> .git/config; \
         mkdir -p .vscode; echo evil > .vscode/tasks.json; echo evil > .envrc",
        "mv .git/hooks h; mkdir .git/hooks; echo evil > .git/hooks/pre-push; chmod +x .git/hooks/pre-push",
        "chmod 000 .git/config; chmod u+w .git/hooks; echo evil > .git/hooks/post-checkout",
        "printf '../evil' > .git/commondir; mkdir -p evil/objects evil/refs; printf '[core]\\n\\tpager=evil\\n' > evil/config",
    ];
    for kind in kinds().into_iter().filter(|kind| *kind != Kind::None) {
        for attack in attacks {
            for room in rooms_for(&kind) {
                if !furnish(&room) {
                    eprintln!("skipped: git is missing");
                    return;
                }
                let before = in_effect(&room);
                let outcome = run(
                    &room,
                    &kind,
                    &format!("FILES='{}'; {{ {attack}; }} 2>/dev/null; echo done", GUARDED.join(" ")),
                );
                assert!(outcome.stdout.ends_with("done\n"), "{kind}: {attack} {outcome:?}");
                for ((name, was), is) in GUARDED.iter().zip(before).zip(in_effect(&room)) {
                    assert!(is == was || is.is_empty(), "{kind}: {attack} changed {name}: {is}");
                }
                let evil = Command::new("/bin/bash")
                    .args(["-c", &format!("{IDENTITY}; git config --list; ls .git/hooks | grep -v sample; git -C sub/store config --list; true")])
                    .current_dir(room.workspace())
                    .output()
                    .expect("git runs");
                let said = String::from_utf8_lossy(&evil.stdout).into_owned();
                let said: Vec<&str> = said.lines().filter(|line| !line.contains("quarantined-by-prowess")).collect();
                assert!(
                    !said.iter().any(|line| line.contains("evil") || line.contains("checkout")),
                    "{kind}: {attack} {said:?}"
                );
            }
        }
        // The same attacks succeed without protection, so they are attacks.
        for attack in &attacks[..2] {
            let room = Room::new();
            assert!(furnish(&room));
            run(&room, &Kind::None, &format!("FILES='{}'; {attack}", GUARDED.join(" ")));
            assert!(in_effect(&room).iter().all(|text| text.contains("evil")), "{attack}");
        }
    }
}

#[test]
fn what_a_run_creates_is_renamed_when_it_acts_later() {
    let script = "mkdir -p .vscode new/.git/hooks .github/workflows; echo x > .vscode/tasks.json; echo x > .envrc; \
        echo x > .github/workflows/ci.yml; echo x > fine.txt; git init -q repo; echo x > repo/.git/hooks/pre-commit; \
        git init -q other; git -C other config alias.st '!x'; git init -q --separate-git-dir=elsewhere third; \
        printf '[core]\\n\\tfsmonitor=x\\n' >> elsewhere/config; echo done";
    for kind in kinds().into_iter().filter(|kind| *kind != Kind::None) {
        for room in rooms_for(&kind) {
            let outcome = run(&room, &kind, script);
            assert_eq!(outcome.stdout, "done\n", "{kind}");
            let has = |name: &str| fs::symlink_metadata(room.workspace().join(name)).is_ok();
            for gone in [
                ".vscode",
                ".envrc",
                ".github/workflows",
                "repo/.git/hooks/pre-commit",
                "other/.git/config",
                "elsewhere/config",
            ] {
                assert!(!has(gone), "{kind}: {gone}");
                assert!(has(&format!("{gone}.quarantined-by-prowess")), "{kind}: {gone}");
            }
            for left in ["fine.txt", "repo/.git/config", "repo/.git/HEAD", "third/.git", ".github"] {
                assert!(has(left), "{kind}: {left}");
            }
        }
    }
}

#[test]
fn ordinary_git_works() {
    let script = "set -e; exec 2>&1; echo two >> a; git add a; git commit -qm two; git checkout -q -b topic; echo t > t; git add t; \
        git commit -qm t; git checkout -q main; echo m > m; git add m; git commit -qm m; git merge -q --no-edit topic; \
        git checkout -q -b r HEAD~1; echo r > r; git add r; git commit -qm r; git rebase -q main; git tag v1; \
        git tag -a v2 -m v2; echo s >> a; git stash -q; git stash pop -q; git checkout -q a; git commit -q --amend -m again; \
        git reset -q --soft HEAD~1; git commit -qm r2; git cherry-pick v1 || git cherry-pick --abort || git cherry-pick --skip; \
        git gc -q; git worktree add -q ../workspace/linked main; git -C linked log --oneline | wc -l | tr -d ' '; \
        git init -q fresh; git clone -q . cloned; git -C cloned status --short; git clone -q --bare . bare.git; \
        git -C fresh -c protocol.file.allow=always submodule --quiet add $PWD/bare.git module; git -C fresh commit -qm sub; \
        git -C fresh submodule --quiet status >/dev/null; git branch -D topic -q; git log --oneline | wc -l | tr -d ' '; \
        git push -q bare.git r; git status --short | sort | tr '\\n' ' '";
    for kind in kinds() {
        for room in rooms_for(&kind) {
            if !furnish(&room) {
                eprintln!("skipped: git is missing");
                return;
            }
            let outcome = run(&room, &kind, script);
            assert!(outcome.status.success(), "{kind}: {outcome:?}");
            for kept in [
                "fresh/.git/config",
                "cloned/.git/config",
                "bare.git/config",
                "fresh/.git/modules/module/config",
                "linked/.git",
            ] {
                assert!(room.workspace().join(kept).exists(), "{kind}: {kept} was renamed; {outcome:?}");
            }
        }
    }
}
