//! All integration tests of this crate, in one program: most of what building them costs is linking.

#[path = "support/skill.rs"]
mod made;

mod attacks;
mod commands;
mod conformance;
mod corpus;
mod discovery;
mod eligibility;
mod env;
mod frontmatter;
mod memory;
mod prompt;
mod properties;
mod standard;
mod truncation;
