//! The context: flags, variables and files, turned into the values the ground floor works with.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use prowess_config::{Agent, Config, Env, KeyPath, LocationFlags, Locations, channel_skills};
use prowess_skills::{
    Budget, Catalog, Filter, Filters, Gate, Machine, Memory, Places, PluginPlaces, Problem, ProblemKind, Reach, Root,
    Secret, SkillsConfig, Snapshot, World, find_bundled, plugin_dirs, probe, this_system, truthy_paths, wanted_bins,
    wanted_config,
};

use crate::bindings::{self, Bindings};
use crate::failure::Failure;
use crate::{bundled, leftover, skill_env};

/// What was said on the command line about where things are.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// The agent whose workspace and skill list count.
    pub agent: Option<String>,
    /// A workspace to use instead of the agent's.
    pub workspace: Option<PathBuf>,
    /// Which files are meant.
    pub locations: LocationFlags,
}

/// What is known when a program starts.
#[derive(Debug, Clone)]
pub struct Ground {
    /// The command line.
    pub flags: Flags,
    /// The environment.
    pub env: Env,
    /// The current directory.
    pub cwd: PathBuf,
}

impl Ground {
    /// That of this process.
    pub fn of_process(flags: Flags) -> Result<Self, Failure> {
        // Read as text they would lead somewhere else, and we would write there.
        let is_no_text = |name: &&&str| std::env::var_os(name).is_some_and(|value| value.to_str().is_none());
        if let Some(name) = PLACES.iter().find(is_no_text) {
            return Err(Failure::input(format!("the path in {name} is not UTF-8")).hint("use a path in UTF-8"));
        }
        let cwd = std::env::current_dir().map_err(|error| Failure::ours(format!("no current directory: {error}")))?;
        Ok(Self { flags, env: Env::from_process(), cwd })
    }

    /// The same for another agent, with its own workspace.
    #[must_use]
    pub fn for_agent(&self, id: &str) -> Self {
        let flags = Flags { agent: Some(id.to_owned()), workspace: None, ..self.flags.clone() };
        Self { flags, ..self.clone() }
    }

    /// Where things are, without reading the configuration.
    pub fn locations(&self) -> Result<Locations, Failure> {
        Locations::probe(&self.env, &self.cwd, &self.flags.locations).map_err(Failure::usage)
    }
}

/// Where things are and what was asked for.
#[derive(Debug, Clone)]
pub struct Context {
    /// Where things are.
    pub locations: Locations,
    /// What the operator wrote.
    pub config: Config,
    /// The agent this is about.
    pub agent: Agent,
    /// Where that agent works.
    pub workspace: PathBuf,
    /// The environment of the process, without what the configuration adds to it.
    pub env: Env,
}

impl Context {
    /// Reads the configuration.
    pub fn load(ground: &Ground) -> Result<Self, Failure> {
        let locations = ground.locations()?;
        let config = Config::load(&locations, &ground.env).map_err(|error| {
            Failure::input(error).hint(format!("the configuration is {}", locations.config_path.display()))
        })?;
        let agents = config.agents();
        let agent = match &ground.flags.agent {
            Some(id) => agents.get(id).map_err(Failure::input)?,
            None => agents.default_agent(),
        };
        let workspace = match &ground.flags.workspace {
            Some(dir) => locations.expand(&dir.to_string_lossy()),
            None => agents.workspace(agent, &locations),
        };
        let agent = agent.clone();
        Ok(Self { locations, config, agent, workspace, env: ground.env.clone() })
    }

    /// The user's home, which paths are shortened by.
    #[must_use]
    pub fn user_home(&self) -> &Path {
        &self.locations.os_home
    }
}

/// Variables that say where things are.
const PLACES: [&str; 7] = [
    "HOME",
    "USERPROFILE",
    "OPENCLAW_HOME",
    "OPENCLAW_STATE_DIR",
    "OPENCLAW_CONFIG_PATH",
    "CLAWDBOT_STATE_DIR",
    "CLAWDBOT_CONFIG_PATH",
];

