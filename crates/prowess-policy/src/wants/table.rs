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
    /// The first plain word with a colon is `[user@]host:path`, at this port.
    RemotePath(u16),
    /// URLs in the code that it is given.
    UrlsInCode,
    /// One of these options names the host, at this port.
    Option(&'static [&'static str], u16),
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
        let stays = args.iter().any(|word| matches!(word.as_str(), "--help" | "--version" | "--offline"));
        if stays || self.programs == MAVEN && args.iter().any(|word| word == "-o") {
            return false;
        }
        let first = super::hosts::plain(args, self.values).next().unwrap_or_default();
        self.subcommands.is_empty() || self.subcommands.contains(&first)
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

const MAVEN: &[&str] = &["mvn", "mvnw"];
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

/// What makes `git config` change something, and what makes it read only.
pub(super) const GIT_CONFIG_CHANGES: &[&str] = &[
    "--add",
    "--unset",
    "--unset-all",
    "--replace-all",
    "--rename-section",
    "--remove-section",
    "-e",
    "--edit",
    "set",
    "unset",
    "rename-section",
    "remove-section",
    "edit",
];
pub(super) const GIT_CONFIG_READS: &[&str] =
    &["--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "get", "list"];

/// Commands of git that only look.
#[rustfmt::skip]
pub(super) const GIT_READS: &[&str] = &[
    "blame", "cat-file", "count-objects", "describe", "diff", "diff-tree", "for-each-ref", "grep", "log", "ls-files",
    "ls-tree", "merge-base", "name-rev", "reflog", "rev-list", "rev-parse", "shortlog", "show", "show-ref", "status",
    "whatchanged",
];

/// What `git remote` does to the configuration.
pub(super) const GIT_REMOTE_CHANGES: &[&str] = &["add", "remove", "rm", "rename", "set-url", "set-branches"];

/// Every program we know to go out.
#[rustfmt::skip]
pub(super) static FACTS: &[Fact] = &[
    urls(&["curl"], CURL_VALUES),
    urls(&["wget", "wget2", "aria2c"], WGET_VALUES),
    urls(&["http", "https", "xh", "xhs", "yt-dlp", "youtube-dl", "lynx", "w3m", "links", "httpx"], &[]),
    Fact { programs: &["ssh", "sftp", "mosh"], finds: Finds::Login(22), values: SSH_VALUES, reads: &["~/.ssh"], ..NONE },
    Fact { programs: &["scp", "rsync"], finds: Finds::RemotePath(22), values: SSH_VALUES, reads: &["~/.ssh"], ..NONE },
    server(&["psql", "pg_dump", "pg_restore", "createdb", "dropdb"], &["--host", "-h"], 5432),
    server(&["mysql", "mysqldump", "mariadb"], &["--host", "-h"], 3306),
    server(&["redis-cli"], &["-h"], 6379),
    urls(&["mongosh", "mongo"], &[]),
    fixed(&["yarn"], &["", "install", "add", "up", "upgrade", "dlx", "create", "npm"], NPM),
    fixed(&["npm", "pnpm", "bun"], &["install", "i", "ci", "add", "update", "up", "upgrade", "view", "info", "search", "publish", "audit", "outdated", "login", "create", "init", "exec", "dlx", "x"], NPM),
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
    fixed(MAVEN, &[], &["repo.maven.apache.org", "repo1.maven.org"]),
    fixed(&["gradle", "gradlew"], &[], &["repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org"]),
    fixed(&["dotnet"], &["restore", "add", "tool", "nuget"], &["api.nuget.org"]),
    fixed(&["gh"], &[], &["api.github.com", "github.com"]),
    fixed(&["glab"], &[], &["gitlab.com"]),
    fixed(&["aws"], &[], &["*.amazonaws.com"]),
    fixed(&["gcloud", "gsutil", "bq"], &[], &["*.googleapis.com"]),
    fixed(&["az"], &[], &["management.azure.com", "login.microsoftonline.com"]),
    fixed(&["heroku"], &[], &["api.heroku.com"]),
    fixed(&["vercel"], &[], &["api.vercel.com"]),
    fixed(&["huggingface-cli", "hf"], &[], &["huggingface.co"]),
    fixed(&["netlify"], &[], &["api.netlify.com"]),
    fixed(&["fly", "flyctl"], &[], &["api.fly.io", "api.machines.dev"]),
    fixed(&["firebase"], &[], &["*.googleapis.com"]),
    fixed(&["wrangler"], &["publish", "deploy", "login", "tail", "secret", "kv", "d1", "r2", "pages"], &["api.cloudflare.com"]),
    fixed(&["twine"], &["upload"], &["upload.pypi.org"]),
    fixed(&["terraform", "tofu"], &["init", "apply", "plan", "destroy", "login", "providers", "get"], &["registry.terraform.io", "releases.hashicorp.com"]),
    fixed(&["pulumi"], &[], &["api.pulumi.com"]),
    fixed(&["conda", "mamba", "micromamba"], &["install", "create", "update", "search", "upgrade"], &["conda.anaconda.org", "repo.anaconda.com"]),
    fixed(&["pyenv"], &["install", "update"], &["www.python.org"]),
    fixed(&["nvm", "fnm", "volta", "n"], &["install", "use", "ls-remote"], &["nodejs.org"]),
    fixed(&["rbenv", "ruby-build"], &["install"], &["cache.ruby-lang.org"]),
    fixed(&["flutter", "dart"], &["pub", "upgrade", "create"], &["pub.dev", "storage.googleapis.com"]),
    fixed(&["swift"], &["package"], &["github.com"]),
    fixed(&["mix"], &["deps.get", "deps.update", "local.hex", "archive.install"], &["hex.pm", "repo.hex.pm"]),
    fixed(&["cabal", "stack"], &["update", "install", "setup"], &["hackage.haskell.org"]),
    fixed(&["ollama"], &["run", "pull", "push"], &["registry.ollama.ai"]),
    fixed(&["apk"], &["add", "update", "upgrade", "fetch"], &["dl-cdn.alpinelinux.org"]),
    fixed(&["dnf", "yum"], &["install", "update", "upgrade", "download"], &["mirrors.fedoraproject.org"]),
    fixed(&["pacman"], &["-S", "-Sy", "-Syu"], &["geo.mirror.pkgbuild.com"]),
    Fact { programs: &["crontab"], reads: &["/var/spool/cron"], ..NONE },
    Fact { programs: &["python", "python3", "node", "ruby", "perl", "php", "deno", "bun", "osascript"], finds: Finds::UrlsInCode, ..NONE },
    Fact { programs: &["docker", "docker-compose"], sockets: &["/var/run/docker.sock"], ..NONE },
    Fact { programs: &["kubectl", "helm", "k9s"], reads: &["~/.kube"], ..NONE },
    Fact { programs: &["systemctl", "journalctl", "loginctl"], sockets: &["/run/dbus/system_bus_socket"], ..NONE },
];

/// Programs that start a package's program, and fetch it only if it is not installed.
pub(super) const PACKAGE_LAUNCHERS: &[&str] = &["npx", "bunx", "pnpx"];

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
