//! Programs that go beyond the sandbox, and where to. One record each.

/// Where the hosts of a command are found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Finds {
    /// Nowhere in its text.
    Nothing,
    /// Its plain words are URLs.
    Urls,
    /// The first plain word is `[user@]host`, at this port.
    Login(u16),
    /// One of these options names the host, at this port.
    Option(&'static [&'static str], u16),
    /// A URL, or a remote of the repository.
    GitRemote,
}

/// What some programs want.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fact {
    pub(super) programs: &'static [&'static str],
    /// The subcommands that this is about; empty for all.
    pub(super) subcommands: &'static [&'static str],
    pub(super) hosts: &'static [&'static str],
    pub(super) finds: Finds,
    /// Options that have a value in the next word.
    pub(super) values: &'static [&'static str],
    pub(super) reads: &'static [&'static str],
    pub(super) sockets: &'static [&'static str],
}

impl Fact {
    pub(super) fn applies(&self, args: &[String]) -> bool {
        let asks_for_help = args.iter().any(|word| matches!(word.as_str(), "--help" | "--version"));
        if asks_for_help {
            return false;
        }
        let first = args.iter().find(|word| !word.starts_with('-'));
        self.subcommands.is_empty() || first.is_some_and(|word| self.subcommands.contains(&word.as_str()))
    }
}

const NONE: Fact =
    Fact { programs: &[], subcommands: &[], hosts: &[], finds: Finds::Nothing, values: &[], reads: &[], sockets: &[] };

const fn fixed(
    programs: &'static [&'static str],
    subcommands: &'static [&'static str],
    hosts: &'static [&'static str],
) -> Fact {
    Fact { programs, subcommands, hosts, ..NONE }
}

const fn urls(programs: &'static [&'static str], values: &'static [&'static str]) -> Fact {
    Fact { programs, finds: Finds::Urls, values, ..NONE }
}

const fn server(programs: &'static [&'static str], names: &'static [&'static str], port: u16) -> Fact {
    Fact { programs, finds: Finds::Option(names, port), ..NONE }
}

const NPM: &[&str] = &["registry.npmjs.org"];
const PYPI: &[&str] = &["pypi.org", "files.pythonhosted.org"];
const CRATES: &[&str] = &["index.crates.io", "static.crates.io", "crates.io"];
const CURL_VALUES: &[&str] = &[
    "-o",
    "--output",
    "-H",
    "--header",
    "-d",
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "-X",
    "--request",
    "-u",
    "--user",
    "-A",
    "--user-agent",
    "-e",
    "--referer",
    "-b",
    "--cookie",
    "-c",
    "--cookie-jar",
    "-T",
    "--upload-file",
    "-F",
    "--form",
    "-w",
    "--write-out",
    "-m",
    "--max-time",
    "--connect-timeout",
    "--retry",
    "-x",
    "--proxy",
    "--json",
    "-E",
    "--cert",
    "--key",
    "--cacert",
    "-K",
    "--config",
    "-D",
    "--dump-header",
    "-r",
    "--range",
    "--limit-rate",
];
const WGET_VALUES: &[&str] = &[
    "-O",
    "--output-document",
    "-o",
    "--output-file",
    "-P",
    "--directory-prefix",
    "-U",
    "--user-agent",
    "--header",
    "--post-data",
    "--user",
    "--password",
    "-t",
    "--tries",
    "-T",
    "--timeout",
    "-i",
    "--input-file",
];
const SSH_VALUES: &[&str] =
    &["-p", "-P", "-i", "-l", "-o", "-F", "-L", "-R", "-D", "-J", "-b", "-c", "-e", "-m", "-S", "-w", "-W", "--rsh"];
pub(super) const GIT_VALUES: &[&str] =
    &["-C", "-c", "--git-dir", "--work-tree", "-b", "--branch", "-o", "--origin", "--depth", "-m", "-j", "--jobs"];

