//! The catalogue: all skills by name, with what they hide and what could not be read.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;

use crate::discover::{Candidate, Finding, Reach, discover};
use crate::problem::Problem;
use crate::root::Root;
use crate::skill::Skill;
use crate::tier::Tier;

/// A skill that another one of the same name hides.
#[derive(Debug, Clone)]
pub struct Shadowed {
    /// The hidden skill.
    pub skill: Arc<Skill>,
    /// The `SKILL.md` that hides it.
    pub by: PathBuf,
}

/// A folder that seems meant to be a skill and is none.
#[derive(Debug, Clone)]
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
        Self::merge(roots.par_iter().map(|root| discover(root, reach)).collect())
    }

    /// Merges findings, lowest first.
    #[must_use]
    pub fn merge(findings: Vec<Finding>) -> Self {
        let mut catalog = Self::default();
        let mut places: HashMap<String, usize> = HashMap::new();
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
        catalog
    }

    fn insert(&mut self, skill: Arc<Skill>, places: &mut HashMap<String, usize>) {
        let Some(&place) = places.get(skill.name.as_str()) else {
            places.insert(skill.name.as_str().to_owned(), self.skills.len());
            self.skills.push(skill);
            return;
        };
        let by = skill.file.clone();
        let hidden = std::mem::replace(&mut self.skills[place], skill);
        for earlier in &mut self.shadowed {
            if earlier.skill.name == hidden.name {
                earlier.by.clone_from(&by);
            }
        }
        self.shadowed.push(Shadowed { skill: hidden, by });
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
