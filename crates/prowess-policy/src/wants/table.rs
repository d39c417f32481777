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
    /// The first two plain words are a host and a port.
    HostAndPort,
    /// One of these options names the host, at this port, or at the one that one of the others names.
    Option(&'static [&'static str], u16, &'static [&'static str]),
    /// The settings of kubectl name it.
    Kubeconfig,
}

/// What some programs want.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fact {
    pub(super) programs: &'static [&'static str],
    /// The subcommands that this is about; empty for all. `*` stands for any word, `*@*` for one with a version.
    pub(super) subcommands: &'static [&'static str],
    /// Subcommands that stay on this machine all the same.
    pub(super) local: &'static [&'static str],
    pub(super) hosts: &'static [&'static str],
    pub(super) finds: Finds,
    /// Options that have a value in the next word.
    pub(super) values: &'static [&'static str],
    /// Options with which it stays on this machine.
    pub(super) stays: &'static [&'static str],
    pub(super) reads: &'static [&'static str],
    /// Where it keeps its login, if the operator has one.
    pub(super) logins: &'static [&'static str],
    /// Directories in which it keeps what it fetches.
    pub(super) writes: &'static [&'static str],
    pub(super) sockets: &'static [&'static str],
    /// Where it goes if its text names no host.
    pub(super) otherwise: &'static [&'static str],
    /// The same, for sockets.
    pub(super) own_sockets: &'static [&'static str],
}

impl Fact {
    pub(super) fn applies(&self, args: &[String]) -> bool {
        let stays = |word: &String| {
            matches!(word.as_str(), "--help" | "--version" | "--offline") || self.stays.contains(&word.as_str())
        };
        if args.iter().any(stays) {
            return false;
        }
        let words: Vec<&str> = super::hosts::plain(args, self.values).collect();
        let is_one = |list: &[&str]| list.iter().any(|one| matches_words(one, &words));
        (self.subcommands.is_empty() || is_one(self.subcommands)) && !is_one(self.local)
    }
}

/// Whether the words of a command begin like `pattern`; the empty pattern stands for no words at all.
fn matches_words(pattern: &str, words: &[&str]) -> bool {
    if pattern.is_empty() {
        return words.is_empty();
    }
    pattern.split(' ').enumerate().all(|(at, wanted)| {
        words.get(at).is_some_and(|word| wanted == "*" || *word == wanted || wanted == "*@*" && word.contains('@'))
    })
}

const NONE: Fact = Fact {
    programs: &[],
    subcommands: &[],
    local: &[],
    hosts: &[],
    finds: Finds::Nothing,
    values: &[],
    stays: &[],
    reads: &[],
    logins: &[],
    writes: &[],
    sockets: &[],
    otherwise: &[],
    own_sockets: &[],
};

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

