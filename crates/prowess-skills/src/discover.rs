//! Discovery: which folders below a root are skills?
//!
//! Level by level, each level side by side: a folder with a `SKILL.md` is a skill and is not looked into; any other is
//! listed and its children make up the next level. Links are followed only where the root's tier allows it. Nothing is
//! dropped in silence: every folder that is, or seems meant to be, a skill becomes a [`Candidate`], and every limit
//! that bites becomes a [`Problem`].

mod file;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use crate::problem::{Problem, ProblemKind};
use crate::root::{Origin, Root};
use crate::settings::Limits;
use crate::skill::Skill;
use crate::text;
use crate::tier::Tier;
use file::{Rules, Unread};

/// Levels of folders below a root that are looked into.
pub const MAX_LEVELS: usize = 6;

/// A folder that is, or seems meant to be, a skill.
#[derive(Debug)]
pub struct Candidate {
    /// The folder.
    pub dir: PathBuf,
    /// Its tier.
    pub tier: Tier,
    /// The skill, or why there is none.
    pub outcome: Result<Arc<Skill>, Problem>,
}

/// What was found below one root.
#[derive(Debug, Default)]
pub struct Finding {
    /// Candidates by relative path, each component in the order of its UTF-16 units.
    pub candidates: Vec<Candidate>,
    /// What is worth telling and concerns no single candidate, or did not stop one.
    pub problems: Vec<Problem>,
}

/// How far to look.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    /// Bounds.
    pub limits: Limits,
    /// Folders that links in the extra, project and workspace tiers may lead into, with all links resolved.
    pub link_targets: Vec<PathBuf>,
}

/// Looks for skills below `root`. What is not there, or is not a folder, contributes nothing.
#[must_use]
pub fn discover(root: &Root, reach: &Reach) -> Finding {
    let mut finding = Finding::default();
    let real = match root.path.canonicalize() {
        Ok(real) if real.is_dir() => real,
        found => {
            if root.origin != Origin::Convention {
                let reason = if found.is_ok() { "is not a folder" } else { "does not exist" };
                let fix = "correct the path in the configuration, or create the folder";
                finding.problems.push(Problem::new(ProblemKind::MissingRoot, &root.path, reason, fix));
            }
            return finding;
        }
    };
    let mut search = Search { root, reach, real_root: real.clone(), finding, lists_left: lists(&reach.limits) };
    search.run(Folder { path: root.path.clone(), real: Some(real), level: 0, link: None });
    sort(&mut search.finding.candidates, &root.path);
    search.cut_to_limit();
    search.finding
}

/// Children of one folder that are looked at.
fn children(limits: &Limits) -> usize {
    limits.candidates_per_root.saturating_mul(10).clamp(1_000, 10_000).max(limits.candidates_per_root)
}

/// Folders without a `SKILL.md` that are listed below one root.
fn lists(limits: &Limits) -> usize {
    limits.candidates_per_root.saturating_mul(6)
}

/// Orders candidates by relative path, component by component.
fn sort(candidates: &mut Vec<Candidate>, root: &Path) {
    let key = |candidate: &Candidate| {
        let relative = candidate.dir.strip_prefix(root).unwrap_or(&candidate.dir);
        let parts: Vec<_> = relative.components().map(|part| part.as_os_str().to_string_lossy()).collect();
        parts.join("\0")
    };
    let mut keyed: Vec<(String, Candidate)> =
        std::mem::take(candidates).into_iter().map(|candidate| (key(&candidate), candidate)).collect();
    keyed.sort_by(|(a, _), (b, _)| text::cmp_units(a, b));
    candidates.extend(keyed.into_iter().map(|(_, candidate)| candidate));
}

/// A folder to be looked at.
struct Folder {
    path: PathBuf,
    /// The path with all links resolved, when it differs.
    real: Option<PathBuf>,
    /// Levels below the root. A `skills` folder right below the root adds none.
    level: usize,
    /// The link that led here, when its target was refused.
    link: Option<Problem>,
}

impl Folder {
    fn real(&self) -> &Path {
        self.real.as_deref().unwrap_or(&self.path)
    }
}

/// What a folder turned out to be.
enum Visit {
    Candidate(Candidate, Vec<Problem>),
    Other(Folder),
}

struct Search<'a> {
    root: &'a Root,
    reach: &'a Reach,
    real_root: PathBuf,
    finding: Finding,
    lists_left: usize,
}

