//! Install specs: how does a machine get what a skill needs?
//!
//! Only reading and choosing happen here; nothing is installed. Names are checked against the grammar of their package
//! manager, so that a spec can never smuggle an option, a path or a URL into a command line.

use serde_json::Value;

use crate::metadata::strings;
use crate::text::trim;
use crate::world::system;

/// What an install spec installs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Package {
    /// A Homebrew formula or cask.
    Brew(String),
    /// A package of the npm registry.
    Node(String),
    /// A Go module.
    Go(String),
    /// A Python tool, by uv.
    Uv(String),
    /// A file to download.
    Download(Download),
}

/// A file to download, and what to do with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Download {
    /// Where it is.
    pub url: String,
    /// The kind of archive it is.
    pub archive: Option<String>,
    /// Whether to unpack it.
    pub extract: Option<bool>,
    /// Leading path components to drop when unpacking.
    pub strip_components: Option<u64>,
    /// The folder to put it in.
    pub target_dir: Option<String>,
    /// The digest it must have, 64 lower-case hex digits.
    pub sha256: Option<String>,
}

/// One way to get what a skill needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallSpec {
    /// Its name among the skill's specs.
    pub id: Option<String>,
    /// What to call it in a list.
    pub label: Option<String>,
    /// The programs it brings.
    pub bins: Vec<String>,
    /// The systems it is for; empty means any.
    pub os: Vec<String>,
    /// What it installs.
    pub package: Package,
}

/// One row of the install choices shown to a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallOption {
    /// The spec's id, or its kind and place in the list.
    pub id: String,
    /// Its kind.
    pub kind: &'static str,
    /// What to call it.
    pub label: String,
    /// The programs it brings.
    pub bins: Vec<String>,
}

/// What the operator prefers to install with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstallPrefs {
    /// Take Homebrew first, when it is there.
    pub prefer_brew: bool,
    /// The program that installs Node packages.
    pub node_manager: String,
}

impl Default for InstallPrefs {
    fn default() -> Self {
        Self { prefer_brew: true, node_manager: "npm".to_owned() }
    }
}

impl InstallSpec {
    /// The word for its kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.package {
            Package::Brew(_) => "brew",
            Package::Node(_) => "node",
            Package::Go(_) => "go",
            Package::Uv(_) => "uv",
            Package::Download(_) => "download",
        }
    }

    /// Reads one spec; the error says what is wrong with it.
    pub(crate) fn read(spec: &Value) -> Result<Self, String> {
        let Value::Object(map) = spec else { return Err("is not a map".to_owned()) };
        let text = |key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
        let kind = text("kind").or_else(|| text("type")).map(|kind| trim(&kind).to_lowercase());
        let valid = |keys: &[&str], is_valid: fn(&str) -> bool| {
            let found = keys.iter().find_map(|key| text(key).map(|name| trim(&name).to_owned()));
            match found {
                Some(name) if is_valid(&name) => Ok(name),
                Some(name) => Err(format!("has a `{}` that is not a plain name: {name:?}", keys[0])),
                None => Err(format!("has no `{}`", keys[0])),
            }
        };
        let package = match kind.as_deref() {
            Some("brew") => valid(&["formula", "cask"], is_formula).map(Package::Brew)?,
            Some("node") => valid(&["package"], is_npm_spec).map(Package::Node)?,
            Some("go") => valid(&["module"], is_go_module).map(Package::Go)?,
            Some("uv") => valid(&["package"], is_uv_package).map(Package::Uv)?,
            Some("download") => Package::Download(Download {
                url: valid(&["url"], is_http_url)?,
                archive: text("archive"),
                extract: map.get("extract").and_then(Value::as_bool),
                strip_components: map.get("stripComponents").and_then(Value::as_u64),
                target_dir: text("targetDir"),
                sha256: text("sha256").map(|digest| sha256(&digest)).transpose()?,
            }),
            Some(kind) => {
                return Err(format!("has the unknown kind `{kind}` (brew, node, go, uv and download are known)"));
            }
            None => return Err("has no `kind`".to_owned()),
        };
        let list = |key: &str| strings(map.get(key)).unwrap_or_default();
        Ok(Self { id: text("id"), label: text("label"), bins: list("bins"), os: list("os"), package })
    }

    fn label(&self, node_manager: &str) -> String {
        let own = self.label.as_deref().map(trim).filter(|label| !label.is_empty());
        match (&self.package, own) {
            // Which manager runs is the operator's choice, so the author's words could be wrong.
            (Package::Node(package), _) => format!("Install {package} ({node_manager})"),
            (_, Some(label)) => label.to_owned(),
            (Package::Brew(formula), None) => format!("Install {formula} (brew)"),
            (Package::Go(module), None) => format!("Install {module} (go)"),
            (Package::Uv(package), None) => format!("Install {package} (uv)"),
            (Package::Download(file), None) => {
                let path = file.url.split(['?', '#']).next().unwrap_or_default();
                format!("Download {}", path.rsplit('/').find(|part| !part.is_empty()).unwrap_or(&file.url))
            }
        }
    }

    /// What it is called among the specs of its skill, where it stands at `place`.
    #[must_use]
    pub fn name(&self, place: usize) -> String {
        self.id.as_deref().map_or_else(|| format!("{}-{place}", self.kind()), |id| trim(id).to_owned())
    }

    /// Whether it is for machines with this system.
    #[must_use]
    pub fn fits(&self, os: &str) -> bool {
        self.os.is_empty() || self.os.iter().any(|wanted| system(wanted) == os)
    }
}

