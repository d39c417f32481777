//! Which programs does a chore need beside Rust itself, and how do they get here?

use std::process::{Command, Stdio};

use crate::step::{Failure, Step, cargo};

/// A cargo subcommand that is installed from the package registry when it is missing.
#[derive(Debug)]
pub(crate) struct Tool {
    /// What follows `cargo`.
    subcommand: &'static str,
    /// Pinned, and known to build with Rust 1.95; another version that is already installed is taken as it is.
    package: &'static str,
    features: &'static [&'static str],
}

/// The test runner, without the part that updates itself.
pub(crate) const NEXTEST: Tool = Tool {
    subcommand: "nextest",
    package: "cargo-nextest@0.9.151",
    features: &["--no-default-features", "--features=default-no-update"],
};

/// The judge of dependencies.
pub(crate) const DENY: Tool = Tool { subcommand: "deny", package: "cargo-deny@0.20.2", features: &[] };

/// The driver of the fuzz targets.
pub(crate) const FUZZ: Tool = Tool { subcommand: "fuzz", package: "cargo-fuzz@0.13.2", features: &[] };

/// Bubblewrap, which the tests of that sandbox need.
pub(crate) fn ensure_bubblewrap() -> Result<(), &'static str> {
    if ensure_package("bwrap", &["bubblewrap"]) {
        return Ok(());
    }
    Err("the sandbox tests under bubblewrap (bwrap is not installed)")
}

/// A browser and its driver, without which the tests of the page fail and say so.
pub(crate) fn ensure_browser() {
    ensure_package("chromedriver", &["chromium", "chromium-driver"]);
}

/// Whether `program` is there, or was brought by `packages`. Installed where that is simply done: by root, on a system
/// with apt.
fn ensure_package(program: &str, packages: &[&str]) -> bool {
    let runs = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    };
    let is_here = || runs(Command::new(program).arg("--version"));
    if is_here() {
        return true;
    }
    let apt = |words: &[&str]| runs(Command::new("apt-get").args(words).env("DEBIAN_FRONTEND", "noninteractive"));
    let install: Vec<&str> = ["install", "-y"].iter().chain(packages).copied().collect();
    // A stale list of packages may still know it; a fresh one takes longer.
    if !apt(&install) {
        apt(&["update"]);
        apt(&install);
    }
    is_here()
}

impl Tool {
    /// Installs the tool unless it is there.
    pub(crate) fn ensure(&self) -> Result<(), Failure> {
        if self.is_here() {
            return Ok(());
        }
        let words = ["install", "--locked", self.package].into_iter().chain(self.features.iter().copied());
        Step::new(format!("install {}", self.package), stock(cargo(words))).run()
    }

    fn is_here(&self) -> bool {
        let mut probe = cargo([self.subcommand, "--version"]);
        probe.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
    }
}

/// A tool is built as its authors meant it, not with the flags of the one who tests prowess.
fn stock(mut command: Command) -> Command {
    command.env_remove("RUSTFLAGS").env_remove("CARGO_BUILD_TARGET");
    command
}
