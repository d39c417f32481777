//! Picking: which skill does a request call for, if any?
//!
//! Words of the request are looked for in names and descriptions; a word counts more the fewer skills have it. What a
//! description says the skill is *not* for counts against it. A skill is picked only when enough of the request is
//! about it, so small talk picks none.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use prowess_skills::Skill;
use strsim::damerau_levenshtein;

use super::words::{Word, cut, stems, strength, topic, words};

/// What a word in a skill's name is worth, in its description, and where that says when to use it.
const NAME: f64 = 3.0;
const DESCRIPTION: f64 = 1.0;
const WHEN: f64 = 1.25;

/// How soon more of the same word stops counting, and how much longer descriptions are held against a skill.
const SATURATION: f64 = 1.5;
const LENGTH: f64 = 0.35;

/// How much of a word's worth is lost when the description excludes it.
const EXCLUDED: f64 = 0.8;

/// The least that has to be found, and the least share of the request that it has to be; more when it is one word of a
/// description, which may stand there by chance.
const LEAST: f64 = 0.62;
const LEAST_SHARE: f64 = 0.22;
const LEAST_SHARE_OF_ONE: f64 = 0.42;

/// How much a word that no skill knows speaks against every one of them; names of places and people hardly do.
const UNKNOWN: f64 = 0.55;
const UNKNOWN_NAME: f64 = 0.1;

/// From how many letters on a word can be misspelt, and from how many on by two.
const MIN_MISSPELT: usize = 5;
const LONG_WORD: usize = 8;

/// How much of a description is read, in bytes.
const MAX_DESCRIPTION: usize = 8 * 1024;

/// The words of a catalogue.
#[derive(Debug)]
pub(crate) struct Index {
    entries: Vec<Entry>,
    /// In how many skills a word is.
    known: HashMap<String, usize>,
    /// Its words as they are written, with their stems.
    spelling: BTreeMap<String, String>,
    /// How many words a skill has on average.
    length: f64,
}

#[derive(Debug)]
struct Entry {
    worth: HashMap<String, f64>,
    in_name: HashSet<String>,
    excluded: HashSet<String>,
    length: f64,
}

/// A skill, and how well it fits.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fit {
    /// Its place in the catalogue.
    pub place: usize,
    /// The more the better.
    pub score: f64,
    /// How much of the request it is about, by weight and as a share of it.
    found: f64,
    share: f64,
    is_named: bool,
    /// The words of the request that speak for it.
    pub words: Vec<String>,
}

