//! Objections: what speaks against a command, and what would change that?

use std::fmt;
use std::path::PathBuf;

use crate::disguise::Disguise;
use crate::reach::{Farther, Kind};
use crate::safe_bin::SafeBinObjection;
use crate::script::{Doubt, DoubtKind, Span};
use crate::wants::Unleasable;
use crate::wrapper::Reason;

/// One thing that speaks against running a command unasked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Objection {
    /// Commands are switched off.
    Off,
    /// Every command is to be asked about.
    AlwaysAsk,
    /// The text cannot be read with certainty, or has a shape that is never allowed unasked.
    Doubt(Doubt),
    /// It looks like something dressed up as something else.
    Disguised(Disguise),
    /// The program depends on an expansion.
    DynamicProgram,
    /// There is no such program.
    NotFound(String),
    /// No rule covers the program.
    NotListed {
        /// The program without links.
        real: PathBuf,
        /// Why it is no safe program, when it has the name of one.
        safe_bin: Option<SafeBinObjection>,
    },
    /// A rule covers the program, but its arguments reach farther than a rule for a program can.
    ReachesFarther(Farther),
    /// A rule with a wildcard does not cover interpreters.
    Interpreter(PathBuf),
    /// What it starts cannot be seen through.
    Opaque(Reason),
    /// A shell behind another program or another shell, or one that is named by a path.
    WrappedShell,
    /// A program that starts others is not where the system keeps it.
    ForeignWrapper(PathBuf),
    /// It sets a variable that may steer the program.
    Assignment(String),
    /// It sets a variable of the shell for the commands behind it.
    BareAssignment(String),
    /// It reads from a file.
    ReadsFrom(String),
    /// It writes to a file.
    WritesTo(String),
    /// The shell evaluates what a variable holds, and that may be code.
    Evaluates(String),
    /// A builtin of the shell that we do not let through.
    Builtin(String),
    /// A relative path behind `cd`: it is not certain where it leads.
    AfterCd(String),
    /// The shell here does not read this as it was judged.
    Dialect,
    /// It would run in a container, whose programs are not those that were looked up.
    Elsewhere,
    /// It wants this beyond the sandbox, and no lease covers it.
    Leaves(String),
    /// It needs this beyond the sandbox, and no answer can give it.
    Unleasable(Unleasable),
    /// A file that others can change is too large to be compared.
    TooLarge(PathBuf),
}

