//! A skill: what one `SKILL.md` says, read once.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::frontmatter::{Document, Flaw};
use crate::metadata::{self, Metadata};
use crate::problem::{Position, Problem, ProblemKind};
use crate::standard::{self, Violation};
use crate::text::{clean, prefix_units, trim};
use crate::tier::Tier;

/// UTF-16 units of a picture: enough for the longest sequence that is one.
const MAX_EMOJI: usize = 24;

/// The name that a skill is merged, listed and filtered by. Not the name of its configuration entry: see
/// [`Skill::key`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SkillName(String);

impl SkillName {
    /// Wraps a name, on one line and without characters that cannot be seen.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(trim(&clean(name)).to_owned())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SkillName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who may call on a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invocation {
    /// A person, by slash command.
    pub by_user: bool,
    /// The model, from the catalogue in its prompt.
    pub by_model: bool,
}

/// A slash command that goes straight to a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// The tool.
    pub tool: String,
}

/// The fields of the Agent Skills standard that OpenClaw does not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standard {
    /// The licence it is under.
    pub license: Option<String>,
    /// What it says about where it works.
    pub compatibility: Option<String>,
    /// The tools it may use without asking; empty means it does not say.
    pub allowed_tools: Vec<String>,
    /// Its `metadata` strings, such as author and version.
    pub metadata: Vec<(String, String)>,
}

/// One skill on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    /// What it is called.
    pub name: SkillName,
    /// When to use it, trimmed, otherwise as its author wrote it.
    pub description: String,
    /// Where it comes from.
    pub tier: Tier,
    /// Its `SKILL.md`.
    pub file: PathBuf,
    /// Its manifest.
    pub metadata: Metadata,
    /// A picture for lists.
    pub emoji: Option<String>,
    /// Where to read more.
    pub homepage: Option<String>,
    /// Who may call on it.
    pub invocation: Invocation,
    /// The tool its slash command goes to, when it bypasses the model.
    pub dispatch: Option<Dispatch>,
    /// The rest of the Agent Skills standard.
    pub standard: Standard,
    /// Why its needs are not known, when its metadata cannot be read.
    pub unreadable: Option<String>,
}

impl Skill {
    /// Reads the bytes of the `SKILL.md` at `file`; what was mended or ignored comes with the skill.
    pub fn parse(bytes: &[u8], file: &Path, tier: Tier) -> Result<(Self, Vec<Problem>), Problem> {
        let mut document = Document::parse(bytes).map_err(|flaw| flaw.in_file(file))?;
        let mut problems: Vec<Problem> = document.flaws().iter().map(|flaw| flaw.clone().in_file(file)).collect();
        let dir = file.parent().unwrap_or(file);
        let folder = dir.file_name().unwrap_or_default().to_string_lossy();

        let mut reader = Reader { document: &mut document, file, problems: &mut problems };
        let description = reader.description()?;
        let name = reader.name(&folder)?;
        let manifest = reader.manifest();
        let invocation = Invocation {
            by_user: reader.flag("user-invocable").unwrap_or(true),
            by_model: !reader.flag("disable-model-invocation").unwrap_or(false),
        };
        let dispatch = reader.dispatch();
        let standard = reader.standard();

        let metadata = manifest.metadata;
        let shown = |own: &Option<String>, keys: &[&str]| {
            let own = own.clone().filter(|text| !trim(text).is_empty());
            let text = own.or_else(|| keys.iter().find_map(|key| document.text(key)))?;
            Some(trim(&clean(&text)).to_owned()).filter(|text| !text.is_empty())
        };
        let skill = Self {
            name,
            description,
            tier,
            file: file.to_owned(),
            emoji: shown(&metadata.emoji, &["emoji"]).map(|emoji| prefix_units(&emoji, MAX_EMOJI).to_owned()),
            homepage: shown(&metadata.homepage, &["homepage", "website", "url"]),
            metadata,
            invocation,
            dispatch,
            standard,
            unreadable: manifest.unreadable,
        };
        Ok((skill, problems))
    }

    /// Its folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }

    /// The name of its entry under `skills.entries`.
    #[must_use]
    pub fn key(&self) -> &str {
        self.metadata.skill_key.as_deref().unwrap_or(self.name.as_str())
    }

