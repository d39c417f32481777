//! Waiting: does a call of a tool wait for a person, and for the answer to which question?
//!
//! Questions are put deep inside of a call, and whoever made the call looks at it from outside. Both are the same task,
//! which is how they find each other.

use std::sync::Arc;

use tokio::sync::watch;

use super::record::Record;

tokio::task_local! {
    static OPEN: watch::Sender<Option<Arc<Record>>>;
}

/// Does `call`, and has `open` say which question it waits for as long as it waits for one.
pub(crate) async fn watched<F: Future>(open: watch::Sender<Option<Arc<Record>>>, call: F) -> F::Output {
    OPEN.scope(open, call).await
}

/// A question that the call of this task waits for, until this is dropped.
pub(super) struct Waiting;

impl Waiting {
    pub(super) fn for_answer_to(record: &Arc<Record>) -> Self {
        say(Some(Arc::clone(record)));
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        say(None);
    }
}

/// Where nobody watches, nobody has to be told.
fn say(open: Option<Arc<Record>>) {
    let _ = OPEN.try_with(|told| told.send_replace(open));
}
