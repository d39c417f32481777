//! Vouching: is what runs now what a person approved elsewhere?
//!
//! A seal is a fingerprint of a judged command: its text, its folder, for whom it runs, and every file that it names, as
//! each was at that moment. What was prepared gets one; what is approved later has to have the same.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

use prowess_exec::approver::Approver;
use prowess_policy::{Answer, Judgment, Question};
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::device::hex;

/// How many prepared commands are remembered.
const MAX_PREPARED: usize = 256;

/// The seal of a judged command.
pub(super) fn seal(judgment: &Judgment) -> String {
    let binding = &judgment.request().binding;
    let pins: Vec<_> = judgment.pins().iter().map(|pin| json!([pin.path, pin.real, pin.identity])).collect();
    let whole = json!([binding.command, binding.cwd, binding.agent, binding.session, pins]);
    hex(&Sha256::digest(whole.to_string().as_bytes()))
}

/// A fingerprint of a request, to tell whether two are the same.
pub(super) fn fingerprint(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// What was prepared lately, for gateways that do not hand the seal back.
#[derive(Default)]
pub(super) struct Prepared(Mutex<VecDeque<(String, String)>>);

impl Prepared {
    /// Remembers the seal of what was prepared for `request`.
    pub(super) fn note(&self, request: &str, seal: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|(one, _)| one != request);
        if all.len() >= MAX_PREPARED {
            all.pop_front();
        }
        all.push_back((request.to_owned(), seal.to_owned()));
    }

    /// The seal of what was prepared for `request`.
    pub(super) fn get(&self, request: &str) -> Option<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().find(|(one, _)| one == request).map(|(_, seal)| seal.clone())
    }
}

/// The answer of a person that came with a request.
pub(super) struct Vouched {
    pub(super) answer: Option<Answer>,
    pub(super) seal: Option<String>,
}

impl Approver for Vouched {
    fn ask<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        let judgment = question.judgment();
        let is_same = self.seal.as_ref().is_none_or(|bound| *bound == seal(judgment));
        let answer = match self.answer {
            Some(_) if !is_same => Some(Answer::No),
            // What cannot be allowed for good was still allowed this once.
            Some(Answer::Always) if judgment.grants().is_err() => Some(Answer::Once),
            answer => answer,
        };
        Box::pin(std::future::ready(answer))
    }
}
