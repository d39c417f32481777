//! A gateway elsewhere: which commands can it answer instead of this machine?

mod feed;
pub(crate) mod questions;
mod session;
mod sessions;
mod settings;
mod skills;
pub(crate) mod talk;
pub(crate) mod target;
mod told;

use std::future::Future;

use prowess_gateway::client::{CallError, Client};
use prowess_host::Failure;
use serde_json::Value;

use crate::cli::{Approvals, Cli, Command, Config, Sessions, Skills};
use crate::output::{Report, safe};
use target::{Asked, Target};

/// Does what `cli` asks for at the gateway that it names; nothing when it names none.
pub(crate) fn perform(cli: &Cli) -> Result<Option<Report>, Failure> {
    let Some((target, asked)) = Target::asked(&cli.globals)? else { return Ok(None) };
    here_only(&cli.command)?;
    let (globals, json) = (&cli.globals, cli.globals.json);
    let agent = globals.agent.as_deref();
    let report = match &cli.command {
        Command::Run(args) => talk::run(args, globals, target),
        Command::Chat(args) => talk::chat(args, globals, target),
        Command::Sessions { command: Sessions::List } => {
            with(&target, async |client| sessions::list(&client, json).await)
        }
        Command::Sessions { command: Sessions::Show { key } } => {
            with(&target, async |client| sessions::show(&client, key.as_deref(), agent, json).await)
        }
        Command::Models(_) => with(&target, async |client| told::models(&client, json).await),
        Command::Prompt(args) => with(&target, async |client| told::prompt(&client, *args, agent, json).await),
        Command::Skills { command: None, .. } => {
            with(&target, async |client| skills::list(&client, skills::Options::default(), agent, json).await)
        }
        Command::Skills { command: Some(Skills::List { text, eligible, verbose }), .. } => {
            let options = skills::Options { words: text, eligible: *eligible, verbose: *verbose };
            with(&target, async |client| skills::list(&client, options, agent, json).await)
        }
        Command::Skills { command: Some(Skills::Info { name }), .. } => {
            with(&target, async |client| skills::info(&client, name, agent, json).await)
        }
        Command::Skills { command: Some(Skills::Check { .. }), .. } => {
            with(&target, async |client| skills::check(&client, agent, json).await)
        }
        Command::Skills { command: Some(Skills::Prompt { mode, .. }), .. } => {
            with(&target, async |client| told::skills_prompt(&client, *mode, agent, json).await)
        }
        Command::Config { command: Config::Get { path, .. } } => {
            with(&target, async |client| settings::get(&client, path.as_deref(), json).await)
        }
        Command::Config { command: Config::Set { path, value, stdin, force } } => {
            let asked = crate::config::asked(path, value.as_deref(), *stdin, *force)?;
            with(&target, async |client| settings::set(&client, asked, json).await)
        }
        Command::Gateway { .. }
        | Command::Node { .. }
        | Command::Dashboard(_)
        | Command::Devices { .. }
        | Command::Approvals { command: Approvals::Watch | Approvals::Resolve { .. } | Approvals::Log { .. } }
        | Command::Egress { .. }
        | Command::Completions { .. } => return Ok(None),
        _ => match asked {
            // A variable is set once and for all; a flag was meant for this very command.
            Asked::ByVariable => return Ok(None),
            Asked::ByFlag => {
                Err(Failure::usage("this command does not work over a gateway").hint("leave --gateway out"))
            }
        },
    };
    report.map(Some)
}

/// Refuses what a gateway cannot be asked for, rather than to leave it out.
fn here_only(command: &Command) -> Result<(), Failure> {
    let what = match command {
        Command::Models(args) if args.probe => "--probe",
        Command::Skills { command: Some(Skills::Prompt { budget: Some(_), .. }), .. } => "--budget",
        Command::Skills { command: Some(Skills::Prompt { read_tool, .. }), .. } if read_tool != "read" => "--read-tool",
        Command::Skills {
            command:
                None | Some(Skills::List { .. } | Skills::Info { .. } | Skills::Check { .. } | Skills::Prompt { .. }),
            options,
        } if options.channel.is_some() => "--channel",
        Command::Run(args) if args.talk.yes_read_only => "--yes-read-only",
        Command::Chat(args) if args.yes_read_only => "--yes-read-only",
        Command::Config { command: Config::Get { show_secrets: true, .. } } => "--show-secrets",
        _ => return Ok(()),
    };
    Err(Failure::usage(format!("{what} is not available over a gateway"))
        .hint("run it on the gateway's machine, without --gateway and OPENCLAW_GATEWAY_URL"))
}

/// Runs `work` with a connection.
pub(crate) fn with<F>(target: &Target, work: impl FnOnce(Client) -> F) -> Result<Report, Failure>
where
    F: Future<Output = Result<Report, Failure>>,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::ours)?;
    runtime.block_on(async { work(target.connect().await?).await })
}

/// Asks, and turns a refusal into a failure.
pub(crate) async fn call(client: &Client, method: &str, params: Value) -> Result<Value, Failure> {
    client.call(method, params).await.map_err(|error| refused(method, &error))
}

/// Why a call came to nothing.
pub(crate) fn refused(method: &str, error: &CallError) -> Failure {
    let said = safe(&error.to_string());
    if said == format!("unknown method: {method}") {
        return Failure::input(format!("this gateway does not support `{method}`"));
    }
    Failure::input(said)
}
