//! Which tools does every agent have?

use std::path::PathBuf;
use std::sync::Arc;

use prowess_exec::exec_tool::Background;
use prowess_exec::{Exec, Setting, process_tool};
use prowess_policy::protected::Protection;

use super::edit::EditTool;
use super::exec::ExecTool;
use super::place::Fences;
use super::policy::ToolSettings;
use super::process::ProcessTool;
use super::read::ReadTool;
use super::secrets::Secrets;
use super::write::WriteTool;
use crate::tool::Tool;

/// Read, write, edit, exec and process, for the agent of `setting`. Which of them it gets is up to
/// [`ToolSet::allowed_by`](super::ToolSet::allowed_by).
#[must_use]
pub fn standard(exec: Arc<Exec>, setting: Setting, settings: &ToolSettings) -> Vec<Arc<dyn Tool>> {
    let fences = Arc::new(Fences {
        hidden: hidden(&exec, &setting),
        outside: settings.outside(),
        protection: Protection::new(&setting.settings.protected),
        leases: exec.leases.clone(),
        approved: Arc::clone(&exec.approved_files),
    });
    // Only where it can be looked after may a command go on by itself.
    let can_look = settings.allows(process_tool::NAME);
    let background = if can_look { Background::Allowed } else { Background::NotAllowed };
    let secrets = Arc::new(Secrets::default());
    vec![
        Arc::new(ReadTool::new(Arc::clone(&fences))),
        Arc::new(WriteTool::new(Arc::clone(&fences))),
        Arc::new(EditTool::new(fences)),
        Arc::new(ExecTool::new(Arc::clone(&exec), setting, background, Arc::clone(&secrets))),
        Arc::new(ProcessTool::new(exec, secrets)),
    ]
}

/// What no tool touches: what the operator hides, what decides about commands, and the records of all agents.
fn hidden(exec: &Exec, setting: &Setting) -> Vec<PathBuf> {
    let approvals = exec.approvals.path();
    let audit = exec.audit.path();
    let mut hidden = setting.hidden.clone();
    hidden.extend([approvals.to_owned(), exec.approvals.lock_path()]);
    hidden.push(audit.parent().unwrap_or(audit).to_owned());
    if let Some(state) = approvals.parent() {
        let agents = state.join("agents");
        let records = agents.join(&setting.agent).join("sessions");
        hidden.push(if setting.workspace.starts_with(&agents) { records } else { agents });
    }
    hidden
}