/// The skills as they are here and now.
#[derive(Clone)]
pub struct View {
    /// What was asked for.
    pub context: Context,
    /// The `skills` section.
    pub settings: SkillsConfig,
    /// The lists of skills that apply.
    pub filters: Filters,
    /// All skills.
    pub catalog: Catalog,
    /// What this host has.
    pub world: World,
    /// What the variables that skills declare are looked up in: the process, `.env` of the state directory, and what
    /// `.env` of the current directory may add.
    pub skill_env: Env,
    /// Problems of the configuration and of plugins, then those of the catalogue.
    pub problems: Vec<Problem>,
    /// Where skills were looked for.
    pub roots: Vec<Root>,
    /// To which skills the entries of the configuration belong.
    pub bindings: Bindings,
}

impl View {
    /// Reads all skills and looks at this host.
    pub fn load(context: Context, channel: Option<&str>) -> Result<Self, Failure> {
        Self::read(context, channel, Catalog::load)
    }

    /// The same, and only skills that are not the same as when they were last read are read again.
    pub fn load_with(context: Context, channel: Option<&str>, memory: &mut Memory) -> Result<Self, Failure> {
        Self::read(context, channel, |roots, reach| Catalog::load_with(roots, reach, memory))
    }

    fn read(
        context: Context,
        channel: Option<&str>,
        load: impl FnOnce(&[Root], &Reach) -> Catalog,
    ) -> Result<Self, Failure> {
        let filters = filters(&context, channel)?;
        let file = &context.locations.config_path;
        let (mut settings, setting_problems) = SkillsConfig::read(&context.config.tree()["skills"], file);
        if let Some(limit) = context.agent.max_skills_prompt_chars {
            settings.limits.prompt_chars = usize::try_from(limit).unwrap_or(usize::MAX);
        }
        let mut problems: Vec<Problem> =
            context.config.warnings().iter().map(|warning| warned(warning, file)).collect();
        // The schema check has corrected what it reports, so this is only what it does not know of.
        problems.extend(setting_problems);

        let places = places(&context, &settings, &mut problems);
        let targets = link_targets(&context, &settings);
        let reach = Reach {
            limits: settings.limits.clone(),
            link_targets: targets.filter_map(|path| path.canonicalize().ok()).collect(),
        };
        let roots = places.roots();
        let catalog = load(&roots, &reach);
        problems.extend_from_slice(catalog.problems());
        problems.extend(Budget::from(&settings.limits).oversized(catalog.skills().iter().map(AsRef::as_ref)));
        let (skill_env, ignored) = skill_env::resolve(&context, &catalog);
        problems.extend(ignored);
        problems.extend(leftover::find(&context.locations, &settings));
        let entries = &context.config.tree()["skills"]["entries"];
        let (bindings, unbound) = bindings::load(&context.locations.state_dir, entries, &catalog, &roots);
        problems.extend(unbound);
        let world = look(&context, &catalog, &skill_env);
        Ok(Self { context, settings, filters, catalog, world, skill_env, problems, roots, bindings })
    }

    /// The same, with the list of a channel: only skills on it are offered.
    #[must_use]
    pub fn with_channel(&self, list: Vec<String>) -> Self {
        let mut view = self.clone();
        view.filters.channel = Filter::only(list);
        view
    }

