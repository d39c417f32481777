//! Safe bins: programs that only turn their input into output, as long as their arguments keep them to it.
//!
//! `head -n 5` at the end of a pipe needs nobody's approval; `head -n 5 secrets` and `sort -o file` do. A program is
//! safe when its name is on the list, the file behind the name lies in a trusted folder, and every argument is one that
//! its profile knows. Long options are first completed as the program itself would complete them, against *all* options
//! it has, so that a shortened spelling is never taken for something else.

mod profile;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

pub use profile::CustomProfile;
use profile::{Profile, Takes};

use crate::lookup::Program;
use crate::script::{Value, Word};
use crate::wrapper::Tail;

/// The programs that are safe unless the operator says otherwise.
pub const DEFAULT: &[&str] = &["cut", "uniq", "head", "tail", "tr", "wc"];

/// Folders that hold the system's own programs.
const SYSTEM_DIRS: &[&str] = &["/bin", "/usr/bin"];

/// Programs that read files or run code however their arguments are written.
const NEVER_SAFE: &[&str] = &["awk", "gawk", "gsed", "jq", "mawk", "nawk", "sed"];

/// Beginnings of the names of shells, interpreters and programs that start others.
const INTERPRETERS: &[&str] = &[
    "ash",
    "bash",
    "bun",
    "busybox",
    "csh",
    "dash",
    "deno",
    "doas",
    "env",
    "find",
    "fish",
    "ksh",
    "lua",
    "luajit",
    "node",
    "nodejs",
    "osascript",
    "perl",
    "php",
    "pwsh",
    "powershell",
    "python",
    "ruby",
    "sh",
    "ssh",
    "sudo",
    "tclsh",
    "toybox",
    "xargs",
    "zsh",
];

/// Something in the operator's list of safe bins that has no effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SafeBinWarning {
    /// It can read files or run code whatever its arguments are.
    #[error("`{0}` is never a safe bin: it can read files or run code whatever its arguments are; use the allowlist")]
    NeverSafe(String),
    /// It runs what it is given.
    #[error("`{0}` is never a safe bin: it runs what it is given; use the allowlist")]
    Interpreter(String),
    /// Nothing is known about its arguments.
    #[error("`{0}` has no argument profile, so it is not a safe bin; describe it in `safeBinProfiles`")]
    NoProfile(String),
    /// A trusted folder that depends on the working directory.
    #[error("`{}` is not an absolute path, so it is not trusted", .0.display())]
    RelativeDir(PathBuf),
}

/// Why a command does not count as a safe bin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SafeBinObjection {
    /// The name is not on the list.
    #[error("`{0}` is not a safe bin")]
    NotListed(String),
    /// The program does not lie in a trusted folder, or is a link to one that does not.
    #[error("`{}` is not in a trusted folder", .0.display())]
    Untrusted(PathBuf),
    /// Some arguments are not known before it runs.
    #[error("its arguments are not known before it runs")]
    OpenArguments,
    /// An option the profile does not know.
    #[error("`{0}` is not an option a safe bin may have")]
    UnknownOption(String),
    /// An option that could stand for several.
    #[error("`{0}` could mean several options")]
    AmbiguousOption(String),
    /// An option that reads or writes files, starts a program, or never ends.
    #[error("`{0}` is not allowed for a safe bin")]
    DeniedOption(String),
    /// An option that needs a value and has none.
    #[error("`{0}` has no value")]
    MissingValue(String),
    /// A value for an option that takes none.
    #[error("`{0}` takes no value")]
    UnexpectedValue(String),
    /// An argument that could become a file name or several arguments.
    #[error("`{0}` could name a file")]
    UnsafeValue(String),
    /// More operands than the program takes when it only reads its input.
    #[error("`{0}` could name a file: a safe bin reads its input only")]
    TooMany(String),
    /// Fewer operands than the program needs.
    #[error("it needs at least {0} operands")]
    TooFew(usize),
}

impl SafeBinObjection {
    /// Whether the program is a safe bin and only its arguments speak against it.
    pub(crate) fn is_about_arguments(&self) -> bool {
        !matches!(self, Self::NotListed(_) | Self::Untrusted(_))
    }
}

/// The safe bins of one agent.
#[derive(Debug, Clone)]
pub struct SafeBins {
    profiles: BTreeMap<String, Profile>,
    dirs: BTreeSet<PathBuf>,
}