impl Index {
    /// Over these skills.
    pub(crate) fn new<'a>(skills: impl IntoIterator<Item = &'a Arc<Skill>>) -> Self {
        Self::of(skills.into_iter().map(|skill| (skill.name.as_str(), skill.description.as_str())))
    }

    /// Over skills of these names and descriptions.
    pub(crate) fn of<'a>(skills: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let skills: Vec<(&str, &str)> = skills.into_iter().collect();
        let spelt = skills.iter().flat_map(|(name, description)| [*name, cut(description, MAX_DESCRIPTION)]);
        let spelling = spelt.flat_map(words).map(|word| (word.shown, word.stem)).collect();
        let entries: Vec<Entry> = skills.iter().map(|(name, description)| Entry::new(name, description)).collect();
        let mut known = HashMap::new();
        for stem in entries.iter().flat_map(|entry| entry.worth.keys()) {
            *known.entry(stem.clone()).or_insert(0) += 1;
        }
        let length = entries.iter().map(|entry| entry.length).sum::<f64>() / number(entries.len().max(1));
        Self { entries, known, spelling, length }
    }

    /// The skills that have anything to do with `request`, best first.
    pub(crate) fn rank(&self, request: &str) -> Vec<Fit> {
        let asked = distinct(words(request).into_iter().map(|word| self.known_word(word)).collect());
        let mut fits: Vec<Fit> = (0..self.entries.len()).filter_map(|place| self.fit(place, &asked)).collect();
        // Places break ties, so that the order is the same every time.
        fits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.place.cmp(&b.place)));
        fits
    }

    /// `request` with its misspelt words as the skills write them, if it has any: a word that no skill knows, and that is
    /// a letter or two away from one that only few skills have.
    pub(crate) fn corrected(&self, request: &str) -> Option<String> {
        let mut text = request.to_owned();
        for word in words(request).into_iter().filter(|word| !word.may_be_name) {
            let length = word.shown.chars().count();
            if length < MIN_MISSPELT || self.known.contains_key(&word.stem) || topic(&word.stem).is_some() {
                continue;
            }
            let most = if length < LONG_WORD { 1 } else { 2 };
            let near = self.spelling.iter().filter(|(_, stem)| strength(stem) >= 1.0);
            let near = near.map(|(spelt, _)| (damerau_levenshtein(&word.shown, spelt), spelt));
            let Some((_, spelt)) = near.filter(|(edits, _)| *edits <= most).min() else { continue };
            // The word is there as it was written, in some case.
            if let Some(start) = text.to_lowercase().find(&word.shown)
                && text.is_char_boundary(start)
                && text.is_char_boundary(start + word.shown.len())
            {
                text.replace_range(start..start + word.shown.len(), spelt);
            }
        }
        (text != request).then_some(text)
    }

    fn fit(&self, place: usize, asked: &[Word]) -> Option<Fit> {
        let entry = &self.entries[place];
        let longer = 1.0 - LENGTH + LENGTH * entry.length / self.length.max(1.0);
        let (mut score, mut found, mut wanted) = (0.0, 0.0, 0.0);
        let mut said = Vec::new();
        for word in asked {
            let strength = strength(&word.stem);
            let rarity = self.rarity(&word.stem);
            match entry.worth.get(&word.stem) {
                Some(worth) => {
                    let counted = worth * (SATURATION + 1.0) / (worth + SATURATION * longer);
                    score += strength * rarity * counted;
                    let share = if entry.in_name.contains(&word.stem) { 1.0 } else { rarity };
                    found += strength * share;
                    wanted += strength * share;
                    said.push(word);
                }
                None if self.known.contains_key(&word.stem) => wanted += strength * rarity,
                None if word.may_be_name => wanted += UNKNOWN_NAME,
                None => wanted += strength * UNKNOWN,
            }
            if entry.excluded.contains(&word.stem) {
                score -= strength * rarity * EXCLUDED;
                found -= strength * rarity * EXCLUDED;
            }
        }
        // What speaks loudest is named first.
        said.sort_by(|a, b| {
            let loud = |word: &Word| strength(&word.stem) * self.rarity(&word.stem);
            loud(b).total_cmp(&loud(a))
        });
        let is_named = said.iter().any(|word| strength(&word.stem) >= 1.0 && entry.in_name.contains(&word.stem));
        let share = if wanted > 0.0 { found / wanted } else { 0.0 };
        let words = said.into_iter().map(|word| word.shown.clone()).collect();
        (score > 0.0).then_some(Fit { place, score, found, share, is_named, words })
    }

    /// From nearly 0 for a word that all skills have to 1 for one that a single skill has.
    /// `word`, or what it is about where only that is known: an umbrella is about the weather.
    fn known_word(&self, word: Word) -> Word {
        match topic(&word.stem) {
            Some(topic) if !self.known.contains_key(&word.stem) && self.known.contains_key(topic) => {
                Word { stem: topic.to_owned(), ..word }
            }
            Some(_) | None => word,
        }
    }

    fn rarity(&self, stem: &str) -> f64 {
        let all = number(self.entries.len());
        let weight = |skills: f64| (1.0 + (all - skills + 0.5) / (skills + 0.5)).ln();
        let skills = self.known.get(stem).copied().unwrap_or(1);
        weight(number(skills)) / weight(1.0)
    }
}

impl Fit {
    /// Whether it fits well enough to be picked.
    pub(crate) fn is_enough(&self) -> bool {
        let share = if self.words.len() > 1 || self.is_named { LEAST_SHARE } else { LEAST_SHARE_OF_ONE };
        self.found >= LEAST && self.share >= share
    }
}

impl Entry {
    fn new(name: &str, description: &str) -> Self {
        let clauses = Clauses::read(cut(description, MAX_DESCRIPTION));
        let in_name: HashSet<String> = stems(name).into_iter().collect();
        let mut worth: HashMap<String, f64> = HashMap::new();
        // One word of a long name says less than a name of one word.
        let name_worth = NAME / number(in_name.len().max(1)).sqrt();
        for stem in &in_name {
            worth.insert(stem.clone(), name_worth);
        }
        let mut length = 0.0;
        for (text, each) in [(&clauses.what, DESCRIPTION), (&clauses.when, WHEN)] {
            for stem in stems(text) {
                *worth.entry(stem).or_default() += each;
                length += 1.0;
            }
        }
        let excluded = stems(&clauses.not).into_iter().filter(|stem| !worth.contains_key(stem)).collect();
        Self { worth, in_name, excluded, length }
    }
}

/// A description, taken apart.
#[derive(Debug, Default, PartialEq, Eq)]
struct Clauses {
    what: String,
    when: String,
    not: String,
}

impl Clauses {
    fn read(description: &str) -> Self {
        let mut clauses = Self::default();
        for sentence in description.split_inclusive(['.', ';', '!', '\n']) {
            let start = sentence.trim_start().to_ascii_lowercase();
            let begins = |with: &[&str]| with.iter().any(|with| start.starts_with(with));
            let into = if begins(&[
                "not for",
                "not when",
                "not to be",
                "do not use",
                "don't use",
                "never use",
                "not suited",
            ]) {
                &mut clauses.not
            } else if begins(&["use when", "use this", "use for", "use it", "when ", "for when", "triggers", "trigger"])
            {
                &mut clauses.when
            } else {
                &mut clauses.what
            };
            into.push_str(sentence);
        }
        clauses
    }
}

