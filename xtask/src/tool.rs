//! Which programs does a task need beside Rust itself, and how are they installed?

use std::process::{Command, Stdio};

use crate::step::{Failure, Step, cargo};

/// A program that a task calls, and where it comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tool {
    /// What it is needed for.
    purpose: &'static str,
    /// The command that succeeds where it is installed.
    probe: &'static [&'static str],
    source: Source,
}

#[derive(Debug, Clone, Copy)]
enum Source {
    /// A package of the Rust registry, pinned to a version that builds with Rust 1.95, and its options. Another version
    /// that is already installed is used as it is. Built without optimisation: it runs for seconds and would build for
    /// minutes.
    Cargo(&'static str, &'static [&'static str]),
    /// Debian packages.
    Apt(&'static [&'static str]),
}

/// The test runner, without the part that updates itself.
pub(crate) const NEXTEST: Tool = Tool {
    purpose: "runs the tests",
    probe: &["cargo", "nextest", "--version"],
    source: Source::Cargo("cargo-nextest@0.9.151", &["--no-default-features", "--features=default-no-update"]),
};

/// The check of licences, duplicate versions and sources of dependencies.
pub(crate) const DENY: Tool = Tool {
    purpose: "checks the dependencies",
    probe: &["cargo", "deny", "--version"],
    source: Source::Cargo("cargo-deny@0.20.2", &[]),
};

/// The driver of the fuzz targets.
pub(crate) const FUZZ: Tool = Tool {
    purpose: "runs the fuzz targets",
    probe: &["cargo", "fuzz", "--version"],
    source: Source::Cargo("cargo-fuzz@0.13.2", &[]),
};

/// Without it, the tests of that sandbox are skipped.
pub(crate) const BUBBLEWRAP: Tool = Tool {
    purpose: "for the tests of that sandbox",
    probe: &["bwrap", "--version"],
    source: Source::Apt(&["bubblewrap"]),
};

/// Without them, the tests that send them through the proxy are skipped. Others (git, Python, npm, Go, Java, sshd) are used
/// where they are installed: they are large, or start servers.
pub(crate) const CLIENTS: Tool = Tool {
    purpose: "clients for the tests of the proxy",
    probe: &["wget", "--version"],
    source: Source::Apt(&["curl", "netcat-openbsd", "wget"]),
};

/// Without it, the tests of the page fail and say so.
pub(crate) const BROWSER: Tool = Tool {
    purpose: "for the tests of the page",
    probe: &["chromedriver", "--version"],
    source: Source::Apt(&["chromium", "chromium-driver"]),
};

impl Tool {
    /// Whether it is installed.
    pub(crate) fn is_here(&self) -> bool {
        let [program, args @ ..] = self.probe else { return false };
        succeeds(Command::new(program).args(args))
    }

    /// The command that installs it, as a user would type it, and what for.
    pub(crate) fn plan(&self) -> String {
        let (command, purpose) = match self.source {
            Source::Cargo(package, options) => {
                let words: Vec<&str> = install_words(package, options).collect();
                (format!("cargo {}", words.join(" ")), self.purpose)
            }
            Source::Apt(packages) => (format!("apt-get install {}", packages.join(" ")), self.purpose),
        };
        format!("{command}  ({purpose})")
    }

    /// Installs it. A cargo tool has to work; Debian packages are installed where that is possible: as root, with apt.
    pub(crate) fn install(&self) -> Result<(), Failure> {
        match self.source {
            Source::Cargo(package, options) => {
                let mut command = cargo(install_words(package, options));
                // A tool is built the way its authors meant, not with the flags of the person who tests prowess.
                command.env_remove("RUSTFLAGS").env_remove("CARGO_BUILD_TARGET");
                Step::quiet(format!("install {package}"), command).run()
            }
            Source::Apt(packages) => {
                let apt = |words: &[&str]| {
                    succeeds(Command::new("apt-get").args(words).env("DEBIAN_FRONTEND", "noninteractive"))
                };
                let install: Vec<&str> = ["install", "-y"].iter().chain(packages).copied().collect();
                // The local package list may be stale or missing; updating it first would cost everybody the wait.
                if !apt(&install) {
                    apt(&["update"]);
                    apt(&install);
                }
                Ok(())
            }
        }
    }
}

fn install_words<'a>(package: &'a str, options: &'a [&'a str]) -> impl Iterator<Item = &'a str> {
    ["install", "--locked", "--debug", package].into_iter().chain(options.iter().copied())
}

fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::{BROWSER, NEXTEST};

    #[test]
    fn a_plan_is_what_a_user_would_type() {
        assert_eq!(BROWSER.plan(), "apt-get install chromium chromium-driver  (for the tests of the page)");
        let plan = NEXTEST.plan();
        assert!(plan.starts_with("cargo install --locked --debug cargo-nextest@"), "{plan}");
        assert!(plan.ends_with("(runs the tests)"), "{plan}");
    }
}
