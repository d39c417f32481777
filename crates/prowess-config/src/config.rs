//! What is set, and by whom?

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use thiserror::Error;

use crate::include::{Expanded, IncludeError, load_includes};
use crate::redact::redact;
use crate::schema::{self, ALIASES, canonical};
use crate::source::{self, SourceError};
use crate::substitute::{Unavailable, plan_substitutions};
use crate::tree::{Fix, Origin, Tree, assign, empty, lookup, trim, type_name};
use crate::variables::{Collector, ConfigEnv};
use crate::{Agents, Env, KeyPath, Locations, PathError, Warning, WarningKind};

/// Who set a value. A later layer wins over an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layer {
    /// Nobody; it is what applies otherwise.
    Default,
    /// The configuration file or a file it includes.
    File,
    /// An environment variable.
    Env,
    /// A command-line flag.
    Flag,
}

/// A value that knows where it came from.
#[derive(Clone, PartialEq, Eq)]
pub struct Layered<T> {
    /// The value.
    pub value: T,
    /// Who set it; for a section, the highest layer that has a part in it.
    pub layer: Layer,
    /// The file it is in, if it is in one.
    pub origin: Option<PathBuf>,
}

/// Without the value, which may be a secret.
impl<T> fmt::Debug for Layered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Layered").field("layer", &self.layer).field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Why there is no configuration.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The configuration file cannot be taken.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file it includes cannot be taken.
    #[error(transparent)]
    Include(#[from] IncludeError),
}

/// Why this value cannot be set there, by whatever means.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FlagError {
    /// The path makes no sense.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The value does not belong there.
    #[error("`{path}` must be {expected}")]
    WrongValue {
        /// The place.
        path: KeyPath,
        /// What would be right.
        expected: String,
    },
    /// The path leads through a value that has nothing below it, or past the end of a list.
    #[error("`{path}` cannot be set, because `{obstacle}` is {found}; change that first")]
    Blocked {
        /// The place.
        path: KeyPath,
        /// The value in the way.
        obstacle: KeyPath,
        /// What it is.
        found: &'static str,
    },
}

/// The loaded configuration.
#[derive(Clone)]
pub struct Config {
    /// What the files say.
    written: Tree,
    files: Vec<PathBuf>,
    /// What variables and flags say, lowest layer first.
    overlays: Vec<(Layer, KeyPath, Value)>,
    /// The two together, where variables and flags say anything.
    effective: Option<Value>,
    env: Env,
    provided: ConfigEnv,
    unavailable: Vec<Unavailable>,
    warnings: Vec<Warning>,
    unused: Vec<Warning>,
}

impl Config {
    /// Reads the configuration at `locations`; a file that is not there is an empty configuration.
    ///
    /// `.env` in the state directory fills in variables that `env` does not have. One in the current directory comes with
    /// whatever was cloned or unpacked there, so it configures nothing: see [`ConfigEnv::project`].
    pub fn load(locations: &Locations, env: &Env) -> Result<Self, LoadError> {
        let text = source::read_optional(&locations.config_path)?;
        Self::imagine(text.as_deref().unwrap_or("{}"), locations, env)
    }

    /// What the configuration would be if its file said `text`.
    pub fn imagine(text: &str, locations: &Locations, env: &Env) -> Result<Self, LoadError> {
        let mut variables = Collector::new(env);
        variables.read_dotenv(&locations.state_dir.join(".env"));
        if locations.cwd != locations.state_dir {
            variables.read_project(&locations.cwd.join(".env"));
        }
        Self::build(text, Some(&locations.config_path), variables)
    }

    /// Reads a configuration from text, which cannot include files.
    pub fn parse(text: &str, env: &Env) -> Result<Self, LoadError> {
        Self::build(text, None, Collector::new(env))
    }

    fn build(text: &str, file: Option<&Path>, mut variables: Collector) -> Result<Self, LoadError> {
        let (value, blank) = match trim(text) {
            "" => (empty(), true),
            _ => (source::parse_section(text, file.unwrap_or(Path::new("config")))?, false),
        };
        let Expanded { mut tree, files, warnings } = load_includes(value, file)?;
        // An include may stand for the whole, and then it may be anything.
        if !tree.value.is_object() {
            let (file, found) = (file.unwrap_or(Path::new("config")).to_owned(), type_name(&tree.value));
            return Err(SourceError::NotASection { file, found }.into());
        }
        if let Some(section) = tree.value.get("env") {
            let file_of = |path: &KeyPath| files.get(tree.origin.file_of(path.segments())).cloned();
            variables.take_section(section, file_of);
        }
        let mut config = Self {
            written: Tree { value: Value::Null, origin: Origin::new(0) },
            effective: None,
            overlays: Vec::new(),
            unavailable: Vec::new(),
            unused: Vec::new(),
            env: variables.env,
            provided: variables.provided,
            warnings: [variables.warnings, warnings].concat(),
            files,
        };
        if blank {
            config.warn(&tree, KeyPath::root(), WarningKind::BlankFile);
        }
        config.settle(&mut tree);
        config.written = tree;
        Ok(config)
    }

