//! The snapshot: what a session works with, frozen.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::budget::Budget;
use crate::catalog::Catalog;
use crate::gate::{Gate, Objection};
use crate::prompt::{self, Prompt};
use crate::skill::Skill;

/// A digest of everything in a snapshot that a model or a run could notice.
///
/// Equal exactly when the prompt, the skills and their needs are equal, in whichever process and whenever it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A skill that the gate did not let through, and why.
#[derive(Debug, Clone)]
pub struct HeldBack {
    /// The skill.
    pub skill: Arc<Skill>,
    /// Every reason against it.
    pub objections: Vec<Objection>,
}

/// The skills a session may use, and the prompt that tells the model about them.
#[derive(Debug, Clone)]
pub struct Snapshot {
    skills: Vec<Arc<Skill>>,
    held_back: Vec<HeldBack>,
    filter: Option<Vec<String>>,
    prompt: Prompt,
    fingerprint: Fingerprint,
}

impl Snapshot {
    /// Puts every skill of the catalogue to the gate and renders those that pass.
    ///
    /// `home` is what locations in the prompt are shortened by.
    #[must_use]
    pub fn take(catalog: &Catalog, gate: &Gate<'_>, home: Option<&Path>, budget: &Budget) -> Self {
        let mut skills = Vec::new();
        let mut held_back = Vec::new();
        for skill in catalog.skills() {
            let objections = gate.objections(skill);
            if objections.is_empty() {
                skills.push(Arc::clone(skill));
            } else {
                held_back.push(HeldBack { skill: Arc::clone(skill), objections });
            }
        }
        let visible = skills.iter().filter(|skill| skill.invocation.by_model).map(AsRef::as_ref);
        let prompt = prompt::render(visible, home, gate.world.note.as_deref(), budget);
        let filter = gate.filters.names();
        let fingerprint = fingerprint(&prompt, &skills, filter.as_deref());
        Self { skills, held_back, filter, prompt, fingerprint }
    }

    /// The skills that passed, hidden ones included.
    #[must_use]
    pub fn skills(&self) -> &[Arc<Skill>] {
        &self.skills
    }

    /// The skills that passed and that the model may see, also those that the budget cut from the prompt.
    pub fn visible(&self) -> impl Iterator<Item = &Arc<Skill>> {
        self.skills.iter().filter(|skill| skill.invocation.by_model)
    }

    /// The skills that did not pass.
    #[must_use]
    pub fn held_back(&self) -> &[HeldBack] {
        &self.held_back
    }

    /// The list of names that was applied, when there was one.
    #[must_use]
    pub fn filter(&self) -> Option<&[String]> {
        self.filter.as_deref()
    }

    /// What the model is told.
    #[must_use]
    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// What it is compared by.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

fn fingerprint(prompt: &Prompt, skills: &[Arc<Skill>], filter: Option<&[String]>) -> Fingerprint {
    let mut record = Record::default();
    record.text(&prompt.text);
    record.list(filter);
    for skill in skills {
        record.skill(skill);
    }
    Fingerprint(record.finish())
}

/// Values written so that no two different ones look alike: every text with its length, every list with its count.
#[derive(Default)]
struct Record {
    hasher: blake3::Hasher,
    /// What is not hashed yet: the hash is fast on long pieces, and most values are short.
    pending: Vec<u8>,
}

impl Record {
    const PIECE: usize = 64 * 1024;

    fn finish(mut self) -> [u8; 32] {
        self.hasher.update(&self.pending);
        *self.hasher.finalize().as_bytes()
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= Self::PIECE {
            self.hasher.update(&self.pending);
            self.pending.clear();
        }
    }