    /// The rules of the Agent Skills standard that it breaks.
    #[must_use]
    pub fn violations(&self) -> Vec<Violation> {
        let folder = self.dir().file_name().unwrap_or_default().to_string_lossy();
        standard::violations(self.name.as_str(), &folder, &self.description)
    }
}

/// Reads the fields of one document and notes what it had to mend.
struct Reader<'a, 'b> {
    document: &'a mut Document<'b>,
    file: &'a Path,
    problems: &'a mut Vec<Problem>,
}

impl Reader<'_, '_> {
    fn note(&mut self, kind: ProblemKind, at: Option<Position>, reason: &str, fix: &str) {
        self.problems.push(Problem::new(kind, self.file, reason, fix).at(at));
    }

    /// A text field under its own name, or else under one that was plainly meant; noted when it is not plain text.
    fn text(&mut self, key: &str, others: &[&str]) -> Option<String> {
        let document = &self.document;
        let mut given = std::iter::once(key).chain(others.iter().copied());
        let found = given.find(|key| document.get(key).is_some_and(|value| !blank(value)))?;
        let (at, is_text) = (document.position(found), document.get(found).is_some_and(Value::is_string));
        if found != key {
            let reason = format!("`{key}` is missing; `{found}` was read for it");
            self.note(ProblemKind::Mended, at, &reason, &format!("write `{key}:`"));
        } else if !is_text {
            self.note(ProblemKind::Mended, at, &format!("`{key}` is not text"), "put it in double quotes");
        }
        self.document.take_text(found).map(trimmed)
    }

    fn description(&mut self) -> Result<String, Problem> {
        self.text("description", &["Description", "DESCRIPTION", "summary"]).ok_or_else(|| {
            let at = self.document.position("description").or(Some(Position { line: 1, column: 1 }));
            Problem::new(
                ProblemKind::NoDescription,
                self.file,
                "the skill has no description, so a model could not choose it",
                "add `description:` with what it does and when to use it",
            )
            .at(at)
        })
    }

    fn name(&mut self, folder: &str) -> Result<SkillName, Problem> {
        let given = self.text("name", &["Name", "NAME"]).map(|name| SkillName::new(&name));
        let given = given.filter(|name| !name.as_str().is_empty()).map(|name| self.without_path(name, folder));
        let name = given.unwrap_or_else(|| SkillName::new(folder));
        if name.as_str().is_empty() {
            let reason = "neither the frontmatter nor the folder gives the skill a name";
            return Err(Problem::new(ProblemKind::BadFrontmatter, self.file, reason, "add `name:`"));
        }
        Ok(name)
    }

    /// A name that is a path, without what makes it one: it could lead a model or a program somewhere else.
    fn without_path(&mut self, name: SkillName, folder: &str) -> SkillName {
        let parts: Vec<&str> = name.as_str().split(['/', '\\']).collect();
        let is_path = parts.len() > 1 || matches!(name.as_str(), "." | "..");
        if !is_path {
            return name;
        }
        let plain: Vec<&str> = parts.into_iter().map(trim).filter(|part| !matches!(*part, "" | "." | "..")).collect();
        let safe = if plain.is_empty() { SkillName::new(folder) } else { SkillName::new(&plain.join("-")) };
        let at = self.document.position("name");
        let reason = format!("the name `{name}` is a path; the skill is called `{safe}`");
        self.note(ProblemKind::UnsafeName, at, &reason, "use letters, digits and hyphens");
        safe
    }

    fn manifest(&mut self) -> metadata::Manifest {
        match self.document.metadata() {
            Ok(None) => metadata::Manifest::default(),
            Ok(Some(value)) => {
                let manifest = metadata::read(&value);
                let at = self.document.position("metadata");
                for part in &manifest.ignored {
                    self.note(ProblemKind::IgnoredMetadata, at, part, "remove it, or write it in the documented form");
                }
                if let Some(reason) = &manifest.unreadable {
                    self.note(ProblemKind::BadMetadata, at, reason, "write the requirements in the documented form");
                }
                manifest
            }
            Err(Flaw { at, reason, fix, .. }) => {
                self.note(ProblemKind::BadMetadata, at, &reason, &fix);
                metadata::Manifest { unreadable: Some(reason), ..metadata::Manifest::default() }
            }
        }
    }

