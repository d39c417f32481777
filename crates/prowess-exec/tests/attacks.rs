//! Attacks on the whole of [`Exec`](prowess_exec::Exec): does the payload run?
//!
//! Every command here is a real one, run for real in the sandbox, and every payload leaves a mark that can be looked for.
//! For each attack that must fail, a control shows that the same words do leave the mark in an ordinary shell, or when a person says yes.

#![cfg(target_os = "linux")]

#[path = "attacks/answers.rs"]
mod answers;
#[path = "attacks/code_paths.rs"]
mod code_paths;
#[path = "attacks/secrets.rs"]
mod secrets;
#[path = "attacks/shape.rs"]
mod shape;
#[path = "attacks/swaps.rs"]
mod swaps;

use crate::world;
use std::sync::Arc;

use prowess_exec::approver::Approver;
use world::World;

/// Real programs that the operator of these tests has allowed, whatever their arguments.
const ALLOWED: &[&str] = &[
    "/usr/bin/ls",
    "/usr/bin/git",
    "/usr/bin/echo",
    "/usr/bin/find",
    "/usr/bin/tar",
    "/usr/bin/env",
    "/usr/bin/nice",
    "/usr/bin/timeout",
    "/usr/bin/awk",
    "/usr/bin/sed",
    "/usr/bin/perl",
    "/usr/bin/xargs",
];

/// A world with those programs, a file with a secret, and a folder with an `ls` that leaves the mark.
fn target(approver: Arc<dyn Approver>) -> World {
    let world = World::new(approver);
    world.allow(ALLOWED);
    world.file("secret", "hunter2:hunter2\n");
    world.file("names", "secret\0");
    let mark = world.ws("mark");
    world.script("evil/ls", &format!("/usr/bin/touch {}", mark.display()));
    world.file("rc", &format!("touch {}\n", mark.display()));
    world
}
