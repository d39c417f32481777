//! Programs that start the command behind their own options: where do those end?

use super::{Layer, Peel, Reason, Tail, WrapperKind, literal};
use crate::script::{Value, Word};

/// Programs that start the command as somebody else, or somewhere else.
const OTHER_USER: &[&str] = &[
    "chroot",
    "doas",
    "fakeroot",
    "firejail",
    "bwrap",
    "gosu",
    "machinectl",
    "nsenter",
    "pkexec",
    "proot",
    "run0",
    "runuser",
    "setpriv",
    "sg",
    "su",
    "su-exec",
    "sudo",
    "sudoedit",
    "systemd-nspawn",
    "systemd-run",
    "unshare",
];

/// Programs that start the command and do something with it that we do not follow.
const SUPERVISORS: &[&str] = &[
    "ccache",
    "catchsegv",
    "chpst",
    "chronic",
    "chrt",
    "cgexec",
    "cpulimit",
    "daemon",
    "daemonize",
    "dbus-run-session",
    "distcc",
    "dumb-init",
    "entr",
    "envdir",
    "faketime",
    "flock",
    "gdb",
    "gdbserver",
    "heaptrack",
    "hyperfine",
    "ionice",
    "lldb",
    "ltrace",
    "linux32",
    "linux64",
    "nodemon",
    "numactl",
    "parallel",
    "perf",
    "prlimit",
    "proxychains",
    "proxychains4",
    "rlwrap",
    "rr",
    "run-one",
    "run-parts",
    "sccache",
    "sem",
    "script",
    "scriptreplay",
    "setarch",
    "setlock",
    "setsid",
    "setuidgid",
    "softlimit",
    "sshpass",
    "start-stop-daemon",
    "strace",
    "taskset",
    "tini",
    "torify",
    "torsocks",
    "truss",
    "tsocks",
    "unbuffer",
    "uftrace",
    "valgrind",
    "watch",
    "watchexec",
    "watchman-make",
    "with-contenv",
    "xcrun",
    "xvfb-run",
    "dotenv",
];

/// Wrappers that are seen through, and the names they have where the GNU tools stand beside others.
const TRANSPARENT: &[&str] = &["env", "nice", "nohup", "stdbuf", "time", "timeout", "xargs"];

/// The name that decides what a program word means here: without folders, in small letters, without `.exe`.
pub(crate) fn plain_name(token: &str) -> String {
    let base = token.rsplit(['/', '\\']).next().unwrap_or(token);
    let name = base.to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    match name.strip_prefix('g') {
        Some(gnu) if TRANSPARENT.contains(&gnu) => gnu.to_owned(),
        _ => name.to_owned(),
    }
}

/// Whether a program of this name starts the program that its arguments name, whatever they are.
pub(crate) fn is_carrier(name: &str) -> bool {
    TRANSPARENT.contains(&name) || OTHER_USER.contains(&name) || SUPERVISORS.contains(&name)
}

pub(super) fn peel(name: &str, words: &[Word]) -> Peel {
    let peeled = match name {
        "env" => return env(words),
        "nice" => command_after(words, nice),
        "nohup" => command_after(words, |_| Step::Unknown),
        "stdbuf" => command_after(words, stdbuf),
        "timeout" => return timeout(words),
        "time" => return time(words),
        name if OTHER_USER.contains(&name) => Err(Reason::OtherUser),
        name if SUPERVISORS.contains(&name) => Err(Reason::Supervisor),
        _ => return Peel::Command,
    };
    peeled.map_or_else(Peel::Opaque, |skip| Peel::Inner(Layer::program(skip)))
}

/// What an option takes with it.
pub(super) enum Step {
    /// Nothing.
    Alone,
    /// The next word, if it passes.
    Value(fn(&str) -> bool),
    /// It is not known.
    Unknown,
}

/// The place of the first word that is no option.
pub(super) fn command_after(words: &[Word], option: fn(&str) -> Step) -> Result<usize, Reason> {
    let mut at = 1;
    loop {
        let text = literal(words.get(at).ok_or(Reason::MissingCommand)?).ok_or(Reason::Dynamic)?;
        match text {
            "--" => {
                let next = words.get(at + 1).ok_or(Reason::MissingCommand)?;
                return literal(next).map(|_| at + 1).ok_or(Reason::Dynamic);
            }
            text if !text.starts_with('-') => return Ok(at),
            text => match option(text) {
                Step::Alone => at += 1,
                Step::Unknown => return Err(Reason::UnknownOption),
                Step::Value(passes) => {
                    let value = literal(words.get(at + 1).ok_or(Reason::MissingCommand)?).ok_or(Reason::Dynamic)?;
                    if !passes(value) {
                        return Err(Reason::UnknownOption);
                    }
                    at += 2;
                }
            },
        }
    }
}

