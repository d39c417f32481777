//! One conversation: a model, tools, skills, and a transcript that survives.

pub mod event;
pub mod message;
pub mod model;
pub mod skills;
pub mod tool;
