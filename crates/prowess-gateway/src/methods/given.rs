//! What was given with a request, as a value of its own type.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Ask;
use crate::params::Shape;
use crate::wire::Refusal;

/// Reads the parameters of `ask`, which have to be of that shape.
pub(super) fn given<T: DeserializeOwned>(ask: &Ask, shape: &Shape) -> Result<T, Refusal> {
    let params = match ask.checked(shape)? {
        Value::Null => json!({}),
        params => params.clone(),
    };
    serde_json::from_value(params).map_err(|error| invalid(&ask.request.method, &format!("at root: {error}")))
}

/// The refusal of what is wrong with the parameters of `method`.
pub(super) fn invalid(method: &str, why: &str) -> Refusal {
    Refusal::invalid(format!("invalid {method} params: {why}"))
}
