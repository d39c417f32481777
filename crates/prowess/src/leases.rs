//! `prowess leases`: what may commands use beyond the sandbox, and how is that changed?

use std::path::{Path, PathBuf};

use prowess_exec::leases::{Holder, Leases};
use prowess_host::{Context, Failure, View};
use prowess_policy::env::{hijacks, is_inherited, is_valid_name};
use prowess_policy::lease::{HeldLease, HostRule, Lease, Lifetime, Origin};
use prowess_policy::{listed, quote, shown};
use serde_json::json;

use crate::approvals::broken;
use crate::cli::{self, Globals, LeaseArgs};
use crate::output::{Report, table};
use crate::skills;

pub(crate) fn run(command: &cli::Leases, globals: &Globals) -> Result<Report, Failure> {
    let context = globals.context()?;
    let leases = Leases::in_state_dir(&context.locations.state_dir);
    match command {
        cli::Leases::Path if globals.json => Report::json(&json!({ "path": leases.path() })),
        cli::Leases::Path => Ok(Report::text(format!("{}\n", leases.path().display()))),
        cli::Leases::List => list(&leases, globals.json),
        cli::Leases::Allow(args) => allow(&leases, context, args, globals.json),
        cli::Leases::Revoke { wanted } => revoke(&leases, wanted, globals.json),
    }
}

fn list(leases: &Leases, json: bool) -> Result<Report, Failure> {
    let held = leases.load().map_err(broken)?;
    if json {
        return Report::json(&json!({ "path": leases.path(), "leases": held }));
    }
    if held.is_empty() {
        return Ok(Report::text(
            "No leases yet. You are asked when a command wants to leave the sandbox. To allow a host beforehand:\n\
             prowess leases allow --host NAME\n",
        ));
    }
    let row = |held: HeldLease| {
        let id: String = held.id.chars().take(8).collect();
        let skill = held.skill.as_deref().map_or_else(|| "–".to_owned(), |skill| shown(skill).to_string());
        let allowed = shown(&listed(&held.lease.phrases())).to_string();
        vec![id, shown(&held.agent).to_string(), skill, allowed]
    };
    Ok(Report::text(table(&["Id", "Agent", "Skill", "May"], &[3], held.into_iter().map(row).collect())))
}

fn allow(leases: &Leases, context: Context, args: &LeaseArgs, json: bool) -> Result<Report, Failure> {
    let lease = lease(args, context.user_home())?;
    let state_dir = &context.locations.state_dir;
    let opens_all = |path: &&PathBuf| context.user_home().starts_with(path) || state_dir.starts_with(path);
    if let Some(path) = lease.writes.iter().find(opens_all) {
        return Err(Failure::input(format!("{} contains your settings and keys", path.display()))
            .hint("name a directory below it"));
    }
    if lease.is_empty() {
        return Err(Failure::usage("nothing to allow").hint("name a host, for example: --host wttr.in"));
    }
    let agent = context.agent.id.to_string();
    let skill = match &args.skill {
        Some(name) => {
            let view = View::load(context, None)?;
            let skill = skills::find(&view, name)?;
            Some((skill.name.to_string(), view.bindings.lease_source(skill)))
        }
        None => None,
    };
    let whose = skill.as_ref().map_or_else(
        || format!("commands of agent {agent} that belong to no skill"),
        |(name, _)| format!("commands of skill {} (agent {agent})", shown(name)),
    );
    let phrases = lease.phrases();
    let holder = Holder { agent, session: String::new(), skill };
    leases.keep(&holder, lease.clone(), (Origin::Settings, Lifetime::Always)).map_err(broken)?;
    if json {
        return Report::json(&json!({
            "agent": holder.agent, "skill": holder.skill.map(|(name, _)| name), "lease": lease,
        }));
    }
    Ok(Report::text(format!("From now on {whose} may {}.\n", shown(&listed(&phrases)))))
}

/// The lease that the arguments describe.
fn lease(args: &LeaseArgs, home: &Path) -> Result<Lease, Failure> {
    let hosts = args.host.iter().map(|host| {
        host.parse::<HostRule>().map_err(|error| {
            Failure::input(format!("`{}` is not a host: {error}", shown(host)))
                .hint("write it as wttr.in, wttr.in:443 or *.example.com")
        })
    });
    let paths = |paths: &[PathBuf]| paths.iter().map(|path| whole(path, home)).collect::<Result<Vec<_>, _>>();
    for key in &args.key {
        check_key(key)?;
    }
    Ok(Lease {
        hosts: hosts.collect::<Result<_, _>>()?,
        reads: paths(&args.read)?,
        writes: paths(&args.write)?,
        sockets: paths(&args.socket)?,
        keys: args.key.clone(),
        keeps_running: args.keeps_running,
    })
}

/// A key is the name of a variable that a skill's commands may get.
fn check_key(key: &str) -> Result<(), Failure> {
    let shown = shown(key);
    if key.contains(['/', '~']) {
        return Err(Failure::input(format!(
            "`{shown}` is a path; a key is the name of a variable, such as GITHUB_TOKEN"
        ))
        .hint(format!("to let commands read the file: prowess leases allow --read {}", quote(key))));
    }
    if let Some((name, _)) = key.split_once('=') {
        return Err(Failure::input(format!("`{shown}` has a value; a lease names the variable only")).hint(format!(
            "use --key {}, and set the value with prowess config set skills.entries.NAME.env",
            quote(name)
        )));
    }
    if !is_valid_name(key) {
        return Err(Failure::input(format!("`{shown}` is not the name of a variable"))
            .hint("use letters, digits and underscores, such as GITHUB_TOKEN"));
    }
    if hijacks(key) || is_inherited(key) {
        return Err(Failure::input(format!("`{shown}` is not a key: it steers programs, or every command has it"))
            .hint("name the variable that holds the secret, such as GITHUB_TOKEN"));
    }
    Ok(())
}

/// The path without symlinks, as a command would reach it. What is not there yet may come.
fn whole(path: &Path, home: &Path) -> Result<PathBuf, Failure> {
    let expanded = path.strip_prefix("~").map_or_else(|_| path.to_owned(), |rest| home.join(rest));
    let whole = std::path::absolute(&expanded)
        .map_err(|error| Failure::input(format!("{}: {error}", path.display())).hint("name a file or directory"))?;
    Ok(whole.canonicalize().unwrap_or(whole))
}

fn revoke(leases: &Leases, wanted: &str, json: bool) -> Result<Report, Failure> {
    let removed = leases.revoke(wanted).map_err(broken)?;
    if removed == 0 {
        return Err(Failure::input(format!("there is no lease `{}`", shown(wanted)))
            .hint("prowess leases list shows the leases"));
    }
    if json {
        return Report::json(&json!({ "removed": removed }));
    }
    let what = if removed == 1 { "One lease".to_owned() } else { format!("{removed} leases") };
    Ok(Report::text(format!("{what} revoked. What is running keeps what it has.\n")))
}
