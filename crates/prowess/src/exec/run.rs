//! `prowess exec run`: judge, ask, run, and show what it says while it runs.

use std::io::Write;

use prowess_exec::Setting;
use prowess_exec::exec_tool::{ExecCall, Plan, finished};
use prowess_exec::job::{Exit, Handle, Outcome};
use prowess_exec::network::{self, Ran};
use prowess_host::{Failure, exec};
use prowess_policy::{ExecSettings, Grants, SandboxChoice};
use serde_json::json;

use super::{Scope, call, person_for_one_command, refused, setting};
use crate::cli::{CommandArgs, Globals, RunArgs};
use crate::output::{Report, safe};
use crate::wish::Wish;

pub(crate) fn run(command: &CommandArgs, options: &RunArgs, globals: &Globals) -> Result<Report, Failure> {
    let context = globals.context()?;
    let exec = exec(&context, person_for_one_command())?;
    let mut setting = setting(context, &Scope::of(command, globals))?;
    apply(options, &mut setting.settings)?;
    let call = ExecCall {
        timeout: options.timeout.map(|seconds| std::time::Duration::from_secs(seconds).as_secs_f64()),
        pty: options.pty,
        ..call(command)?
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::ours)?;
    runtime.block_on(async {
        let (handle, plan) = match exec.start(&call, &setting).await {
            Ok(started) => started,
            Err(result) if globals.json => return Ok(Report::json(&result)?.code(1)),
            Err(result) => return Err(refused(&result)),
        };
        if !globals.json {
            for warning in &plan.warnings {
                // A reader that has gone away misses a remark.
                let _ = writeln!(anstream::stderr(), "{warning}");
            }
        }
        let wish = Wish::listen().map_err(Failure::ours)?;
        let ran = (&call, &setting);
        if globals.json { in_one_piece(handle, &plan, wish, ran).await } else { as_it_comes(handle, wish, ran).await }
    })
}

/// What the operator adds for this run.
fn apply(options: &RunArgs, settings: &mut ExecSettings) -> Result<(), Failure> {
    let here = std::env::current_dir().map_err(Failure::ours)?;
    let absolute = |paths: &[std::path::PathBuf]| paths.iter().map(|path| here.join(path)).collect::<Vec<_>>();
    if let Some(missing) = options.read.iter().chain(&options.write).find(|path| !here.join(path).exists()) {
        return Err(Failure::input(format!("{} does not exist", missing.display()))
            .hint("--read and --write need existing paths"));
    }
    let grants = Grants {
        read: absolute(&options.read),
        write: absolute(&options.write),
        network: options.network,
        unix_sockets: false,
    };
    settings.grants = std::mem::take(&mut settings.grants).and(grants);
    if let Some(kind) = &options.sandbox {
        let section = json!({ "sandbox": { "kind": kind } });
        settings.sandbox = ExecSettings::read(&section, &serde_json::Value::Null).sandbox;
        if let SandboxChoice::Unknown(word) = &settings.sandbox {
            return Err(Failure::usage(format!("unknown sandbox `{word}`")).hint(
                "use auto, landlock, bubblewrap or off; docker and podman need a container, in tools.exec.sandbox",
            ));
        }
    }
    if settings.sandbox == SandboxChoice::Off {
        let _ = writeln!(anstream::stderr(), "warning: no sandbox; the command can do everything that you can");
    }
    Ok(())
}

/// Waits for the end, then prints the result as a tool gives it.
async fn in_one_piece(
    handle: Handle,
    plan: &Plan,
    mut wish: Wish,
    (call, setting): (&ExecCall, &Setting),
) -> Result<Report, Failure> {
    let outcome = ended(&handle, &mut wish).await;
    let result = network::explain(&call.command, finished(&outcome, plan, &handle.job().cwd), setting);
    Ok(Report::json(&result)?.code(code(&outcome)))
}

/// Prints output while it comes.
async fn as_it_comes(
    handle: Handle,
    mut wish: Wish,
    (call, setting): (&ExecCall, &Setting),
) -> Result<Report, Failure> {
    let mut changes = handle.job().watch();
    loop {
        let news = handle.job().news().await;
        let mut out = anstream::stdout().lock();
        // A reader that has gone away does not stop the command; the next line tells it.
        let _ = out.write_all(news.drained.text.as_bytes()).and_then(|()| out.flush());
        drop(out);
        if handle.job().outcome().is_some() {
            break;
        }
        tokio::select! {
            _ = changes.changed() => {}
            () = wish.comes() => handle.job().kill(),
        }
    }
    let outcome = ended(&handle, &mut wish).await;
    let told = match (&outcome.exit, &outcome.signal) {
        (Exit::TimedOut, _) => {
            Some("the command took too long and was stopped; --timeout SECONDS gives it more time".to_owned())
        }
        (_, Some(signal)) => Some(format!("the command was stopped by {signal}")),
        _ => None,
    };
    let output = outcome.output.text();
    let ran = Ran { command: &call.command, code: outcome.code.map(i64::from), output: &output };
    // A host that the proxy refused or could not reach says it all.
    let hint = if outcome.failed_connections.is_empty() { network::hint(ran, setting) } else { None };
    let failed = outcome.failed_connections.iter().map(|line| safe(line));
    for line in told.into_iter().chain(failed).chain(hint) {
        // Nothing is left to do when stderr has gone away.
        let _ = writeln!(anstream::stderr(), "{line}");
    }
    Ok(Report::text(String::new()).code(code(&outcome)))
}

async fn ended(handle: &Handle, wish: &mut Wish) -> std::sync::Arc<Outcome> {
    tokio::select! {
        outcome = handle.job().wait() => outcome,
        () = wish.comes() => {
            handle.job().kill();
            handle.job().wait().await
        }
    }
}

/// The command's own code, or the shell's way to say which signal ended it.
fn code(outcome: &Outcome) -> u8 {
    const SIGNALS: &[(&str, u8)] = &[
        ("SIGHUP", 1),
        ("SIGINT", 2),
        ("SIGQUIT", 3),
        ("SIGILL", 4),
        ("SIGTRAP", 5),
        ("SIGABRT", 6),
        ("SIGBUS", 7),
        ("SIGFPE", 8),
        ("SIGKILL", 9),
        ("SIGSEGV", 11),
        ("SIGPIPE", 13),
        ("SIGALRM", 14),
        ("SIGTERM", 15),
    ];
    match (&outcome.exit, outcome.code, &outcome.signal) {
        (Exit::TimedOut, _, _) => 124,
        (_, Some(code), _) => u8::try_from(code & 0xff).unwrap_or(1),
        (Exit::Killed, None, _) => 130,
        (_, None, Some(name)) => SIGNALS.iter().find(|(known, _)| known == name).map_or(1, |(_, number)| 128 + number),
        (_, None, None) => 1,
    }
}