impl Search<'_> {
    fn run(&mut self, root: Folder) {
        let mut level = vec![root];
        while !level.is_empty() {
            let visits: Vec<Visit> =
                level.into_par_iter().map_init(Vec::new, |buffer, folder| self.visit(folder, buffer)).collect();
            let mut others = Vec::new();
            for visit in visits {
                match visit {
                    Visit::Candidate(candidate, problems) => {
                        self.finding.candidates.push(candidate);
                        self.finding.problems.extend(problems);
                    }
                    Visit::Other(folder) => others.push(folder),
                }
            }
            level = self.next_level(others);
        }
    }

    fn visit(&self, folder: Folder, buffer: &mut Vec<u8>) -> Visit {
        let tier = self.root.tier;
        if let Some(problem) = folder.link {
            let refused = Candidate { dir: folder.path, tier, outcome: Err(problem) };
            return Visit::Candidate(refused, Vec::new());
        }
        // Where a link may lead anywhere, the place it leads to is the skill's place.
        let home =
            if free_links(tier) && folder.real.is_some() && folder.level > 0 { folder.real() } else { &folder.path };
        let path = home.join("SKILL.md");
        let rules = Rules { max_bytes: self.reach.limits.file_bytes, hard_links: tier == Tier::Bundled };
        let read = match file::read(&path, folder.real(), &rules, buffer) {
            Ok(()) => readable_path(&path).and_then(|()| Skill::parse(buffer, &path, tier)),
            Err(Unread::Refused(problem)) => Err(problem),
            Err(Unread::Absent) => return Visit::Other(folder),
        };
        let (outcome, mut problems) = match read {
            Ok((skill, problems)) => (Ok(Arc::new(skill)), problems),
            Err(problem) => (Err(problem), Vec::new()),
        };
        if folder.level == 0 {
            problems.extend(swallowed(&folder.path));
        }
        Visit::Candidate(Candidate { dir: folder.path, tier, outcome }, problems)
    }

    /// The children of folders that are no skills themselves, within the limits.
    fn next_level(&mut self, mut folders: Vec<Folder>) -> Vec<Folder> {
        let too_deep: Vec<Folder> = folders.extract_if(.., |folder| folder.level >= MAX_LEVELS).collect();
        if folders.len() > self.lists_left {
            let reason = format!(
                "{} folders were not searched: there are too many without a SKILL.md",
                folders.len() - self.lists_left
            );
            self.over_limit(
                &self.root.path.clone(),
                reason,
                "name the folders with skills more closely, or raise skills.limits.maxCandidatesPerRoot",
            );
            folders.truncate(self.lists_left);
        }
        self.lists_left -= folders.len();

        let keep = children(&self.reach.limits);
        let listed: Vec<_> = folders.into_par_iter().map(|folder| (file::list(&folder.path, keep), folder)).collect();
        let mut next = Vec::new();
        for (listing, folder) in listed {
            match listing {
                Ok(listing) => self.take(&folder, listing, &mut next),
                Err(error) => self.finding.problems.push(file::unreadable(&folder.path, &error)),
            }
        }
        self.note_depth(&too_deep);
        next
    }

    fn take(&mut self, folder: &Folder, listing: file::Listing, next: &mut Vec<Folder>) {
        if let Some(path) = listing.near_miss {
            let problem = Problem::new(
                ProblemKind::NearMiss,
                &path,
                "only a file named SKILL.md makes a skill",
                "rename it to SKILL.md",
            );
            self.finding.candidates.push(Candidate {
                dir: folder.path.clone(),
                tier: self.root.tier,
                outcome: Err(problem),
            });
        }
        let found = listing.children.len() + listing.left_out;
        if listing.left_out > 0 {
            let reason = format!("{} of {found} folders were not looked at", listing.left_out);
            self.over_limit(&folder.path, reason, "split the folder, or raise skills.limits.maxCandidatesPerRoot");
        } else if folder.level == 0 && found > self.reach.limits.candidates_per_root {
            let reason =
                format!("has {found} folders, more than skills.limits.maxCandidatesPerRoot; all were looked at");
            self.over_limit(&folder.path, reason, "check that this is a folder of skills");
        }
        for child in listing.children {
            let level = if folder.level == 0 && child.name == "skills" { 0 } else { folder.level } + 1;
            let path = folder.path.join(&child.name);
            let real = folder.real.as_ref().map(|real| real.join(&child.name));
            let plain = Folder { real: real.filter(|real| *real != path), path, level, link: None };
            if child.is_link { next.extend(self.follow(plain)) } else { next.push(plain) }
        }
    }

    /// Where a link leads, if that is a folder.
    fn follow(&mut self, link: Folder) -> Option<Folder> {
        let Ok(target) = link.path.canonicalize() else {
            self.finding.problems.push(file::dead_link(&link.path));
            return None;
        };
        if !target.is_dir() {
            return None;
        }
        let parent = link.real().parent().unwrap_or(&self.real_root);
        if parent.starts_with(&target) {
            let problem = Problem::new(
                ProblemKind::DeadLink,
                &link.path,
                "the link leads back to a folder above it",
                "remove it",
            );
            self.finding.problems.push(problem);
            return None;
        }
        let allowed = free_links(self.root.tier)
            || target.starts_with(&self.real_root)
            || (listed_links(self.root.tier)
                && self.reach.link_targets.iter().any(|allowed| target.starts_with(allowed)));
        let refused = (!allowed).then(|| {
            let fix = if listed_links(self.root.tier) {
                "move the folder here, or add its target to skills.load.allowSymlinkTargets"
            } else {
                "move the folder here"
            };
            file::escape(&link.path, &target, fix)
        });
        Some(Folder { real: Some(target), link: refused, ..link })
    }

    fn note_depth(&mut self, folders: &[Folder]) {
        let deeper = |folder: &&Folder| file::list(&folder.path, 1).is_ok_and(|listing| !listing.children.is_empty());
        // Looking at a few is enough to know that something lies deeper.
        if let Some(folder) = folders.iter().take(64).find(deeper) {
            let reason = format!("folders more than {MAX_LEVELS} levels below the root were not searched");
            self.over_limit(&folder.path.clone(), reason, "move skills nearer to the root");
        }
    }

    fn over_limit(&mut self, path: &Path, reason: String, fix: &str) {
        self.finding.problems.push(Problem::new(ProblemKind::OverLimit, path, reason, fix));
    }

    /// Keeps the first skills that load, up to the limit; broken ones take no place.
    fn cut_to_limit(&mut self) {
        let limit = self.reach.limits.skills_per_root;
        let mut loaded = 0;
        let mut cut = 0;
        for candidate in &mut self.finding.candidates {
            if let Ok(skill) = &candidate.outcome {
                loaded += 1;
                if loaded > limit {
                    cut += 1;
                    let reason = format!("not loaded: the limit of {limit} skills for one root is reached");
                    let fix = "raise skills.limits.maxSkillsLoadedPerSource";
                    candidate.outcome = Err(Problem::new(ProblemKind::OverLimit, &skill.file, reason, fix));
                }
            }
        }
        if cut > 0 {
            let reason = format!("{cut} skills were not loaded: the limit for one root is {limit}");
            self.over_limit(&self.root.path.clone(), reason, "raise skills.limits.maxSkillsLoadedPerSource");
        }
    }
}

