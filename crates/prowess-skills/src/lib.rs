//! Find agent skills, gate them, and show them to a model.
//!
//! A *skill* is a folder with a `SKILL.md`: YAML frontmatter for machines, Markdown for a language model. This crate
//! answers three questions: which skills are there, which may be offered here and now, and what exactly is a model told
//! about them. It is synchronous and quiet: it takes values and returns values, reads files, and writes, logs, spawns
//! and connects nothing.
//!
//! ```
//! use prowess_skills::{Budget, Catalog, Filters, Gate, Limits, Machine, Places, Reach, SkillsConfig, Snapshot, World};
//!
//! # let dir = std::env::temp_dir().join(format!("prowess-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(dir.join("skills/weather")).unwrap();
//! # std::fs::write(dir.join("skills/weather/SKILL.md"), "---\nname: weather\ndescription: Forecasts.\n---\n").unwrap();
//! // 1. Read: six tiers, the later wins. Nothing here can fail; what went wrong is in `catalog.problems()`.
//! let places = Places { workspace: Some(dir.clone()), ..Places::default() };
//! let catalog = Catalog::load(&places.roots(), &Reach::default());
//!
//! // 2. Gate: a machine is a value, so a remote one or a made-up one will do.
//! let world = World { machines: vec![Machine { os: "linux".into(), ..Machine::default() }], ..World::default() };
//! let (config, filters) = (SkillsConfig::default(), Filters::default());
//! let gate = Gate { world: &world, config: &config, filters: &filters };
//!
//! // 3. Freeze, with the prompt and a fingerprint that changes exactly when something in it does.
//! let snapshot = Snapshot::take(&catalog, &gate, None, &Budget::from(&Limits::default()));
//! assert!(snapshot.prompt().text.contains("<name>weather</name>"));
//! # std::fs::remove_dir_all(dir).unwrap();
//! ```
//!
//! | step | module |
//! |---|---|
//! | settings → roots | [`Places`], [`plugin_dirs`] |
//! | roots → candidates | [`discover`](fn@discover), [`Skill::parse`], [`Document`] |
//! | candidates → catalogue | [`Catalog`], [`Memory`] |
//! | what machines have | [`World`], [`probe`](fn@probe) |
//! | skill → objections | [`Gate`] |
//! | catalogue → snapshot | [`Snapshot`], [`render`], [`section`] |
//! | message → command | [`commands`], [`resolve`] |
//! | skill → environment | [`env::plan`] |

mod budget;
mod capabilities;
mod catalog;
mod command;
mod discover;
pub mod env;
mod filter;
mod frontmatter;
mod gate;
pub mod install;
mod json;
mod lookalike;
mod memory;
mod metadata;
mod plugin;
mod probe;
mod problem;
mod prompt;
mod root;
mod secret;
mod settings;
mod skill;
mod snapshot;
pub mod standard;
pub mod text;
mod tier;
mod world;

pub use budget::{Budget, Cut, SHORTEST, tokens};
pub use capabilities::{Capabilities, UnknownPart};
pub use catalog::{Broken, Catalog, Shadowed};
pub use command::{Call, Command, MAX_NAME, RESERVED, commands, resolve, sanitize};
pub use discover::{Candidate, Finding, MAX_LEVELS, Reach, discover};
pub use filter::{Filter, Filters};
pub use frontmatter::{Document, Flaw};
pub use gate::{Gate, Objection};
pub use memory::{Identity, Memory, Place};
pub use metadata::{BLOCKS, Metadata, Needs};
pub use plugin::{MANIFEST, PluginPlaces, plugin_dirs};
pub use probe::{declared_bins, probe, wanted_bins};
pub use problem::{Position, Problem, ProblemKind, Severity};
pub use prompt::{Mode, Prompt, compact, render, section};
pub use root::{Origin, Places, Root, find_bundled};
pub use secret::Secret;
pub use settings::{AllowBundled, ApiKey, EnvPrecedence, Limits, SkillConfig, SkillsConfig};
pub use skill::{Dispatch, Invocation, Skill, SkillName, Standard};
pub use snapshot::{Fingerprint, HeldBack, Snapshot};
pub use tier::Tier;
pub use world::{Machine, World, system, this_system, truthy_paths, wanted_config};
