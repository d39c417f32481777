//! Which other files does this file take in?
//!
//! `$include` names files next to the configuration. They lie *below* the keys written beside it: objects merge, lists
//! concatenate, everything else is replaced. A file outside the configuration's own directory is never read, whether
//! it is reached by `..`, by a symbolic link, or by a hard link.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use thiserror::Error;

use crate::locations::normalise;
use crate::source::{self, SourceError};
use crate::tree::{Origin, Tree, empty, type_name};
use crate::{KeyPath, Warning, WarningKind};

/// How many files may include each other in a row.
pub const MAX_INCLUDE_DEPTH: usize = 10;

/// How many files one configuration may take in, each counted as often as it is named.
pub const MAX_INCLUDE_READS: usize = 1000;

/// How many bytes one configuration may take in.
pub const MAX_INCLUDE_BYTES: u64 = 16 * 1024 * 1024;

/// The key that includes other files.
pub(crate) const INCLUDE: &str = "$include";

/// Keys with a meaning of their own in the peer's language; no merge carries them over.
const PROTOTYPE_KEYS: [&str; 3] = ["__proto__", "constructor", "prototype"];

/// Why an `$include` could not be followed.
#[derive(Debug, Error)]
pub enum IncludeError {
    /// It is neither a path nor a list of paths.
    #[error("{}: $include at `{at}` holds {found}; write a path or a list of paths", file.display())]
    NotAPath {
        /// The including file.
        file: PathBuf,
        /// Where in that file.
        at: KeyPath,
        /// What is there.
        found: &'static str,
    },
    /// The path leads out of the configuration's directory.
    #[error("`{given}` leads to {}, outside of {}; move the file into that directory", resolved.display(), root.display())]
    Outside {
        /// The path as written.
        given: String,
        /// What it means.
        resolved: PathBuf,
        /// The directory it must lie in.
        root: PathBuf,
    },
    /// The path is a link that leads out of the configuration's directory.
    #[error("`{given}` is a link to {}, outside of {}; copy the file into that directory", target.display(), root.display())]
    LinkOutside {
        /// The path as written.
        given: String,
        /// Where the link leads.
        target: PathBuf,
        /// The directory it must lie in.
        root: PathBuf,
    },
    /// The file has more than one name, so it may be a file from elsewhere.
    #[error("`{given}` ({}) has several hard links; make a copy of it", resolved.display())]
    HardLink {
        /// The path as written.
        given: String,
        /// What it means.
        resolved: PathBuf,
    },
    /// The file is missing or cannot be read.
    #[error("`{given}` cannot be included: {source}")]
    Unreadable {
        /// The path as written.
        given: String,
        /// What it means.
        resolved: PathBuf,
        /// The cause.
        source: Box<SourceError>,
    },
    /// The file is there, but is not JSON5.
    #[error("`{given}` cannot be included: {source}")]
    Unparseable {
        /// The path as written.
        given: String,
        /// What it means.
        resolved: PathBuf,
        /// The cause.
        source: Box<SourceError>,
    },
    /// A file includes itself, perhaps through others.
    #[error("files include each other in a circle: {}; remove one of these includes", show_chain(chain))]
    Circle {
        /// The files, from the configuration to the repeated one.
        chain: Vec<PathBuf>,
    },
    /// More than [`MAX_INCLUDE_DEPTH`] files in a row.
    #[error("`{given}` would be include number {} in a row, {MAX_INCLUDE_DEPTH} are allowed; include it further up", MAX_INCLUDE_DEPTH + 1)]
    TooDeep {
        /// The path as written.
        given: String,
    },
    /// More than [`MAX_INCLUDE_READS`] files or [`MAX_INCLUDE_BYTES`] bytes in all.
    #[error(
        "`{given}` exceeds the {MAX_INCLUDE_READS} files or {MAX_INCLUDE_BYTES} bytes of includes in all; include less"
    )]
    TooMuch {
        /// The path as written.
        given: String,
    },
    /// The included value is not a section, but there are keys beside the `$include`.
    #[error("{}: `{at}` includes {found}, which cannot be merged with the keys beside it; remove them", file.display())]
    NotMergeable {
        /// The including file.
        file: PathBuf,
        /// Where in that file.
        at: KeyPath,
        /// What was included.
        found: &'static str,
    },
    /// The text did not come from a file, so there is nothing to include from.
    #[error("`{given}` cannot be included, because this text has no directory; load it from a file")]
    NoDirectory {
        /// The path as written.
        given: String,
    },
}

fn show_chain(chain: &[PathBuf]) -> String {
    chain.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" -> ")
}

/// A tree with its includes taken in.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) tree: Tree,
    /// The files that [`Origin`] counts; the configuration itself is the first.
    pub(crate) files: Vec<PathBuf>,
    pub(crate) warnings: Vec<Warning>,
}

