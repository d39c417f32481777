//! The prowess command.

mod approvals;
mod chat;
mod cli;
mod config;
mod doctor;
mod exec;
mod gateway;
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
mod talk;
mod wish;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use prowess_host::Failure;

use cli::{Cli, Command};
use output::Report;

fn main() -> ExitCode {
    // A sandbox is set up by this very program, started again; then it becomes the command and never comes back.
    prowess_exec::confine::run_if_asked();
    let cli = Cli::parse();
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
            let _ = write!(anstream::stderr(), "{failure}{unheard}");
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
        Command::Gateway { command } => gateway::run(command, &cli.globals),
        Command::Node { command } => node::run(command, &cli.globals),
        Command::Doctor => doctor::run(&cli.globals),
        Command::Setup => setup::run(&cli.globals),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "prowess", &mut script);
            String::from_utf8(script).map(Report::text).map_err(Failure::ours)
        }
    }
}
