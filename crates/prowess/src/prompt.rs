//! `prowess prompt`: the whole system prompt, and what its parts cost.

pub(crate) mod assembled;
pub(crate) mod cost;