impl Objection {
    /// Whether not even a person can be asked: the command cannot be shown whole, or could not be started.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::Off | Self::TooLarge(_) | Self::Unleasable(_) => true,
            Self::Doubt(doubt) => matches!(doubt.kind, DoubtKind::TooLong | DoubtKind::Nul | DoubtKind::Empty),
            _ => false,
        }
    }

    /// Where in the text, if it is about a part of it.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        match self {
            Self::Doubt(doubt) => Some(doubt.span),
            _ => None,
        }
    }

    /// One word for machines.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::AlwaysAsk => "always-ask",
            Self::Doubt(_) => "doubt",
            Self::Disguised(_) => "disguised",
            Self::DynamicProgram => "dynamic-program",
            Self::NotFound(_) => "not-found",
            Self::NotListed { .. } => "not-listed",
            Self::ReachesFarther(_) => "reaches-farther",
            Self::Interpreter(_) => "interpreter",
            Self::Opaque(_) => "opaque",
            Self::WrappedShell => "wrapped-shell",
            Self::ForeignWrapper(_) => "foreign-wrapper",
            Self::Assignment(_) => "assignment",
            Self::BareAssignment(_) => "bare-assignment",
            Self::ReadsFrom(_) => "reads-from",
            Self::WritesTo(_) => "writes-to",
            Self::Evaluates(_) => "evaluates",
            Self::Builtin(_) => "builtin",
            Self::AfterCd(_) => "after-cd",
            Self::Dialect => "dialect",
            Self::Elsewhere => "elsewhere",
            Self::Leaves(_) => "leaves-sandbox",
            Self::Unleasable(_) => "unleasable",
            Self::TooLarge(_) => "too-large",
        }
    }

    /// What would change it, where something would.
    #[must_use]
    pub fn remedy(&self) -> Option<String> {
        Some(match self {
            Self::Off => "set `security` to contained in tools.exec and in exec-approvals.json".to_owned(),
            Self::NotListed { real, .. } | Self::ForeignWrapper(real) if crate::advice::may_propose(real) => {
                format!("prowess approvals allow {}", crate::script::quote(&real.to_string_lossy()))
            }
            Self::NotListed { .. } | Self::ForeignWrapper(_) | Self::Interpreter(_) => {
                "approve it at a terminal (a rule for this program would cover far more)".to_owned()
            }
            Self::NotFound(name) => format!("install {name}, or add its directory to PATH"),
            Self::ReachesFarther(Farther { kind: Kind::MissingScript, .. }) => {
                "check the path of the script".to_owned()
            }
            Self::ReadsFrom(_) => "name the file as an argument, where the program takes one".to_owned(),
            Self::WritesTo(_) => "leave the redirection out, or let an allowed program write the file".to_owned(),
            Self::Unleasable(Unleasable { remedy, .. }) => remedy.clone(),
            Self::Evaluates(_) => "write the value itself, or use the plain variable".to_owned(),
            Self::AfterCd(_) => "give the working directory with the command instead of changing it".to_owned(),
            Self::BareAssignment(_) | Self::Assignment(_) => {
                "leave the variable out, or set it in the environment".to_owned()
            }
            Self::DynamicProgram => "write the program's name".to_owned(),
            Self::WrappedShell => "run the commands themselves, without the shell around them".to_owned(),
            Self::Doubt(doubt) => match doubt.kind {
                DoubtKind::Substitution | DoubtKind::ProcessSubstitution => "run the inner command first".to_owned(),
                DoubtKind::Background => "drop the `&` and ask for a background run".to_owned(),
                DoubtKind::Continuation => "write it on one line".to_owned(),
                DoubtKind::Subshell | DoubtKind::Group | DoubtKind::Compound => {
                    "write it as a plain list of commands".to_owned()
                }
                _ => return None,
            },
            _ => return None,
        })
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("commands are disabled here"),
            Self::AlwaysAsk => f.write_str("every command needs approval here"),
            Self::Doubt(doubt) => doubt.kind.fmt(f),
            Self::Disguised(disguise) => f.write_str(disguise.reason),
            Self::DynamicProgram => f.write_str("the name of the program contains a variable or an expansion"),
            Self::NotFound(name) => write!(f, "`{name}` is not installed, or not on PATH"),
            Self::NotListed { real, safe_bin: None } => write!(f, "no rule covers {}", real.display()),
            Self::NotListed { real, safe_bin: Some(why) } => {
                write!(f, "no rule covers {}, and it does not qualify as a safe program: {why}", real.display())
            }
            Self::ReachesFarther(farther) => farther.fmt(f),
            Self::Interpreter(real) => {
                write!(
                    f,
                    "{} runs whatever script it is given; a rule with a wildcard does not cover it",
                    real.display()
                )
            }
            Self::Opaque(reason) => reason.fmt(f),
            Self::WrappedShell => f.write_str("the shell is started by another program, or named by a path"),
            Self::ForeignWrapper(real) => {
                write!(f, "{} starts other programs and is not the system's own", real.display())
            }
            Self::Assignment(name) => write!(f, "it sets {name}, which may change what the program does"),
            Self::BareAssignment(name) => write!(f, "it sets {name} for the commands after it"),
            Self::ReadsFrom(target) => write!(f, "it reads from {target}"),
            Self::WritesTo(target) => write!(f, "it writes to {target}"),
            Self::Evaluates(word) => {
                write!(f, "the shell evaluates the content of variables in `{word}`, and that may be code")
            }
            Self::Builtin(name) => write!(f, "`{name}` is a shell builtin, and no rule covers those"),
            Self::AfterCd(token) => write!(f, "`{token}` comes after `cd`, so it is unclear which file it is"),
            Self::Dialect => f.write_str("the shell on this machine reads this command differently"),
            Self::Elsewhere => f.write_str("it runs in a container, whose programs are unknown"),
            Self::Leaves(phrase) => write!(f, "it would {phrase}"),
            Self::Unleasable(unleasable) => unleasable.fmt(f),
            Self::TooLarge(path) => write!(f, "{} can be changed by others and is too large to verify", path.display()),
        }
    }
}
