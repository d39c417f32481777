//! Archives: `tar` and its relatives.

use super::Kind::{Deletes, Dynamic, LoadsCode, OpenTail, StartsProgram, UnknownOption, Writes};
use super::engine::{BASE, Seen, Table, exact, seen};
use super::{Call, Reach, farther};
use crate::script::Word;
use crate::wrapper::Tail;

pub(super) const TAR: Table = Table {
    names: &["tar"],
    long: &[
        ("--to-command", StartsProgram),
        ("--checkpoint-action", StartsProgram),
        ("--use-compress-program", StartsProgram),
        ("--info-script", StartsProgram),
        ("--new-volume-script", StartsProgram),
        ("--rsh-command", StartsProgram),
        ("--rmt-command", StartsProgram),
        ("--index-file", Writes),
        ("--volno-file", Writes),
        ("--listed-incremental", Writes),
        ("--remove-files", Deletes),
        ("--absolute-names", Writes),
        ("--absolute-paths", Writes),
    ],
    short: &[("-I", StartsProgram), ("-F", StartsProgram), ("-P", Writes), ("-g", Writes)],
    flags: "AacdhijJklmMnoOpqrRSstuUvwWxyzZ",
    values: "fCbTXHKLNV",
    long_flags: &["--checkpoint", "--create", "--extract", "--gzip", "--list", "--verbose"],
    long_values: &["--directory", "--exclude", "--strip-components", "--transform"],
    ..BASE
};

pub(super) fn tar(call: Call<'_>) -> Reach {
    if call.tail == Tail::Open {
        return farther(OpenTail, "tar", "", None);
    }
    let Some(first) = call.args.first() else { return Reach::Plain };
    // Behind a letter that takes a value, `--` is that value, and what follows are options all the same.
    let is_value = |at: usize| {
        let before = at.checked_sub(1).and_then(|before| exact(&call.args[before]));
        before.is_some_and(|text| at == 1 || (text.starts_with('-') && !text.starts_with("--")))
    };
    let dashes = call.args.iter().position(|word| exact(word) == Some("--")).filter(|at| is_value(*at));
    let behind = dashes.map_or(&[][..], |at| &call.args[at + 1..]);
    if behind.iter().any(|word| exact(word).is_none_or(|text| text.starts_with('-'))) {
        return farther(UnknownOption, "tar", "--", dashes);
    }
    for (at, word) in call.args.iter().enumerate() {
        match seen(word) {
            Seen::Exact(text) | Seen::Begins(text) if is_remote(text) => {
                return farther(StartsProgram, "tar", "with an archive on another machine", Some(at));
            }
            Seen::Exact(_) => {}
            Seen::Begins(text) if !text.starts_with('-') && text.contains('/') => {}
            // It may become the name of an archive, and that the name of another machine.
            Seen::Begins(text) if text.starts_with('-') => return farther(Dynamic, "tar", "", Some(at)),
            Seen::Begins(_) | Seen::One | Seen::Anything => {
                if at > 0 && names_archive(&call.args[at - 1]) {
                    return farther(Dynamic, "tar", "", Some(at));
                }
            }
        }
    }
    match seen(first) {
        Seen::Exact(text) if text.starts_with('-') => {}
        // The old way to write options: letters without a dash.
        Seen::Exact(bundle) => {
            if let Some((option, kind)) = TAR.short.iter().find(|(option, _)| bundle.contains(&option[1..])) {
                return farther(*kind, "tar", option, Some(0));
            }
        }
        Seen::Begins(_) | Seen::One | Seen::Anything => return farther(Dynamic, "tar", "", Some(0)),
    }
    TAR.check("tar", call).map_or(Reach::Plain, Reach::Farther)
}

/// Whether the word behind this one is the name of an archive.
fn names_archive(word: &Word) -> bool {
    exact(word).is_some_and(|text| text.starts_with("--f") || text.starts_with('-') && text.ends_with('f'))
}

/// Whether a word is, or carries, the name of an archive on another machine, for which `tar` starts a program.
fn is_remote(text: &str) -> bool {
    let archive = match text.strip_prefix('-') {
        None => text,
        Some(long) if long.starts_with('-') => long.split_once('=').map_or("", |(_, value)| value),
        Some(letters) => letters.split_once('f').map_or("", |(_, value)| value),
    };
    archive.split('/').next().is_some_and(|host| host.contains(':'))
}

pub(super) const TABLES: &[Table] = &[
    Table {
        names: &["zip"],
        long: &[("--unzip-command", StartsProgram), ("--test", StartsProgram)],
        short: &[("-T", StartsProgram)],
        flags: "rjqvyumdDeFgklLoXz@",
        values: "bnPstix",
        ..BASE
    },
    Table { names: &["unzip"], short: &[("-:", Writes)], flags: "lntvpqoujCLaZz", values: "dxP", ..BASE },
    Table {
        names: &["cpio"],
        long: &[("--rsh-command", StartsProgram)],
        flags: "iotdumvp0AaBcfklLnrSV",
        values: "CDEFHIMOR",
        ..BASE
    },
    Table {
        names: &["ar", "nm", "ranlib", "objdump", "strip", "objcopy"],
        long: &[("--plugin", LoadsCode)],
        starts: &[("@", LoadsCode)],
        ..BASE
    },
];
