//! The link: through which connection does the gateway hear us, if there is one?

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::client::{CallError, Client};

/// How long an answer waits for a connection to come back.
const PATIENCE: Duration = Duration::from_secs(600);

/// The connection to the gateway, which comes and goes.
#[derive(Clone)]
pub(super) struct Link {
    client: Arc<watch::Sender<Option<Client>>>,
    over: CancellationToken,
}

impl Default for Link {
    fn default() -> Self {
        Self { client: Arc::new(watch::Sender::new(None)), over: CancellationToken::new() }
    }
}

impl Link {
    /// There is a connection now.
    pub(super) fn open(&self, client: Client) {
        self.client.send_replace(Some(client));
    }

    /// There is none any more.
    pub(super) fn close(&self) {
        self.client.send_replace(None);
    }

    /// There will be none any more: nobody waits for one.
    pub(super) fn end(&self) {
        self.close();
        self.over.cancel();
    }

    /// Tells the gateway something, if it is there now.
    pub(super) fn tell(&self, event: &str, payload: &Value) {
        let client = self.client.borrow().clone();
        if let Some(client) = client {
            let params = json!({"event": event, "payloadJSON": payload.to_string()});
            // What is told need not be answered.
            let _ = client.ask("node.event", &params);
        }
    }

    /// Tells the gateway something that it has to hear, as soon as it is there.
    pub(super) async fn deliver(&self, method: &str, params: Value) {
        let delivery = async {
            let mut link = self.client.subscribe();
            loop {
                let client = match link.wait_for(Option::is_some).await.as_deref() {
                    Ok(Some(client)) => client.clone(),
                    Ok(None) | Err(_) => return,
                };
                match client.call(method, params.clone()).await {
                    Ok(_) | Err(CallError::Refused { .. }) => return,
                    // The connection was lost meanwhile; there will be another.
                    Err(_) => {}
                }
                if link.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            delivered = tokio::time::timeout(PATIENCE, delivery) => if delivered.is_err() {
                tracing::warn!("an answer could not be delivered: the gateway did not come back");
            },
            () = self.over.cancelled() => {}
        }
    }

    /// Asks the gateway.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, CallError> {
        let client = self.client.borrow().clone();
        let client = client.ok_or_else(|| CallError::Gone("no connection".to_owned()))?;
        client.call(method, params).await
    }
}
