//! Reach: can these arguments make an allowed program do something else than what it is for?
//!
//! An allowlist entry says "this program, with any arguments". For `ls` that is what it seems to be. For `find` it
//! would be every program there is, because of `-exec`. So an entry covers a command only when its arguments feed
//! nothing but the program itself: [`Reach::Plain`]. Programs that no table here knows are plain, whatever their
//! arguments are; the operator listed them and meant it.
//!
//! The tables err on one side. A word that looks like a dangerous option is one, even where it may be the value of the
//! option before it; a shortened option counts as every option it may stand for; and a word that is known only while
//! the command runs counts as an option unless it cannot become one.

mod archive;
mod awk;
mod build;
mod cloud;
mod database;
mod engine;
mod files;
mod git;
mod interpreter;
mod media;
mod name;
mod network;
mod packages;
mod sed;
mod system;
mod text;
mod tools;

use std::fmt;
use std::path::Path;

use crate::script::Word;
use crate::wrapper::{self, Tail};
use engine::Table;

/// A program as a command names it.
#[derive(Debug, Clone, Copy)]
pub struct Called<'a> {
    /// The word as it is written, with or without folders.
    pub token: &'a str,
    /// Where that leads, without links. Both names count: a link called `x` to `bash` is a shell, and so is a file
    /// called `bash`.
    pub real: &'a Path,
    /// The text that the spans of the arguments point into; may be empty when it is not at hand.
    pub text: &'a str,
}

/// How far the arguments reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// To the program itself and no farther.
    Plain,
    /// An interpreter runs the file that this argument names, and nothing else is unusual about it.
    Script(usize),
    /// Beyond what an entry for the program covers.
    Farther(Farther),
}

/// What reaches beyond the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Farther {
    /// In which way.
    pub kind: Kind,
    /// The program, as its table calls it.
    pub program: &'static str,
    /// The option or subcommand that does it; empty when it is the program as such.
    pub part: &'static str,
    /// The argument that does it, counted from the first behind the program.
    pub at: Option<usize>,
}

impl Farther {
    /// An interpreter whose script is no file of its own: the code comes from its input, or from nowhere we can see.
    pub(crate) fn from_input() -> Self {
        Self { kind: Kind::InputCode, program: "the interpreter", part: "", at: None }
    }

    /// An interpreter whose script does not exist, so that it may be anything by the time it runs.
    pub(crate) fn without_script() -> Self {
        Self { kind: Kind::MissingScript, program: "the interpreter", part: "", at: None }
    }
}

/// Ways to reach farther.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A shell: it can start everything.
    Shell,
    /// A program that takes commands from whoever sits before it, and starts others for them.
    Interactive,
    /// Code stands in an argument.
    InlineCode,
    /// Code comes from the input.
    InputCode,
    /// The script that it is to run does not exist.
    MissingScript,
    /// Other code is loaded into the program.
    LoadsCode,
    /// Another program is started.
    StartsProgram,
    /// A command runs on another machine or in a container.
    Elsewhere,
    /// A service on this machine is told to do something.
    Service,
    /// Settings change that decide what later commands start.
    Settings,
    /// A file is written that programs or shells read when they start.
    StartupFile,
    /// A file of the caller's choice is written, by a program that otherwise only reads.
    Writes,
    /// Files are deleted, by a program that otherwise only looks.
    Deletes,
    /// A subcommand that may be an alias or an extension.
    UnknownSubcommand,
    /// An option that is not known, for a program where that matters.
    UnknownOption,
    /// The script in an argument is not simple enough to be sure about.
    Unreadable,
    /// A word that may become an option, or code, while it runs.
    Dynamic,
    /// Arguments are added while it runs, and one may become an option.
    OpenTail,
}

impl fmt::Display for Farther {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = self.program;
        match self.kind {
            Kind::Dynamic => {
                return write!(f, "an argument of `{program}` is known only at run time and may do more than expected");
            }
            Kind::OpenTail => {
                return write!(f, "`{program}` gets more arguments at run time, which may do more than expected");
            }
            _ => {}
        }
        match self.part {
            "" => write!(f, "`{program}` ")?,
            part => write!(f, "`{program} {part}` ")?,
        }
        f.write_str(match self.kind {
            Kind::Shell => "is a shell and can start anything",
            Kind::Interactive => "takes commands while it runs and can start anything",
            Kind::InlineCode => "runs code from its arguments",
            Kind::InputCode => "runs code from its input",
            Kind::MissingScript => "is given a script that was not found",
            Kind::LoadsCode => "loads other code",
            Kind::StartsProgram => "starts another program",
            Kind::Elsewhere => "runs commands on another machine or in a container",
            Kind::Service => "controls a service on this machine",
            Kind::Settings => "changes what later commands do",
            Kind::StartupFile => "would write a file that is read whenever programs start",
            Kind::Writes => "writes a file of its choice",
            Kind::Deletes => "deletes files",
            Kind::UnknownSubcommand => "has a subcommand that may be an alias or an extension",
            Kind::UnknownOption => "has an option that is not known to be harmless",
            Kind::Unreadable => "has a script that is not simple enough to be sure about",
            Kind::Dynamic | Kind::OpenTail => "",
        })
    }
}

/// How far the arguments of `called` reach, when `tail` says whether they are all of them.
#[must_use]
pub fn reach(called: Called<'_>, args: &[Word], tail: Tail) -> Reach {
    let call = Call { args, tail, text: called.text };
    let token = name::normal(called.token);
    let real = name::normal(&called.real.to_string_lossy());
    let by_token = by_name(&token, call);
    if token == real || name::is_many_in_one(&real) {
        return by_token;
    }
    match (by_token, by_name(&real, call)) {
        (Reach::Farther(farther), _) | (_, Reach::Farther(farther)) => Reach::Farther(farther),
        (Reach::Script(at), _) | (_, Reach::Script(at)) => Reach::Script(at),
        (Reach::Plain, Reach::Plain) => Reach::Plain,
    }
}

