//! Discovery: which folders below a root are skills?
//!
//! Level by level, each level side by side: a folder with a `SKILL.md` is a skill and is not looked into; any other is
//! listed and its children make up the next level. Links are followed only where the root's tier allows it. Nothing is
//! dropped in silence: every folder that is, or seems meant to be, a skill becomes a [`Candidate`], and every limit
//! that bites becomes a [`Problem`].

mod file;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use crate::memory::{Known, Memory, Parsed, Place, Trace};
use crate::problem::{Problem, ProblemKind};
use crate::root::{Origin, Root};
use crate::settings::Limits;
use crate::skill::Skill;
use crate::tier::Tier;
use file::{Rules, Unread};

/// Folders that one thread takes at a time: each is a matter of microseconds, and handing over costs as much.
const CHUNK: usize = 64;

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
    search(root, reach, None).0
}

/// The same with what is remembered from before, and with what is worth remembering.
pub(crate) fn search(root: &Root, reach: &Reach, memory: Option<&Memory>) -> (Finding, Trace) {
    let mut finding = Finding::default();
    let real = match root.path.canonicalize() {
        Ok(real) if real.is_dir() => real,
        found => {
            if root.origin != Origin::Convention {
                let reason = if found.is_ok() { "is not a folder" } else { "does not exist" };
                let fix = "correct the path in the configuration, or create the folder";
                finding.problems.push(Problem::new(ProblemKind::MissingRoot, &root.path, reason, fix));
            }
            return (finding, Trace::default());
        }
    };
    let mut search = Search {
        root,
        reach,
        memory,
        trace: Trace::default(),
        real_root: real.clone(),
        finding,
        lists_left: lists(&reach.limits),
        visits_left: visits(&reach.limits),
    };
    let real = Some(real).filter(|real| *real != root.path);
    search.run(Folder { path: root.path.clone(), real, level: 0, nested: false, link: None });
    search.finding.candidates.sort_by(|a, b| file::cmp_paths(&a.dir, &b.dir));
    search.cut_to_limit();
    (search.finding, search.trace)
}

/// Children of one folder that are looked at.
fn children(limits: &Limits) -> usize {
    limits.candidates_per_root.saturating_mul(10).clamp(1_000, 10_000).max(limits.candidates_per_root)
}

/// Folders without a `SKILL.md` that are listed below one root.
fn lists(limits: &Limits) -> usize {
    limits.candidates_per_root.saturating_mul(6).min(20_000).max(limits.candidates_per_root)
}

/// Folders that are looked at below one root.
fn visits(limits: &Limits) -> usize {
    children(limits).saturating_mul(4)
}

/// A folder to be looked at.
struct Folder {
    path: PathBuf,
    /// The path with all links resolved, when it differs.
    real: Option<PathBuf>,
    /// Levels below the root.
    level: usize,
    /// Whether it is, or is below, the `skills` folder of the root, which adds no level of its own.
    nested: bool,
    /// The link that led here, when its target was refused.
    link: Option<Problem>,
}

impl Folder {
    fn real(&self) -> &Path {
        self.real.as_deref().unwrap_or(&self.path)
    }

    fn is_deepest(&self) -> bool {
        self.level >= MAX_LEVELS + usize::from(self.nested)
    }
}

/// The file that makes a folder a skill.
pub(crate) const FILE: &str = "SKILL.md";

/// `dir/name`, made in one piece of memory.
fn below(dir: &Path, name: impl AsRef<OsStr>) -> PathBuf {
    let name = name.as_ref();
    let mut path = PathBuf::with_capacity(dir.as_os_str().len() + 1 + name.len());
    path.push(dir);
    path.push(name);
    path
}

fn over_limit(path: &Path, reason: String, fix: &str) -> Problem {
    Problem::new(ProblemKind::OverLimit, path, reason, fix)
}

/// What lies in a folder that is no skill itself.
#[derive(Default)]
struct Listed {
    folders: Vec<Folder>,
    near_miss: Option<Candidate>,
    problems: Vec<Problem>,
    trace: Trace,
}

/// What a folder turned out to be.
enum Visit {
    Candidate(Candidate, Vec<Problem>, Trace),
    Listed(Listed),
    Other(Folder),
}

struct Search<'a> {
    root: &'a Root,
    reach: &'a Reach,
    /// Without one nothing is traced.
    memory: Option<&'a Memory>,
    trace: Trace,
    real_root: PathBuf,
    finding: Finding,
    lists_left: usize,
    visits_left: usize,
}