fn env(words: &[Word]) -> Peel {
    let mut layer = Layer::program(1);
    let mut options_ended = false;
    for word in &words[1..] {
        match &word.value {
            Value::Literal(text) if text == "--" && !options_ended => options_ended = true,
            Value::Literal(text) if text.starts_with('-') && !options_ended => return Peel::Opaque(env_option(text)),
            Value::Literal(text) => match text.split_once('=') {
                Some((name, value)) => layer.assignments.push((name.to_owned(), Some(value.to_owned()))),
                None => return Peel::Inner(layer),
            },
            Value::Dynamic { prefix, splits: false, .. } => match prefix.split_once('=') {
                Some((name, _)) if !name.starts_with('-') => layer.assignments.push((name.to_owned(), None)),
                _ => return Peel::Opaque(Reason::Dynamic),
            },
            Value::Dynamic { .. } => return Peel::Opaque(Reason::Dynamic),
        }
        layer.skip += 1;
    }
    Peel::Opaque(Reason::MissingCommand)
}

/// Every option of `env` changes more than we follow; this only says it well.
fn env_option(text: &str) -> Reason {
    let name = text.split('=').next().unwrap_or(text);
    let begins = |option: &str| name.len() > 2 && option.starts_with(name);
    match name {
        "-" | "-i" => Reason::Environment,
        _ if name.starts_with("-u") || begins("--unset") || begins("--ignore-environment") => Reason::Environment,
        _ if name.starts_with("-C") || begins("--chdir") => Reason::Directory,
        _ if name.starts_with("-S") || begins("--split-string") => Reason::SplitString,
        _ => Reason::UnknownOption,
    }
}

fn nice(option: &str) -> Step {
    if matches!(option, "-n" | "--adjustment") {
        return Step::Value(is_integer);
    }
    let attached = ["--adjustment=", "-n", "-"].iter().find_map(|prefix| option.strip_prefix(prefix));
    attached.filter(|value| is_integer(value)).map_or(Step::Unknown, |_| Step::Alone)
}

fn stdbuf(option: &str) -> Step {
    if matches!(option, "-i" | "-o" | "-e" | "--input" | "--output" | "--error") {
        return Step::Value(is_mode);
    }
    let attached = ["--input=", "--output=", "--error=", "-i", "-o", "-e"].iter().find_map(|p| option.strip_prefix(p));
    attached.filter(|value| is_mode(value)).map_or(Step::Unknown, |_| Step::Alone)
}

fn timeout(words: &[Word]) -> Peel {
    let duration = match command_after(words, timeout_option) {
        Ok(at) => at,
        Err(reason) => return Peel::Opaque(reason),
    };
    match words.get(duration).and_then(literal) {
        Some(text) if is_duration(text) => {}
        _ => return Peel::Opaque(Reason::UnknownOption),
    }
    match words.get(duration + 1) {
        Some(_) => Peel::Inner(Layer::program(duration + 1)),
        None => Peel::Opaque(Reason::MissingCommand),
    }
}

fn timeout_option(option: &str) -> Step {
    match option {
        "--foreground" | "--preserve-status" | "-v" | "--verbose" => return Step::Alone,
        "-k" | "--kill-after" => return Step::Value(is_duration),
        "-s" | "--signal" => return Step::Value(is_mode),
        _ => {}
    }
    let after = |prefixes: [&str; 2]| prefixes.iter().find_map(|prefix| option.strip_prefix(prefix));
    if after(["--kill-after=", "-k"]).is_some_and(is_duration) || after(["--signal=", "-s"]).is_some_and(is_mode) {
        return Step::Alone;
    }
    Step::Unknown
}

fn time(words: &[Word]) -> Peel {
    let skip = match command_after(words, |option| if option == "-p" { Step::Alone } else { Step::Unknown }) {
        Ok(skip) => skip,
        Err(reason) => return Peel::Opaque(reason),
    };
    // As a word of the language it lets assignments follow; as a program it does not.
    if words.get(skip).and_then(literal).is_some_and(|text| text.contains('=')) {
        return Peel::Opaque(Reason::Environment);
    }
    Peel::Inner(Layer { kind: WrapperKind::Either, tail: Tail::Closed, ..Layer::program(skip) })
}

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.len() < 6 && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_mode(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn is_duration(text: &str) -> bool {
    let number = text.strip_suffix(['s', 'm', 'h', 'd']).unwrap_or(text);
    number.bytes().any(|byte| byte.is_ascii_digit()) && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}
