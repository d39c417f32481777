//! Skills made for a test, by the same reader that reads files.

use std::path::Path;

use prowess_skills::{Skill, SkillName, Tier};
use serde_json::{Value, json};

/// A workspace skill with this manifest; `extra` is further frontmatter, whole lines.
pub(crate) fn skill(name: &str, description: &str, manifest: &Value, extra: &str) -> Skill {
    let metadata = if manifest.is_null() { Value::Null } else { json!({ "openclaw": manifest }) };
    let text = format!("---\nname: made\ndescription: made\nmetadata: {metadata}\n{extra}---\n");
    let file = format!("/skills/{name}/SKILL.md");
    let (made, _) = Skill::parse(text.as_bytes(), Path::new(&file), Tier::Workspace).expect("a readable skill");
    // Set here, not written above: some cases have text that no frontmatter could hold.
    Skill { name: SkillName::new(name), description: description.to_owned(), ..made }
}
