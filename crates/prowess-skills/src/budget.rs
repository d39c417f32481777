//! The budget: what is cut, and in which order, when the catalogue is too large for a prompt?
//!
//! First, and even when everything fits, a description that takes more than its [share](Budget::description_limit) is cut
//! to what the Agent Skills standard allows.
//! Then four steps, each taken only as far as needed, and each from the lowest tier up and, within a tier, from its end:
//! 1. descriptions longer than the Agent Skills standard allows are cut to what it allows, in every tier;
//! 2. descriptions shrink, tier by tier, down to [`SHORTEST`];
//! 3. descriptions are left out, name and location stay;
//! 4. names are left out.
//!
//! So what a person put into the workspace is touched last. A limit on the number of skills works like step 4.

use crate::problem::{Problem, ProblemKind};
use crate::prompt::{CLOSE, Entry, OPEN};
use crate::settings::Limits;
use crate::skill::Skill;
use crate::standard::MAX_DESCRIPTION;
use crate::text::{cut, units};
use crate::tier::Tier;

/// The length, in UTF-16 units, that a description does not shrink below.
pub const SHORTEST: usize = 48;

/// How large a skills prompt may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// Skills.
    pub skills: usize,
    /// UTF-16 units.
    pub chars: usize,
    /// Tokens, by [`tokens`].
    pub tokens: Option<usize>,
}

impl From<&Limits> for Budget {
    fn from(limits: &Limits) -> Self {
        Self { skills: limits.prompt_skills, chars: limits.prompt_chars, tokens: limits.prompt_tokens }
    }
}

impl Budget {
    /// The most UTF-16 units that one description may take: a tenth of the room, but never less than the Agent Skills
    /// standard allows. Without it one skill could fill the prompt, and the model would see little else.
    #[must_use]
    pub fn description_limit(&self) -> usize {
        let chars = self.tokens.map_or(self.chars, |tokens| self.chars.min(tokens.saturating_mul(4)));
        (chars / 10).max(MAX_DESCRIPTION)
    }

    /// One problem for each of `skills` whose description is longer than that.
    pub fn oversized<'a>(&self, skills: impl Iterator<Item = &'a Skill>) -> Vec<Problem> {
        let limit = self.description_limit();
        let long = skills.filter_map(|skill| {
            // A unit is one byte or more, so most are known to fit without counting.
            let length = (skill.description.len() > limit).then(|| units(&skill.description))?;
            (length > limit).then_some((skill, length))
        });
        let problem = |(skill, length): (&Skill, usize)| {
            let reason = format!("the description has {length} characters; the model sees {MAX_DESCRIPTION} of them");
            let fix = format!("shorten it to {MAX_DESCRIPTION} characters, and move the rest below the frontmatter");
            Problem::new(ProblemKind::LongDescription, &skill.file, reason, fix)
        };
        long.map(problem).collect()
    }
}

/// An exact account of what was cut.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cut {
    /// Skills that could have been shown.
    pub total: usize,
    /// Names of skills whose description was shortened.
    pub shortened: Vec<String>,
    /// Names of skills that are shown without a description.
    pub name_only: Vec<String>,
    /// Names of skills that are not shown.
    pub dropped: Vec<String>,
}

impl Cut {
    /// Whether anything was cut.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shortened.is_empty() && self.name_only.is_empty() && self.dropped.is_empty()
    }

    /// The line that tells the model.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        sentence(self.total, [self.shortened.len(), self.name_only.len(), self.dropped.len()])
    }
}

/// What was cut, in words; the counts are those of shortened descriptions, bare names and dropped skills.
fn sentence(total: usize, counts: [usize; 3]) -> Option<String> {
    if counts == [0; 3] {
        return None;
    }
    let [shortened, name_only, dropped] = counts;
    let mut parts = vec![format!("Note: {} of {total} skills are listed", total - dropped)];
    for (count, how) in [(shortened, "with a shortened description"), (name_only, "by name only")] {
        if count > 0 {
            parts.push(format!("{count} {how}"));
        }
    }
    Some(format!("{}.", parts.join(", ")))
}