    /// Who may be offered.
    #[must_use]
    pub fn gate(&self) -> Gate<'_> {
        Gate { world: &self.world, config: &self.settings, filters: &self.filters }
    }

    /// How much room the list of skills has.
    #[must_use]
    pub fn budget(&self) -> Budget {
        Budget::from(&self.settings.limits)
    }

    /// The skills that may be offered, frozen.
    #[must_use]
    pub fn snapshot(&self, budget: &Budget) -> Snapshot {
        Snapshot::take(&self.catalog, &self.gate(), Some(self.context.user_home()), budget)
    }

    /// `env` of the configuration, for environment plans.
    #[must_use]
    pub fn config_env(&self) -> Vec<(String, Secret)> {
        let section = &self.context.config.config_env().section;
        section.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

fn filters(context: &Context, channel: Option<&str>) -> Result<Filters, Failure> {
    let list = |names: Option<Vec<String>>| names.map_or_else(Filter::any, Filter::only);
    let channel = match channel {
        Some(path) => {
            let path: KeyPath = path.parse().map_err(Failure::usage)?;
            if context
                .config
                .get_at(&["channels"].into_iter().chain(path.segments().iter().map(String::as_str)).collect())
                .is_none()
            {
                return Err(Failure::input(format!("there is no channel `{path}` in the configuration"))
                    .hint("prowess config get channels lists them"));
            }
            list(channel_skills(context.config.tree(), &path))
        }
        None => Filter::any(),
    };
    Ok(Filters { agent: list(context.agent.skills.clone()), channel })
}

fn warned(warning: &prowess_config::Warning, file: &Path) -> Problem {
    let path = warning.file.as_deref().unwrap_or(file);
    let at = if warning.path.segments().is_empty() { String::new() } else { format!("{}: ", warning.path) };
    let reason = format!("{at}{}", warning.kind);
    let fix = if warning.path.segments().is_empty() {
        "edit the file".to_owned()
    } else {
        format!("edit the file, or run: prowess config unset '{}'", warning.path)
    };
    Problem::new(ProblemKind::Setting, path, reason, fix)
}

fn places(context: &Context, settings: &SkillsConfig, problems: &mut Vec<Problem>) -> Places {
    let env = context.config.env();
    let locations = &context.locations;
    let program = std::env::current_exe().ok();
    let bundled = find_bundled(env.get("OPENCLAW_BUNDLED_SKILLS_DIR"), program.as_deref());
    let bundled = bundled.or_else(|| {
        let laid_out = bundled::lay_out(&locations.state_dir);
        laid_out
            .map_err(|error| {
                let reason = format!("cannot unpack the bundled skills here: {error}");
                let fix = "make the folder writable, or set OPENCLAW_BUNDLED_SKILLS_DIR";
                problems.push(Problem::new(ProblemKind::Unreadable, &locations.state_dir, reason, fix));
            })
            .ok()
    });
    let plugins = plugin_places(context);
    let (plugin_dirs, plugin_problems) = plugin_dirs(&plugins, context.config.tree());
    problems.extend(plugin_problems);
    Places {
        extra: settings.extra_dirs.iter().map(|dir| locations.expand(dir)).collect(),
        plugins: plugin_dirs,
        bundled,
        managed: Some(locations.managed_skills_dir.clone()),
        home: Some(locations.os_home.clone()),
        workspace: Some(context.workspace.clone()),
    }
}

/// Where plugins are looked for.
pub(crate) fn plugin_places(context: &Context) -> PluginPlaces {
    let locations = &context.locations;
    let paths = context.config.tree()["plugins"]["load"]["paths"].as_array().map(Vec::as_slice).unwrap_or_default();
    let program = std::env::current_exe().ok();
    let beside = program.as_deref().and_then(Path::parent).map(|dir| dir.join("extensions")).filter(|dir| dir.is_dir());
    PluginPlaces {
        configured: paths.iter().filter_map(serde_json::Value::as_str).map(|path| locations.expand(path)).collect(),
        workspace: Some(context.workspace.clone()),
        bundled: context.config.env().text("OPENCLAW_BUNDLED_PLUGINS_DIR").map(PathBuf::from).or(beside),
        state: Some(locations.state_dir.clone()),
    }
}

/// Where links of skills may lead, as the configuration says it.
pub(crate) fn link_targets(context: &Context, settings: &SkillsConfig) -> impl Iterator<Item = PathBuf> {
    settings.allow_symlink_targets.iter().map(move |path| context.locations.expand(path))
}

/// What this host has, of what the skills ask for.
fn look(context: &Context, catalog: &Catalog, skill_env: &Env) -> World {
    let env = context.config.env();
    let path = env.get("PATH").unwrap_or_default();
    let bins = probe(&wanted_bins(catalog), OsStr::new(path), env.get("PATHEXT"));
    let set = env.iter().chain(skill_env.iter()).filter(|(_, value)| !value.trim().is_empty());
    World {
        machines: vec![Machine { os: this_system().into_owned(), bins }],
        env: set.map(|(name, _)| name.to_owned()).collect::<HashSet<_>>(),
        config: truthy_paths(context.config.tree(), wanted_config(catalog)),
        note: None,
    }
}