impl Search<'_> {
    fn run(&mut self, root: Folder) {
        let mut level = vec![root];
        while !level.is_empty() {
            self.cut_visits(&mut level);
            // When the whole level may be listed, each folder is listed as soon as it is known to be no skill.
            let list_now = level.len() <= self.lists_left;
            let visits: Vec<Visit> = level
                .into_par_iter()
                .with_min_len(CHUNK)
                .map_init(Vec::new, |buffer, folder| match self.visit(folder, buffer) {
                    Visit::Other(folder) if list_now && !folder.is_deepest() => Visit::Listed(self.list(&folder)),
                    visit => visit,
                })
                .collect();
            let (mut next, mut others) = (Vec::new(), Vec::new());
            for visit in visits {
                match visit {
                    Visit::Candidate(candidate, problems, trace) => {
                        self.finding.candidates.push(candidate);
                        self.finding.problems.extend(problems);
                        self.trace.extend(trace);
                    }
                    Visit::Listed(listed) => {
                        self.lists_left -= 1;
                        self.take(listed, &mut next);
                    }
                    Visit::Other(folder) => others.push(folder),
                }
            }
            self.list_within_limit(others, &mut next);
            level = next;
        }
    }

    fn visit(&self, folder: Folder, buffer: &mut Vec<u8>) -> Visit {
        let tier = self.root.tier;
        if let Some(problem) = folder.link {
            let refused = Candidate { dir: folder.path, tier, outcome: Err(problem) };
            return Visit::Candidate(refused, Vec::new(), Trace::default());
        }
        let mut trace = Trace::default();
        // Where a link may lead anywhere, the place it leads to is the skill's place.
        let moves = free_links(tier) && folder.level > 0;
        let path = below(if moves { folder.real() } else { &folder.path }, FILE);
        let parsed = match self.memory.and_then(|memory| memory.recall(tier, &path)) {
            Some(known) => {
                trace.known.push((path, known.clone()));
                known.parsed.clone()
            }
            None => match self.read(path, folder.real(), buffer, &mut trace) {
                Ok(parsed) => parsed,
                Err(Unread::Refused(problem)) => Err(problem),
                Err(Unread::Absent) => return Visit::Other(folder),
            },
        };
        let (outcome, mut problems) = match parsed {
            Ok((skill, problems)) => (Ok(skill), problems),
            Err(problem) => (Err(problem), Vec::new()),
        };
        if self.memory.is_some() {
            trace.places.push(Place::Skill(folder.real().to_owned()));
        }
        if folder.level == 0 {
            problems.extend(self.swallowed(&folder, &mut trace));
        }
        Visit::Candidate(Candidate { dir: folder.path, tier, outcome }, problems, trace)
    }

    fn read(&self, path: PathBuf, real_dir: &Path, buffer: &mut Vec<u8>, trace: &mut Trace) -> Result<Parsed, Unread> {
        let tier = self.root.tier;
        let rules = Rules { max_bytes: self.reach.limits.file_bytes, hard_links: tier == Tier::Bundled };
        let read = file::read(&path, real_dir, &rules, buffer);
        if self.memory.is_none() {
            return read.map(|_| file::parse(buffer, &path, tier));
        }
        if !matches!(read, Err(Unread::Absent)) {
            trace.read += 1;
        }
        // Only what is a plain file is known to be none.
        if !matches!(read, Ok(Some(_)) | Err(Unread::Absent)) && path.is_symlink() {
            trace.places.push(Place::Link(path.clone()));
        }
        let identity = read?;
        let parsed = file::parse(buffer, &path, tier);
        if let Some(identity) = identity {
            trace.known.push((path, Known { identity, parsed: parsed.clone() }));
        }
        Ok(parsed)
    }

    /// Leaves out the folders at the end of a level that are too many for one root.
    fn cut_visits(&mut self, level: &mut Vec<Folder>) {
        if level.len() > self.visits_left {
            let reason = format!("{} folders were not searched: there are too many", level.len() - self.visits_left);
            let fix = "point to the folders that hold skills, or raise skills.limits.maxCandidatesPerRoot";
            self.finding.problems.push(over_limit(&self.root.path, reason, fix));
            level.truncate(self.visits_left);
        }
        self.visits_left -= level.len();
    }

    /// Lists folders as far as the limits allow.
    fn list_within_limit(&mut self, mut folders: Vec<Folder>, next: &mut Vec<Folder>) {
        let too_deep: Vec<Folder> = folders.extract_if(.., |folder| folder.is_deepest()).collect();
        self.note_depth(&too_deep);
        self.trace_unlisted(too_deep);
        if folders.len() > self.lists_left {
            let surplus = folders.len() - self.lists_left;
            let reason = format!("{surplus} folders were not searched: there are too many without a SKILL.md");
            let fix = "point to the folders that hold skills, or raise skills.limits.maxCandidatesPerRoot";
            self.finding.problems.push(over_limit(&self.root.path, reason, fix));
            self.trace_unlisted(folders.split_off(self.lists_left));
        }
        self.lists_left -= folders.len();
        let listed: Vec<Listed> = folders.into_par_iter().map(|folder| self.list(&folder)).collect();
        for listed in listed {
            self.take(listed, next);
        }
    }

    fn take(&mut self, listed: Listed, next: &mut Vec<Folder>) {
        next.extend(listed.folders);
        self.finding.candidates.extend(listed.near_miss);
        self.finding.problems.extend(listed.problems);
        self.trace.extend(listed.trace);
    }

    fn trace_unlisted(&mut self, folders: Vec<Folder>) {
        if self.memory.is_some() {
            let places = folders.into_iter().map(|folder| Place::Folder(folder.real.unwrap_or(folder.path)));
            self.trace.places.extend(places);
        }
    }

    /// The children of one folder.
    fn list(&self, folder: &Folder) -> Listed {
        let mut listed = Listed::default();
        if self.memory.is_some() {
            listed.trace.places.push(Place::Folder(folder.real().to_owned()));
        }
        let listing = match file::list(&folder.path, children(&self.reach.limits)) {
            Ok(listing) => listing,
            Err(error) => {
                listed.problems.push(file::unreadable(&folder.path, &error));
                return listed;
            }
        };
        listed.near_miss = listing.near_miss.map(|path| {
            let reason = "only a file named exactly SKILL.md is a skill";
            let problem = Problem::new(ProblemKind::NearMiss, &path, reason, "rename it to SKILL.md");
            Candidate { dir: folder.path.clone(), tier: self.root.tier, outcome: Err(problem) }
        });
        let found = listing.children.len() + listing.left_out;
        if listing.left_out > 0 {
            let reason = format!("{} of {found} folders were not searched", listing.left_out);
            let fix = "split the folder, or raise skills.limits.maxCandidatesPerRoot";
            listed.problems.push(over_limit(&folder.path, reason, fix));
        } else if folder.level == 0 && found > self.reach.limits.candidates_per_root {
            let reason =
                format!("has {found} folders, more than skills.limits.maxCandidatesPerRoot; all were searched");
            listed.problems.push(over_limit(&folder.path, reason, "check that this is a folder of skills"));
        }
        for child in listing.children {
            let nested = folder.nested || (folder.level == 0 && child.name == "skills");
            let path = below(&folder.path, &child.name);
            let real = folder.real.as_ref().map(|real| below(real, &child.name)).filter(|real| *real != path);
            let plain = Folder { path, real, level: folder.level + 1, nested, link: None };
            if child.is_link {
                if self.memory.is_some() {
                    listed.trace.places.push(Place::Link(plain.path.clone()));
                }
                match self.follow(plain) {
                    Ok(followed) => listed.folders.extend(followed),
                    Err(problem) => listed.problems.push(problem),
                }
            } else {
                listed.folders.push(plain);
            }
        }
        listed
    }

    /// Where a link leads, if that is a folder.
    fn follow(&self, link: Folder) -> Result<Option<Folder>, Problem> {
        let target = link.path.canonicalize().map_err(|_| file::dead_link(&link.path))?;
        if !target.is_dir() {
            return Ok(None);
        }
        let parent = link.real().parent().unwrap_or(&self.real_root);
        if parent.starts_with(&target) {
            let reason = "the symlink leads back to a folder above it";
            return Err(Problem::new(ProblemKind::DeadLink, &link.path, reason, "remove it"));
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
        Ok(Some(Folder { real: Some(target), link: refused, ..link }))
    }

    /// A root that is itself a skill hides the skills below it; says so when there are any.
    fn swallowed(&self, root: &Folder, trace: &mut Trace) -> Option<Problem> {
        let mut has_skill = |dir: &Path| {
            let children = file::list(dir, 64).map(|listing| listing.children).unwrap_or_default();
            if self.memory.is_some() {
                trace.places.push(Place::Folder(dir.to_owned()));
                trace.places.extend(children.iter().map(|child| Place::Skill(dir.join(&child.name))));
            }
            children.iter().any(|child| dir.join(&child.name).join(FILE).is_file())
        };
        let (above, below) = (has_skill(root.real()), has_skill(&root.real().join("skills")));
        (above || below).then(|| {
            let reason = "the root is itself a skill, so the skills in the folders below it are not loaded";
            let fix = "move this SKILL.md into its own folder";
            Problem::new(ProblemKind::Swallowed, &root.path.join(FILE), reason, fix)
        })
    }

    fn note_depth(&mut self, folders: &[Folder]) {
        let deeper = |folder: &&Folder| file::list(&folder.path, 1).is_ok_and(|listing| !listing.children.is_empty());
        // Looking at a few is enough to know that something lies deeper.
        if let Some(folder) = folders.iter().take(64).find(deeper) {
            let reason = format!("folders more than {MAX_LEVELS} levels below the root were not searched");
            self.finding.problems.push(over_limit(&folder.path, reason, "move the skills closer to the root"));
        }
    }

    /// Keeps the first skills that load, up to the limit; broken ones take no place.
    fn cut_to_limit(&mut self) {
        let limit = self.reach.limits.skills_per_root;
        let (mut loaded, mut cut) = (0, 0);
        for candidate in &mut self.finding.candidates {
            if let Ok(skill) = &candidate.outcome {
                loaded += 1;
                if loaded > limit {
                    cut += 1;
                    let reason = format!("not loaded: it is beyond the limit of {limit} skills per root");
                    let fix = "raise skills.limits.maxSkillsLoadedPerSource";
                    candidate.outcome = Err(Problem::new(ProblemKind::OverLimit, &skill.file, reason, fix));
                }
            }
        }
        if cut > 0 {
            let reason = format!("{cut} skills were not loaded: the limit is {limit} skills per root");
            let fix = "raise skills.limits.maxSkillsLoadedPerSource";
            self.finding.problems.push(over_limit(&self.root.path, reason, fix));
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

#[cfg(test)]
mod tests {
    use prowess_testkit::Tree;

    use super::*;

    fn root(tree: &Tree, tier: Tier) -> Root {
        Root { tier, path: tree.path("root"), origin: Origin::Convention }
    }

    fn find(tree: &Tree, tier: Tier, limits: Limits) -> Finding {
        discover(&root(tree, tier), &Reach { limits, link_targets: Vec::new() })
    }

    /// Relative folders of the candidates, those without a skill in parentheses.
    fn dirs(tree: &Tree, finding: &Finding) -> Vec<String> {
        let show = |candidate: &Candidate| {
            let dir = candidate.dir.strip_prefix(tree.path("root")).expect("below the root").to_string_lossy();
            if candidate.outcome.is_ok() { dir.into_owned() } else { format!("({dir})") }
        };
        finding.candidates.iter().map(show).collect()
    }

    fn kinds(finding: &Finding) -> Vec<ProblemKind> {
        finding.problems.iter().map(|problem| problem.kind).collect()
    }

    #[test]
    fn candidates_are_ordered_component_by_component() {
        let tree =
            Tree::new().plant("root/a-b: d\nroot/a/z: d\nroot/a/b/c: d\nroot/B: d\nroot/é: d\nroot/\u{1f324}: d");
        let finding = find(&tree, Tier::Workspace, Limits::default());
        assert_eq!(dirs(&tree, &finding), ["B", "a/b/c", "a/z", "a-b", "é", "\u{1f324}"]);
        assert!(finding.problems.is_empty());
    }

    #[test]
    fn every_broken_folder_is_a_candidate_with_its_reason() {
        let tree = Tree::new()
            .file("root/text/SKILL.md", "no frontmatter\n")
            .file("root/big/SKILL.md", "---\nname: big\ndescription: much too long\n---\n")
            .file("root/near/Skill.MD", "---\nname: near\ndescription: d\n---\n")
            .dir("root/folder/SKILL.md")
            .symlink("root/dead/SKILL.md", "nowhere")
            .symlink("root/loop/SKILL.md", "SKILL.md")
            .plant("root/ok: d");
        let finding = find(&tree, Tier::Workspace, Limits { file_bytes: 40, ..Limits::default() });
        assert_eq!(dirs(&tree, &finding), ["(big)", "(dead)", "(folder)", "(loop)", "(near)", "ok", "(text)"]);
        let reasons: Vec<ProblemKind> = finding
            .candidates
            .iter()
            .filter_map(|candidate| candidate.outcome.as_ref().err())
            .map(|p| p.kind)
            .collect();
        assert_eq!(
            reasons,
            [
                ProblemKind::TooLarge,
                ProblemKind::Unreadable,
                ProblemKind::NotAFile,
                ProblemKind::Unreadable,
                ProblemKind::NearMiss,
                ProblemKind::NoFrontmatter
            ]
        );
    }

    #[test]
    fn links_in_a_circle_end_the_search() {
        let tree = Tree::new()
            .plant("root/a/b/one: d")
            .symlink("root/a/up", "..")
            .symlink("root/a/self", "self")
            .symlink("root/x/y", "../y")
            .symlink("root/y/x", "../x");
        for tier in [Tier::Workspace, Tier::Managed] {
            let finding = find(&tree, tier, Limits::default());
            assert_eq!(finding.candidates.iter().filter(|candidate| candidate.outcome.is_ok()).count(), 1, "{tier:?}");
            assert!(kinds(&finding).contains(&ProblemKind::DeadLink));
        }
    }

    #[test]
    fn a_large_folder_is_noted_and_still_searched() {
        let tree = (0..12).fold(Tree::new(), |tree, index| tree.skill(&format!("root/s{index:02}"), "d", ""));
        let finding = find(&tree, Tier::Workspace, Limits { candidates_per_root: 10, ..Limits::default() });
        assert_eq!(finding.candidates.len(), 12);
        assert_eq!(kinds(&finding), [ProblemKind::OverLimit]);
        assert!(
            find(&tree, Tier::Workspace, Limits { candidates_per_root: 12, ..Limits::default() }).problems.is_empty()
        );
    }

    #[test]
    fn folders_without_skills_are_listed_up_to_a_limit() {
        let tree = (0..9).fold(Tree::new(), |tree, index| tree.dir(&format!("root/group{index}/deeper")));
        let tree = tree.plant("root/zz/skill: d");
        let finding = find(&tree, Tier::Workspace, Limits { candidates_per_root: 1, ..Limits::default() });
        let left_out =
            finding.problems.iter().find(|problem| problem.reason.contains("not searched")).expect("reported");
        assert_eq!((left_out.kind, left_out.path.clone()), (ProblemKind::OverLimit, tree.path("root")));
        assert!(finding.candidates.is_empty());
    }

    #[test]
    fn bounds_follow_the_setting_within_reason() {
        let with = |candidates_per_root| Limits { candidates_per_root, ..Limits::default() };
        assert_eq!([1, 300, 5_000, 20_000].map(|count| children(&with(count))), [1_000, 3_000, 10_000, 20_000]);
        assert_eq!(lists(&with(300)), 1_800);
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_cannot_be_shown_is_reported() {
        let tree = Tree::new().plant("root/a\u{202e}b: d\nroot/new\u{200b}: d");
        let finding = find(&tree, Tier::Workspace, Limits::default());
        assert!(finding.candidates.iter().all(|candidate| {
            candidate.outcome.as_ref().is_err_and(|problem| problem.kind == ProblemKind::UnsafePath)
        }));
        assert_eq!(finding.candidates.len(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_named_pipe_does_not_keep_us_waiting() {
        let tree = Tree::new().dir("root/pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, tree.path("root/pipe/SKILL.md"), 0o644.into()).expect("a pipe");
        let finding = find(&tree, Tier::Workspace, Limits::default());
        assert_eq!(dirs(&tree, &finding), ["(pipe)"]);
    }

    #[test]
    fn a_configured_root_that_is_missing_is_noted() {
        let tree = Tree::new();
        let missing = Root { origin: Origin::Configured, ..root(&tree, Tier::Extra) };
        assert_eq!(kinds(&discover(&missing, &Reach::default())), [ProblemKind::MissingRoot]);
        assert!(discover(&root(&tree, Tier::Extra), &Reach::default()).problems.is_empty());
    }
}