/// About how many tokens a text has: four ASCII characters, or one other character, make one.
///
/// An estimate that needs no model's vocabulary: near the truth for English, and on the safe side for other scripts.
#[must_use]
pub fn tokens(text: &str) -> usize {
    quarters(text).div_ceil(4)
}

fn quarters(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(|c| if c.is_ascii() { 1 } else { 4 }).sum() }
}

/// How one skill is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Full,
    Short(usize),
    Name,
    Dropped,
}

impl Shown {
    /// Which count of the sentence it adds to.
    fn place(self) -> Option<usize> {
        match self {
            Self::Full => None,
            Self::Short(_) => Some(0),
            Self::Name => Some(1),
            Self::Dropped => Some(2),
        }
    }
}

/// How all skills are shown.
pub(crate) struct Plan {
    pub(crate) shown: Vec<Shown>,
    pub(crate) cut: Cut,
}

/// Which of these skills a limit on their number leaves in, by place.
pub(crate) fn within_count(tiers: &[Tier], limit: usize) -> Vec<bool> {
    let mut kept = vec![true; tiers.len()];
    let surplus = tiers.len().saturating_sub(limit);
    for place in cut_order(tiers).into_iter().take(surplus) {
        kept[place] = false;
    }
    kept
}

/// Places from the first to be cut to the last: from the lowest tier up and, within a tier, from its end.
fn cut_order(tiers: &[Tier]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..tiers.len()).collect();
    order.sort_by_key(|&place| (tiers[place], std::cmp::Reverse(place)));
    order
}

/// Decides how each entry is shown so that everything fits. `left_out` are skills that were too many.
pub(crate) fn plan(entries: &[Entry], left_out: Vec<String>, note: Option<&str>, budget: &Budget) -> Plan {
    let mut planner = Planner::new(entries, left_out, note, budget);
    planner.cut_to_standard(budget.description_limit());
    if planner.fits() {
        return planner.finish();
    }
    planner.cut_to_standard(MAX_DESCRIPTION);
    for tier in Tier::ALL {
        if planner.fits() {
            break;
        }
        planner.shrink(tier);
    }
    planner.each_until_it_fits(Shown::Name);
    planner.each_until_it_fits(Shown::Dropped);
    planner.finish()
}

/// The two ways a prompt is measured, added up without rendering it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Size {
    chars: usize,
    quarters: usize,
}

impl Size {
    fn of(text: &str) -> Self {
        Self { chars: units(text), quarters: quarters(text) }
    }

    fn plus(self, other: Self) -> Self {
        Self { chars: self.chars + other.chars, quarters: self.quarters + other.quarters }
    }

    fn minus(self, other: Self) -> Self {
        Self { chars: self.chars - other.chars, quarters: self.quarters - other.quarters }
    }
}

struct Planner<'a> {
    entries: &'a [Entry],
    budget: &'a Budget,
    shown: Vec<Shown>,
    /// What the entries take as they are shown now.
    sizes: Vec<Size>,
    total: Size,
    /// Note, frame and line breaks.
    frame: Size,
    /// Shortened descriptions, bare names and dropped skills, for the sentence about the cut.
    counts: [usize; 3],
    /// Entries from the first to be cut to the last.
    order: Vec<usize>,
    left_out: Vec<String>,
}

impl<'a> Planner<'a> {
    fn new(entries: &'a [Entry], left_out: Vec<String>, note: Option<&str>, budget: &'a Budget) -> Self {
        let sizes: Vec<Size> = entries.iter().map(|entry| size(entry, Shown::Full)).collect();
        let tiers: Vec<Tier> = entries.iter().map(|entry| entry.tier).collect();
        let note = note.map_or(Size::default(), |note| Size::of(note).plus(Size::of("\n")));
        Self {
            entries,
            budget,
            shown: vec![Shown::Full; entries.len()],
            total: sizes.iter().fold(Size::default(), |sum, &size| sum.plus(size)),
            sizes,
            frame: Size::of(OPEN).plus(Size::of(CLOSE)).plus(note),
            counts: [0, 0, left_out.len()],
            order: cut_order(&tiers),
            left_out,
        }
    }

