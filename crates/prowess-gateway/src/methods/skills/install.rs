//! `skills.install`: how does a machine get what a skill needs?
//!
//! Nothing is installed here yet: for what there is, the answer says which command to run.

use prowess_host::{View, fix};
use prowess_skills::install::InstallSpec;
use serde::Deserialize;
use serde_json::json;

use crate::aside::blocking;
use crate::methods::given::given;
use crate::methods::{Answer, Ask};
use crate::params::{Shape, TEXT, integer_from, optional, required, shape};
use crate::wire::Refusal;

/// The shortest time that an installation may be given, in milliseconds.
const SHORTEST: i64 = 1000;

const PARAMS: Shape =
    shape(&[required("name", TEXT), required("installId", TEXT), optional("timeoutMs", integer_from(SHORTEST))]);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    name: String,
    install_id: String,
}

/// Says how to install what a skill needs.
pub(super) async fn install(ask: Ask) -> Answer {
    let params: Params = given(&ask, &PARAMS)?;
    let view = blocking(move || ask.gateway.agents.get(None).map(|home| home.view())).await??;
    Err(refusal(&answer(&view, &params)))
}

fn answer(view: &View, params: &Params) -> String {
    let Some(skill) = view.catalog.skills().iter().find(|skill| skill.name.as_str() == params.name) else {
        return format!("Skill not found: {}", params.name);
    };
    let wanted = |(place, spec): &(usize, &InstallSpec)| spec.name(*place) == params.install_id;
    let Some((_, spec)) = skill.metadata.install.iter().enumerate().find(wanted) else {
        return format!("Installer not found: {}", params.install_id);
    };
    let command = fix::command(&spec.package, &view.settings.install.node_manager);
    format!("this gateway does not install programs; run it yourself: {command}")
}

fn refusal(message: &str) -> Refusal {
    let payload = json!({"ok": false, "message": message, "stdout": "", "stderr": "", "code": null});
    Refusal::unavailable(message).payload(payload)
}
