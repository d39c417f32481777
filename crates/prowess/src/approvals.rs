//! `prowess approvals`: what may run without asking, and how is that changed?

mod asked;
mod log;

use prowess_exec::lookup::Disk;
use prowess_exec::store::{ApprovalsFile, StoreError};
use prowess_host::{Context, Failure, base};
use prowess_policy::advice::may_propose;
use prowess_policy::approvals::{EVERYONE, Entry};
use prowess_policy::lookup::Lookup;
use prowess_policy::posture::Security;
use prowess_policy::reach::{Called, Farther, Kind, Reach, reach};
use prowess_policy::shown;
use prowess_policy::wrapper::Tail;
use serde_json::json;

use crate::cli::{self, Globals};
use crate::doctor::rules_here;
use crate::output::{Report, table};

pub(crate) fn run(command: &cli::Approvals, globals: &Globals) -> Result<Report, Failure> {
    match command {
        cli::Approvals::Watch => return asked::watch(globals),
        cli::Approvals::Resolve { id, decision } => return asked::resolve(id, *decision, globals),
        cli::Approvals::Log { limit, search } => return log::show(*limit, search.as_deref(), globals),
        cli::Approvals::Path | cli::Approvals::List | cli::Approvals::Allow { .. } | cli::Approvals::Revoke { .. } => {}
    }
    let context = globals.context()?;
    let file = ApprovalsFile::in_state_dir(&context.locations.state_dir);
    let who = |all_agents: bool| if all_agents { EVERYONE.to_owned() } else { context.agent.id.to_string() };
    match command {
        // These are asked of a gateway, above.
        cli::Approvals::Watch | cli::Approvals::Resolve { .. } | cli::Approvals::Log { .. } => Ok(Report::text("")),
        cli::Approvals::Path if globals.json => Report::json(&json!({ "path": file.path() })),
        cli::Approvals::Path => Ok(Report::text(format!("{}\n", file.path().display()))),
        cli::Approvals::List => list(&file, &context, globals),
        cli::Approvals::Allow { pattern, all_agents } => {
            let settings = base(&context, context.workspace.clone(), "main").settings;
            let is_set = settings.security.is_some() || settings.ask.is_some();
            allow(&file, &who(*all_agents), pattern, (is_set, globals.json))
        }
        cli::Approvals::Revoke { entry, all_agents } => revoke(&file, &who(*all_agents), entry, globals.json),
    }
}

fn list(file: &ApprovalsFile, context: &Context, globals: &Globals) -> Result<Report, Failure> {
    let approvals = file.load().map_err(broken)?;
    let entries: Vec<(&str, Entry)> = approvals
        .agents()
        .flat_map(|agent| approvals.entries(agent).into_iter().map(move |entry| (agent, entry)))
        .collect();
    if globals.json {
        let shape = |(agent, entry): &(&str, Entry)| {
            json!({
                "agent": agent,
                "id": entry.id,
                "pattern": entry.pattern,
                "argPattern": entry.arg_pattern,
                "cwd": entry.cwd,
                "source": entry.source,
                "lastUsedAt": entry.last_used_at,
                "lastUsedCommand": entry.last_used_command,
                "lastResolvedPath": entry.last_resolved_path,
            })
        };
        return Report::json(&json!({ "path": file.path(), "entries": entries.iter().map(shape).collect::<Vec<_>>() }));
    }
    if entries.is_empty() {
        let settings = base(context, context.workspace.clone(), "main").settings;
        return Ok(Report::text(match rules_here(context, &settings, &approvals).posture.security {
            Security::Contained => NO_RULES_NEEDED,
            Security::Allowlist | Security::Deny | Security::Full => NO_RULES,
        }));
    }
    let row = |(agent, entry): (&str, Entry)| {
        let arguments = match (&entry.arg_pattern, &entry.last_used_command) {
            (None, _) => "any".to_owned(),
            (Some(_), Some(command)) => format!("as in: {}", shown(command)),
            (Some(rule), None) => shown(rule).to_string(),
        };
        let cwd = entry.cwd.as_deref().map_or_else(|| "any".to_owned(), |cwd| shown(cwd).to_string());
        let id: String = entry.id.chars().take(8).collect();
        vec![id, shown(agent).to_string(), shown(&entry.pattern).to_string(), arguments, cwd]
    };
    Ok(Report::text(table(
        &["Id", "Agent", "Program", "Arguments", "Directory"],
        &[3],
        entries.into_iter().map(row).collect(),
    )))
}

/// What to do about an empty list where the rules decide.
const NO_RULES: &str = "No rules yet. To let a program run without asking: prowess approvals allow NAME\n";

/// What it means where the sandbox decides.
const NO_RULES_NEEDED: &str = "No rules, and none are needed: commands run in the sandbox without asking.\n\
    prowess leases list shows what they may use beyond it.\n";

/// What the first rule changes for who had none.
const FIRST_RULE: &str = "Note: from now on the rules decide, and commands that none covers need your approval. To let the \
    sandbox decide as before: prowess config set tools.exec.security contained";

