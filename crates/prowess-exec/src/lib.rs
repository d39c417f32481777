//! Run what may run, exactly as it was judged, and kept in its place.
//!
//! [`Exec`] takes a tool call through the judge of `prowess-policy`, asks an [`Approver`](approver::Approver) where a
//! person has to decide, and starts it in a [`sandbox`] with an environment of its own. What runs is a [`job`]; what it
//! says is cleaned and kept within bounds ([`output`]); what a model gets back is a [`ToolResult`].

pub mod approver;
pub mod audit;
mod code_paths;
pub mod confine;
pub mod connections;
pub mod egress;
pub mod exec;
pub mod exec_tool;
mod git_file;
pub mod job;
pub mod keys;
pub mod launch;
pub mod leases;
pub mod lookup;
mod loopback;
mod made_files;
pub mod network;
pub mod output;
pub mod process_tool;
mod program_homes;
mod refusal;
pub mod remote;
mod repository;
pub mod rules;
pub mod sandbox;
mod seal;
mod session_tmp;
mod setting;
pub mod store;
pub mod terminal;
pub mod tool;
mod withheld;

pub use exec::{Case, Exec, Terms};
pub use setting::{Setting, SkillShare};
pub use tool::ToolResult;
pub use withheld::WithheldKey;
