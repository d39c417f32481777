//! The catalogue: all skills by name, with what they hide and what could not be read.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use rayon::prelude::*;

use crate::discover::{Candidate, Finding, Reach, discover, search};
use crate::lookalike;
use crate::memory::Memory;
use crate::problem::{Problem, ProblemKind};
use crate::root::Root;
use crate::skill::Skill;
use crate::tier::Tier;

/// A skill that another one of the same name hides.
#[derive(Debug, Clone, PartialEq)]
pub struct Shadowed {
    /// The hidden skill.
    pub skill: Arc<Skill>,
    /// The `SKILL.md` that hides it.
    pub by: PathBuf,
}

/// A folder that seems meant to be a skill and is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Broken {
    /// The folder.
    pub dir: PathBuf,
    /// Its tier.
    pub tier: Tier,
    /// Why.
    pub problem: Problem,
}

/// All skills by name. Loading never fails: what is wrong is in [`Catalog::problems`].
///
/// The order is that of OpenClaw 2026.3.2: roots from the lowest tier up, folders in the order of their UTF-16 units,
/// and a skill that overrides another takes over its place.
///
/// ```
/// use prowess_skills::{Catalog, Places, Reach};
///
/// let places = Places { workspace: Some("/no/such/place".into()), ..Places::default() };
/// let catalog = Catalog::load(&places.roots(), &Reach::default());
/// assert!(catalog.skills().is_empty());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    skills: Vec<Arc<Skill>>,
    shadowed: Vec<Shadowed>,
    broken: Vec<Broken>,
    problems: Vec<Problem>,
}

impl Catalog {
    /// Reads all roots and merges what they hold; of two skills with one name, the one from the later root wins.
    #[must_use]
    pub fn load(roots: &[Root], reach: &Reach) -> Self {
        // Inside the pool, so that the steps of one root do not hand over from this thread each time.
        let findings = rayon::scope(|_| roots.par_iter().map(|root| discover(root, reach)).collect());
        Self::merge(within(findings, roots, reach))
    }

    /// The same, and only files that are not the same as when they were last read are read again.
    #[must_use]
    pub fn load_with(roots: &[Root], reach: &Reach, memory: &mut Memory) -> Self {
        // Asked before anything is read, so that what changes meanwhile counts as fresh.
        let began = SystemTime::now();
        memory.begin(reach.limits.file_bytes);
        let known = &*memory;
        let found: Vec<_> = rayon::scope(|_| roots.par_iter().map(|root| search(root, reach, Some(known))).collect());
        let (findings, traces): (Vec<_>, Vec<_>) = found.into_iter().unzip();
        memory.keep(roots.iter().map(|root| root.tier).zip(traces).collect(), began);
        Self::merge(within(findings, roots, reach))
    }

    /// Merges findings, lowest first.
    #[must_use]
    pub fn merge(findings: Vec<Finding>) -> Self {
        let mut catalog = Self::default();
        let most = findings.iter().map(|finding| finding.candidates.len()).sum();
        let mut places: HashMap<String, usize> = HashMap::with_capacity(most);
        for finding in findings {
            catalog.problems.extend(finding.problems);
            for Candidate { dir, tier, outcome } in finding.candidates {
                match outcome {
                    Ok(skill) => catalog.insert(skill, &mut places),
                    Err(problem) => {
                        catalog.problems.push(problem.clone());
                        catalog.broken.push(Broken { dir, tier, problem });
                    }
                }
            }
        }
        for hidden in &mut catalog.shadowed {
            if let Some(&place) = places.get(hidden.skill.name.as_str()) {
                hidden.by.clone_from(&catalog.skills[place].file);
            }
        }
        catalog.problems.extend(lookalike::problems(&catalog.skills));
        catalog
    }

    fn insert(&mut self, skill: Arc<Skill>, places: &mut HashMap<String, usize>) {
        let Some(&place) = places.get(skill.name.as_str()) else {
            places.insert(skill.name.as_str().to_owned(), self.skills.len());
            self.skills.push(skill);
            return;
        };
        let hidden = std::mem::replace(&mut self.skills[place], skill);
        // Which skill hides it in the end is known only when all have been seen.
        self.shadowed.push(Shadowed { skill: hidden, by: PathBuf::new() });
    }

    /// The skills that count, in order.
    #[must_use]
    pub fn skills(&self) -> &[Arc<Skill>] {
        &self.skills
    }

    /// The skills that others hide.
    #[must_use]
    pub fn shadowed(&self) -> &[Shadowed] {
        &self.shadowed
    }

    /// The folders that seem meant to be skills and are none.
    #[must_use]
    pub fn broken(&self) -> &[Broken] {
        &self.broken
    }

