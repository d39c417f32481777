//! Tools with real files and real commands: what may a model read, change and run, and what does it get back?

#[path = "tools/commands.rs"]
mod commands;
#[path = "tools/files.rs"]
mod files;
#[path = "tools/permission.rs"]
mod permission;
#[path = "tools/secrets.rs"]
mod secrets;
#[path = "tools/taken_up.rs"]
mod taken_up;