impl Default for SafeBins {
    fn default() -> Self {
        Self::new(None, &BTreeMap::new(), &[]).0
    }
}

impl SafeBins {
    /// The safe bins that the operator asked for. `names` replaces [`DEFAULT`], and an empty list means none; a profile
    /// in `custom` replaces ours. What has no effect is in the warnings.
    #[must_use]
    pub fn new(
        names: Option<&[String]>,
        custom: &BTreeMap<String, CustomProfile>,
        trusted_dirs: &[PathBuf],
    ) -> (Self, Vec<SafeBinWarning>) {
        let mut warnings = Vec::new();
        let mut profiles = BTreeMap::new();
        let listed: BTreeSet<String> = match names {
            Some(names) => names.iter().map(|name| clean(name)).filter(|name| !name.is_empty()).collect(),
            None => DEFAULT.iter().map(|name| (*name).to_owned()).collect(),
        };
        for name in listed {
            let own =
                custom.iter().find(|(of, _)| clean(of) == name).map(|(_, profile)| Profile::custom(&name, profile));
            if NEVER_SAFE.contains(&name.as_str()) {
                warnings.push(SafeBinWarning::NeverSafe(name));
            } else if is_interpreter(&name) {
                warnings.push(SafeBinWarning::Interpreter(name));
            } else if let Some(profile) = own.or_else(|| Profile::built_in(&name)) {
                profiles.insert(name, profile);
            } else {
                warnings.push(SafeBinWarning::NoProfile(name));
            }
        }
        let (absolute, relative): (Vec<_>, Vec<_>) = trusted_dirs.iter().cloned().partition(|dir| dir.is_absolute());
        warnings.extend(relative.into_iter().map(SafeBinWarning::RelativeDir));
        // Rebuilt from its parts, a path has no doubled or trailing slashes, and compares with a parent folder.
        let trusted = absolute.iter().map(|dir| dir.components().collect());
        (Self { profiles, dirs: SYSTEM_DIRS.iter().map(PathBuf::from).chain(trusted).collect() }, warnings)
    }

    /// Whether `token`, which starts `program`, is a safe bin with these arguments.
    pub fn check(&self, token: &str, program: &Program, args: &[Word], tail: Tail) -> Result<(), SafeBinObjection> {
        let name = token.rsplit('/').next().unwrap_or(token);
        let unlisted = || SafeBinObjection::NotListed(name.to_owned());
        let profile = self.profiles.get(name).ok_or_else(unlisted)?;
        if program.path.file_name().is_none_or(|found| found != name) {
            return Err(unlisted());
        }
        for place in [&program.path, &program.real] {
            if !self.trusts(place) {
                return Err(SafeBinObjection::Untrusted(place.clone()));
            }
        }
        if tail == Tail::Open {
            return Err(SafeBinObjection::OpenArguments);
        }
        let mut literal = Vec::with_capacity(args.len());
        for word in args {
            match &word.value {
                Value::Literal(text) => literal.push(text.as_str()),
                Value::Dynamic { .. } => return Err(SafeBinObjection::OpenArguments),
            }
        }
        Arguments { profile, operands: 0 }.check(&literal)
    }

    /// The names that are safe here.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.profiles.keys().map(String::as_str)
    }

    fn trusts(&self, program: &Path) -> bool {
        program.is_absolute() && program.parent().is_some_and(|dir| self.dirs.contains(dir))
    }
}

fn clean(name: &str) -> String {
    name.trim().to_lowercase()
}

fn is_interpreter(name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    INTERPRETERS.contains(&stem)
}

struct Arguments<'a> {
    profile: &'a Profile,
    operands: usize,
}

