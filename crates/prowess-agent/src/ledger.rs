//! The ledger: what did each skill cost?
//!
//! A provider says how many tokens a call took, and not what they were spent on. So the parts of a request are weighed
//! and the provider's own numbers are shared among them. The shares always add up to exactly what the provider said.

mod weigh;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use weigh::{MARK, MARK_FILE, MARK_NAME, Mark, Marked, weigh};

use crate::message::Usage;
use crate::session::note;

/// What tokens are spent on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// The system prompt, without the list of skills.
    System,
    /// What the tools are.
    Tools,
    /// What the person said.
    Person,
    /// What the model said, for no skill in particular.
    Model,
    /// The place of a skill in the list of skills.
    Catalog(String),
    /// The instructions of a skill, its `SKILL.md`.
    Body(String),
    /// What commands printed and the model said for a skill.
    Output(String),
    /// Results of tools that ran for no skill, and what fits nowhere else.
    Other,
}

impl Account {
    fn parse(word: &str) -> Option<Self> {
        Some(match word.split_once(':') {
            Some(("catalog", skill)) => Self::Catalog(skill.to_owned()),
            Some(("body", skill)) => Self::Body(skill.to_owned()),
            Some(("output", skill)) => Self::Output(skill.to_owned()),
            Some(_) => return None,
            None => match word {
                "system" => Self::System,
                "tools" => Self::Tools,
                "person" => Self::Person,
                "model" => Self::Model,
                "other" => Self::Other,
                _ => return None,
            },
        })
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::System => f.write_str("system"),
            Self::Tools => f.write_str("tools"),
            Self::Person => f.write_str("person"),
            Self::Model => f.write_str("model"),
            Self::Catalog(skill) => write!(f, "catalog:{skill}"),
            Self::Body(skill) => write!(f, "body:{skill}"),
            Self::Output(skill) => write!(f, "output:{skill}"),
            Self::Other => f.write_str("other"),
        }
    }
}

/// Tokens, as providers tell them apart.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Share {
    /// Read, without those that came from the provider's cache.
    pub input: u64,
    /// Read from the provider's cache.
    pub cache_read: u64,
    /// Put into the provider's cache.
    pub cache_write: u64,
    /// Written.
    pub output: u64,
}

impl Share {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write).saturating_add(self.output)
    }
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.output = self.output.saturating_add(other.output);
    }
}

/// What calls cost, by account: one of them, those of a turn, or all of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger(BTreeMap<Account, Share>);

/// What a skill cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct SkillCost {
    /// For its place in the list of skills.
    pub catalog: u64,
    /// For its instructions.
    pub body: u64,
    /// For what was printed and said for it.
    pub output: u64,
}

/// Shares what the provider says was read among `parts` by their weights, and gives what was written to `speaking`.
///
/// The sums are exact, for each of the provider's numbers by itself.
#[must_use]
pub fn charge(parts: &[(Account, u64)], usage: &Usage, speaking: &Account) -> Ledger {
    let mut weights: BTreeMap<&Account, u64> = BTreeMap::new();
    for (account, weight) in parts {
        let sum = weights.entry(account).or_default();
        *sum = sum.saturating_add(*weight);
    }
    let other = Account::Other;
    if weights.values().all(|weight| *weight == 0) {
        weights = BTreeMap::from([(&other, 1)]);
    }
    let sizes: Vec<u64> = weights.values().copied().collect();
    let (input, cache_read, cache_write) =
        (split(usage.input, &sizes), split(usage.cache_read, &sizes), split(usage.cache_write, &sizes));
    let mut charge = Ledger::default();
    for (place, account) in weights.into_keys().enumerate() {
        let share =
            Share { input: input[place], cache_read: cache_read[place], cache_write: cache_write[place], output: 0 };
        charge.add(account, share);
    }
    charge.add(speaking, Share { output: usage.output, ..Share::default() });
    charge
}

