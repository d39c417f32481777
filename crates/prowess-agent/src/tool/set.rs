//! Which tools does an agent have, and which one does a call mean?

use std::sync::Arc;

use crate::tool::{Tool, ToolSpec};

/// The tools of an agent, after what its configuration allows and denies.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: Vec<Arc<dyn Tool>>,
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

    /// The tool of exactly that name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.spec().name == name)
    }

    /// What the model is told of them.
    #[must_use]
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools.iter().map(|tool| tool.spec().clone()).collect()
    }
}
