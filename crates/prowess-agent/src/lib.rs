//! One conversation: a model, tools, skills, and a transcript that survives.
//!
//! ```
//! use std::sync::Arc;
//! use prowess_agent::{Agent, Run, scripted::Scripted};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let model = Arc::new(Scripted::parse(r#"{"text": "Hello, Ada."}"#)?);
//! let agent = Arc::new(Agent::new(model, &folder.path().join("workspace"), &folder.path().join("state")));
//! let mut conversation = agent.open("main")?;
//! let outcome = conversation.say("I am Ada.", &Run::default()).await?;
//! assert_eq!(outcome.text(), "Hello, Ada.");
//! # Ok(())
//! # }
//! ```
//!
//! Any [`model::Model`] takes the script's place: a [`provider::Remote`] behind a wire, or the [`embedded`] planner.
//! Skills come with [`Agent::skills`], tools with [`Agent::tools`], somebody to ask with [`Agent::approver`], and a
//! [`Run`] has events to listen to and a way to stop it.

pub mod agent;
mod answer;
mod compaction;
mod conversation;
pub mod embedded;
pub mod event;
pub mod frame;
mod guard;
pub mod image;
pub mod ledger;
pub mod message;
pub mod model;
pub mod news;
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
pub mod turn;

pub use agent::Agent;
pub use conversation::Conversation;
pub use turn::{Delivery, Input, Outcome, Run};