    fn fits(&self) -> bool {
        let sentence = sentence(self.entries.len() + self.left_out.len(), self.counts)
            .map(|line| Size::of(&line).plus(Size::of("\n")));
        let whole = self.total.plus(self.frame).plus(sentence.unwrap_or_default());
        whole.chars <= self.budget.chars && self.budget.tokens.is_none_or(|tokens| whole.quarters.div_ceil(4) <= tokens)
    }

    fn show(&mut self, index: usize, shown: Shown) {
        let new = size(&self.entries[index], shown);
        self.total = self.total.minus(self.sizes[index]).plus(new);
        self.sizes[index] = new;
        let old = std::mem::replace(&mut self.shown[index], shown);
        if let Some(place) = old.place() {
            self.counts[place] -= 1;
        }
        if let Some(place) = shown.place() {
            self.counts[place] += 1;
        }
    }

    /// Cuts descriptions that are longer than `limit` to what the standard allows.
    fn cut_to_standard(&mut self, limit: usize) {
        for index in 0..self.entries.len() {
            if units(&self.entries[index].description) > limit {
                self.shorten(index, MAX_DESCRIPTION);
            }
        }
    }

    /// Cuts a description to `limit`, unless it is short enough or not shown.
    fn shorten(&mut self, index: usize, limit: usize) {
        let shown = if units(&self.entries[index].description) > limit { Shown::Short(limit) } else { Shown::Full };
        if matches!(self.shown[index], Shown::Full | Shown::Short(_)) {
            self.show(index, shown);
        }
    }

    /// Gives all descriptions of a tier the greatest common limit that fits, or the least there is.
    fn shrink(&mut self, tier: Tier) {
        let members: Vec<usize> = (0..self.entries.len()).filter(|&index| self.entries[index].tier == tier).collect();
        let mut try_limit = |limit: usize| {
            for &index in &members {
                self.shorten(index, limit);
            }
            self.fits()
        };
        if !try_limit(SHORTEST) {
            return;
        }
        let (mut fits, mut too_long) = (SHORTEST, MAX_DESCRIPTION + 1);
        while fits + 1 < too_long {
            let middle = usize::midpoint(fits, too_long);
            if try_limit(middle) { fits = middle } else { too_long = middle }
        }
        try_limit(fits);
    }

    fn each_until_it_fits(&mut self, shown: Shown) {
        for place in 0..self.order.len() {
            if self.fits() {
                return;
            }
            let index = self.order[place];
            if self.shown[index] != Shown::Dropped {
                self.show(index, shown);
            }
        }
    }

    fn finish(self) -> Plan {
        let total = self.entries.len() + self.left_out.len();
        let mut cut = Cut { total, dropped: self.left_out, ..Cut::default() };
        for (entry, shown) in self.entries.iter().zip(&self.shown) {
            match shown {
                Shown::Full => {}
                Shown::Short(_) => cut.shortened.push(entry.name.clone()),
                Shown::Name => cut.name_only.push(entry.name.clone()),
                Shown::Dropped => cut.dropped.push(entry.name.clone()),
            }
        }
        Plan { shown: self.shown, cut }
    }
}