/// Splits `whole` by weights, at least one of which is not zero, so that the pieces add up to it: everybody gets the
/// whole part of a fair share, and what is left goes to the largest remainders, the earlier first.
fn split(whole: u64, weights: &[u64]) -> Vec<u64> {
    let sum: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
    if sum == 0 {
        return vec![0; weights.len()];
    }
    let fair = |weight: u64| {
        let product = u128::from(whole) * u128::from(weight);
        (u64::try_from(product / sum).unwrap_or(u64::MAX), product % sum)
    };
    let mut pieces: Vec<u64> = weights.iter().map(|weight| fair(*weight).0).collect();
    let given: u64 = pieces.iter().sum();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(fair(weights[*place]).1));
    let left = usize::try_from(whole - given).unwrap_or(usize::MAX);
    for place in order.into_iter().take(left) {
        pieces[place] += 1;
    }
    pieces
}

impl Ledger {
    fn add(&mut self, account: &Account, share: Share) {
        if share.total() > 0 {
            *self.0.entry(account.clone()).or_default() += share;
        }
    }

    /// What went to each account.
    pub fn shares(&self) -> impl Iterator<Item = (&Account, &Share)> {
        self.0.iter()
    }

    /// All of it.
    #[must_use]
    pub fn total(&self) -> Share {
        let mut all = Share::default();
        for share in self.0.values() {
            all += *share;
        }
        all
    }

    /// What each skill cost.
    #[must_use]
    pub fn skills(&self) -> BTreeMap<String, SkillCost> {
        let mut skills: BTreeMap<String, SkillCost> = BTreeMap::new();
        for (account, share) in &self.0 {
            match account {
                Account::Catalog(skill) => skills.entry(skill.clone()).or_default().catalog += share.total(),
                Account::Body(skill) => skills.entry(skill.clone()).or_default().body += share.total(),
                Account::Output(skill) => skills.entry(skill.clone()).or_default().output += share.total(),
                Account::System | Account::Tools | Account::Person | Account::Model | Account::Other => {}
            }
        }
        skills
    }

    /// As JSON, for a [`note`] in the transcript.
    #[must_use]
    pub fn render(&self) -> Value {
        let accounts = self.0.iter().map(|(account, share)| (account.to_string(), json!(share)));
        json!({"accounts": accounts.collect::<serde_json::Map<_, _>>()})
    }

    /// From JSON; what is not understood counts as nothing.
    #[must_use]
    pub fn parse(json: &Value) -> Self {
        let mut ledger = Self::default();
        for (word, share) in json.get("accounts").and_then(Value::as_object).into_iter().flatten() {
            let share: Share = serde_json::from_value(share.clone()).unwrap_or_default();
            // A newer program may have accounts that this one does not know; the sums stay right.
            ledger.add(&Account::parse(word).unwrap_or(Account::Other), share);
        }
        ledger
    }
}

impl AddAssign<&Self> for Ledger {
    fn add_assign(&mut self, other: &Self) {
        for (account, share) in &other.0 {
            self.add(account, *share);
        }
    }
}

/// The tokens that all calls of a model took together, those that summed up earlier messages included. `entries` are those
/// of a transcript.
#[must_use]
pub fn spent(entries: &[Value]) -> Usage {
    let mut sum = Usage::default();
    // A call is noted before its reply is written; a note without a reply is of a summary.
    let mut noted: Option<Usage> = None;
    for entry in entries {
        if entry["customType"] == note::USAGE {
            sum += noted.replace(noted_usage(&entry["data"])).unwrap_or_default();
        } else if entry["type"] == "compaction" {
            sum += noted.take().unwrap_or_default();
        } else if entry["message"]["role"] == "assistant" {
            noted = None;
            sum += Usage::deserialize(&entry["message"]["usage"]).unwrap_or_default();
        }
    }
    sum += noted.unwrap_or_default();
    sum
}

