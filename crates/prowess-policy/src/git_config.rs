//! Git's configuration: what does a file set, and could any of it start a program?
//!
//! Read character by character as git does, so that no setting hides from us that git sees. A file that git would not
//! read is an error. What is harmless is a list of names: a setting that is not on it may start a program, now or in a
//! later version of git.

/// One setting of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSetting {
    /// The section, in small letters.
    pub section: String,
    /// The part in quotes behind it.
    pub subsection: Option<String>,
    /// The name, in small letters.
    pub key: String,
    /// The value; none where the name stands alone, which means true.
    pub value: Option<String>,
}

/// The line that git could not read either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {0} is not a setting")]
pub struct GitConfigError(pub usize);

/// Settings that start nothing and lead nowhere, by section, and whether the section has a part in quotes.
#[rustfmt::skip]
const HARMLESS: &[(&str, bool, &[&str])] = &[
    ("advice", false, &["*"]),
    ("branch", true, &["description", "merge", "pushremote", "rebase", "remote"]),
    ("branch", false, &["autosetupmerge", "autosetuprebase", "sort"]),
    ("color", false, &["*"]),
    ("core", false, &[
        "abbrev", "autocrlf", "bare", "bigfilethreshold", "checkstat", "compression", "deltabasecachelimit", "eol",
        "filemode", "fscache", "ignorecase", "logallrefupdates", "longpaths", "multipackindex", "packedgitlimit",
        "precomposeunicode", "preloadindex", "protecthfs", "protectntfs", "quotepath", "repositoryformatversion",
        "safecrlf", "sharedrepository", "sparsecheckout", "sparsecheckoutcone", "splitindex", "symlinks", "trustctime",
        "untrackedcache", "whitespace",
    ]),
    ("extensions", false, &[
        "compatobjectformat", "noop", "objectformat", "partialclone", "preciousobjects", "refstorage",
        "relativeworktrees", "worktreeconfig",
    ]),
    ("feature", false, &["experimental", "manyfiles"]),
    ("fetch", false, &["parallel", "prune", "prunetags", "writecommitgraph"]),
    ("gc", false, &["auto", "autodetach", "autopacklimit", "reflogexpire", "pruneexpire"]),
    ("index", false, &["threads", "version"]),
    ("init", false, &["defaultbranch", "defaultobjectformat", "defaultrefformat"]),
    ("lfs", false, &["repositoryformatversion"]),
    ("maintenance", false, &["auto", "strategy"]),
    ("merge", false, &["conflictstyle", "ff", "renamelimit", "renames", "stat"]),
    ("pack", false, &["depth", "threads", "window", "windowmemory"]),
    ("pull", false, &["ff", "rebase"]),
    ("push", false, &["autosetupremote", "default", "followtags"]),
    ("rebase", false, &["autosquash", "autostash", "stat", "updaterefs"]),
    ("receive", false, &["autogc", "denycurrentbranch", "denydeletes", "denynonfastforwards", "fsckobjects"]),
    ("remote", true, &["fetch", "mirror", "partialclonefilter", "promisor", "prune", "push", "pushurl", "tagopt", "url"]),
    ("rerere", false, &["autoupdate", "enabled"]),
    ("submodule", false, &["active", "recurse"]),
    ("submodule", true, &["active", "branch", "fetchrecursesubmodules", "ignore", "shallow", "update", "url"]),
    ("user", false, &["email", "name", "useconfigonly"]),
];

/// How a submodule may be updated. Anything else is a command.
const UPDATES: &[&str] = &["checkout", "merge", "none", "rebase"];

impl GitSetting {
    /// Its full name, as `git config` writes it.
    #[must_use]
    pub fn name(&self) -> String {
        match &self.subsection {
            Some(part) => format!("{}.{part}.{}", self.section, self.key),
            None => format!("{}.{}", self.section, self.key),
        }
    }

    /// Whether it starts nothing, now or later. Where the working tree is (`core.worktree`) depends on where that leads,
    /// so it is not harmless by itself.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        let listed = HARMLESS.iter().any(|(section, has_part, keys)| {
            *section == self.section
                && *has_part == self.subsection.is_some()
                && keys.iter().any(|key| *key == "*" || *key == self.key)
        });
        let value = self.value.as_deref().unwrap_or_default();
        let is_plain = match (self.section.as_str(), self.key.as_str()) {
            // `NAME::ADDRESS` starts the program `git-remote-NAME`.
            ("remote" | "submodule", "url" | "pushurl") => !value.contains("::") && !value.starts_with('-'),
            ("submodule", "update") => UPDATES.contains(&value),
            _ => true,
        };
        listed && is_plain
    }
}

