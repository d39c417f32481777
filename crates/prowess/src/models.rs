//! `prowess models`: which models are configured, and which of them answer?

pub(crate) mod configured;
pub(crate) mod offer;
