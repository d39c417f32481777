//! One conversation: a model, tools, skills, and a transcript that survives.

mod answer;
pub mod compaction;
pub mod embedded;
pub mod event;
pub mod ledger;
pub mod message;
pub mod model;
pub mod prompt;
pub mod provider;
pub mod repair;
pub mod retry;
pub mod scripted;
pub mod session;
pub mod settings;
pub mod skills;
pub mod slash;
pub mod tool;