fn allow(file: &ApprovalsFile, agent: &str, pattern: &str, (is_set, json): (bool, bool)) -> Result<Report, Failure> {
    let (pattern, note) = meant(pattern)?;
    let entry = Entry { id: uuid::Uuid::new_v4().to_string(), pattern: pattern.clone(), ..Entry::default() };
    let (was_silent, is_new) = file
        .update(|approvals| (approvals.is_silent(Some(agent)), approvals.grant(Some(agent), &entry)))
        .map_err(broken)?;
    let first = (was_silent && is_new && !is_set).then(|| FIRST_RULE.to_owned());
    let note = note.into_iter().chain(first).reduce(|one, other| format!("{one}\n{other}"));
    if json {
        return Report::json(&json!({ "agent": agent, "pattern": pattern, "added": is_new, "note": note }));
    }
    let done = if is_new { "may run without asking" } else { "was already allowed" };
    let note = note.map_or_else(String::new, |note| format!("{note}\n"));
    Ok(Report::text(format!("{} {done} (agent {agent}).\n{note}", shown(&pattern))))
}

/// The pattern to store: a plain name becomes the path of the program it starts now.
fn meant(pattern: &str) -> Result<(String, Option<String>), Failure> {
    let pattern = pattern.trim();
    if pattern.is_empty() {
        return Err(Failure::usage("the pattern is empty").hint("give a program's name or path"));
    }
    if pattern == "*" {
        let note = "Note: this covers every program except shells, interpreters and launchers.".to_owned();
        return Ok((pattern.to_owned(), Some(note)));
    }
    if pattern.contains(['*', '?', '~']) {
        return Ok((pattern.to_owned(), None));
    }
    let here = std::env::current_dir().map_err(|error| Failure::ours(format!("no current directory: {error}")))?;
    let found = Disk::new(std::env::var("PATH").unwrap_or_default(), &here).program(pattern);
    let Some(program) = found else {
        return Err(Failure::input(format!("`{pattern}` is not installed"))
            .hint("install it first, or give its path, or a pattern such as ~/bin/*"));
    };
    let called = Called { token: pattern, real: &program.real, text: "" };
    let note = match reach(called, &[], Tail::Closed) {
        Reach::Plain if !may_propose(&program.real) => {
            Some("Note: it can destroy data or change the system, and every later call of it runs without asking.")
        }
        Reach::Plain => None,
        Reach::Farther(Farther { kind: Kind::Shell, .. }) => {
            Some("Note: it is a shell. The rule does not cover the commands it is given.")
        }
        Reach::Farther(Farther { kind: Kind::StartsProgram, .. }) => {
            Some("Note: it starts other programs. Each of them needs its own rule.")
        }
        Reach::Script(_) | Reach::Farther(_) => {
            Some("Note: it runs other code. The rule covers script files, never code in its arguments.")
        }
    };
    let note = note.map(str::to_owned);
    // A link that only the operator can change is what they meant; any other is stored as what it leads to.
    let path = if program.is_trusted() { &program.path } else { &program.real };
    Ok((path.to_string_lossy().into_owned(), note))
}

fn revoke(file: &ApprovalsFile, agent: &str, wanted: &str, json: bool) -> Result<Report, Failure> {
    let removed = file
        .update(|approvals| {
            let full = approvals.entries(agent).into_iter().map(|entry| entry.id);
            let matching: Vec<String> = full.filter(|id| wanted.len() >= 4 && id.starts_with(wanted)).collect();
            match matching.as_slice() {
                [only] => approvals.revoke(Some(agent), only),
                // A name means what it meant when it was allowed.
                _ => match approvals.revoke(Some(agent), wanted) {
                    0 => meant(wanted).map_or(0, |(pattern, _)| approvals.revoke(Some(agent), &pattern)),
                    removed => removed,
                },
            }
        })
        .map_err(broken)?;
    if removed == 0 {
        return Err(Failure::input(format!("agent {agent} has no rule `{wanted}`"))
            .hint("prowess approvals list shows the rules"));
    }
    if json {
        return Report::json(&json!({ "agent": agent, "removed": removed }));
    }
    Ok(Report::text(format!(
        "{} removed (agent {agent}).\n",
        if removed == 1 { "One rule".to_owned() } else { format!("{removed} rules") }
    )))
}

/// What to do about a file of rules or leases that cannot be used.
pub(crate) fn broken(error: StoreError) -> Failure {
    let hint = match &error {
        StoreError::Broken { .. } | StoreError::TooLarge(_) => {
            "fix the file or move it elsewhere; until then no command runs"
        }
        StoreError::Unsafe(path) => return Failure::input(&error).hint(format!("chmod go-w {}", path.display())),
        StoreError::NotAFile(_) => "replace it with a regular file, or remove it",
        StoreError::Lock(_) => "try again when the other process is done",
        StoreError::Io { .. } => "check that you can read and write the state directory",
    };
    Failure::input(error).hint(hint)
}
