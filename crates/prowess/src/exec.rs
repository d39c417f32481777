//! `prowess exec`: may this command run, and if so, run it.

mod check;
mod run;
mod setting;

use std::io::Read;
use std::sync::Arc;

use prowess_exec::ToolResult;
use prowess_exec::approver::{Approver, Nobody, Terminal};
use prowess_exec::exec_tool::ExecCall;
use prowess_host::{Failure, exec};
use prowess_policy::{Verdict, quote, shown};

use crate::cli::{self, CommandArgs, Globals};
use crate::output::Report;

pub(crate) use setting::{Scope, setting};

/// How much of a command is read from stdin; far more than may ever run.
const MAX_STDIN_BYTES: u64 = 1024 * 1024;

pub(crate) fn run(command: &cli::Exec, globals: &Globals) -> Result<Report, Failure> {
    match command {
        cli::Exec::Check { command, exit_code } => {
            let context = globals.context()?;
            let exec = exec(&context, Arc::new(Nobody))?;
            let setting = setting(context, &Scope::of(command, globals))?;
            let call = call(command)?;
            let case = exec.judge(&call, &setting).map_err(|result| refused(&result))?;
            let code = match case.judgment.verdict() {
                Verdict::Ask if *exit_code => 1,
                Verdict::Deny if *exit_code => 2,
                Verdict::Allow | Verdict::Ask | Verdict::Deny => 0,
            };
            Ok(check::report(&case, globals.json)?.code(code))
        }
        cli::Exec::Run { command, options } => run::run(command, options, globals),
    }
}

/// The person at the terminal, or nobody.
pub(crate) fn person() -> Arc<dyn Approver> {
    seated(Terminal::open())
}

/// The same for a single command.
fn person_for_one_command() -> Arc<dyn Approver> {
    seated(Terminal::open().map(Terminal::for_one_command))
}

fn seated(terminal: std::io::Result<Terminal>) -> Arc<dyn Approver> {
    match terminal {
        Ok(terminal) => Arc::new(terminal),
        Err(_) => Arc::new(Nobody),
    }
}

/// Why a command did not run. It may repeat words of the command, so nothing in it may reach the terminal as it is.
fn refused(result: &ToolResult) -> Failure {
    let text = result.text();
    Failure::input(text.lines().map(|line| shown(line).to_string()).collect::<Vec<_>>().join("\n"))
}

/// One word is a text for the shell, `-` one that is read from stdin; several are a program and its arguments, each taken
/// as it is.
fn call(command: &CommandArgs) -> Result<ExecCall, Failure> {
    let text = match command.words.as_slice() {
        [dash] if dash == "-" => {
            let mut text = String::new();
            let read = std::io::stdin().take(MAX_STDIN_BYTES).read_to_string(&mut text);
            read.map_err(|error| Failure::input(format!("cannot read the command from stdin: {error}")))?;
            text
        }
        [text] => text.clone(),
        words => words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" "),
    };
    Ok(ExecCall { command: text, env: command.env.clone(), ..ExecCall::default() })
}
