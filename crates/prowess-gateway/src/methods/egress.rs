//! `egress.log`: which hosts did commands reach?

use prowess_exec::connections::ConnectionQuery;
use serde_json::json;

use super::{Answer, Ask, Method, method};
use crate::aside::blocking;
use crate::params::{ANY_TEXT, Shape, integer_within, optional, shape};
use crate::scope::{Access, Scope};
use crate::wire::Refusal;

const LOG: Shape = shape(&[
    optional("limit", integer_within(1, 500)),
    optional("cursor", ANY_TEXT),
    optional("host", ANY_TEXT),
    optional("skill", ANY_TEXT),
    optional("outcome", ANY_TEXT),
]);

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[method!("egress.log", Access::Operator(Scope::Read), log)];

/// Connections that are over, the newest first, page by page. The first page also has those that are open.
async fn log(ask: Ask) -> Answer {
    ask.checked(&LOG)?;
    blocking(move || {
        let params = ask.params();
        let text = |name: &str| params[name].as_str().map(str::to_owned);
        let limit = params["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok());
        let query = ConnectionQuery {
            limit,
            cursor: text("cursor"),
            host: text("host"),
            skill: text("skill"),
            outcome: text("outcome"),
        };
        let page = ask.gateway.exec.connections.log().page(&query);
        let mut page = page.map_err(|error| Refusal::unavailable(format!("the log cannot be read: {error}")))?;
        if query.cursor.is_none() {
            let (open, count) = ask.gateway.traffic.open();
            (page["open"], page["openCount"]) = (json!(open), json!(count));
        }
        Ok(page)
    })
    .await?
}
