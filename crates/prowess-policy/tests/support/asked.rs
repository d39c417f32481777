//! What is asked of the judge, and by which rules.

use std::path::Path;

use prowess_policy::approvals::Entry;
use prowess_policy::posture::Posture;
use prowess_policy::safe_bin::SafeBins;
use prowess_policy::{Binding, Dialect, Place, ProgramPlace, Request, Rules, Shell};

/// Rules that ask about everything that is not listed.
pub(crate) fn rules(allowlist: &[&str]) -> Rules {
    Rules {
        posture: Posture::HOST,
        allowlist: allowlist.iter().map(|pattern| entry(pattern)).collect(),
        safe_bins: SafeBins::default(),
        skill_bins: Vec::new(),
        home: "/home/me".into(),
        ground: prowess_policy::wants::Ground::default(),
    }
}

/// An entry of the allowlist for any arguments.
pub(crate) fn entry(pattern: &str) -> Entry {
    Entry { pattern: pattern.to_owned(), ..Entry::default() }
}

/// A request to run `command` in `cwd`.
pub(crate) fn request(command: &str, cwd: &Path) -> Request {
    Request {
        binding: Binding {
            command: command.to_owned(),
            cwd: Place { path: cwd.to_owned(), device: 1, inode: 2 },
            environment: "none".to_owned(),
            agent: "main".to_owned(),
            session: "test".to_owned(),
        },
        shell: Shell { path: "/bin/bash".into(), dialect: Dialect::Bash },
        variables: Vec::new(),
        place: ProgramPlace::Here,
    }
}