    /// A switch; anything but the known words counts as not given.
    fn flag(&self, key: &str) -> Option<bool> {
        let text = self.document.text(key)?.to_lowercase();
        // A mended value may have kept a stray quote.
        match trim(&text).trim_matches(['"', '\'']) {
            "true" | "1" | "yes" | "on" => Some(true),
            "false" | "0" | "no" | "off" => Some(false),
            _ => None,
        }
    }

    fn dispatch(&mut self) -> Option<Dispatch> {
        let kind = self.dashed("command-dispatch").map(|kind| kind.to_lowercase())?;
        let at = self.document.position("command-dispatch");
        if kind != "tool" {
            if !kind.is_empty() {
                let reason = format!("`command-dispatch: {kind}` is not known; the command goes to the model");
                self.note(ProblemKind::IgnoredMetadata, at, &reason, "write `command-dispatch: tool` or remove it");
            }
            return None;
        }
        let Some(tool) = self.dashed("command-tool").filter(|tool| !tool.is_empty()) else {
            let reason = "`command-dispatch: tool` names no tool; the command goes to the model";
            self.note(ProblemKind::IgnoredMetadata, at, reason, "add `command-tool:`");
            return None;
        };
        if let Some(mode) =
            self.dashed("command-arg-mode").filter(|mode| !mode.is_empty() && mode.to_lowercase() != "raw")
        {
            let reason = format!("`command-arg-mode: {mode}` is not known; `raw` is used");
            self.note(ProblemKind::IgnoredMetadata, at, &reason, "write `command-arg-mode: raw` or remove it");
        }
        Some(Dispatch { tool })
    }

    /// A `command-*` field, with hyphens or, only when that is absent, with underscores.
    fn dashed(&self, key: &str) -> Option<String> {
        let text = self.document.text(key).or_else(|| self.document.text(&key.replace('-', "_")))?;
        Some(trim(&text).to_owned())
    }

    fn standard(&self) -> Standard {
        let text = |key: &str| self.document.text(key).map(|text| trim(&clean(&text)).to_owned());
        let tools = match self.document.get("allowed-tools") {
            Some(Value::Array(_)) => metadata::strings(self.document.get("allowed-tools")).unwrap_or_default(),
            _ => text("allowed-tools").map(|tools| tool_patterns(&tools)).unwrap_or_default(),
        };
        let strings = match self.document.get("metadata") {
            Some(Value::Object(map)) => map
                .iter()
                .filter_map(|(key, value)| value.as_str().map(|text| (key.clone(), text.to_owned())))
                .collect(),
            _ => Vec::new(),
        };
        Standard {
            license: text("license").filter(|text| !text.is_empty()),
            compatibility: text("compatibility").filter(|text| !text.is_empty()),
            allowed_tools: tools,
            metadata: strings,
        }
    }
}

/// `text` without the white space at both ends, copied only when there is some.
fn trimmed(text: String) -> String {
    if trim(&text).len() == text.len() { text } else { trim(&text).to_owned() }
}

fn blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| trim(text).is_empty())
}