/// Every program we know to go out.
#[rustfmt::skip]
pub(super) static FACTS: &[Fact] = &[
    urls(&["curl"], CURL_VALUES),
    urls(&["wget", "wget2", "aria2c"], WGET_VALUES),
    urls(&["http", "https", "xh", "xhs", "yt-dlp", "youtube-dl", "lynx", "w3m", "links", "httpx"], &[]),
    Fact { programs: &["git"], subcommands: &["clone", "fetch", "pull", "push", "ls-remote", "remote-update"], finds: Finds::GitRemote, values: GIT_VALUES, ..NONE },
    Fact { programs: &["ssh", "sftp", "mosh"], finds: Finds::Login(22), values: SSH_VALUES, reads: &["~/.ssh"], ..NONE },
    Fact { programs: &["scp", "rsync"], finds: Finds::Login(22), values: SSH_VALUES, reads: &["~/.ssh"], ..NONE },
    server(&["psql", "pg_dump", "pg_restore", "createdb", "dropdb"], &["--host", "-h"], 5432),
    server(&["mysql", "mysqldump", "mariadb"], &["--host", "-h"], 3306),
    server(&["redis-cli"], &["-h"], 6379),
    urls(&["mongosh", "mongo"], &[]),
    fixed(&["npm", "pnpm", "yarn", "bun"], &["install", "i", "ci", "add", "update", "up", "upgrade", "view", "info", "search", "publish", "audit", "outdated", "login", "create", "init", "exec", "dlx", "x"], NPM),
    fixed(&["npx", "bunx", "pnpx"], &[], NPM),
    fixed(&["pip", "pip3", "pipx"], &["install", "download", "index", "search", "wheel", "run", "upgrade"], PYPI),
    fixed(&["uv"], &["add", "sync", "lock", "tool", "pip"], PYPI),
    fixed(&["uvx"], &[], PYPI),
    fixed(&["poetry", "pdm"], &["install", "add", "update", "lock"], PYPI),
    fixed(&["cargo"], &["add", "install", "fetch", "update", "publish", "search", "login", "generate-lockfile", "binstall"], CRATES),
    fixed(&["rustup"], &["install", "update", "toolchain", "component", "target", "self"], &["static.rust-lang.org"]),
    fixed(&["go"], &["get", "install", "mod"], &["proxy.golang.org", "sum.golang.org"]),
    fixed(&["gem"], &["install", "update", "fetch", "search", "push"], &["rubygems.org", "index.rubygems.org"]),
    fixed(&["bundle", "bundler"], &["install", "update", "add"], &["rubygems.org", "index.rubygems.org"]),
    fixed(&["composer"], &["install", "update", "require", "create-project"], &["repo.packagist.org", "api.github.com"]),
    fixed(&["brew"], &["install", "update", "upgrade", "search", "info", "fetch"], &["formulae.brew.sh", "ghcr.io"]),
    fixed(&["apt", "apt-get"], &["install", "update", "upgrade", "download", "full-upgrade", "dist-upgrade"], &["deb.debian.org", "archive.ubuntu.com", "security.ubuntu.com"]),
    fixed(&["mvn", "gradle"], &[], &["repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org"]),
    fixed(&["dotnet"], &["restore", "add", "tool", "nuget"], &["api.nuget.org"]),
    fixed(&["gh"], &[], &["api.github.com", "github.com"]),
    fixed(&["glab"], &[], &["gitlab.com"]),
    fixed(&["aws"], &[], &["*.amazonaws.com"]),
    fixed(&["gcloud", "gsutil", "bq"], &[], &["*.googleapis.com"]),
    fixed(&["az"], &[], &["management.azure.com", "login.microsoftonline.com"]),
    fixed(&["heroku"], &[], &["api.heroku.com"]),
    fixed(&["vercel"], &[], &["api.vercel.com"]),
    fixed(&["huggingface-cli", "hf"], &[], &["huggingface.co"]),
    Fact { programs: &["docker", "docker-compose"], sockets: &["/var/run/docker.sock"], ..NONE },
    Fact { programs: &["kubectl", "helm", "k9s"], reads: &["~/.kube"], ..NONE },
    Fact { programs: &["systemctl", "journalctl", "loginctl"], sockets: &["/run/dbus/system_bus_socket"], ..NONE },
];

/// Programs whose arguments are text, also where they look like paths.
pub(super) const TEXT_PROGRAMS: &[&str] = &[
    "echo", "printf", "test", "[", "[[", "expr", "basename", "dirname", "realpath", "export", "alias", "trap", "true",
    "false", "curl", "wget", "http", "https", "xh", "sed", "awk", "gawk", "mawk", "jq", "yq", "docker", "kubectl",
    "ssh", "git", "which", "type", "command", "hash", "seq",
];

/// Programs that change the paths they are given.
pub(super) const WRITERS: &[&str] = &[
    "rm", "rmdir", "mkdir", "touch", "tee", "truncate", "chmod", "chown", "chgrp", "ln", "mv", "cp", "install",
    "shred", "mktemp", "patch", "unlink", "mkfifo", "rsync",
];

/// Of those, the ones that only read all but the last path.
pub(super) const COPIERS: &[&str] = &["cp", "install", "ln", "rsync"];