/// Tiers that only the user fills: their links may lead anywhere.
fn free_links(tier: Tier) -> bool {
    matches!(tier, Tier::Managed | Tier::Personal)
}

/// Tiers whose links may also lead into `skills.load.allowSymlinkTargets`.
fn listed_links(tier: Tier) -> bool {
    matches!(tier, Tier::Extra | Tier::Project | Tier::Workspace)
}

/// A path that a model can be given as it is.
fn readable_path(path: &Path) -> Result<(), Problem> {
    let problem = |reason: &str| Problem::new(ProblemKind::UnsafePath, path, reason, "rename the folder");
    let shown = path.to_str().ok_or_else(|| problem("the path is not UTF-8"))?;
    if text::clean(shown) == shown { Ok(()) } else { Err(problem("the path has characters that cannot be seen")) }
}

/// A root that is itself a skill hides the skills below it; say so when there are any.
fn swallowed(root: &Path) -> Option<Problem> {
    let has_skill = |dir: &Path| {
        let children = file::list(dir, 64).map(|listing| listing.children).unwrap_or_default();
        children.iter().any(|child| dir.join(&child.name).join("SKILL.md").is_file())
    };
    (has_skill(root) || has_skill(&root.join("skills"))).then(|| {
        let reason = "the root is itself a skill, so the skills in the folders below it are not loaded";
        Problem::new(
            ProblemKind::Swallowed,
            &root.join("SKILL.md"),
            reason,
            "move this SKILL.md into a folder of its own",
        )
    })
}