    /// Fills in variables, checks against the table, and gives every setting its first name.
    fn settle(&mut self, tree: &mut Tree) {
        let (fixes, unavailable) = plan_substitutions(&tree.value, &self.env);
        for missing in &unavailable {
            let kind = WarningKind::Unavailable { variable: missing.variable.clone() };
            self.warn(tree, missing.path.clone(), kind);
        }
        self.unavailable = unavailable;
        tree.apply(fixes);

        let findings = schema::plan_check(&tree.value);
        for (path, kind) in findings.remarks {
            self.warn(tree, path, kind);
        }
        let unused = findings.unused.into_iter().map(|(path, kind)| self.warning(tree, path, kind));
        self.unused = unused.collect();
        tree.apply(findings.fixes);
        self.settle_aliases(tree);
        for warning in Agents::parse(&tree.value).1 {
            self.warn(tree, warning.path, warning.kind);
        }
    }

    fn settle_aliases(&mut self, tree: &mut Tree) {
        for (alias, first) in ALIASES {
            let (alias, first) =
                (alias.iter().copied().collect::<KeyPath>(), first.iter().copied().collect::<KeyPath>());
            let Some(value) = lookup(&tree.value, alias.segments()).cloned() else { continue };
            if lookup(&tree.value, first.segments()).is_some() {
                self.warn(tree, alias.clone(), WarningKind::AliasIgnored { used: first.to_string() });
            } else if assign(&mut tree.value, first.segments(), value, |_| empty()).is_ok() {
                tree.origin.copy(alias.segments(), first.segments());
            }
            tree.apply(vec![Fix { path: alias, value: None }]);
        }
    }

    fn warn(&mut self, tree: &Tree, path: KeyPath, kind: WarningKind) {
        let warning = self.warning(tree, path, kind);
        self.warnings.push(warning);
    }

    fn warning(&self, tree: &Tree, path: KeyPath, kind: WarningKind) -> Warning {
        let file = self.files.get(tree.origin.file_of(path.segments())).cloned();
        Warning { path, file, kind }
    }

    /// The value at a path such as `skills.load.watch`, or the default; `None` if there is neither.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Layered<Value>> {
        self.get_at(&path.parse().ok()?)
    }

    /// Like [`Config::get`], for a path that is already taken apart.
    #[must_use]
    pub fn get_at(&self, path: &KeyPath) -> Option<Layered<Value>> {
        let path: KeyPath = canonical(path.segments()).into_iter().collect();
        let Some(value) = lookup(self.tree(), path.segments()) else {
            let value = schema::find(path.segments())?.default_value()?;
            return Some(Layered { value, layer: Layer::Default, origin: None });
        };
        let touching = self.overlays.iter().filter(|(_, set, _)| set.starts_with(&path) || path.starts_with(set));
        let layer = touching.map(|(layer, ..)| *layer).max().unwrap_or(Layer::File);
        let origin = if layer == Layer::File { self.origin(&path) } else { None };
        Some(Layered { value: value.clone(), layer, origin })
    }

    fn origin(&self, path: &KeyPath) -> Option<PathBuf> {
        self.files.get(self.written.origin.file_of(path.segments())).cloned()
    }

    /// This configuration with a value from a command-line flag.
    pub fn with_flag(self, path: &str, value: Value) -> Result<Self, FlagError> {
        self.with(Layer::Flag, path, value)
    }

    /// This configuration with a value from an environment variable.
    pub fn with_env(self, path: &str, value: Value) -> Result<Self, FlagError> {
        self.with(Layer::Env, path, value)
    }

    fn with(mut self, layer: Layer, path: &str, value: Value) -> Result<Self, FlagError> {
        let path: KeyPath = canonical(path.parse::<KeyPath>()?.segments()).into_iter().collect();
        let value = schema::check_flag(path.segments(), value)
            .map_err(|expected| FlagError::WrongValue { path: path.clone(), expected })?;
        self.overlays.push((layer, path, value));
        self.overlays.sort_by_key(|(layer, ..)| *layer);
        let mut effective = self.written.value.clone();
        for (_, path, value) in &self.overlays {
            assign(&mut effective, path.segments(), value.clone(), new_container).map_err(|obstacle| {
                let way = path.segments()[..obstacle.depth].iter().collect();
                FlagError::Blocked { path: path.clone(), obstacle: way, found: obstacle.found }
            })?;
        }
        self.effective = Some(effective);
        Ok(self)
    }

    /// Everything that is set, without defaults.
    #[must_use]
    pub fn tree(&self) -> &Value {
        self.effective.as_ref().unwrap_or(&self.written.value)
    }

    /// A copy of the tree that may be shown: secrets are replaced by [`crate::REDACTED`].
    #[must_use]
    pub fn redacted(&self) -> Value {
        redact(self.tree())
    }

    /// What the operator should know about.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Settings that are accepted and have no effect, each with what to do instead.
    #[must_use]
    pub fn unused(&self) -> &[Warning] {
        &self.unused
    }

    /// Values that are not there because a variable is missing.
    #[must_use]
    pub fn unavailable(&self) -> &[Unavailable] {
        &self.unavailable
    }

    /// The files that were read, the configuration itself first.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The variables that `.env` files and the `env` section provide.
    #[must_use]
    pub fn config_env(&self) -> &ConfigEnv {
        &self.provided
    }

    /// The environment with the provided variables in it.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The agents.
    #[must_use]
    pub fn agents(&self) -> Agents {
        Agents::parse(self.tree()).0
    }
}

/// What to put where a path leads through nothing: a list where the table wants one, else a section.
pub(crate) fn new_container(path: &[String]) -> Value {
    if schema::is_list(path) { Value::Array(Vec::new()) } else { empty() }
}

/// Redacted, like everything that may end up in a log.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("tree", &self.redacted())
            .field("files", &self.files)
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}