/// Takes in what `value`, the content of `main`, includes. Without `main` nothing may be included.
pub(crate) fn load_includes(value: Value, main: Option<&Path>) -> Result<Expanded, IncludeError> {
    let files: Vec<PathBuf> = main.map(Path::to_owned).into_iter().collect();
    let root = main.map(|main| normalise(main.parent().unwrap_or(Path::new(""))));
    let mut expander = Expander { root, files, reads: 0, bytes: 0, warnings: Vec::new() };
    let mut chain: Vec<PathBuf> = main.map(normalise).into_iter().collect();
    // Most configurations include nothing, and then all of it is from one file.
    let tree = if includes(&value) {
        expander.expand(value, 0, &KeyPath::root(), &mut chain)?
    } else {
        Tree { value, origin: Origin::new(0) }
    };
    Ok(Expanded { tree, files: expander.files, warnings: expander.warnings })
}

/// Whether there is an include anywhere in `value`.
fn includes(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key(INCLUDE) || map.values().any(includes),
        Value::Array(items) => items.iter().any(includes),
        _ => false,
    }
}

struct Expander {
    root: Option<PathBuf>,
    files: Vec<PathBuf>,
    reads: usize,
    bytes: u64,
    warnings: Vec<Warning>,
}

impl Expander {
    /// `at` is the place in the file being read, `chain` the files that led here.
    fn expand(
        &mut self,
        value: Value,
        file: usize,
        at: &KeyPath,
        chain: &mut Vec<PathBuf>,
    ) -> Result<Tree, IncludeError> {
        match value {
            Value::Array(items) => {
                let mut values = Vec::with_capacity(items.len());
                let mut origins = Vec::with_capacity(items.len());
                for (position, item) in items.into_iter().enumerate() {
                    let tree = self.expand(item, file, &at.join(position.to_string()), chain)?;
                    values.push(tree.value);
                    origins.push(tree.origin);
                }
                Ok(Tree { value: Value::Array(values), origin: Origin::of_items(file, origins) })
            }
            Value::Object(map) => self.expand_section(map, file, at, chain),
            scalar => Ok(Tree { value: scalar, origin: Origin::new(file) }),
        }
    }

    fn expand_section(
        &mut self,
        mut map: Map<String, Value>,
        file: usize,
        at: &KeyPath,
        chain: &mut Vec<PathBuf>,
    ) -> Result<Tree, IncludeError> {
        let include = map.shift_remove(INCLUDE);
        let mut values = Map::with_capacity(map.len());
        let mut origins = BTreeMap::new();
        for (key, value) in map {
            let tree = self.expand(value, file, &at.join(&key), chain)?;
            values.insert(key.clone(), tree.value);
            origins.insert(key, tree.origin);
        }
        let has_keys = !values.is_empty();
        let own = Tree { value: Value::Object(values), origin: Origin::of_keys(file, origins) };
        let Some(include) = include else { return Ok(own) };

        let included = self.include(include, file, at, chain)?;
        if !has_keys {
            return Ok(included);
        }
        if !included.value.is_object() {
            let file = self.files.get(file).cloned().unwrap_or_default();
            return Err(IncludeError::NotMergeable { file, at: at.clone(), found: type_name(&included.value) });
        }
        Ok(self.merge(included, own, at))
    }

    fn include(
        &mut self,
        include: Value,
        file: usize,
        at: &KeyPath,
        chain: &mut Vec<PathBuf>,
    ) -> Result<Tree, IncludeError> {
        let not_a_path = |expander: &Self, found: &Value| IncludeError::NotAPath {
            file: expander.files.get(file).cloned().unwrap_or_default(),
            at: at.clone(),
            found: type_name(found),
        };
        match include {
            Value::String(given) => {
                let tree = self.load(&given, chain)?;
                Ok(self.without_prototype_keys(tree, at))
            }
            Value::Array(items) => {
                let mut merged = Tree { value: empty(), origin: Origin::new(file) };
                for item in items {
                    let Value::String(given) = item else { return Err(not_a_path(self, &item)) };
                    let next = self.load(&given, chain)?;
                    merged = self.merge(merged, next, at);
                }
                Ok(merged)
            }
            other => Err(not_a_path(self, &other)),
        }
    }

    fn load(&mut self, given: &str, chain: &mut Vec<PathBuf>) -> Result<Tree, IncludeError> {
        let (Some(root), Some(from)) = (self.root.clone(), chain.last()) else {
            return Err(IncludeError::NoDirectory { given: given.to_owned() });
        };
        let resolved = normalise(&from.parent().unwrap_or(Path::new("")).join(given));
        if !resolved.starts_with(&root) || given.contains('\0') {
            return Err(IncludeError::Outside { given: given.to_owned(), resolved, root });
        }
        if chain.contains(&resolved) {
            let chain = chain.iter().cloned().chain([resolved]).collect();
            return Err(IncludeError::Circle { chain });
        }
        // The configuration itself is in the chain too and does not count.
        if chain.len() > MAX_INCLUDE_DEPTH {
            return Err(IncludeError::TooDeep { given: given.to_owned() });
        }
        let text = self.read(given, &resolved, &root)?;
        let value = source::parse(&text, &resolved).map_err(|source| IncludeError::Unparseable {
            given: given.to_owned(),
            resolved: resolved.clone(),
            source: Box::new(source),
        })?;
        let file = self.number(&resolved);
        chain.push(resolved);
        let tree = self.expand(value, file, &KeyPath::root(), chain);
        chain.pop();
        tree
    }

