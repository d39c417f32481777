//! The prowess command.

mod approvals;
mod chat;
mod cli;
mod completion;
mod config;
mod dashboard;
mod devices;
mod doctor;
mod egress;
mod exec;
mod gateway;
mod leases;
mod log;
mod models;
mod node;
mod output;
mod partner;
mod prompt;
mod remote;
mod run;
mod sessions;
mod setup;
mod show;
mod skills;
mod suggest;
mod table;
mod talk;
mod wish;
mod wrap;

use std::io::Write;
use std::process::ExitCode;

use prowess_host::Failure;

use cli::{Cli, Command};
use output::Report;

fn main() -> ExitCode {
    // A sandbox is set up by this very program, started again; then it becomes the command and never comes back.
    prowess_exec::confine::run_if_asked();
    // A shell that completes a line asks here, and nothing else is done.
    clap_complete::CompleteEnv::with_factory(cli::command).var(completion::VARIABLE).complete();
    let cli = cli::parse();
    let done = perform(&cli).and_then(|report| {
        let code = report.code;
        report.print().map(|()| code)
    });
    match done {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            let told = if cli.globals.json { Report::json(&failure.to_json()).and_then(Report::print) } else { Ok(()) };
            let unheard = told.err().map_or_else(String::new, |failure| failure.to_string());
            // Nothing is left to do when stderr has gone away too.
            let text = wrap::wrap_all(&format!("{failure}{unheard}"), wrap::stderr_columns());
            let _ = write!(anstream::stderr(), "{text}");
            ExitCode::from(failure.fault as u8)
        }
    }
}

fn perform(cli: &Cli) -> Result<Report, Failure> {
    if let Some(report) = remote::perform(cli)? {
        return Ok(report);
    }
    match &cli.command {
        Command::Run(args) => run::run(args, &cli.globals),
        Command::Chat(args) => chat::start::run(args, &cli.globals),
        Command::Sessions { command } => sessions::stored::run(command, &cli.globals),
        Command::Models(args) => models::configured::run(*args, &cli.globals),
        Command::Prompt(args) => prompt::assembled::run(*args, &cli.globals),
        Command::Skills { command, options } => {
            skills::run(command.as_ref(), options, cli.globals.context()?, cli.globals.json)
        }
        Command::Config { command } => config::run(command, &cli.globals),
        Command::Exec { command } => exec::run(command, &cli.globals),
        Command::Approvals { command } => approvals::run(command, &cli.globals),
        Command::Leases { command } => leases::run(command, &cli.globals),
        Command::Egress { command } => egress::run(command, &cli.globals),
        Command::Gateway { command } => gateway::run(command, &cli.globals),
        Command::Dashboard(args) => dashboard::run(args, &cli.globals),
        Command::Devices { command } => devices::run(command, &cli.globals),
        Command::Node { command } => node::run(command, &cli.globals),
        Command::Doctor => doctor::run(&cli.globals),
        Command::Setup => setup::run(&cli.globals),
        Command::Completions { shell } => completion::script(*shell),
    }
}