fn size(entry: &Entry, shown: Shown) -> Size {
    let mut text = String::new();
    match shown {
        Shown::Dropped => return Size::default(),
        Shown::Name => entry.write(&mut text, None),
        Shown::Short(limit) => entry.write(&mut text, Some(&cut(&entry.description, limit))),
        Shown::Full => entry.write(&mut text, Some(&entry.description)),
    }
    Size::of(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(count: usize, description: &str) -> Vec<Entry> {
        let entry = |index| Entry {
            tier: Tier::Managed,
            name: format!("s{index}"),
            description: description.to_owned(),
            location: format!("/s{index}/SKILL.md"),
        };
        (0..count).map(entry).collect()
    }

    fn chars(chars: usize) -> Budget {
        Budget { skills: usize::MAX, chars, tokens: None }
    }

    #[test]
    fn tokens_are_quarters_of_ascii_and_whole_other_characters() {
        assert_eq!(["", "a", "abcd", "abcde", "日本", "ab日"].map(tokens), [0, 1, 1, 2, 2, 2]);
    }

    #[test]
    fn the_sentence_tells_only_what_happened() {
        let names = |count: usize| vec!["n".to_owned(); count];
        let cut = |shortened, name_only, dropped| Cut {
            total: 9,
            shortened: names(shortened),
            name_only: names(name_only),
            dropped: names(dropped),
        };
        assert_eq!(cut(0, 0, 0).sentence(), None);
        let line = |cut: Cut| cut.sentence().expect("a sentence");
        assert_eq!(line(cut(0, 0, 2)), "Note: 7 of 9 skills are listed.");
        let all = "Note: 6 of 9 skills are listed, 1 with a shortened description, 2 by name only.";
        assert_eq!(line(cut(1, 2, 3)), all);
    }

    #[test]
    fn a_prompt_that_fits_to_the_unit_is_not_cut() {
        let entries = entries(3, "some words");
        let whole = Planner::new(&entries, Vec::new(), None, &chars(0)).total.chars + units(OPEN) + units(CLOSE);
        assert!(plan(&entries, Vec::new(), None, &chars(whole)).cut.is_empty());
        assert!(!plan(&entries, Vec::new(), None, &chars(whole - 1)).cut.is_empty());
    }

    #[test]
    fn no_description_takes_more_than_its_share() {
        let mut entries = entries(3, "some words");
        entries[1].description = "x".repeat(20_000);
        let shown = |budget: &Budget| plan(&entries, Vec::new(), None, budget).shown;
        let is_cut = [Shown::Full, Shown::Short(MAX_DESCRIPTION), Shown::Full];
        assert_eq!(shown(&chars(30_000)), is_cut);
        assert_eq!(shown(&chars(300_000)), [Shown::Full; 3], "there is room");
        assert_eq!(shown(&chars(5_000)), is_cut);
        assert_eq!(shown(&Budget { tokens: Some(10_000), ..chars(300_000) }), is_cut);
        entries[1].description = "x".repeat(3_000);
        assert_eq!(plan(&entries, Vec::new(), None, &chars(30_000)).shown, [Shown::Full; 3]);
    }

    #[test]
    fn what_is_counted_is_what_is_shown() {
        let entries = entries(30, &"long words ".repeat(30));
        for budget in (0..12_000).step_by(131) {
            let budget = chars(budget);
            let mut planner = Planner::new(&entries, Vec::new(), Some("A note."), &budget);
            planner.cut_to_standard(MAX_DESCRIPTION);
            planner.shrink(Tier::Managed);
            planner.each_until_it_fits(Shown::Name);
            planner.each_until_it_fits(Shown::Dropped);
            let total = (0..entries.len())
                .fold(Size::default(), |sum, index| sum.plus(size(&entries[index], planner.shown[index])));
            let counts = planner.counts;
            assert_eq!(planner.total, total);
            let cut = planner.finish().cut;
            assert_eq!(counts, [cut.shortened.len(), cut.name_only.len(), cut.dropped.len()]);
        }
    }

    #[test]
    fn a_limit_is_the_greatest_that_fits() {
        let entries = entries(10, &"x".repeat(600));
        let plan = plan(&entries, Vec::new(), None, &chars(4_000));
        let Shown::Short(limit) = plan.shown[0] else { panic!("shortened") };
        let with = |limit| {
            let budget = chars(4_000);
            let mut planner = Planner::new(&entries, Vec::new(), None, &budget);
            (0..10).for_each(|index| planner.shorten(index, limit));
            planner.fits()
        };
        assert!(with(limit) && !with(limit + 1));
    }
}
