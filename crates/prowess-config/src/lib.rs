//! What did the operator ask for?
//!
//! One JSON5 file with includes, a few `.env` files, environment variables and command-line flags become a [`Config`]
//! in which every value knows where it came from. Nothing here reads the process environment by itself: the caller
//! takes an [`Env`] once, at the edge, and passes it in. What does not stop us is a [`Warning`], not an error.
//!
//! The steps, each its own file: [`Locations`] says which file, `source` parses it, `include` pulls in others,
//! `variables` and `substitute` fill in `${NAME}`, [`schema`] checks what is known, [`Config`] answers, and
//! [`ConfigFile`] changes the file without losing its comments.
//!
//! ```
//! use prowess_config::{Config, Env, Layer};
//!
//! let env = Env::from_iter([("WEATHER_KEY", "k-123")]);
//! let config = Config::parse(
//!     "{ skills: { limits: { maxSkillsInPrompt: 20 }, entries: { weather: { apiKey: '${WEATHER_KEY}' } } } }",
//!     &env,
//! )?;
//!
//! let limit = config.get("skills.limits.maxSkillsInPrompt").expect("it is in the text");
//! assert_eq!((limit.value.as_u64(), limit.layer), (Some(20), Layer::File));
//! // Defaults appear on `get`, and say so.
//! assert_eq!(config.get("skills.load.watch").map(|found| found.layer), Some(Layer::Default));
//! // Flags win, and secrets stay out of what is shown.
//! let config = config.with_flag("skills.limits.maxSkillsInPrompt", 5.into())?;
//! assert_eq!(config.get("skills.limits.maxSkillsInPrompt").map(|found| found.layer), Some(Layer::Flag));
//! assert_eq!(config.redacted()["skills"]["entries"]["weather"]["apiKey"], prowess_config::REDACTED);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod agent;
mod channel;
mod config;
mod dotenv;
mod edit;
mod env;
mod include;
mod locations;
mod path;
mod redact;
pub mod schema;
mod source;
mod substitute;
mod tree;
mod variables;
mod warning;

pub use agent::{Agent, AgentId, Agents, UnknownAgent};
pub use channel::{channel_skills, session_skills};
pub use config::{Config, FlagError, Layer, Layered, LoadError};
pub use edit::{Change, ConfigFile, EditError, Edited};
pub use env::Env;
pub use include::{IncludeError, MAX_INCLUDE_BYTES, MAX_INCLUDE_DEPTH, MAX_INCLUDE_READS};
pub use locations::{LocationError, LocationFlags, Locations, expand_user};
pub use path::{KeyPath, PathError};
pub use prowess_skills::Secret;
pub use redact::{NothingHidden, REDACTED, redact_with, secrets, unredact};
pub use source::{MAX_BYTES, MAX_DEPTH, SourceError, parse_value};
pub use substitute::Unavailable;
pub use variables::{ConfigEnv, Refused, Variable, VariableSource};
pub use warning::{Warning, WarningKind};
