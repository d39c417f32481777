//! The prompt: what does the model see of the skills?
//!
//! Name, description and location of each, nothing of the body: the model reads the one `SKILL.md` it needs. Within
//! the budget the block is byte for byte what OpenClaw 2026.3.2 prints for the same skills. Over it nothing vanishes in
//! silence: see [`budget`](crate::Budget).

use std::borrow::Cow;
use std::path::Path;

use crate::budget::{self, Budget, Cut, Shown};
use crate::skill::Skill;
use crate::text::{clean, cut, push_escaped, trim, units};
use crate::tier::Tier;

/// The catalogue as text, and what had to be cut from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The text; empty when there is nothing to show.
    pub text: String,
    /// What was cut to fit the budget.
    pub cut: Cut,
}

impl Prompt {
    /// Its length in UTF-16 units, as OpenClaw counts it.
    #[must_use]
    pub fn chars(&self) -> usize {
        units(&self.text)
    }

    /// About how many tokens it has.
    #[must_use]
    pub fn tokens(&self) -> usize {
        budget::tokens(&self.text)
    }
}

/// How much of a system prompt a run gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// All of it.
    #[default]
    Full,
    /// What a sub-agent gets: no skills.
    Minimal,
    /// Next to nothing.
    None,
}

/// Renders the skills that a model may see.
///
/// `home` is replaced by `~` in locations; `note` is a sentence about remote machines that comes first.
#[must_use]
pub fn render<'a>(
    skills: impl IntoIterator<Item = &'a Skill>,
    home: Option<&Path>,
    note: Option<&str>,
    budget: &Budget,
) -> Prompt {
    let skills: Vec<&Skill> = skills.into_iter().collect();
    let tiers: Vec<Tier> = skills.iter().map(|skill| skill.tier).collect();
    let kept = budget::within_count(&tiers, budget.skills);
    let mut left_out = Vec::new();
    let mut entries = Vec::new();
    for (skill, kept) in skills.into_iter().zip(kept) {
        if kept {
            entries.push(Entry::new(skill, home));
        } else {
            left_out.push(skill.name.to_string());
        }
    }
    let note = note.map(|note| trim(&clean(note)).to_owned()).filter(|note| !note.is_empty());
    let plan = budget::plan(&entries, left_out, note.as_deref(), budget);
    let mut parts: Vec<String> = note.into_iter().chain(plan.cut.sentence()).collect();
    parts.extend(block(&entries, &plan.shown));
    Prompt { text: parts.join("\n"), cut: plan.cut }
}

/// The `## Skills` section of a system prompt; empty when the mode has none or there is nothing to show.
///
/// `read_tool` is the name of the tool that reads files, in the spelling it is registered under.
#[must_use]
pub fn section(prompt: &str, mode: Mode, read_tool: &str) -> String {
    let prompt = trim(prompt);
    if mode != Mode::Full || prompt.is_empty() {
        return String::new();
    }
    // Rules about a list make no sense without one: a note or a remark about the cut stands alone.
    if !prompt.contains(OPEN.trim_end()) {
        return format!("## Skills (mandatory)\n{prompt}\n");
    }
    format!(
        "## Skills (mandatory)\n\
         Before replying: scan <available_skills> <description> entries.\n\
         - If exactly one skill clearly applies: read its SKILL.md at <location> with `{read_tool}`, then follow it.\n\
         - If multiple could apply: choose the most specific one, then read/follow it.\n\
         - If none clearly apply: do not read any SKILL.md.\n\
         Constraints: never read more than one skill up front; only read after selecting.\n\
         \n\
         {prompt}\n"
    )
}

/// `path` with the home directory shortened to `~`, as text compares it: `/home/alicex` is not below `/home/alice`.
#[must_use]
pub fn compact(path: &str, home: Option<&Path>) -> String {
    let home = home.and_then(Path::to_str).filter(|home| !home.is_empty());
    let below = home.and_then(|home| {
        let rest = path.strip_prefix(home)?;
        if home.ends_with(std::path::MAIN_SEPARATOR) {
            Some(rest)
        } else {
            rest.strip_prefix(std::path::MAIN_SEPARATOR)
        }
    });
    below.map_or_else(|| path.to_owned(), |rest| format!("~/{rest}"))
}

/// What the model sees of one skill, before escaping.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) tier: Tier,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) location: String,
}

impl Entry {
    fn new(skill: &Skill, home: Option<&Path>) -> Self {
        Self {
            tier: skill.tier,
            name: clean(skill.name.as_str()).into_owned(),
            description: trim(&clean(&skill.description)).to_owned(),
            location: clean(&compact(&skill.file.to_string_lossy(), home)).into_owned(),
        }
    }

    /// Appends its lines of the block, with `description` in place of its own; without one the line is left out.
    pub(crate) fn write(&self, out: &mut String, description: Option<&str>) {
        out.push_str("  <skill>\n");
        field(out, "name", &self.name);
        if let Some(description) = description {
            field(out, "description", description);
        }
        field(out, "location", &self.location);
        out.push_str("  </skill>\n");
    }
}

/// The first line of the block.
pub(crate) const OPEN: &str = "<available_skills>\n";
/// The last line of the block.
pub(crate) const CLOSE: &str = "</available_skills>";

fn field(out: &mut String, tag: &str, value: &str) {
    out.extend(["    <", tag, ">"]);
    push_escaped(out, value);
    out.extend(["</", tag, ">\n"]);
}

fn block(entries: &[Entry], shown: &[Shown]) -> Option<String> {
    if shown.iter().all(|shown| *shown == Shown::Dropped) {
        return None;
    }
    let mut out = String::from(OPEN);
    for (entry, shown) in entries.iter().zip(shown) {
        let description = match shown {
            Shown::Dropped => continue,
            Shown::Name => None,
            Shown::Short(limit) => Some(cut(&entry.description, *limit)),
            Shown::Full => Some(Cow::Borrowed(entry.description.as_str())),
        };
        entry.write(&mut out, description.as_deref());
    }
    out.push_str(CLOSE);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(description: &str) -> Entry {
        Entry {
            tier: Tier::Workspace,
            name: "n".to_owned(),
            description: description.to_owned(),
            location: "~/n/SKILL.md".to_owned(),
        }
    }

    #[test]
    fn a_skill_without_a_description_has_no_line_for_it() {
        let entries = [entry("one"), entry("two words"), entry("three"), entry("four")];
        let shown = [Shown::Full, Shown::Short(4), Shown::Name, Shown::Dropped];
        let text = block(&entries, &shown).expect("a block");
        let described: Vec<&str> = text.lines().filter(|line| line.contains("description")).collect();
        assert_eq!(described, ["    <description>one</description>", "    <description>two…</description>"]);
        assert_eq!(text.matches("<skill>").count(), 3);
    }

    #[test]
    fn without_skills_there_is_no_block() {
        assert_eq!(block(&[], &[]), None);
        assert_eq!(block(&[entry("d")], &[Shown::Dropped]), None);
    }
}
