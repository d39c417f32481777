//! What is configured, on a page: models, where they come from, whether there is a key, and whether they answer.

use std::fmt::Write as _;

use prowess_agent::provider::Wrong;
use prowess_host::Failure;
use serde_json::{Value, json};

use crate::output::{BAD, DIM, GOOD, Report, paint, safe, table};

/// A model that can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    /// As in provider/name.
    pub(crate) name: String,
    /// The wire format.
    pub(crate) api: String,
    /// Where it is; none for one in this program.
    pub(crate) url: Option<String>,
    /// What named it: a file, a variable, or this program.
    pub(crate) from: String,
    pub(crate) key: Key,
    /// Whether a message goes to it unless told otherwise.
    pub(crate) is_default: bool,
    /// What it said when it was asked, if it was.
    pub(crate) answer: Option<Answer>,
}

/// Whether there is a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    /// None is needed.
    NotNeeded,
    /// It is in this place.
    In(String),
    /// It would be looked for in this place.
    Missing(String),
    /// The login of this auth profile has expired.
    Expired(String),
}

/// What a model said when it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It answers.
    Answers,
    /// It does not.
    Fails {
        /// What has to be set right.
        wrong: Wrong,
        /// What was said.
        why: String,
    },
}

/// What is wrong, in a word or two.
fn word(wrong: Wrong) -> &'static str {
    match wrong {
        Wrong::Key => "wrong key",
        Wrong::Quota => "no quota",
        Wrong::Address => "wrong address",
        Wrong::Model => "no such model",
        Wrong::Provider => "provider fails",
        Wrong::Request => "request refused",
    }
}

pub(crate) fn report(offers: &[Offer], json: bool) -> Result<Report, Failure> {
    if json {
        return Report::json(&json!({"models": offers.iter().map(shape).collect::<Vec<_>>()}));
    }
    let was_asked = offers.iter().any(|offer| offer.answer.is_some());
    let mut header = vec!["Model", "Where", "Key"];
    if was_asked {
        header.push("Answers");
    }
    let rows = offers.iter().map(|offer| {
        let mark = if offer.is_default { paint(GOOD, "● ") } else { "  ".to_owned() };
        let place = offer.url.as_deref().map_or_else(|| "this program".to_owned(), safe);
        let mut row = vec![format!("{mark}{}", safe(&offer.name)), place, key(&offer.key)];
        if was_asked {
            row.push(offer.answer.as_ref().map_or_else(String::new, answered));
        }
        row
    });
    let mut text = table(&header, &[0, 1], rows.collect());
    text.push_str("● answers unless --model names another\n");
    for offer in offers {
        if let Some(Answer::Fails { why, .. }) = &offer.answer {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} {}: {}", paint(BAD, "✗"), safe(&offer.name), safe(why));
        }
    }
    if offers.iter().all(|offer| offer.url.is_none()) {
        text.push_str("No other model is configured: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or models.providers.\n");
    }
    Ok(Report::text(text))
}

fn shape(offer: &Offer) -> Value {
    let (has_key, place) = match &offer.key {
        Key::NotNeeded => (None, None),
        Key::In(place) => (Some(true), Some(place)),
        Key::Missing(place) | Key::Expired(place) => (Some(false), Some(place)),
    };
    let mut shape = json!({
        "name": offer.name,
        "api": offer.api,
        "baseUrl": offer.url,
        "source": offer.from,
        "key": {"needed": has_key.is_some(), "present": has_key, "place": place},
        "default": offer.is_default,
    });
    match &offer.answer {
        None => {}
        Some(Answer::Answers) => shape["probe"] = json!({"answers": true}),
        Some(Answer::Fails { wrong, why }) => {
            shape["probe"] = json!({"answers": false, "wrong": word(*wrong), "error": why});
        }
    }
    shape
}

fn key(key: &Key) -> String {
    match key {
        Key::NotNeeded => paint(DIM, "none needed"),
        Key::In(place) => format!("{} {}", paint(GOOD, "✓"), safe(place)),
        Key::Missing(place) => format!("{} set {}", paint(BAD, "✗"), safe(place)),
        Key::Expired(profile) => format!("{} {} has expired; log in again", paint(BAD, "✗"), safe(profile)),
    }
}

fn answered(answer: &Answer) -> String {
    match answer {
        Answer::Answers => paint(GOOD, "✓"),
        Answer::Fails { wrong, .. } => format!("{} {}", paint(BAD, "✗"), word(*wrong)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(name: &str, url: Option<&str>, key: Key) -> Offer {
        Offer {
            name: name.to_owned(),
            api: "openai-completions".to_owned(),
            url: url.map(str::to_owned),
            from: "models.providers.local".to_owned(),
            key,
            is_default: url.is_none(),
            answer: None,
        }
    }

    #[test]
    fn a_model_is_a_row_with_its_key_and_its_answer() {
        let mut local = offer("local/m", Some("http://127.0.0.1:1"), Key::Missing("LOCAL_KEY".to_owned()));
        let plain =
            |offers: &[Offer]| anstream::adapter::strip_str(&report(offers, false).expect("text").text).to_string();
        let text = plain(&[offer("embedded", None, Key::NotNeeded), local.clone()]);
        for wanted in ["● embedded", "this program", "none needed", "✗ set", "LOCAL_KEY"] {
            assert!(text.contains(wanted), "{wanted}\n{text}");
        }
        assert!(!text.contains("Answers"), "nobody was asked\n{text}");
        let why = "cannot be\u{1b}[2J reached".to_owned();
        local.answer = Some(Answer::Fails { wrong: Wrong::Address, why });
        let text = plain(&[local]);
        assert!(text.contains("✗ wrong address") && text.contains("✗ local/m: cannot be[2J reached"), "{text}");
        assert!(plain(&[offer("embedded", None, Key::NotNeeded)]).contains("ANTHROPIC_API_KEY"));
    }

    #[test]
    fn machines_get_facts() {
        let mut local = offer("local/m", Some("http://127.0.0.1:1"), Key::In("LOCAL_KEY".to_owned()));
        local.answer = Some(Answer::Fails { wrong: Wrong::Quota, why: "empty".to_owned() });
        let json: Value = serde_json::from_str(&report(&[local], true).expect("a report").text).expect("JSON");
        assert_eq!(json["models"][0]["key"], json!({"needed": true, "present": true, "place": "LOCAL_KEY"}));
        assert_eq!(json["models"][0]["probe"], json!({"answers": false, "wrong": "no quota", "error": "empty"}));
    }
}