/// The install choices for a machine with system `os`: all downloads when there is nothing else, or the one best spec.
#[must_use]
pub fn options(specs: &[InstallSpec], os: &str, has_brew: bool, prefs: &InstallPrefs) -> Vec<InstallOption> {
    // Places are those among all specs, so that an id means the same one on every system.
    let specs: Vec<(usize, &InstallSpec)> = specs.iter().enumerate().filter(|(_, spec)| spec.fits(os)).collect();
    let option = |&(index, spec): &(usize, &InstallSpec)| InstallOption {
        id: spec.name(index),
        kind: spec.kind(),
        label: spec.label(&prefs.node_manager),
        bins: spec.bins.clone(),
    };
    if specs.iter().all(|(_, spec)| matches!(spec.package, Package::Download(_))) {
        return specs.iter().map(option).collect();
    }
    let mut order = vec!["uv", "node", "go", "download", "brew"];
    if has_brew {
        order.insert(if prefs.prefer_brew { 0 } else { 2 }, "brew");
    }
    let best = order.iter().find_map(|kind| specs.iter().find(|(_, spec)| spec.kind() == *kind));
    best.map(option).into_iter().collect()
}

fn starts_well(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

fn only(name: &str, extra: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || extra.contains(c))
}

fn is_formula(name: &str) -> bool {
    starts_well(name) && only(name, "@+._/-") && !name.contains("..")
}

fn is_npm_spec(spec: &str) -> bool {
    let part = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._~".contains(c))
    };
    let (name, version) = match spec.rfind('@').filter(|&at| at > 0) {
        Some(at) => (&spec[..at], Some(&spec[at + 1..])),
        None => (spec, None),
    };
    let name_fits = match name.strip_prefix('@') {
        Some(scoped) => scoped.split_once('/').is_some_and(|(scope, name)| part(scope) && part(name)),
        None => part(name),
    };
    let bad = |c: char| c.is_whitespace() || matches!(c, '/' | '\\' | '#' | ':');
    name_fits && version.is_none_or(|version| !version.is_empty() && !version.contains(bad))
}

fn is_go_module(module: &str) -> bool {
    let part = |text: &str| starts_well(text) && only(text, "._~+-/");
    match module.split_once('@') {
        Some((path, version)) => part(path) && part(version),
        None => part(module),
    }
}

fn is_uv_package(package: &str) -> bool {
    starts_well(package) && only(package, "._-[]=<>!~+,")
}

