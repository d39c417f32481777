//! `models.list`: which models can be chosen?

use prowess_host::model_settings;
use serde_json::{Value, json};

use super::{Answer, Ask, Method, method};
use crate::aside::blocking;
use crate::params::NOTHING;
use crate::scope::{Access, Scope};

/// The methods of this matter.
pub(super) const METHODS: &[Method] = &[method!("models.list", Access::Operator(Scope::Read), list)];

async fn list(ask: Ask) -> Answer {
    NOTHING.check("models.list", ask.params())?;
    blocking(move || {
        let settings = model_settings(&*ask.gateway.agents.context()?);
        let models: Vec<Value> = settings
            .models
            .iter()
            .filter(|model| model.is_usable())
            .map(|model| {
                let mut row = json!({
                    "id": model.model,
                    "name": model.name.as_ref().unwrap_or(&model.model),
                    "provider": model.provider,
                    "reasoning": model.reasoning,
                });
                if model.context_window > 0 {
                    row["contextWindow"] = model.context_window.into();
                }
                row
            })
            .collect();
        Ok(json!({"models": models}))
    })
    .await?
}
