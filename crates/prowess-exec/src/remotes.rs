//! Git remotes: which addresses do names such as `origin` stand for in a directory?

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The most of a configuration that is read, in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// The configuration of the repository that `cwd` is in.
pub(crate) fn git_config(cwd: &Path) -> Option<PathBuf> {
    cwd.ancestors().map(|dir| dir.join(".git/config")).find(|file| file.is_file())
}

/// The remotes in that configuration. Only a forecast is made from it, so what cannot be read is no error.
pub(crate) fn remotes(config: &Path) -> Vec<(String, String)> {
    let mut text = String::new();
    let read = fs::File::open(config).and_then(|file| file.take(MAX_BYTES).read_to_string(&mut text));
    if read.is_err() {
        return Vec::new();
    }
    parse(&text)
}

fn parse(text: &str) -> Vec<(String, String)> {
    let mut remotes = Vec::new();
    let mut name = None;
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            let quoted = line.strip_prefix("[remote \"").and_then(|rest| rest.strip_suffix("\"]"));
            name = quoted.map(str::to_owned);
        } else if let (Some(name), Some((key, value))) = (&name, line.split_once('='))
            && matches!(key.trim(), "url" | "pushurl")
        {
            remotes.push((name.clone(), value.trim().to_owned()));
        }
    }
    remotes
}

#[cfg(test)]
mod tests {
    #[test]
    fn remotes_are_read_from_the_configuration() {
        let text = "[core]\n\turl = no\n[remote \"origin\"]\n\turl = git@github.com:me/it\n\tfetch = x\n[branch \"m\"]\n\turl = no\n";
        assert_eq!(super::parse(text), [("origin".to_owned(), "git@github.com:me/it".to_owned())]);
    }
}
