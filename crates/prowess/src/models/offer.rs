//! What is configured, on a page: models, where they come from, whether there is a key, and whether they answer.

use prowess_host::Failure;
use serde_json::{Value, json};

use crate::output::{BAD, DIM, GOOD, Report, WARN, paint, safe, table};

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
}

/// What an endpoint said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It knows the model.
    HasIt,
    /// It answers, but its list of this many models does not have this one.
    LacksIt(usize),
    /// It does not answer, and why.
    Silent(String),
}

impl Answer {
    /// What it means that the endpoint lists these models.
    pub(crate) fn listing(models: &[String], wanted: &str) -> Self {
        if models.iter().any(|model| model == wanted) { Self::HasIt } else { Self::LacksIt(models.len()) }
    }
}

pub(crate) fn report(offers: &[Offer], json: bool) -> Result<Report, Failure> {
    if json {
        return Report::json(&json!({"models": offers.iter().map(shape).collect::<Vec<_>>()}));
    }
    let was_asked = offers.iter().any(|offer| offer.answer.is_some());
    let mut header = vec!["Model", "Wire format", "Where", "Configured by", "Key"];
    if was_asked {
        header.push("Answers");
    }
    let rows = offers.iter().map(|offer| {
        let mark = if offer.is_default { paint(GOOD, "● ") } else { "  ".to_owned() };
        let place = offer.url.as_deref().map_or_else(|| "this program".to_owned(), safe);
        let mut row =
            vec![format!("{mark}{}", safe(&offer.name)), safe(&offer.api), place, safe(&offer.from), key(&offer.key)];
        if was_asked {
            row.push(offer.answer.as_ref().map_or_else(String::new, answered));
        }
        row
    });
    let mut text = table(&header, &[0, 1], rows.collect());
    text.push_str("● answers unless --model names another\n");
    if offers.iter().all(|offer| offer.url.is_none()) {
        text.push_str("No other model is configured: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or models.providers.\n");
    }
    Ok(Report::text(text))
}

fn shape(offer: &Offer) -> Value {
    let (has_key, place) = match &offer.key {
        Key::NotNeeded => (None, None),
        Key::In(place) => (Some(true), Some(place)),
        Key::Missing(place) => (Some(false), Some(place)),
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
        Some(Answer::HasIt) => shape["probe"] = json!({"answers": true, "listed": true}),
        Some(Answer::LacksIt(count)) => shape["probe"] = json!({"answers": true, "listed": false, "models": count}),
        Some(Answer::Silent(why)) => shape["probe"] = json!({"answers": false, "error": why}),
    }
    shape
}

fn key(key: &Key) -> String {
    match key {
        Key::NotNeeded => paint(DIM, "none needed"),
        Key::In(place) => format!("{} {}", paint(GOOD, "✓"), safe(place)),
        Key::Missing(place) => format!("{} set {}", paint(BAD, "✗"), safe(place)),
    }
}

fn answered(answer: &Answer) -> String {
    match answer {
        Answer::HasIt => paint(GOOD, "✓"),
        Answer::LacksIt(count) => format!("{} yes, but not this model ({count} others)", paint(WARN, "!")),
        Answer::Silent(why) => format!("{} {}", paint(BAD, "✗"), safe(why)),
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
        local.answer = Some(Answer::Silent("cannot be\u{1b}[2J reached".to_owned()));
        assert!(plain(&[local]).contains("✗ cannot be[2J"));
        assert!(plain(&[offer("embedded", None, Key::NotNeeded)]).contains("ANTHROPIC_API_KEY"));
    }

    #[test]
    fn a_list_of_models_has_it_or_not() {
        let models = ["a".to_owned(), "b".to_owned()];
        assert_eq!(Answer::listing(&models, "b"), Answer::HasIt);
        assert_eq!(Answer::listing(&models, "c"), Answer::LacksIt(2));
    }

    #[test]
    fn machines_get_facts() {
        let mut local = offer("local/m", Some("http://127.0.0.1:1"), Key::In("LOCAL_KEY".to_owned()));
        local.answer = Some(Answer::LacksIt(3));
        let json: Value = serde_json::from_str(&report(&[local], true).expect("a report").text).expect("JSON");
        assert_eq!(json["models"][0]["key"], json!({"needed": true, "present": true, "place": "LOCAL_KEY"}));
        assert_eq!(json["models"][0]["probe"], json!({"answers": true, "listed": false, "models": 3}));
    }
}