fn is_http_url(url: &str) -> bool {
    let scheme = ["http://", "https://"]
        .iter()
        .find(|scheme| url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)));
    let host = scheme.map(|scheme| url[scheme.len()..].split(['/', '?', '#']).next().unwrap_or_default());
    !url.contains(char::is_whitespace) && host.is_some_and(|host| !host.is_empty())
}

fn sha256(digest: &str) -> Result<String, String> {
    let digest = trim(digest).to_lowercase();
    let fits = digest.len() == 64 && digest.bytes().all(|b| b.is_ascii_hexdigit());
    fits.then_some(digest).ok_or_else(|| "has a `sha256` that is not 64 hex digits".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn reads(spec: &Value) -> bool {
        InstallSpec::read(spec).is_ok()
    }

    #[test]
    fn names_follow_the_grammar_of_their_manager() {
        for good in [
            json!({"kind": "BREW", "cask": "x/y/z"}),
            json!({"type": "node", "package": "@scope/p@1.2.3"}),
            json!({"kind": "node", "package": "p@^1.0"}),
            json!({"kind": "go", "module": "github.com/a/b@latest"}),
            json!({"kind": "uv", "package": "pkg[extra]==1.0"}),
            json!({"kind": "download", "url": "https://h/a.tgz"}),
        ] {
            assert!(reads(&good), "{good}");
        }
        for bad in [
            json!({"kind": "brew", "formula": "--cask=x"}),
            json!({"kind": "brew", "formula": "a/../b"}),
            json!({"kind": "node", "package": "file:../x"}),
            json!({"kind": "node", "package": "-g"}),
            json!({"kind": "node", "package": "git+https://x"}),
            json!({"kind": "node", "package": "p@"}),
            json!({"kind": "node", "package": "Upper"}),
            json!({"kind": "go", "module": "-ldflags=x"}),
            json!({"kind": "go", "module": "https://x"}),
            json!({"kind": "uv", "package": "--index-url"}),
            json!({"kind": "uv", "package": "a\nb"}),
            json!({"kind": "download", "url": "ftp://h/a"}),
            json!({"kind": "download", "url": "https:///a"}),
            json!({"kind": "download", "url": "https://h/a", "sha256": "abc"}),
            json!({"kind": "apt", "package": "gh"}),
            json!({"package": "gh"}),
            json!("brew"),
        ] {
            assert!(!reads(&bad), "{bad}");
        }
    }

    #[test]
    fn one_best_option_or_all_downloads() {
        let specs: Vec<InstallSpec> = [
            json!({"id": "b", "kind": "brew", "formula": "nb", "label": "L"}),
            json!({"kind": "node", "package": "nb-cli", "label": "ignored"}),
            json!({"kind": "go", "module": "x.y/z", "os": ["darwin"]}),
        ]
        .iter()
        .map(|spec| InstallSpec::read(spec).expect("valid"))
        .collect();
        let pick = |has_brew, prefer_brew| {
            let prefs = InstallPrefs { prefer_brew, node_manager: "pnpm".to_owned() };
            options(&specs, "linux", has_brew, &prefs).into_iter().map(|o| (o.id, o.label)).collect::<Vec<_>>()
        };
        assert_eq!(pick(true, true), [("b".to_owned(), "L".to_owned())]);
        assert_eq!(pick(true, false), [("node-1".to_owned(), "Install nb-cli (pnpm)".to_owned())]);
        assert_eq!(pick(false, true), [("node-1".to_owned(), "Install nb-cli (pnpm)".to_owned())]);
        let files: Vec<InstallSpec> = ["https://h/a.tgz?x#y", "https://h/b.zip"]
            .iter()
            .map(|url| InstallSpec::read(&json!({"kind": "download", "url": url})).expect("valid"))
            .collect();
        let labels: Vec<String> =
            options(&files, "linux", true, &InstallPrefs::default()).into_iter().map(|o| o.label).collect();
        assert_eq!(labels, ["Download a.tgz", "Download b.zip"]);
        assert!(options(&[], "linux", true, &InstallPrefs::default()).is_empty());
    }
}
