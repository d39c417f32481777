//! The desk: what does a refresh work with?
//!
//! The configuration and the identity of its files, what was read of the skills, and the other machines. It looks and
//! answers; what becomes of the answer is the owner's business.

use std::sync::Arc;

use prowess_config::{Warning, WarningKind};
use prowess_skills::{Machine, Memory, Problem, ProblemKind};

use crate::context::{Context, Ground, View};
use crate::failure::Failure;
use crate::kept::Looks;
use crate::watch::{Heard, Plan, SKILL, Settings, config_files};

/// What a refresh leads to.
pub(super) enum Outcome {
    /// The skills as they are now.
    View(Box<View>),
    /// Watching is off, so nobody looked.
    Off,
}

/// What a refresh works with.
pub(super) struct Desk {
    ground: Ground,
    /// The last configuration that could be read.
    context: Context,
    /// The files it came from, as they looked just before.
    looks: Looks,
    /// What is wrong with the configuration that is there now.
    broken: Option<Problem>,
    memory: Memory,
    remote: Vec<Machine>,
    note: Option<String>,
    plan: Arc<Plan>,
}

impl Desk {
    /// Loads everything for the first time.
    pub(super) fn open(ground: Ground) -> Result<(Self, View), Failure> {
        let context = Context::load(&ground)?;
        let mut memory = Memory::default();
        let view = View::load_with(context.clone(), None, &mut memory)?;
        let plan = Arc::new(Plan::of(&view, &memory));
        let (remote, note) = (Vec::new(), None);
        // Nothing is known of the files before they were read, so the next look reads them again.
        let looks = Looks::at(Vec::new());
        Ok((Self { ground, context, looks, broken: None, memory, remote, note, plan }, view))
    }

    /// How watching is meant to be.
    pub(super) fn settings(&self) -> Settings {
        Settings::read(&self.context.config, &self.context.env)
    }

    /// What to watch after the last look.
    pub(super) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan)
    }

    /// How many files the last look opened.
    pub(super) fn read(&self) -> usize {
        self.memory.read()
    }

    /// The skills as they are now, unless watching is off.
    pub(super) fn refresh(&mut self, heard: &Heard) -> Outcome {
        self.check_config();
        if !self.settings().is_on {
            return Outcome::Off;
        }
        // What was heard of has changed, even if it looks the same.
        if heard.is_everything {
            self.memory.forget_all();
        }
        for file in heard.paths.iter().filter(|path| path.ends_with(SKILL)) {
            self.memory.forget(file);
        }
        self.look().map_or(Outcome::Off, |view| Outcome::View(Box::new(view)))
    }

    /// Reads the configuration again, unless it is certainly the same.
    pub(super) fn check_config(&mut self) {
        if !self.is_config_same() {
            // What is wrong with it is told by the view.
            let _ = self.reload_config();
        }
    }

    /// The skills as they are now.
    pub(super) fn look(&mut self) -> Option<View> {
        let mut view = match View::load_with(self.context.clone(), None, &mut self.memory) {
            Ok(view) => view,
            Err(failure) => {
                self.broken = Some(self.complaint(&failure));
                return None;
            }
        };
        let plan = Plan::of(&view, &self.memory);
        if plan != *self.plan {
            self.plan = Arc::new(plan);
        }
        view.problems.extend(self.broken.clone());
        self.reach_out(&mut view);
        Some(view)
    }

    /// Reads the configuration again. One that cannot be used leaves the old one in place, and is told of as a problem.
    pub(super) fn reload_config(&mut self) -> Result<(), Failure> {
        let looks = Looks::at(config_files(&self.context));
        match self.load_config() {
            Ok(context) => {
                (self.context, self.broken) = (context, None);
                self.looks = looks.and(config_files(&self.context));
                Ok(())
            }
            Err(failure) => {
                self.broken = Some(self.complaint(&failure));
                self.looks = looks;
                Err(failure)
            }
        }
    }

    fn load_config(&self) -> Result<Context, Failure> {
        let context = Context::load(&self.ground)?;
        let is_blank = |warning: &Warning| matches!(warning.kind, WarningKind::BlankFile);
        // Many programs empty a file before they write it; who wants no settings writes `{}`.
        if context.config.warnings().iter().any(is_blank) {
            return Err(Failure::input("the file is empty").hint("write {} for a configuration without settings"));
        }
        Ok(context)
    }

    /// Other machines, and what models are told of them.
    pub(super) fn set_remote(&mut self, view: &View, machines: Vec<Machine>, note: Option<String>) -> View {
        (self.remote, self.note) = (machines, note);
        let mut view = view.clone();
        view.world.machines.truncate(1);
        self.reach_out(&mut view);
        view
    }

    fn reach_out(&self, view: &mut View) {
        view.world.machines.extend(self.remote.iter().cloned());
        view.world.note.clone_from(&self.note);
    }

    /// Whether the configuration is certainly the one that was read.
    fn is_config_same(&self) -> bool {
        let is_here = |locations| locations == self.context.locations;
        self.broken.is_none() && self.looks.are_same() && self.ground.locations().is_ok_and(is_here)
    }

    fn complaint(&self, failure: &Failure) -> Problem {
        let fix = "fix it; until then the previous settings apply";
        Problem::new(ProblemKind::Setting, &self.context.locations.config_path, failure.message.clone(), fix)
    }
}

/// Whether two views tell everyone the same.
pub(super) fn are_same(a: &View, b: &View) -> bool {
    let (old, new) = (&a.context, &b.context);
    a.catalog == b.catalog
        && a.problems == b.problems
        && a.world == b.world
        && a.skill_env == b.skill_env
        && a.settings == b.settings
        && a.filters == b.filters
        && a.roots == b.roots
        && a.bindings == b.bindings
        && old.workspace == new.workspace
        && old.locations == new.locations
        && old.agent == new.agent
        && old.config.tree() == new.config.tree()
        && old.config.env() == new.config.env()
}