const fn server(
    programs: &'static [&'static str],
    names: &'static [&'static str],
    port: u16,
    port_names: &'static [&'static str],
) -> Fact {
    Fact { programs, finds: Finds::Option(names, port, port_names), ..NONE }
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

const NPM_VALUES: &[&str] = &["--prefix", "-C", "--dir", "--cwd", "-w", "--workspace", "--filter", "-F"];
const GO: &[&str] = &["proxy.golang.org", "sum.golang.org"];
const RUBYGEMS: &[&str] = &["rubygems.org", "index.rubygems.org"];
const MAVEN_HOSTS: &[&str] = &["repo.maven.apache.org", "repo1.maven.org"];
const DBUS: &[&str] = &["/run/dbus/system_bus_socket"];

/// Every program we know to go out.
#[rustfmt::skip]
pub(super) static FACTS: &[Fact] = &[
    urls(&["curl"], CURL_VALUES),
    urls(&["wget", "wget2", "aria2c"], WGET_VALUES),
    urls(&["http", "https", "xh", "xhs", "yt-dlp", "youtube-dl", "lynx", "w3m", "links", "httpx"], &[]),
    Fact { programs: &["ssh", "sftp", "mosh", "ssh-copy-id"], finds: Finds::Login(22), values: SSH_VALUES, reads: &["~/.ssh"], ..NONE },
    Fact { programs: &["scp", "rsync"], finds: Finds::RemotePath(22), values: SSH_VALUES, reads: &["~/.ssh"], ..NONE },
    Fact { programs: &["nc", "ncat", "netcat", "telnet"], finds: Finds::HostAndPort, values: &["-w", "-p", "-s", "-i", "-x", "-X"], stays: &["-l", "-lp", "-lk"], ..NONE },
    Fact { own_sockets: &["/var/run/postgresql/.s.PGSQL.5432"], logins: &["~/.pgpass"], ..server(&["psql", "pg_dump", "pg_restore", "createdb", "dropdb"], &["--host", "-h"], 5432, &["--port", "-p"]) },
    Fact { own_sockets: &["/var/run/mysqld/mysqld.sock"], logins: &["~/.my.cnf"], ..server(&["mysql", "mysqldump", "mariadb"], &["--host", "-h"], 3306, &["--port", "-P"]) },
    Fact { otherwise: &["127.0.0.1:6379"], ..server(&["redis-cli"], &["-h"], 6379, &["-p"]) },
    Fact { otherwise: &["127.0.0.1:27017"], ..urls(&["mongosh", "mongo"], &["--eval", "--file"]) },
    server(&["openssl"], &["-connect"], 443, &[]),
    Fact { values: NPM_VALUES, ..fixed(&["yarn"], &["", "install", "add", "up", "upgrade", "dlx", "create", "npm", "outdated", "audit", "info", "publish", "global add", "workspace * add", "set version"], NPM) },
    Fact { values: NPM_VALUES, stays: &["--no"], ..fixed(&["npm"], &["install", "i", "in", "ci", "clean-install", "install-test", "it", "add", "update", "up", "upgrade", "view", "info", "show", "search", "publish", "unpublish", "audit", "outdated", "login", "logout", "whoami", "create", "init *", "exec", "x", "ping", "dist-tag", "owner", "deprecate", "doctor"], NPM) },
    Fact { values: NPM_VALUES, ..fixed(&["pnpm"], &["install", "i", "add", "update", "up", "upgrade", "view", "info", "search", "publish", "audit", "outdated", "login", "create", "dlx", "fetch", "import"], NPM) },
    Fact { values: NPM_VALUES, ..fixed(&["bun"], &["install", "i", "add", "update", "create", "x", "outdated", "publish", "audit", "info"], NPM) },
    Fact { stays: &["--no-install", "--no"], ..fixed(&["npx", "bunx", "pnpx"], &[], NPM) },
    Fact { stays: &["--no-index"], ..fixed(&["pip", "pip3"], &["install", "download", "index", "search", "wheel"], PYPI) },
    fixed(&["pipx"], &["run"], PYPI),
    Fact { writes: &["~/.local/share/pipx", "~/.local/bin"], ..fixed(&["pipx"], &["install", "upgrade", "upgrade-all", "inject", "reinstall"], PYPI) },
    Fact { writes: &["~/.local/share/uv", "~/.local/bin"], ..fixed(&["uv"], &["tool install", "tool upgrade"], PYPI) },
    fixed(&["uv"], &["add", "sync", "lock", "tool run", "pip install", "pip sync", "pip compile"], PYPI),
    Fact { writes: &["~/.local/share/uv", "~/.local/bin"], ..fixed(&["uv"], &["python install", "self update"], &["github.com", "release-assets.githubusercontent.com"]) },
    fixed(&["uvx"], &[], PYPI),
    fixed(&["poetry", "pdm", "pipenv"], &["install", "add", "update", "lock", "sync"], PYPI),
    Fact { stays: &["--path"], writes: &["~/.cargo"], ..fixed(&["cargo"], &["install", "binstall"], CRATES) },
    Fact { programs: &["cargo"], subcommands: &["install"], writes: &["~/.cargo"], ..NONE },
    Fact { writes: &["~/.cargo/registry"], ..fixed(&["cargo"], &["add", "fetch", "update", "generate-lockfile", "info", "vendor"], CRATES) },
    fixed(&["cargo"], &["publish", "search", "login", "owner", "yank"], CRATES),
    Fact { writes: &["~/.rustup"], ..fixed(&["rustup"], &["install", "update", "toolchain install", "toolchain add", "component add", "target add", "self update", "check"], &["static.rust-lang.org"]) },
    Fact { writes: &["~/go"], ..fixed(&["go"], &["install *@*"], GO) },
    Fact { programs: &["go"], subcommands: &["install"], writes: &["~/go/bin"], ..NONE },
    Fact { writes: &["~/go/pkg/mod"], ..fixed(&["go"], &["get", "run *@*", "mod download", "mod tidy", "mod vendor", "mod graph", "mod why", "work sync"], GO) },
    fixed(&["gem"], &["install", "update", "fetch", "search", "push", "outdated"], RUBYGEMS),
    fixed(&["bundle", "bundler"], &["", "install", "update", "add", "outdated"], RUBYGEMS),
    fixed(&["composer"], &["install", "update", "require", "create-project", "outdated", "global require"], &["repo.packagist.org", "api.github.com"]),
    fixed(&["brew"], &["install", "reinstall", "update", "upgrade", "search", "info", "fetch", "tap", "outdated"], &["formulae.brew.sh", "ghcr.io"]),
    fixed(&["apt", "apt-get"], &["install", "update", "upgrade", "download", "full-upgrade", "dist-upgrade", "source", "build-dep"], &["deb.debian.org", "archive.ubuntu.com", "security.ubuntu.com"]),
    Fact { stays: &["-o"], ..fixed(&["mvn", "mvnw"], &[], MAVEN_HOSTS) },
    fixed(&["gradle", "gradlew"], &[], &["repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org"]),
    fixed(&["dotnet"], &["restore", "add package", "add * package", "tool install", "tool update", "tool restore", "nuget push", "workload install"], &["api.nuget.org"]),
    Fact { local: &["version", "help", "completion", "config", "alias"], logins: &["~/.config/gh"], ..fixed(&["gh"], &[], &["api.github.com", "github.com"]) },
    Fact { local: &["version", "help", "completion", "config", "alias"], logins: &["~/.config/glab-cli"], ..fixed(&["glab"], &[], &["gitlab.com"]) },
    Fact { local: &["help"], logins: &["~/.aws"], ..fixed(&["aws"], &[], &["*.amazonaws.com"]) },
    Fact { local: &["help", "version", "info"], logins: &["~/.config/gcloud"], ..fixed(&["gcloud", "gsutil", "bq"], &[], &["*.googleapis.com"]) },
    Fact { local: &["version"], logins: &["~/.azure"], ..fixed(&["az"], &[], &["management.azure.com", "login.microsoftonline.com"]) },
    fixed(&["heroku"], &[], &["api.heroku.com"]),
    fixed(&["vercel"], &[], &["api.vercel.com"]),
    fixed(&["huggingface-cli", "hf"], &[], &["huggingface.co"]),
    fixed(&["netlify"], &[], &["api.netlify.com"]),
    fixed(&["fly", "flyctl"], &[], &["api.fly.io", "api.machines.dev"]),
    fixed(&["firebase"], &[], &["*.googleapis.com"]),
    fixed(&["wrangler"], &["publish", "deploy", "login", "tail", "secret", "kv", "d1", "r2", "pages"], &["api.cloudflare.com"]),
    fixed(&["twine"], &["upload"], &["upload.pypi.org"]),
    fixed(&["terraform", "tofu"], &["init", "apply", "plan", "destroy", "login", "providers lock", "providers mirror", "get"], &["registry.terraform.io", "releases.hashicorp.com"]),
    fixed(&["pulumi"], &[], &["api.pulumi.com"]),
    fixed(&["conda", "mamba", "micromamba"], &["install", "create", "update", "search", "upgrade", "env create", "env update"], &["conda.anaconda.org", "repo.anaconda.com"]),
    fixed(&["pyenv"], &["install", "update"], &["www.python.org"]),
    fixed(&["nvm", "fnm", "volta", "n"], &["install", "use", "ls-remote"], &["nodejs.org"]),
    fixed(&["rbenv", "ruby-build"], &["install"], &["cache.ruby-lang.org"]),
    fixed(&["flutter", "dart"], &["pub get", "pub add", "pub upgrade", "pub outdated", "pub publish", "upgrade", "create"], &["pub.dev", "storage.googleapis.com"]),
    fixed(&["swift"], &["package resolve", "package update"], &["github.com"]),
    fixed(&["mix"], &["deps.get", "deps.update", "local.hex", "archive.install"], &["hex.pm", "repo.hex.pm"]),
    fixed(&["cabal", "stack"], &["update", "install", "setup"], &["hackage.haskell.org"]),
    fixed(&["ollama"], &["run", "pull", "push", "list", "ls", "ps", "show", "rm", "cp", "create", "stop"], &["127.0.0.1:11434"]),
    fixed(&["apk"], &["add", "update", "upgrade", "fetch"], &["dl-cdn.alpinelinux.org"]),
    fixed(&["dnf", "yum"], &["install", "update", "upgrade", "download"], &["mirrors.fedoraproject.org"]),
    fixed(&["pacman"], &["-S", "-Sy", "-Syu"], &["geo.mirror.pkgbuild.com"]),
    Fact { programs: &["ansible", "ansible-playbook"], reads: &["~/.ssh"], ..NONE },
    Fact { programs: &["crontab"], reads: &["/var/spool/cron"], ..NONE },
    Fact { programs: &["python", "python3", "node", "ruby", "perl", "php", "deno", "bun", "osascript"], finds: Finds::UrlsInCode, ..NONE },
    Fact { programs: &["docker", "docker-compose"], local: &["compose config", "compose version", "config", "completion", "context", "buildx version"], sockets: &["/var/run/docker.sock"], ..NONE },
    Fact { programs: &["kubectl", "k9s", "kubectx", "kubens", "stern"], local: &["kustomize", "completion"], stays: &["--client", "--dry-run=client"], finds: Finds::Kubeconfig, reads: &["~/.kube"], ..NONE },
    Fact { programs: &["helm"], local: &["template", "lint", "create", "package", "version", "completion", "show", "dependency list"], finds: Finds::Kubeconfig, reads: &["~/.kube"], ..NONE },
    Fact { programs: &["systemctl", "service", "journalctl", "loginctl", "hostnamectl", "timedatectl", "localectl"], sockets: DBUS, ..NONE },
];

/// Programs that start a package's program, and fetch it only if it is not installed.
pub(super) const PACKAGE_LAUNCHERS: &[&str] = &["npx", "bunx", "pnpx"];

/// Programs that need what no answer can give, and why.
#[rustfmt::skip]
pub(super) const NEVER: &[(&[&str], &str)] = &[
    (&["sudo", "su", "doas", "pkexec", "runuser"], "a command in the sandbox cannot become another user"),
    (&["mount", "umount", "insmod", "modprobe", "reboot", "shutdown"], "a command in the sandbox cannot change the system"),
    (&["arping", "mtr", "nmap", "ping", "ping6", "tracepath", "traceroute"], "it sends packets of its own making, and a command in the sandbox cannot"),
    (&["podman", "buildah"], "it makes containers of its own, and a command in the sandbox cannot"),
];

/// Programs that use other protocols than the proxy knows, so that a lease for a host does not help them.
pub(super) const NEED_NETWORK: &[&str] = &["dig", "drill", "host", "nslookup", "whois"];

/// Programs that only look at the directory they run in.
#[rustfmt::skip]
pub(super) const LOOKERS: &[&str] = &[
    "awk", "basename", "bat", "cat", "cd", "cut", "diff", "dirname", "du", "echo", "eza", "fd", "file", "find", "grep",
    "head", "jq", "less", "ls", "md5sum", "more", "nl", "printf", "pushd", "pwd", "readlink", "realpath", "rg", "sed",
    "sha256sum", "sort", "stat", "tac", "tail", "test", "[", "tr", "tree", "uniq", "wc", "which", "xxd", "yq",
];
