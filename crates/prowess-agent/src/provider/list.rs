//! Which models does an endpoint have? One short question, and the only one that costs nothing.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;

use super::Remote;
use super::fault::{self, Refusal};
use crate::model::ModelError;

/// How much of the list is read.
const MAX_LIST_BYTES: usize = 4 * 1024 * 1024;

/// How many models of it are believed.
const MAX_LISTED: usize = 10_000;

impl Remote {
    /// The names of the models that this endpoint has. Who does not answer within `patience` does not answer.
    pub async fn models(&self, patience: Duration) -> Result<Vec<String>, ModelError> {
        let provider = || self.endpoint.provider.clone();
        let late = |_| {
            let why = format!("nothing came for {} seconds", patience.as_secs());
            ModelError::Connection { provider: provider(), why }
        };
        tokio::time::timeout(patience, self.list()).await.map_err(late)?.map_err(|error| self.hush(error))
    }

    async fn list(&self) -> Result<Vec<String>, ModelError> {
        let provider = || self.endpoint.provider.clone();
        let mut url = self.http.url.clone();
        // All formats keep the list beside the place that answers.
        let base = ["/messages", "/chat/completions", "/responses"]
            .iter()
            .find_map(|end| url.path().strip_suffix(end))
            .unwrap_or_default()
            .to_owned();
        url.set_path(&format!("{base}/models"));
        let request = self.http.client.get(url).headers(self.http.headers.clone());
        let response = request.send().await.map_err(|error| self.http.unreachable(error))?;
        let status = response.status();
        let body = text(response).await;
        if !status.is_success() {
            let refusal = Refusal { status: status.as_u16(), body: &body, after: None };
            return Err(fault::of_status(&self.endpoint.provider, &refusal));
        }
        let malformed = |why: &str| ModelError::Malformed { provider: provider(), why: why.to_owned() };
        let list: Value = serde_json::from_str(&body).map_err(|_| malformed("its list of models is not JSON"))?;
        let models = list["data"].as_array().ok_or_else(|| malformed("it has no list of models"))?;
        Ok(models.iter().filter_map(|model| model["id"].as_str()).take(MAX_LISTED).map(str::to_owned).collect())
    }
}

async fn text(mut response: Response) -> String {
    let mut body = Vec::new();
    while body.len() < MAX_LIST_BYTES {
        let Ok(Some(chunk)) = response.chunk().await else { break };
        let room = MAX_LIST_BYTES - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
    }
    String::from_utf8_lossy(&body).into_owned()
}
