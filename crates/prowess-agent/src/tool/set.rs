//! Which tools does an agent have, and what becomes of a call?
//!
//! Every call goes the same way, whoever makes it: which tool is meant, whether the operator allows it, whether its
//! arguments fit, whether a skill in use wants a person to be asked first; then the tool itself.

use std::sync::Arc;

use prowess_exec::ToolResult;
use serde_json::{Map, Value};

use super::named;
use super::permission;
use super::policy::{ToolSettings, alias};
use super::validate::validate;
use crate::tool::{Call, Scope, Tool, ToolSpec};

/// How much of a name that nobody knows is repeated.
const MAX_NAME: usize = 100;

/// Other names for arguments, which models know from other programs.
const SPELLINGS: &[(&str, &str)] = &[("file_path", "path"), ("old_string", "oldText"), ("new_string", "newText")];

/// The tools of an agent, after what its configuration allows and denies.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: Vec<Arc<dyn Tool>>,
    denied: Vec<String>,
}

impl ToolSet {
    /// These tools; of several with one name the first counts.
    #[must_use]
    pub fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut set = Self::default();
        for tool in tools {
            if !set.tools.iter().any(|known| known.spec().name == tool.spec().name) {
                set.tools.push(tool);
            }
        }
        set
    }

    /// Those of them that `settings` allow.
    #[must_use]
    pub fn allowed_by(mut self, settings: &ToolSettings) -> Self {
        let (kept, denied): (Vec<_>, Vec<_>) =
            self.tools.into_iter().partition(|tool| settings.allows(&tool.spec().name));
        self.denied.extend(denied.iter().map(|tool| tool.spec().name.clone()));
        Self { tools: kept, denied: self.denied }
    }

    /// The tool of exactly that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    /// The tool that a model means by `name`: exactly that one, one with another name, or the only one that differs in
    /// capital letters.
    #[must_use]
    pub fn resolve(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        let known: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        resolve(name, &known).and_then(|name| self.find(name))
    }

    /// What the model is told of them.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec().clone()).collect()
    }

    /// Carries out a call of the tool that `name` means. What goes wrong is a result the model reads.
    pub async fn call(&self, name: &str, call: Call<'_>, scope: &Scope<'_>) -> ToolResult {
        let Some(tool) = self.resolve(name) else { return self.missing(name) };
        let spec = tool.spec();
        let spelled = spell(&spec.parameters, call.arguments);
        let arguments = match validate(&spec.name, &spec.parameters, &spelled) {
            Ok(arguments) => arguments,
            Err(answer) => return answer,
        };
        let call = Call { arguments: &arguments, ..call };
        // A skill that the call takes up has its say about this very call.
        named::take_up(&spec.name, call.arguments, scope);
        if let Err(answer) = permission::check(&spec.name, call.arguments, scope).await {
            return answer;
        }
        tool.call(call, scope).await
    }

    /// `text` without what nobody may learn from the tools.
    #[must_use]
    pub fn conceal(&self, mut text: String) -> String {
        for tool in &self.tools {
            tool.conceal(&mut text);
        }
        text
    }

    fn missing(&self, name: &str) -> ToolResult {
        let denied: Vec<&str> = self.denied.iter().map(String::as_str).collect();
        if let Some(name) = resolve(name, &denied) {
            let why = format!(
                "Tool {name} is not allowed here: the operator's settings (tools.allow, tools.deny or tools.profile) \
                 leave it out. Do without it, or ask the operator to allow it."
            );
            return ToolResult::error(name, &why);
        }
        let name: String = name.trim().chars().take(MAX_NAME).collect();
        let known: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        ToolResult::error(&name, &format!("Tool {name} not found. The tools are: {known}."))
    }
}

impl std::fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.tools.iter().map(|tool| tool.spec().name.as_str()).collect();
        f.debug_struct("ToolSet").field("tools", &names).field("denied", &self.denied).finish()
    }
}

/// Which of `known` is meant by `name`: that of exactly this name, one it is another word for, or the only one that
/// differs in case alone.
pub(crate) fn resolve<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let name = name.trim();
    let exact = |name: &str| known.iter().copied().find(|known| *known == name);
    let small = name.to_lowercase();
    let meant = alias(&small);
    let only = || {
        let mut alike = known.iter().copied().filter(|known| known.to_lowercase() == meant);
        alike.next().filter(|_| alike.next().is_none())
    };
    exact(name).or_else(|| exact(meant)).or_else(only)
}

/// The arguments under the names that the tool has for them. What is there under its right name stays.
fn spell(schema: &Value, given: &Map<String, Value>) -> Map<String, Value> {
    let is_known = |name: &str| !schema["properties"][name].is_null();
    let mut spelled = given.clone();
    for (other, right) in SPELLINGS {
        if is_known(right)
            && !is_known(other)
            && !spelled.contains_key(*right)
            && let Some(value) = spelled.remove(*other)
        {
            spelled.insert((*right).to_owned(), value);
        }
    }
    spelled
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{resolve, spell};

    #[test]
    fn a_name_means_the_tool_it_can_only_mean() {
        let known = ["read", "exec", "Search", "FIND", "Find"];
        let table = [
            ("read", Some("read")),
            (" read\n", Some("read")),
            ("READ", Some("read")),
            ("bash", Some("exec")),
            ("Bash", Some("exec")),
            ("search", Some("Search")),
            ("Find", Some("Find")),
            ("find", None),
            ("rea", None),
            ("", None),
        ];
        for (name, expected) in table {
            assert_eq!(resolve(name, &known), expected, "{name:?}");
        }
        assert_eq!(resolve("bash", &["bash", "exec"]), Some("bash"));
        assert_eq!(resolve("bash", &["Exec"]), Some("Exec"));
        assert_eq!(resolve("apply-patch", &["apply_patch"]), Some("apply_patch"));
    }

    #[test]
    fn other_spellings_are_read() {
        let schema = json!({"properties": {"path": {}, "oldText": {}}});
        let spelled =
            |given: serde_json::Value| serde_json::Value::Object(spell(&schema, given.as_object().expect("an object")));
        assert_eq!(spelled(json!({"file_path": "a", "old_string": "b"})), json!({"path": "a", "oldText": "b"}));
        assert_eq!(spelled(json!({"file_path": "a", "path": "b"})), json!({"file_path": "a", "path": "b"}));
        assert_eq!(spelled(json!({"new_string": "a"})), json!({"new_string": "a"}));
    }
}
