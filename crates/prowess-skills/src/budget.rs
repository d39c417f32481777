//! The budget: what is cut, and in which order, when the catalogue is too large for a prompt?
//!
//! Four steps, each taken only as far as needed, and each from the lowest tier up and, within a tier, from its end:
//! 1. descriptions longer than the Agent Skills standard allows are cut to what it allows, in every tier;
//! 2. descriptions shrink, tier by tier, down to [`SHORTEST`];
//! 3. descriptions are left out, name and location stay;
//! 4. names are left out.
//!
//! So what a person put into the workspace is touched last. A limit on the number of skills works like step 4.

use crate::prompt::{CLOSE, Entry, OPEN};
use crate::settings::Limits;
use crate::standard::MAX_DESCRIPTION;
use crate::text::{shorten, units};
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
        if self.is_empty() {
            return None;
        }
        let counts = [
            (self.shortened.len(), "with a shortened description"),
            (self.name_only.len(), "by name only"),
            (self.dropped.len(), "not listed"),
        ];
        let parts: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, how)| format!("{count} {how}")).collect();
        Some(format!("Note: {} skills, {}, to fit the space for this list.", self.total, parts.join(", ")))
    }
}

/// About how many tokens a text has: four ASCII characters, or one other character, make one.
///
/// An estimate that needs no model's vocabulary: near the truth for English, and on the safe side for other scripts.
#[must_use]
pub fn tokens(text: &str) -> usize {
    quarters(text).div_ceil(4)
}

fn quarters(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 4 }).sum()
}

/// How one skill is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Full,
    Short(usize),
    Name,
    Dropped,
}

/// How all skills are shown.
pub(crate) struct Plan {
    pub(crate) shown: Vec<Shown>,
    pub(crate) cut: Cut,
}

/// Decides how each entry is shown so that everything fits.
pub(crate) fn plan(entries: &[Entry], note: Option<&str>, budget: &Budget) -> Plan {
    let mut planner = Planner::new(entries, note, budget);
    planner.drop_by_count(budget.skills);
    if planner.fits() {
        return planner.finish();
    }
    planner.cut_to_standard();
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
    /// The longest the sentence about the cut can be.
    sentence: Size,
    /// Entries from the first to be cut to the last.
    order: Vec<usize>,
}

impl<'a> Planner<'a> {
    fn new(entries: &'a [Entry], note: Option<&str>, budget: &'a Budget) -> Self {
        let sizes: Vec<Size> = entries.iter().map(|entry| size(entry, Shown::Full)).collect();
        let mut order: Vec<usize> = (0..entries.len()).collect();
        order.sort_by_key(|&index| (entries[index].tier, std::cmp::Reverse(index)));
        let note = note.map_or(Size::default(), |note| Size::of(note).plus(Size::of("\n")));
        let all = || vec![String::new(); entries.len()];
        let longest = Cut { total: entries.len(), shortened: all(), name_only: all(), dropped: all() };
        Self {
            entries,
            budget,
            shown: vec![Shown::Full; entries.len()],
            total: sizes.iter().fold(Size::default(), |sum, &size| sum.plus(size)),
            sizes,
            frame: Size::of(OPEN).plus(Size::of(CLOSE)).plus(note),
            sentence: longest.sentence().map_or(Size::default(), |line| Size::of(&line).plus(Size::of("\n"))),
            order,
        }
    }

    fn fits(&self) -> bool {
        let cut = self.shown.iter().any(|shown| *shown != Shown::Full);
        let whole = self.total.plus(self.frame).plus(if cut { self.sentence } else { Size::default() });
        whole.chars <= self.budget.chars && self.budget.tokens.is_none_or(|tokens| whole.quarters.div_ceil(4) <= tokens)
    }

    fn show(&mut self, index: usize, shown: Shown) {
        let new = size(&self.entries[index], shown);
        self.total = self.total.minus(self.sizes[index]).plus(new);
        self.sizes[index] = new;
        self.shown[index] = shown;
    }

    fn drop_by_count(&mut self, limit: usize) {
        let surplus = self.entries.len().saturating_sub(limit);
        for place in 0..surplus {
            self.show(self.order[place], Shown::Dropped);
        }
    }

    fn cut_to_standard(&mut self) {
        for index in 0..self.entries.len() {
            self.shorten(index, MAX_DESCRIPTION);
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
        let mut cut = Cut { total: self.entries.len(), ..Cut::default() };
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
        Shown::Short(limit) => entry.write(&mut text, Some(&shorten(&entry.description, limit))),
        Shown::Full => entry.write(&mut text, Some(&entry.description)),
    }
    Size::of(&text)
}