    /// Everything that went wrong, and everything that was mended.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The skill with this name, or else with this key.
    #[must_use]
    pub fn find(&self, name_or_key: &str) -> Option<&Arc<Skill>> {
        let by_name = self.skills.iter().find(|skill| skill.name.as_str() == name_or_key);
        by_name.or_else(|| self.skills.iter().find(|skill| skill.key() == name_or_key))
    }
}

/// The findings without the skills that are too many for one catalogue: those of the lowest roots go first.
fn within(mut findings: Vec<Finding>, roots: &[Root], reach: &Reach) -> Vec<Finding> {
    let mut left = reach.limits.skills;
    for (finding, root) in findings.iter_mut().zip(roots).rev() {
        let before = finding.candidates.len();
        finding.candidates.retain(|candidate| {
            let fits = candidate.outcome.is_err() || left > 0;
            left -= usize::from(candidate.outcome.is_ok() && fits);
            fits
        });
        let cut = before - finding.candidates.len();
        if cut > 0 {
            let reason = format!("{cut} skills were not loaded: the limit is {} skills in all", reach.limits.skills);
            let fix = "remove skills you do not use, or raise skills.limits.maxSkillsLoadedPerSource";
            finding.problems.push(Problem::new(ProblemKind::OverLimit, &root.path, reason, fix));
        }
    }
    findings
}

/// Skills that were not read again are the same ones, which is seen at a glance.
impl PartialEq for Catalog {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&Arc<Skill>, &Arc<Skill>)| Arc::ptr_eq(a, b) || a == b;
        self.skills.len() == other.skills.len()
            && self.skills.iter().zip(&other.skills).all(same)
            && self.shadowed == other.shadowed
            && self.broken == other.broken
            && self.problems == other.problems
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::problem::ProblemKind;

    fn candidate(path: &str, text: &str, tier: Tier) -> Candidate {
        let file = Path::new(path).join("SKILL.md");
        let read = Skill::parse(format!("---\n{text}\n---\n").as_bytes(), &file, tier);
        Candidate { dir: path.into(), tier, outcome: read.map(|(skill, _)| Arc::new(skill)) }
    }

    fn merged(candidates: Vec<Candidate>) -> Catalog {
        let one = |candidate| Finding { candidates: vec![candidate], problems: Vec::new() };
        Catalog::merge(candidates.into_iter().map(one).collect())
    }

    #[test]
    fn the_winner_replaces_the_whole_record_and_keeps_the_place() {
        let catalog = merged(vec![
            candidate("/1", "name: x\ndescription: low\nhomepage: h", Tier::Extra),
            candidate("/2", "name: y\ndescription: d", Tier::Bundled),
            candidate("/3", "name: x\ndescription: high", Tier::Workspace),
        ]);
        let names: Vec<&str> = catalog.skills().iter().map(|skill| skill.name.as_str()).collect();
        assert_eq!(names, ["x", "y"]);
        assert_eq!((catalog.skills()[0].description.as_str(), &catalog.skills()[0].homepage), ("high", &None));
    }

    #[test]
    fn all_that_are_hidden_name_the_one_that_hides_them() {
        let dup = |path| candidate(path, "name: x\ndescription: d", Tier::Workspace);
        let catalog = merged(vec![dup("/1"), dup("/2"), dup("/3")]);
        let hidden: Vec<(&Path, &Path)> =
            catalog.shadowed().iter().map(|hidden| (hidden.skill.dir(), hidden.by.as_path())).collect();
        let by = Path::new("/3/SKILL.md");
        assert_eq!(hidden, [(Path::new("/1"), by), (Path::new("/2"), by)]);
    }

    #[test]
    fn what_is_broken_is_listed_and_hides_nothing() {
        let catalog = merged(vec![
            candidate("/1", "name: x\ndescription: d", Tier::Managed),
            candidate("/2", "name: x", Tier::Workspace),
        ]);
        assert_eq!(catalog.skills().len(), 1);
        assert_eq!(catalog.broken()[0].problem.kind, ProblemKind::NoDescription);
        assert_eq!(catalog.problems().len(), 1);
    }

    #[test]
    fn a_name_is_found_before_a_key() {
        let catalog = merged(vec![
            candidate("/1", "name: a\ndescription: d\nmetadata: {openclaw: {skillKey: b}}", Tier::Managed),
            candidate("/2", "name: b\ndescription: d", Tier::Managed),
            candidate("/3", "name: c\ndescription: d\nmetadata: {openclaw: {skillKey: k}}", Tier::Managed),
        ]);
        let found = |name: &str| catalog.find(name).map(|skill| skill.name.as_str().to_owned());
        assert_eq!(found("b").as_deref(), Some("b"));
        assert_eq!(found("k").as_deref(), Some("c"));
        assert_eq!(found("A"), None);
    }
}
