//! Kubernetes: which server does `kubectl` talk to?

/// The address of the server that this `~/.kube/config` selects, or that `context` does. Only a forecast is made from it, so
/// the file is read line by line, in the form that `kubectl` writes.
pub(super) fn server(config: &str, context: Option<&str>) -> Option<String> {
    let mut items: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for line in config.lines() {
        let text = line.trim_start();
        // A list begins a new item; so does a key without indentation.
        if text.starts_with("- ") || text.len() == line.len() {
            items.push(Vec::new());
        }
        let pair = text.trim_start_matches("- ").split_once(':');
        if let (Some((key, value)), Some(item)) = (pair, items.last_mut()) {
            item.push((key.trim(), value.trim().trim_matches(['"', '\''])));
        }
    }
    let value = |item: &[(&str, &str)], key: &str| {
        item.iter().find(|(name, value)| *name == key && !value.is_empty()).map(|(_, value)| (*value).to_owned())
    };
    let named = |name: &str, key: &str| {
        items.iter().filter(|item| value(item, "name").as_deref() == Some(name)).find_map(|item| value(item, key))
    };
    let current =
        context.map(str::to_owned).or_else(|| items.iter().find_map(|item| value(item, "current-context")))?;
    named(&named(&current, "cluster")?, "server")
}

#[cfg(test)]
mod tests {
    use super::server;

    const CONFIG: &str = "apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: x\n    server: https://one.example:6443\n  \
        name: one\n- cluster:\n    server: \"https://two.example\"\n  name: two\ncontexts:\n- context:\n    cluster: two\n    user: u\n  \
        name: prod\n- context:\n    cluster: one\n    user: u\n  name: dev\ncurrent-context: dev\nkind: Config\nusers:\n- name: u\n";

    #[test]
    fn the_current_context_names_the_server() {
        assert_eq!(server(CONFIG, None).as_deref(), Some("https://one.example:6443"));
        assert_eq!(server(CONFIG, Some("prod")).as_deref(), Some("https://two.example"));
        assert_eq!(server(CONFIG, Some("other")), None);
        assert_eq!(server("", None), None);
        assert_eq!(server("current-context: x", None), None);
    }
}