impl Arguments<'_> {
    fn check(mut self, args: &[&str]) -> Result<(), SafeBinObjection> {
        let mut rest = args.iter().copied();
        let mut only_operands = false;
        while let Some(arg) = rest.next() {
            match arg {
                // Nothing, and standard input.
                "" | "-" => {}
                _ if only_operands => self.operand(arg)?,
                "--" => only_operands = true,
                _ => match (arg.strip_prefix("--"), arg.strip_prefix('-')) {
                    (Some(_), _) => self.long(arg, &mut rest)?,
                    (None, Some(cluster)) => self.short(cluster, &mut rest)?,
                    (None, None) => self.operand(arg)?,
                },
            }
        }
        if self.operands < self.profile.min { Err(SafeBinObjection::TooFew(self.profile.min)) } else { Ok(()) }
    }

    fn operand(&mut self, arg: &str) -> Result<(), SafeBinObjection> {
        safe(arg)?;
        self.operands += 1;
        if self.profile.max.is_some_and(|max| self.operands > max) {
            return Err(SafeBinObjection::TooMany(arg.to_owned()));
        }
        Ok(())
    }

    fn long<'a>(&self, arg: &str, rest: &mut impl Iterator<Item = &'a str>) -> Result<(), SafeBinObjection> {
        let (written, value) = arg.split_once('=').map_or((arg, None), |(flag, value)| (flag, Some(value)));
        let flag = self.complete(written)?;
        match (self.profile.takes(flag), value) {
            (None, _) => Err(SafeBinObjection::UnknownOption(written.to_owned())),
            (Some(Takes::Denied), _) => Err(SafeBinObjection::DeniedOption(flag.to_owned())),
            (Some(Takes::Nothing), None) => Ok(()),
            (Some(Takes::Nothing), Some(_)) => Err(SafeBinObjection::UnexpectedValue(flag.to_owned())),
            (Some(Takes::Value | Takes::InlineValue), Some(value)) => safe(value),
            (Some(Takes::Value), None) => next_value(flag, rest),
            // Its value is optional: the next argument would be an operand, not the value.
            (Some(Takes::InlineValue), None) => Err(SafeBinObjection::MissingValue(flag.to_owned())),
        }
    }

    /// The option that a long option stands for, as `getopt_long` would complete it.
    fn complete<'a>(&'a self, written: &'a str) -> Result<&'a str, SafeBinObjection> {
        if self.profile.takes(written).is_some() || self.profile.all_long.contains(&written) {
            return Ok(written);
        }
        let mut fitting = self.profile.all_long.iter().filter(|flag| flag.starts_with(written));
        match (fitting.next(), fitting.next()) {
            (Some(flag), None) => Ok(flag),
            (Some(_), Some(_)) => Err(SafeBinObjection::AmbiguousOption(written.to_owned())),
            (None, _) => Err(SafeBinObjection::UnknownOption(written.to_owned())),
        }
    }

    fn short<'a>(&self, cluster: &str, rest: &mut impl Iterator<Item = &'a str>) -> Result<(), SafeBinObjection> {
        let mut letters = cluster.chars();
        while let Some(letter) = letters.next() {
            let flag = format!("-{letter}");
            match self.profile.takes(&flag) {
                None => return Err(SafeBinObjection::UnknownOption(flag)),
                Some(Takes::Denied) => return Err(SafeBinObjection::DeniedOption(flag)),
                Some(Takes::Nothing) => {}
                Some(Takes::Value | Takes::InlineValue) => {
                    let attached = letters.as_str();
                    return if attached.is_empty() { next_value(&flag, rest) } else { safe(attached) };
                }
            }
        }
        Ok(())
    }
}

fn next_value<'a>(flag: &str, rest: &mut impl Iterator<Item = &'a str>) -> Result<(), SafeBinObjection> {
    match rest.next() {
        Some(value) if !value.is_empty() => safe(value),
        _ => Err(SafeBinObjection::MissingValue(flag.to_owned())),
    }
}

/// Whether a value is a plain word: no path, no pattern, and nothing that a second reading would replace.
fn safe(value: &str) -> Result<(), SafeBinObjection> {
    let bytes = value.as_bytes();
    let is_drive =
        bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && matches!(bytes[2], b'\\' | b'/');
    let is_path =
        ["/", "./", "../", "~", ".\\", "..\\", "\\\\"].iter().any(|start| value.starts_with(start)) || is_drive;
    let expands =
        bytes.windows(2).any(|pair| pair[0] == b'$' && (pair[1].is_ascii_alphanumeric() || b"_{(".contains(&pair[1])));
    let is_odd = value.contains(['*', '?', '[', ']', '`', '\0', '\n', '\r']);
    if is_path || expands || is_odd { Err(SafeBinObjection::UnsafeValue(value.to_owned())) } else { Ok(()) }
}