    fn read(&mut self, given: &str, resolved: &Path, root: &Path) -> Result<String, IncludeError> {
        let unreadable = |source| {
            let source = Box::new(source);
            IncludeError::Unreadable { given: given.to_owned(), resolved: resolved.to_owned(), source }
        };
        let failed = |source| unreadable(SourceError::Read { file: resolved.to_owned(), source });
        let real_root =
            fs::canonicalize(if root.as_os_str().is_empty() { Path::new(".") } else { root }).map_err(failed)?;
        let real = fs::canonicalize(resolved).map_err(failed)?;
        if !real.starts_with(&real_root) {
            return Err(IncludeError::LinkOutside { given: given.to_owned(), target: real, root: real_root });
        }
        let not_a_file = || unreadable(SourceError::NotAFile { file: resolved.to_owned() });
        if !fs::metadata(&real).map_err(failed)?.is_file() {
            return Err(not_a_file());
        }
        let file = File::open(&real).map_err(failed)?;
        // Asked again of the open file, which can no longer be swapped for another one.
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(not_a_file());
        }
        if has_several_names(&metadata) {
            return Err(IncludeError::HardLink { given: given.to_owned(), resolved: resolved.to_owned() });
        }
        let text = source::read_open(file, resolved).map_err(unreadable)?;
        self.reads += 1;
        self.bytes += text.len() as u64;
        if self.reads > MAX_INCLUDE_READS || self.bytes > MAX_INCLUDE_BYTES {
            return Err(IncludeError::TooMuch { given: given.to_owned() });
        }
        Ok(text)
    }

    fn number(&mut self, file: &Path) -> usize {
        self.files.iter().position(|known| known == file).unwrap_or_else(|| {
            self.files.push(file.to_owned());
            self.files.len() - 1
        })
    }

    /// Puts `above` on top of `below`.
    fn merge(&mut self, below: Tree, above: Tree, at: &KeyPath) -> Tree {
        match (below.value, above.value) {
            (Value::Object(low), Value::Object(high)) => {
                let below = self.without_prototype_keys(Tree { value: Value::Object(low), origin: below.origin }, at);
                let above = self.without_prototype_keys(Tree { value: Value::Object(high), origin: above.origin }, at);
                self.merge_sections(below, above, at)
            }
            (Value::Array(mut low), Value::Array(high)) => {
                let low_origins = (0..low.len()).map(|position| below.origin.item(position));
                let high_origins = (0..high.len()).map(|position| above.origin.item(position));
                let origin = Origin::of_items(above.origin.file, low_origins.chain(high_origins).collect());
                low.extend(high);
                Tree { value: Value::Array(low), origin }
            }
            (_, value) => Tree { value, origin: above.origin },
        }
    }

    fn merge_sections(&mut self, below: Tree, above: Tree, at: &KeyPath) -> Tree {
        let (Value::Object(mut values), Value::Object(high)) = (below.value, above.value) else {
            return Tree { value: empty(), origin: above.origin };
        };
        let mut origins: BTreeMap<String, Origin> =
            values.keys().map(|key| (key.clone(), below.origin.key(key))).collect();
        for (key, value) in high {
            let new = Tree { value, origin: above.origin.key(&key) };
            let merged = match (values.get_mut(&key), origins.remove(&key)) {
                (Some(old), Some(origin)) => {
                    let old = Tree { value: old.take(), origin };
                    self.merge(old, new, &at.join(&key))
                }
                _ => new,
            };
            values.insert(key.clone(), merged.value);
            origins.insert(key, merged.origin);
        }
        Tree { value: Value::Object(values), origin: Origin::of_keys(above.origin.file, origins) }
    }

    fn without_prototype_keys(&mut self, mut tree: Tree, at: &KeyPath) -> Tree {
        let Value::Object(map) = &mut tree.value else { return tree };
        for key in PROTOTYPE_KEYS {
            if map.shift_remove(key).is_some() {
                let file = self.files.get(tree.origin.key(key).file).cloned();
                let kind = WarningKind::SkippedKey { key: key.to_owned() };
                self.warnings.push(Warning { path: at.join(key), file, kind });
            }
        }
        tree
    }
}

#[cfg(unix)]
fn has_several_names(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.nlink() > 1
}

#[cfg(not(unix))]
fn has_several_names(_: &fs::Metadata) -> bool {
    false
}