fn distinct(words: Vec<Word>) -> Vec<Word> {
    let mut seen = HashSet::new();
    words.into_iter().filter(|word| seen.insert(word.stem.clone())).collect()
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE_UP: &[(&str, &str)] = &[
        ("notes", "Keep notes in a folder. Use when the user wants to write down or find a note. Not for calendars."),
        ("calendar", "Appointments and meetings. Use when asked about dates or events."),
        ("image-tools", "Resize, crop and convert pictures with ImageMagick."),
        ("wetter", "Aktuelles Wetter und Vorhersagen für jeden Ort."),
        ("天气", "查询任何城市的天气和预报"),
    ];

    fn picked(skills: &[(&'static str, &str)], request: &str) -> Option<&'static str> {
        let index = Index::of(skills.iter().map(|&(name, description)| (name, description)));
        index.rank(request).first().filter(|fit| fit.is_enough()).map(|fit| skills[fit.place].0)
    }

    #[test]
    fn a_made_up_catalogue() {
        for (request, skill) in [
            ("write a note about the meeting room code", Some("notes")),
            ("what meetings do I have", Some("calendar")),
            ("crop this picture", Some("image-tools")),
            ("Wie wird das Wetter in Köln?", Some("wetter")),
            ("上海天气怎么样", Some("天气")),
            ("hello", None),
            ("what is 2+2", None),
            ("", None),
            ("tell me a joke", None),
            ("who wrote War and Peace?", None),
            ("🦀🦀🦀", None),
        ] {
            assert_eq!(picked(MADE_UP, request), skill, "{request}");
        }
    }

    #[test]
    fn a_request_need_not_have_the_words_of_the_skill() {
        let skills =
            &[("weather", "Current weather and forecasts for any place."), ("notes", "Keep notes in a folder.")];
        for (request, skill) in [
            ("do I need an umbrella tomorrow in Porto?", Some("weather")),
            ("上海天气怎么样", Some("weather")),
            ("明天北京会下雨吗", Some("weather")),
            ("Wie wird das Wetter in Köln?", Some("weather")),
            ("我想买一只猫", None),
        ] {
            assert_eq!(picked(skills, request), skill, "{request}");
        }
    }

    #[test]
    fn a_misspelt_word_is_recognised() {
        let skills =
            &[("weather", "Current weather and forecasts for any place."), ("github", "Issues and pull requests.")];
        let index = Index::of(skills.iter().copied());
        for (request, meant) in [
            ("wether in Lisbon", Some("weather in Lisbon")),
            ("Whats the waether in Lisbon?", Some("Whats the weather in Lisbon?")),
            ("open isues of cli/cli", Some("open issues of cli/cli")),
            ("forcasts for Rome", Some("forecasts for Rome")),
            ("weather in Lisbon", None),
            ("tell me a joke about whales", None),
            ("", None),
        ] {
            assert_eq!(index.corrected(request).as_deref(), meant, "{request}");
        }
    }

    #[test]
    fn what_a_skill_is_not_for_counts_against_it() {
        let with = |not: &str| {
            let skills = [("a", format!("Keys and locks, {not} repairs.")), ("b", "Bicycles.".to_owned())];
            let index = Index::of(skills.iter().map(|(name, description)| (*name, description.as_str())));
            index.rank("repair my locks").first().map(|fit| (fit.score, fit.is_enough()))
        };
        let (for_it, against) = (with("and"), with("old ones. Not for"));
        assert!(for_it.is_some_and(|(_, is_enough)| is_enough));
        assert!(against < for_it, "{against:?} {for_it:?}");
    }

    #[test]
    fn clauses_are_told_apart() {
        let read = Clauses::read("Does things. Use when asked. Not for other things.\nReally.");
        let want = Clauses {
            what: "Does things.\nReally.".to_owned(),
            when: " Use when asked.".to_owned(),
            not: " Not for other things.".to_owned(),
        };
        assert_eq!(read, want);
    }

    #[test]
    fn the_order_does_not_depend_on_chance() {
        let skills: Vec<(String, String)> = (0..50).map(|n| (format!("s{n}"), "the same words".to_owned())).collect();
        let rank = || {
            let index = Index::of(skills.iter().map(|(name, description)| (name.as_str(), description.as_str())));
            index.rank("same words")
        };
        let first = rank();
        assert_eq!(first.len(), 50);
        assert!(first.windows(2).all(|pair| pair[0].place < pair[1].place));
        assert_eq!(first, rank());
    }
}