    fn number(&mut self, number: usize) {
        self.bytes(&(number as u64).to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.bytes(text.as_bytes());
    }

    fn list(&mut self, items: Option<&[String]>) {
        self.bytes(&[u8::from(items.is_some())]);
        self.number(items.map_or(0, <[String]>::len));
        for item in items.unwrap_or_default() {
            self.text(item);
        }
    }

    fn option(&mut self, text: Option<&str>) {
        self.bytes(&[u8::from(text.is_some())]);
        self.text(text.unwrap_or_default());
    }

    fn skill(&mut self, skill: &Skill) {
        self.text(skill.name.as_str());
        self.text(skill.key());
        self.text(skill.tier.label());
        self.text(&skill.description);
        self.text(&skill.file.to_string_lossy());
        self.option(skill.metadata.primary_env.as_deref());
        self.option(skill.dispatch.as_ref().map(|dispatch| dispatch.tool.as_str()));
        let flags = [skill.metadata.always, skill.invocation.by_user, skill.invocation.by_model];
        self.bytes(&flags.map(u8::from));
        let needs = &skill.metadata.needs;
        for list in [&needs.os, &needs.bins, &needs.any_bins, &needs.env, &needs.config, &skill.standard.allowed_tools]
        {
            self.list(Some(list));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::{Candidate, Finding};
    use crate::filter::{Filter, Filters};
    use crate::settings::{Limits, SkillsConfig};
    use crate::tier::Tier;
    use crate::world::World;

    fn skill(name: &str, extra: &str) -> Skill {
        let text = format!("---\nname: {name}\ndescription: d\n{extra}\n---\n");
        let file = Path::new("/s").join(name).join("SKILL.md");
        Skill::parse(text.as_bytes(), &file, Tier::Workspace).expect("a skill").0
    }

    fn take(skills: Vec<Skill>, filters: &Filters) -> Snapshot {
        let candidate =
            |skill: Skill| Candidate { dir: skill.dir().to_owned(), tier: skill.tier, outcome: Ok(skill.into()) };
        let finding = Finding { candidates: skills.into_iter().map(candidate).collect(), problems: Vec::new() };
        let (world, config) = (World::default(), SkillsConfig::default());
        let gate = Gate { world: &world, config: &config, filters };
        Snapshot::take(&Catalog::merge(vec![finding]), &gate, None, &Budget::from(&Limits::default()))
    }

    #[test]
    fn skills_are_offered_hidden_or_held_back() {
        let snapshot = take(
            vec![
                skill("shown", ""),
                skill("hidden", "disable-model-invocation: true"),
                skill("held", "metadata: {openclaw: {requires: {bins: [absent]}}}"),
            ],
            &Filters::default(),
        );
        let names = |skills: &mut dyn Iterator<Item = &Arc<Skill>>| -> Vec<String> {
            skills.map(|skill| skill.name.as_str().to_owned()).collect()
        };
        assert_eq!(names(&mut snapshot.skills().iter()), ["shown", "hidden"]);
        assert_eq!(names(&mut snapshot.visible()), ["shown"]);
        assert_eq!(names(&mut snapshot.held_back().iter().map(|held| &held.skill)), ["held"]);
        assert!(!snapshot.prompt().text.contains("hidden"));
        assert_eq!(snapshot.filter(), None);
    }

    #[test]
    fn a_list_of_skills_is_part_of_the_fingerprint_even_when_it_changes_nothing() {
        let with = |agent: Filter| take(vec![skill("a", "")], &Filters { agent, ..Filters::default() });
        let (any, one, two) = (with(Filter::any()), with(Filter::only(["a"])), with(Filter::only(["a", "b"])));
        assert_eq!(any.prompt(), two.prompt());
        assert!(any.fingerprint() != one.fingerprint() && one.fingerprint() != two.fingerprint());
        assert_eq!(two.filter().map(<[String]>::len), Some(2));
    }

    #[test]
    fn items_do_not_run_into_each_other() {
        let needs = |bins: &str| {
            take(
                vec![skill("a", &format!("metadata: {{openclaw: {{always: true, requires: {bins}}}}}"))],
                &Filters::default(),
            )
        };
        let prints =
            ["{bins: [ab]}", "{bins: [a, b]}", "{bins: [a], anyBins: [b]}", "{anyBins: [a, b]}", "{env: [ab]}"]
                .map(|bins| needs(bins).fingerprint());
        for (index, print) in prints.iter().enumerate() {
            assert!(!prints[..index].contains(print), "{index}");
        }
    }

    #[test]
    fn it_prints_as_hex() {
        let print = take(Vec::new(), &Filters::default()).fingerprint().to_string();
        assert_eq!(print.len(), 64);
        assert!(print.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }
}