/// Reads a file as git does.
pub fn parse_git_config(text: &[u8]) -> Result<Vec<GitSetting>, GitConfigError> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = Reader { text, at: 0, line: 1 };
    let mut settings = Vec::new();
    let mut section: Option<(String, Option<String>)> = None;
    loop {
        match reader.next() {
            None => return Ok(settings),
            Some(b'#' | b';') => reader.skip_line(),
            Some(byte) if is_space(byte) => {}
            Some(b'[') => section = Some(reader.section()?),
            Some(byte) if byte.is_ascii_alphabetic() => {
                let (key, value) = reader.setting(byte)?;
                // Git reads a name in front of any section; nothing uses it.
                let (name, part) = section.clone().unwrap_or_default();
                settings.push(GitSetting { section: name, subsection: part, key, value });
            }
            Some(_) => return Err(reader.error()),
        }
    }
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl Reader<'_> {
    /// The next byte. The end of a line is one byte, however it is written.
    fn next(&mut self) -> Option<u8> {
        let mut byte = *self.text.get(self.at)?;
        self.at += 1;
        if byte == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
            byte = b'\n';
        }
        if byte == b'\n' {
            self.line += 1;
        }
        Some(byte)
    }

    fn error(&self) -> GitConfigError {
        GitConfigError(self.line)
    }

    fn skip_line(&mut self) {
        while self.next().is_some_and(|byte| byte != b'\n') {}
    }

    /// What stands in brackets: `[core]`, `[remote "origin"]`, or the old `[remote.origin]`.
    fn section(&mut self) -> Result<(String, Option<String>), GitConfigError> {
        let mut name = Vec::new();
        loop {
            match self.next() {
                Some(b']') => break,
                Some(byte) if is_space(byte) => {
                    let part = self.subsection(byte)?;
                    return Ok((text(&name), Some(part)));
                }
                Some(byte) if is_key(byte) || byte == b'.' => name.push(byte.to_ascii_lowercase()),
                Some(_) | None => return Err(self.error()),
            }
        }
        let name = text(&name);
        Ok(match name.split_once('.') {
            Some((section, part)) => (section.to_owned(), Some(part.to_owned())),
            None => (name, None),
        })
    }

    fn subsection(&mut self, mut byte: u8) -> Result<String, GitConfigError> {
        while is_space(byte) {
            if byte == b'\n' {
                return Err(self.error());
            }
            byte = self.next().ok_or_else(|| self.error())?;
        }
        if byte != b'"' {
            return Err(self.error());
        }
        let mut part = Vec::new();
        loop {
            let byte = match self.next() {
                Some(b'"') => break,
                Some(b'\\') => self.next(),
                other => other,
            };
            part.push(byte.filter(|byte| *byte != b'\n').ok_or_else(|| self.error())?);
        }
        if self.next() == Some(b']') { Ok(text(&part)) } else { Err(self.error()) }
    }

    /// A name that begins with `first`, and its value.
    fn setting(&mut self, first: u8) -> Result<(String, Option<String>), GitConfigError> {
        let mut key = vec![first.to_ascii_lowercase()];
        let mut byte = self.next();
        while let Some(next) = byte.filter(|byte| is_key(*byte)) {
            key.push(next.to_ascii_lowercase());
            byte = self.next();
        }
        while matches!(byte, Some(b' ' | b'\t')) {
            byte = self.next();
        }
        match byte {
            None | Some(b'\n') => Ok((text(&key), None)),
            Some(b'=') => Ok((text(&key), Some(self.value()?))),
            Some(_) => Err(self.error()),
        }
    }

    fn value(&mut self) -> Result<String, GitConfigError> {
        let (mut value, mut length, mut quoted) = (Vec::new(), 0, false);
        loop {
            match self.next() {
                None | Some(b'\n') if quoted => return Err(self.error()),
                None | Some(b'\n') => break,
                // What stands in quotes is kept, and blanks at the end are not.
                Some(byte) if is_space(byte) && !quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                Some(b'#' | b';') if !quoted => {
                    self.skip_line();
                    break;
                }
                Some(b'\\') => match self.next() {
                    Some(b'\n') => continue,
                    Some(b't') => value.push(b'\t'),
                    Some(b'b') => value.push(8),
                    Some(b'n') => value.push(b'\n'),
                    Some(byte @ (b'\\' | b'"')) => value.push(byte),
                    Some(_) | None => return Err(self.error()),
                },
                Some(b'"') => quoted = !quoted,
                Some(byte) => value.push(byte),
            }
            length = value.len();
        }
        value.truncate(length);
        Ok(text(&value))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(config: &str) -> Vec<(String, Option<String>)> {
        let settings = parse_git_config(config.as_bytes()).expect("git reads it");
        settings.into_iter().map(|setting| (setting.name(), setting.value)).collect()
    }

    #[test]
    fn a_file_is_read_as_git_reads_it() {
        type Expected<'a> = &'a [(&'a str, Option<&'a str>)];
        let table: &[(&str, Expected<'_>)] = &[
            ("[core]\n\tbare = false\n", &[("core.bare", Some("false"))]),
            ("\u{feff}[Core]BARE\r\n", &[("core.bare", None)]),
            ("[remote \"My \\\"x\\\"\"] url=a b  # c\n", &[("remote.My \"x\".url", Some("a b"))]),
            ("[remote.Origin]\nurl = x", &[("remote.origin.url", Some("x"))]),
            ("[core] fsmonitor = \"a;b\" ; c\n", &[("core.fsmonitor", Some("a;b"))]),
            ("[core]\n# [x]\nfsmon\\\nx=1", &[]),
            (
                "[core]\npager = a \\\n  b\n[diff] external=c",
                &[("core.pager", Some("a   b")), ("diff.external", Some("c"))],
            ),
            ("[a]b=c[d]\n", &[("a.b", Some("c[d]"))]),
            ("[a]b=\" x \" y \n", &[("a.b", Some(" x  y"))]),
        ];
        for (config, expected) in table {
            if expected.is_empty() {
                assert!(parse_git_config(config.as_bytes()).is_err(), "{config:?}");
                continue;
            }
            let expected: Vec<_> =
                expected.iter().map(|(name, value)| ((*name).to_owned(), value.map(str::to_owned))).collect();
            assert_eq!(names(config), expected, "{config:?}");
        }
    }

    #[test]
    fn what_git_cannot_read_is_an_error() {
        for config in ["[core\n", "[core] a b", "[a]b=\"x\n", "[a]b=\\q", "=x", "[a \"b\nc\"]x", "[a\"b\"]\nx"] {
            assert!(parse_git_config(config.as_bytes()).is_err(), "{config:?}");
        }
    }

    #[test]
    fn only_what_starts_nothing_is_harmless() {
        let harmless = "[core]\nrepositoryformatversion=0\nfilemode\nbare=false\nlogallrefupdates=true\n\
            [remote \"origin\"]\nurl=https://example.com/x.git\nfetch=+refs/heads/*:refs/remotes/origin/*\n\
            [branch \"main\"]\nremote=origin\nmerge=refs/heads/main\n[user]\nname=a\nemail=b\n\
            [submodule \"x\"]\nurl=../x\nactive=true\nupdate=checkout\n[extensions]\nworktreeConfig=true\n";
        assert!(parse_git_config(harmless.as_bytes()).unwrap().iter().all(GitSetting::is_harmless));
        for setting in [
            "[core] fsmonitor=x",
            "[core] hooksPath=x",
            "[core] sshCommand=x",
            "[core] pager=x",
            "[core] editor=x",
            "[core] worktree=/",
            "[core] attributesFile=x",
            "[core] gitProxy=x",
            "[core] askPass=x",
            "[alias] st=!x",
            "[diff] external=x",
            "[diff \"x\"] textconv=x",
            "[diff \"x\"] command=x",
            "[filter \"x\"] clean=x",
            "[filter \"x\"] process=x",
            "[merge \"x\"] driver=x",
            "[include] path=x",
            "[includeIf \"gitdir:/\"] path=x",
            "[credential] helper=x",
            "[gpg] program=x",
            "[gpg \"ssh\"] program=x",
            "[remote \"o\"] uploadpack=x",
            "[remote \"o\"] vcs=x",
            "[remote \"o\"] url=ext::sh",
            "[submodule \"a\"] update=!x",
            "[url \"x\"] insteadOf=y",
            "[uploadpack] packObjectsHook=x",
            "[interactive] diffFilter=x",
            "[sequence] editor=x",
            "[pager] log=x",
            "[protocol \"ext\"] allow=always",
            "[browser \"x\"] cmd=x",
            "[sendemail] smtpServer=/x",
            "[trailer \"x\"] cmd=x",
        ] {
            let parsed = parse_git_config(setting.as_bytes()).unwrap();
            assert!(parsed.len() == 1 && !parsed[0].is_harmless(), "{setting}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse_git_config(&text);
        }

        #[test]
        fn no_text_hides_the_setting_behind_it(text in "[a-z=#; \t]{0,30}") {
            // Whatever a first line holds, a section and a setting on lines of their own are seen, or the file is an error.
            let config = format!("[a]\nb={text}\n[core]\nfsmonitor=x\n");
            if let Ok(settings) = parse_git_config(config.as_bytes()) {
                prop_assert!(settings.iter().any(|setting| setting.name() == "core.fsmonitor"));
            }
        }
    }
}