/// What a note says that a call took.
fn noted_usage(note: &Value) -> Usage {
    let all = Ledger::parse(note).total();
    let (cache_read, cache_write) = (all.cache_read, all.cache_write);
    Usage { input: all.input, output: all.output, cache_read, cache_write, ..Usage::default() }.totalled()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn skill(name: &str) -> Account {
        Account::Output(name.to_owned())
    }

    #[test]
    fn what_was_summed_up_is_still_counted() {
        let note = |input: u64, output: u64| {
            let usage = Usage { input, output, ..Usage::default() }.totalled();
            let charge = charge(&[(Account::Other, 1)], &usage, &Account::Other);
            json!({"type": "custom", "customType": note::USAGE, "data": charge.render()})
        };
        let reply = |input: u64, output: u64| {
            let usage = Usage { input, output, ..Usage::default() }.totalled();
            json!({"type": "message", "message": {"role": "assistant", "usage": usage}})
        };
        let entries = [
            note(10, 1),
            reply(10, 1),
            // A summary, and then a reply that was cut before it was noted.
            note(100, 20),
            json!({"type": "compaction", "summary": "s"}),
            reply(5, 2),
            note(7, 3),
        ];
        let sum = spent(&entries);
        assert_eq!((sum.input, sum.output, sum.total_tokens), (122, 26, 148));
        assert_eq!(spent(&[json!({"message": {"role": "assistant", "usage": 7}}), json!(null)]), Usage::default());
    }

    #[test]
    fn shares_follow_the_weights() {
        let parts = [(Account::System, 1), (Account::Person, 1), (Account::Tools, 2)];
        let usage = Usage { input: 10, output: 7, cache_read: 4, cache_write: 3, ..Usage::default() };
        let charge = charge(&parts, &usage, &skill("weather"));
        let table = [
            (Account::System, (3, 1, 1, 0)),
            (Account::Tools, (5, 2, 1, 0)),
            (Account::Person, (2, 1, 1, 0)),
            (skill("weather"), (0, 0, 0, 7)),
        ];
        let found: Vec<_> = charge
            .shares()
            .map(|(account, one)| (account.clone(), (one.input, one.cache_read, one.cache_write, one.output)))
            .collect();
        assert_eq!(found, table);
    }

    #[test]
    fn without_weights_nothing_is_lost() {
        let usage = Usage { input: 10, ..Usage::default() };
        for parts in [vec![], vec![(Account::System, 0)]] {
            let charge = charge(&parts, &usage, &Account::Model);
            assert_eq!(
                charge.shares().map(|(account, one)| (account, one.input)).collect::<Vec<_>>(),
                [(&Account::Other, 10)]
            );
        }
    }

    #[test]
    fn skills_are_shown_by_what_they_cost() {
        let parts = [(Account::Catalog("w".to_owned()), 1), (Account::Body("w".to_owned()), 3), (Account::System, 4)];
        let usage = Usage { input: 800, output: 50, ..Usage::default() };
        let mut ledger = Ledger::default();
        for _ in 0..2 {
            ledger += &charge(&parts, &usage, &skill("w"));
        }
        assert_eq!(ledger.skills()["w"], SkillCost { catalog: 200, body: 600, output: 100 });
        assert_eq!(Ledger::parse(&ledger.render()), ledger);
    }

    #[test]
    fn what_is_not_understood_changes_no_sum() {
        let odd = json!({"accounts": {"new:thing": {"input": 5, "more": 1}, "planet": {"input": 2}, "system": 7}});
        assert_eq!(Ledger::parse(&odd).total().input, 7);
        assert_eq!(Ledger::parse(&json!(null)), Ledger::default());
    }

    fn accounts() -> impl Strategy<Value = Account> {
        prop_oneof![
            Just(Account::System),
            Just(Account::Tools),
            Just(Account::Person),
            Just(Account::Other),
            "[a-c]".prop_map(Account::Catalog),
            "[a-c:]{1,3}".prop_map(Account::Body),
            "[a-c]".prop_map(Account::Output),
        ]
    }

    proptest! {
        #[test]
        fn sums_are_exact(
            parts in prop::collection::vec((accounts(), prop_oneof![0..50_u64, any::<u64>()]), 0..20),
            (input, output, cache_read, cache_write) in (any::<u64>(), 0..9_u64, 0..1_000_000_u64, 0..9_u64),
            speaking in accounts(),
        ) {
            let usage = Usage { input, output, cache_read, cache_write, ..Usage::default() };
            let charge = charge(&parts, &usage, &speaking);
            prop_assert_eq!(charge.total(), Share { input, cache_read, cache_write, output });
            prop_assert_eq!(&Ledger::parse(&charge.render()), &charge);
        }
    }
}