/// The arguments of one call.
#[derive(Clone, Copy)]
struct Call<'a> {
    args: &'a [Word],
    tail: Tail,
    text: &'a str,
}

/// Tables of programs with dangerous options, by family.
const TABLES: &[&[Table]] = &[
    files::TABLES,
    archive::TABLES,
    network::TABLES,
    build::TABLES,
    packages::TABLES,
    system::TABLES,
    database::TABLES,
    text::TABLES,
    media::TABLES,
    cloud::TABLES,
    tools::TABLES,
];

/// Programs that always reach farther.
const ALWAYS: &[&[(&str, Kind)]] = &[
    files::ALWAYS,
    network::ALWAYS,
    packages::ALWAYS,
    system::ALWAYS,
    text::ALWAYS,
    media::ALWAYS,
    cloud::ALWAYS,
    tools::ALWAYS,
];

fn by_name(name: &str, call: Call<'_>) -> Reach {
    let startup = || files::startup(name, call);
    startup().or_else(|| name::readings(name).find_map(|name| known(name, call))).unwrap_or(Reach::Plain)
}

/// What a table says about a program of exactly this name; nothing when there is none.
fn known(name: &str, call: Call<'_>) -> Option<Reach> {
    let always = |kind, program| Some(farther(kind, program, "", None));
    if wrapper::is_shell(name) || wrapper::is_multiplexer(name) {
        let asks = matches!(call.args, [word] if matches!(engine::exact(word), Some("--version" | "--help")));
        return if asks && call.tail == Tail::Closed {
            Some(Reach::Plain)
        } else {
            always(Kind::Shell, name::shell(name))
        };
    }
    if name == "xargs" && wrapper::is_bare_xargs(call.args) && call.tail == Tail::Closed {
        return Some(Reach::Plain);
    }
    if wrapper::is_carrier(name) || matches!(name, "command" | "builtin") {
        return always(Kind::StartsProgram, name::carrier(name));
    }
    if name.starts_with("ld-linux") || name.starts_with("ld-musl") || name == "ld.so" {
        return always(Kind::StartsProgram, "ld.so");
    }
    if let Some((program, kind)) = ALWAYS.iter().copied().flatten().find(|(program, _)| *program == name) {
        return always(*kind, program);
    }
    let special = match name {
        "git" | "hub" => Some(git::reach(call)),
        "tar" | "gtar" | "bsdtar" => Some(archive::tar(call)),
        "awk" | "gawk" | "mawk" | "nawk" | "original-awk" | "goawk" => Some(awk::reach(call)),
        "make" | "gmake" | "bmake" | "remake" => build::make(call),
        "crontab" => Some(system::crontab(call)),
        "sed" | "gsed" => Some(sed::reach(call)),
        "sqlite3" | "sqlite" | "duckdb" | "psql" | "mysql" | "mariadb" => database::client(name, call),
        _ => interpreter::reach(name, call),
    };
    special.or_else(|| table(name, call))
}

fn table(name: &str, call: Call<'_>) -> Option<Reach> {
    TABLES.iter().copied().flatten().find_map(|table| {
        let program = table.names.iter().find(|known| **known == name)?;
        Some(table.check(program, call).map_or(Reach::Plain, Reach::Farther))
    })
}

fn farther(kind: Kind, program: &'static str, part: &'static str, at: Option<usize>) -> Reach {
    Reach::Farther(Farther { kind, program, part, at })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Span, Value};

    fn call(program: &str, args: &[&str]) -> Reach {
        let args: Vec<Word> = args
            .iter()
            .map(|arg| Word { span: Span { start: 0, end: 0 }, value: Value::Literal((*arg).to_owned()) })
            .collect();
        reach(Called { token: program, real: Path::new(program), text: "" }, &args, Tail::Closed)
    }

    #[test]
    fn every_denied_long_option_is_caught_however_short() {
        let tables = TABLES.iter().copied().flatten().chain([&archive::TAR]);
        for table in tables.filter(|table| table.style != engine::Style::Words) {
            for (option, _) in table.long {
                for end in 3..=option.len() {
                    let short = &option[..end];
                    if table.long_flags.contains(&short) || table.long_values.contains(&short) {
                        continue;
                    }
                    for arg in [short.to_owned(), format!("{short}=x")] {
                        let found = call(table.names[0], &[&arg, "x"]);
                        assert!(matches!(found, Reach::Farther(_)), "{} {arg}: {found:?}", table.names[0]);
                    }
                }
            }
        }
    }

    #[test]
    fn no_program_is_in_two_tables() {
        let mut names: Vec<&str> = TABLES.iter().copied().flatten().flat_map(|table| table.names).copied().collect();
        names.extend(ALWAYS.iter().copied().flatten().map(|(name, _)| *name));
        names.sort_unstable();
        let twice: Vec<_> = names.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
        assert!(twice.is_empty(), "{twice:?}");
    }

    #[test]
    fn options_are_written_with_their_dashes() {
        for table in TABLES.iter().copied().flatten() {
            let name = table.names[0];
            assert!(table.long.iter().all(|(option, _)| option.starts_with('-')), "{name}");
            assert!(table.short.iter().all(|(option, _)| option.len() == 2 && option.starts_with('-')), "{name}");
            assert!(table.long_flags.iter().chain(table.long_values).all(|option| option.starts_with('-')), "{name}");
        }
    }
}
