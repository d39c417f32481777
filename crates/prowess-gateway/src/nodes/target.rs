//! The target: which node is meant?

use std::sync::Arc;

use super::registry::{Node, Nodes};

/// The fewest characters by which a node may be named instead of its whole id.
const MIN_PREFIX: usize = 6;

/// Can a command run there?
const RUN: &str = "system.run";

impl Nodes {
    /// The node that a command goes to: the one it is bound to, or the one that was asked for, or the only one there is.
    pub(crate) fn target(&self, bound: Option<&str>, asked: Option<&str>) -> Result<Arc<Node>, String> {
        let given = |text: Option<&str>| text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        let (bound, asked) = (given(bound), given(asked));
        let nodes = self.connected();
        if nodes.is_empty() {
            return Err(
                "exec host=node requires a paired node (none available). Connect one with `prowess node run`, \
                        or use host=gateway."
                    .to_owned(),
            );
        }
        let node = match (&bound, &asked) {
            (None, None) => self.only(&nodes)?,
            (Some(query), None) | (None, Some(query)) => self.named(&nodes, query)?,
            (Some(bound), Some(asked)) => {
                let node = self.named(&nodes, bound)?;
                // A name that means another node, or none, is not the one that was set.
                if self.named(&nodes, asked).ok().is_none_or(|other| other.id != node.id) {
                    return Err(format!("exec node not allowed (bound to {bound})"));
                }
                node
            }
        };
        if !node.can(RUN) {
            return Err(
                "exec host=node requires a node that supports system.run (companion app or node host).".to_owned()
            );
        }
        Ok(node)
    }

    fn only(&self, nodes: &[Arc<Node>]) -> Result<Arc<Node>, String> {
        let mut able = nodes.iter().filter(|node| node.can(RUN));
        match (able.next(), able.next()) {
            (Some(node), None) => Ok(Arc::clone(node)),
            (None, _) => Ok(Arc::clone(&nodes[0])),
            (Some(_), Some(_)) => Err(format!(
                "exec host=node requires a node id when multiple nodes are available: name one of {}.",
                self.names(nodes)
            )),
        }
    }

    fn named(&self, nodes: &[Arc<Node>], query: &str) -> Result<Arc<Node>, String> {
        let name = plain(query);
        let matches: [&dyn Fn(&Node) -> bool; 4] = [
            &|node| node.id == query,
            &|node| node.guest.remote_ip.as_deref() == Some(query),
            &|node| !name.is_empty() && plain(&self.name(node)) == name,
            &|node| query.len() >= MIN_PREFIX && node.id.starts_with(query),
        ];
        for is_meant in matches {
            let mut found = nodes.iter().filter(|node| is_meant(node));
            match (found.next(), found.next()) {
                (Some(node), None) => return Ok(Arc::clone(node)),
                (Some(_), Some(_)) => {
                    return Err(format!(
                        "ambiguous node: {query} means more than one of {}; use an id.",
                        self.names(nodes)
                    ));
                }
                (None, _) => {}
            }
        }
        Err(format!("unknown node: {query} (connected: {})", self.names(nodes)))
    }

    fn names(&self, nodes: &[Arc<Node>]) -> String {
        let named = |node: &Arc<Node>| {
            let id: String = node.id.chars().take(12).collect();
            format!("{} ({id})", prowess_policy::shown(&self.name(node)))
        };
        nodes.iter().map(named).collect::<Vec<_>>().join(", ")
    }
}

/// A name without case and punctuation.
fn plain(name: &str) -> String {
    name.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
}
