//! `prowess skills`: which skills do I have, which may the model see, what does it see, and why not the others?

mod bind;
mod check;
mod commands;
mod explain;
mod info;
mod list;
mod prompt;

use prowess_host::{Context, Failure, View};
use prowess_skills::{Objection, ProblemKind, Skill};

use crate::cli::{SkillOptions, Skills};
use crate::output::{BAD, DIM, GOOD, Report, WARN, paint, safe};
use crate::suggest::did_you_mean;

use check::Detail;

/// Runs one of the skills commands; without one, `list`.
pub(crate) fn run(
    command: Option<&Skills>,
    options: &SkillOptions,
    context: Context,
    json: bool,
) -> Result<Report, Failure> {
    let view = View::load(context, options.channel.as_deref())?;
    match command {
        None => list::run(&view, &list::Options::default(), json),
        Some(Skills::List { text, eligible, verbose }) => {
            list::run(&view, &list::Options { words: text.clone(), eligible: *eligible, verbose: *verbose }, json)
        }
        Some(Skills::Info { name }) => info::run(&view, name, json),
        Some(Skills::Check { all }) => check::run(&view, if *all { Detail::All } else { Detail::Grouped }, json),
        Some(Skills::Explain { name: Some(name) }) => explain::one(&view, name, json),
        Some(Skills::Explain { name: None }) => explain::all(&view, json),
        Some(Skills::Bind { name }) => bind::run(&view, name, json),
        Some(Skills::Prompt { mode, budget, read_tool }) => prompt::run(&view, *mode, *budget, read_tool, json),
        Some(Skills::Commands { resolve }) => commands::run(&view, resolve.as_deref(), json),
    }
}

/// How a skill stands, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Ready,
    Disabled,
    Blocked,
    Excluded,
    Unreadable,
    Missing,
}

impl Standing {
    fn of(objections: &[Objection]) -> Self {
        let has = |wanted: fn(&Objection) -> bool| objections.iter().any(wanted);
        if objections.is_empty() {
            Self::Ready
        } else if has(|objection| *objection == Objection::Disabled) {
            Self::Disabled
        } else if has(|objection| *objection == Objection::NotListed) {
            Self::Blocked
        } else if has(|objection| matches!(objection, Objection::Unreadable(_))) {
            Self::Unreadable
        } else if objections.iter().all(Objection::is_filter) {
            Self::Excluded
        } else {
            Self::Missing
        }
    }

    fn painted(self) -> String {
        match self {
            Self::Ready => paint(GOOD, "✓ ready"),
            Self::Disabled => paint(DIM, "⏸ disabled"),
            Self::Blocked => paint(WARN, "⊘ blocked"),
            Self::Excluded => paint(DIM, "⊘ excluded"),
            Self::Unreadable => paint(BAD, "✗ unreadable"),
            Self::Missing => paint(BAD, "✗ missing"),
        }
    }
}

/// The picture and name of a skill.
fn title(skill: &Skill) -> String {
    format!("{} {}", skill.emoji.as_deref().unwrap_or("📦"), skill.name)
}

/// The skill with this name or key; else a failure that suggests similar names.
pub(crate) fn find<'a>(view: &'a View, name: &str) -> Result<&'a Skill, Failure> {
    view.catalog.find(name).map(AsRef::as_ref).ok_or_else(|| {
        let names = view.catalog.skills().iter().map(|skill| skill.name.as_str());
        let failure = Failure::input(format!("there is no skill `{}`", safe(name)));
        let failure = did_you_mean(name, names).into_iter().fold(failure, Failure::hint);
        failure.hint("prowess skills list shows all skills; prowess skills explain also shows what could not be read")
    })
}

/// How many skills were not loaded because of a limit.
fn over_limit(view: &View) -> usize {
    view.catalog.broken().iter().filter(|broken| broken.problem.kind == ProblemKind::OverLimit).count()
}

/// Whether a skill with this name, description and source is what `words` look for: all of them occur in it.
pub(crate) fn fits(words: &[String], texts: &[&str]) -> bool {
    let texts: Vec<String> = texts.iter().map(|text| text.to_lowercase()).collect();
    words.iter().all(|word| texts.iter().any(|text| text.contains(&word.to_lowercase())))
}