/// Splits `Bash(git:*) Read, Write` at spaces and commas outside parentheses.
fn tool_patterns(text: &str) -> Vec<String> {
    let mut level = 0_usize;
    let separated = |c: char| {
        match c {
            '(' => level += 1,
            ')' => level = level.saturating_sub(1),
            _ => {}
        }
        level == 0 && (c.is_whitespace() || c == ',')
    };
    text.split(separated).filter(|pattern| !pattern.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(frontmatter: &str) -> (Skill, Vec<Problem>) {
        let text = format!("---\n{frontmatter}\n---\nbody\n");
        Skill::parse(text.as_bytes(), Path::new("/skills/folder/SKILL.md"), Tier::Workspace).expect("a skill")
    }

    fn problem(text: &str) -> ProblemKind {
        let read = Skill::parse(text.as_bytes(), Path::new("/skills/folder/SKILL.md"), Tier::Workspace);
        read.map(|(skill, _)| skill.name).expect_err("a problem").kind
    }

    #[test]
    fn the_folder_names_a_skill_that_does_not() {
        for frontmatter in
            ["description: d", "name:\ndescription: d", "name: ~\ndescription: d", "name: '  '\ndescription: d"]
        {
            assert_eq!(skill(frontmatter).0.name.as_str(), "folder", "{frontmatter}");
        }
        assert_eq!(skill("name: '  spaced name '\ndescription: d").0.name.as_str(), "spaced name");
    }

    #[test]
    fn a_name_that_is_a_path_is_not_used_as_it_stands() {
        for (given, expected) in [
            ("../../../etc/pwn", "etc-pwn"),
            ("/etc/passwd", "etc-passwd"),
            ("a/b", "a-b"),
            ("@org/tool", "@org-tool"),
            ("..\\\\..\\\\evil", "evil"),
            ("..", "folder"),
            ("/", "folder"),
            (". / ..", "folder"),
        ] {
            let (skill, problems) = skill(&format!("name: \"{given}\"\ndescription: d"));
            assert_eq!(skill.name.as_str(), expected, "{given}");
            assert_eq!(problems.iter().map(|problem| problem.kind).collect::<Vec<_>>(), [ProblemKind::UnsafeName]);
        }
        for name in ["v1..2", "a.b", "...", "a-b"] {
            let (skill, problems) = skill(&format!("name: \"{name}\"\ndescription: d"));
            assert_eq!((skill.name.as_str(), problems.len()), (name, 0));
        }
    }

    #[test]
    fn what_is_not_text_becomes_text_and_is_noted() {
        for (given, name) in [("123", "123"), ("true", "true"), ("1.0", "1"), ("1e3", "1000")] {
            let (skill, problems) = skill(&format!("name: {given}\ndescription: d"));
            assert_eq!((skill.name.as_str(), problems.len()), (name, 1));
        }
        assert_eq!(skill("description:\n  - a\n  - b").0.description, "[\"a\",\"b\"]");
        assert_eq!(skill("Description: d").0.description, "d");
        assert_eq!(skill("summary: s").0.description, "s");
    }

    #[test]
    fn a_description_is_a_must() {
        for text in [
            "---\nname: a\n---\n",
            "---\nname: a\ndescription: '  '\n---\n",
            "---\ndescription: null\n---\n",
            "---\n---\n",
        ] {
            assert_eq!(problem(text), ProblemKind::NoDescription, "{text:?}");
        }
    }

    #[test]
    fn switches_know_eight_words() {
        let flags = |user: &str, model: &str| {
            let skill = skill(&format!("description: d\nuser-invocable: {user}\ndisable-model-invocation: {model}")).0;
            (skill.invocation.by_user, skill.invocation.by_model)
        };
        assert_eq!(flags("no", "yes"), (false, false));
        assert_eq!(flags("0", "1"), (false, false));
        assert_eq!(flags("\"Off\"", "\" ON \""), (false, false));
        assert_eq!(flags("maybe", "maybe"), (true, true));
        assert_eq!(flags("true", "\"true"), (true, false)); // a stray quote does not show a hidden skill
    }

    #[test]
    fn dispatch_needs_a_tool() {
        let dispatch = |text: &str| skill(&format!("description: d\n{text}")).0.dispatch.map(|found| found.tool);
        assert_eq!(dispatch("command-dispatch: Tool\ncommand-tool: ' exec '").as_deref(), Some("exec"));
        assert_eq!(dispatch("command_dispatch: tool\ncommand_tool: exec").as_deref(), Some("exec"));
        assert_eq!(dispatch("command-dispatch: ''\ncommand_dispatch: tool\ncommand-tool: exec"), None);
        assert_eq!(dispatch("command-dispatch: tool"), None);
        assert_eq!(dispatch("command-tool: exec"), None);
    }

    #[test]
    fn the_standard_fields_are_kept() {
        let skill =
            skill("description: d\nlicense: MIT\nallowed-tools: Bash(git: *) Read,Write\nmetadata:\n  author: me").0;
        assert_eq!(skill.standard.license.as_deref(), Some("MIT"));
        assert_eq!(skill.standard.allowed_tools, ["Bash(git: *)", "Read", "Write"]);
        assert_eq!(skill.standard.metadata, [("author".to_owned(), "me".to_owned())]);
    }

    #[test]
    fn unreadable_metadata_is_remembered() {
        let (skill, problems) = skill("description: d\nmetadata: {\"openclaw\": {\"requires\": \"curl\"}}");
        assert!(skill.unreadable.is_some());
        assert_eq!(problems[0].kind, ProblemKind::BadMetadata);
    }
}
