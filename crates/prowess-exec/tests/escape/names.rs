//! Names: is what is hidden hidden under every name it has, and where only a part of it is granted?

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use prowess_exec::sandbox::{Confinement, Kind, Order, Sandbox};

use crate::escape::room::{Room, attempt, folder_of_attempts, helper, kinds};
use crate::escape::{text, words};

/// A home that has two names, one of them through a link.
fn home_behind_a_link(room: &Room) -> [(PathBuf, PathBuf); 2] {
    let (home, link) = (room.home(), room.home().with_file_name("link"));
    symlink(&home, &link).expect("a link");
    [(link.clone(), home.clone()), (home, link)]
}

#[test]
fn a_home_behind_a_link_is_no_workspace() {
    for kind in kinds() {
        let room = Room::new();
        for (workspace, home) in home_behind_a_link(&room) {
            // It is not there yet, so only its place can be guarded.
            let mut confinement = Confinement::baseline(&workspace, &[folder_of_attempts()], None);
            confinement.hidden.push(home.join("exec-approvals.json"));
            let words = words(&["write", &text(&workspace.join("exec-approvals.json"))]);
            let order = Order { confinement: Some(confinement), ..room.order(attempt(), &words) };
            let prepared = Sandbox::new(kind.clone(), helper().to_owned()).prepare(order.clone());
            assert_eq!(prepared.is_ok(), kind == Kind::None, "{kind}: {workspace:?}");
            let forged = home.join("exec-approvals.json");
            if kind == Kind::None {
                assert!(room.carry_out(&kind, order).stdout.starts_with("ok") && forged.exists(), "the control failed");
                fs::remove_file(forged).unwrap();
            } else if kind == Kind::Landlock {
                // The helper does not rely on who wrote the order.
                let outcome = room.send(&order.frame().unwrap());
                assert_eq!(outcome.refused.expect("a refusal").code, "sandbox");
                assert!(!forged.exists());
            }
        }
    }
}

#[test]
fn what_is_hidden_stays_so_under_every_name() {
    for kind in kinds() {
        let room = Room::new();
        for (granted, hidden) in home_behind_a_link(&room) {
            let mut confinement = Confinement::baseline(room.workspace(), &[folder_of_attempts()], None);
            confinement.read.push(granted.clone());
            confinement.hidden.push(hidden.join("secret"));
            fs::write(room.home().join("public"), "for all").unwrap();
            let read = |name: &str| {
                let order = room.order(attempt(), &words(&["read", &text(&granted.join(name))]));
                room.carry_out(&kind, Order { confinement: Some(confinement.clone()), ..order }).stdout
            };
            assert_eq!(read("public"), "ok for all\n", "{kind}: {granted:?}");
            assert_eq!(read("secret").contains("the secret"), kind == Kind::None, "{kind}: {granted:?}");
            fs::remove_file(room.home().join("public")).unwrap();
        }
    }
}

#[test]
fn something_hidden_can_be_granted_in_part() {
    for kind in kinds() {
        let room = Room::new();
        let vault = room.home().join("vault");
        fs::create_dir_all(vault.join("mine/inner")).unwrap();
        for name in ["key", "mine/key", "mine/inner/key"] {
            fs::write(vault.join(name), "a key").unwrap();
        }
        let mut confinement = Confinement::baseline(room.workspace(), &[folder_of_attempts()], None);
        confinement.read.extend([room.home(), vault.join("mine")]);
        confinement.hidden.extend([vault.clone(), vault.join("mine/inner")]);
        for (name, granted) in [("key", false), ("mine/key", true), ("mine/inner/key", false)] {
            let order = room.order(attempt(), &words(&["read", &text(&vault.join(name))]));
            let said = room.carry_out(&kind, Order { confinement: Some(confinement.clone()), ..order }).stdout;
            assert_eq!(said.contains("a key"), granted || kind == Kind::None, "{kind}: {name} {said}");
        }
    }
}
