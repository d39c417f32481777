//! Approvals: what is asked of people, and what was answered?
//!
//! A [`Board`] has the questions that are open. Whoever may answer hears of each, the first answer counts, and all hear
//! of that. A question that nobody could answer is over at once, and so is every question of a gateway that ended: a
//! restart never turns silence into consent.

mod board;
pub(crate) mod file;
mod guard;
mod journal;
pub(crate) mod log;
mod record;
mod show;

pub(crate) use board::{Asked, Board, Connected};
pub(crate) use guard::forward;
pub(crate) use log::Answerer;
pub(crate) use record::{Decision, Draft, PATIENCE, Record, Requester};
pub(crate) use show::{MAX_COMMAND, env_binding, multiline, node_request, seal, shown_env, words};
