//! `skills.status` and `skills.commands`: how do the skills of an agent stand, and which can be called by name?

use serde::Deserialize;

use crate::aside::blocking;
use crate::methods::given::{given, invalid};
use crate::methods::{Answer, Ask};
use crate::params::{Kind, Shape, TEXT, integer_from, optional, shape};
use crate::skill_report::SkillQuery;

const FIELDS: Kind = Kind::Choice(&["full", "summary", "problems"]);

const PARAMS: Shape = shape(&[
    optional("agentId", TEXT),
    optional("fields", FIELDS),
    optional("skill", TEXT),
    optional("search", TEXT),
    optional("limit", integer_from(1)),
    optional("cursor", TEXT),
]);

const AGENT: Shape = shape(&[optional("agentId", TEXT)]);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    agent_id: Option<String>,
    #[serde(default)]
    fields: Fields,
    skill: Option<String>,
    search: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

/// How much a client wants to know.
#[derive(Deserialize, Default)]
#[serde(rename_all = "lowercase")]
enum Fields {
    #[default]
    Full,
    Summary,
    Problems,
}

/// How the skills of an agent stand: all of them and everything, unless the client asks for less.
pub(super) async fn status(ask: Ask) -> Answer {
    let Params { agent_id, fields, skill, search, limit, cursor } = given(&ask, &PARAMS)?;
    let skip = match cursor.as_deref().map(str::parse) {
        None => 0,
        Some(Ok(skip)) => skip,
        Some(Err(_)) => return Err(invalid("skills.status", "at /cursor: must be a cursor from an earlier answer")),
    };
    let query = SkillQuery { skill, search, limit, skip };
    blocking(move || {
        let report = ask.gateway.agents.get(agent_id.as_deref())?.skill_report();
        Ok(match fields {
            Fields::Full => report.full(&query),
            Fields::Summary => report.summary(&query),
            Fields::Problems => report.troubles(),
        })
    })
    .await?
}

/// The names that can be called with a slash.
pub(super) async fn commands(ask: Ask) -> Answer {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        agent_id: Option<String>,
    }
    let Params { agent_id } = given(&ask, &AGENT)?;
    blocking(move || Ok(ask.gateway.agents.get(agent_id.as_deref())?.skill_report().commands())).await?
}
