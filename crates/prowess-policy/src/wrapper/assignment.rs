//! `NAME=value` in front of a command: can this variable steer what the command does?
//!
//! A list of bad names is never complete. So a name must look like nothing that steers, *and* its value must be so
//! plain that it names no file, no address and no command line. What people set to look at output is listed by name.

/// Variables about language, colour and size of the output.
const PRESENTATION: &[&str] = &[
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LINES",
    "NO_COLOR",
    "TERM",
    "TZ",
];

/// Variables whose family is refused, but which take a word or a number and steer nothing else.
const HARMLESS: &[&str] =
    &["GIT_TERMINAL_PROMPT", "NODE_ENV", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "RUST_BACKTRACE", "RUST_LOG"];

/// Names that steer, and are not caught by the rules below.
const REFUSED: &[&str] = &[
    "_",
    "ALL_PROXY",
    "AR",
    "AS",
    "BROWSER",
    "CC",
    "CDPATH",
    "CPP",
    "CXX",
    "CXXCPP",
    "DISPLAY",
    "ENV",
    "EUID",
    "EXINIT",
    "FCEDIT",
    "FIGNORE",
    "FUNCNEST",
    "GLOBIGNORE",
    "HGMERGE",
    "HISTFILE",
    "HOSTALIASES",
    "HOSTNAME",
    "IFS",
    "KUBECONFIG",
    "LD",
    "LESS",
    "LEX",
    "LESSCLOSE",
    "LESSOPEN",
    "LOGNAME",
    "MAIL",
    "MAKE",
    "MAKEFILES",
    "MANPATH",
    "MORE",
    "NM",
    "NO_PROXY",
    "NOTIFY_SOCKET",
    "NULLCMD",
    "OBJCOPY",
    "OLDPWD",
    "OPTIND",
    "PATHEXT",
    "POSIXLY_CORRECT",
    "PPID",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "PWD",
    "RANLIB",
    "READNULLCMD",
    "SHLVL",
    "STRIP",
    "SYSTEMROOT",
    "TERMCAP",
    "TMP",
    "TEMP",
    "UID",
    "USER",
    "USERNAME",
    "WINDIR",
    "YACC",
    "ZDOTDIR",
    "ANSIBLE_LIBRARY",
    "ANSIBLE_MODULE_UTILS",
    "ANSIBLE_REMOTE_TEMP",
    "BASHOPTS",
    "CLASSPATH",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "SVN_SSH",
    "BZR_SSH",
    "DENO_DIR",
];

/// Families of variables that belong to a program, a loader or a service.
const REFUSED_PREFIXES: &[&str] = &[
    "ANDROID_",
    "ANSIBLE_",
    "ANT_",
    "APT_",
    "AWS_",
    "AZURE_",
    "BASH",
    "BUNDLE_",
    "BUN_",
    "BZR_",
    "CARGO",
    "CATALINA_",
    "CGO_",
    "CLANG_",
    "CMAKE_",
    "COMPILER_",
    "COMPOSER_",
    "COMP_",
    "CONAN_",
    "CONDA_",
    "CORECLR_",
    "CURL_",
    "DBUS_",
    "DENO_",
    "DOCKER_",
    "DOTNET_",
    "DYLD_",
    "ELECTRON_",
    "ELIXIR_",
    "EMACS",
    "ERL_",
    "GCC_",
    "GCONV",
    "GDB",
    "GEM_",
    "GH_",
    "GIT",
    "GLIBC_",
    "GO",
    "GPG_",
    "GRADLE_",
    "GTK_",
    "GVIM",
    "HELM_",
    "HG",
    "HISTORY",
    "HTTP",
    "JAVA",
    "JDK_",
    "JULIA_",
    "KSH_",
    "KUBE_",
    "LD_",
    "LIBGL_",
    "LUA",
    "MALLOC_",
    "MAVEN_",
    "MFLAGS",
    "MYSQL_",
    "NIX_",
    "NODE_",
    "NPM_",
    "OBJC_",
    "OPENSSL",
    "PACKER_",
    "PERL",
    "PG",
    "PHP",
    "PIP",
    "PKG_",
    "POETRY_",
    "PUPPET_",
    "PY",
    "QT_",
    "R_",
    "RAILS_",
    "RBENV_",
    "READLINE_",
    "RIPGREP_",
    "RUBY",
    "RUST",
    "SBT_",
    "SSH_",
    "SSL",
    "SUDO_",
    "SVN_",
    "SYSTEMD_",
    "TAR_",
    "TCL",
    "TERMINFO",
    "TF_",
    "UV_",
    "VAGRANT_",
    "VIM",
    "VIRTUAL_",
    "WGET",
    "XDG_",
    "XAUTH",
    "YARN_",
    "ZSH",
    "_",
];

/// Parts of a name that speak of programs, files, addresses or secrets, anywhere in it.
const REFUSED_PARTS: &[&str] = &[
    "ASKPASS",
    "AUTH",
    "BROWSER",
    "COMMAND",
    "CONFIG",
    "CREDENTIAL",
    "DRIVER",
    "EDITOR",
    "FLAGS",
    "FUNC",
    "HELPER",
    "HOME",
    "HOOK",
    "INCLUDE",
    "LINKER",
    "LOADER",
    "MODULE",
    "OPTIONS",
    "OPTS",
    "PAGER",
    "PASSWORD",
    "PASSWD",
    "PATH",
    "PLUGIN",
    "PRELOAD",
    "PROFILE",
    "PROGRAM",
    "PROXY",
    "REGISTRY",
    "RUNNER",
    "SCRIPT",
    "SECRET",
    "SHELL",
    "STARTUP",
    "TOKEN",
    "VISUAL",
    "WRAPPER",
];

/// The same where only a whole part between underscores counts.
const REFUSED_SEGMENTS: &[&str] = &[
    "BIN", "CA", "CERT", "CERTS", "CMD", "CONF", "DIR", "EXE", "EXEC", "FILE", "HOST", "INIT", "KEY", "LIB", "LIBS",
    "OPT", "PRE", "RC", "SERVER", "SOCK", "SOCKET", "TOOL", "TOOLS", "URI", "URL",
];

/// Variables that name a pager; showing everything at once is what a script wants.
const PAGERS: &[&str] = &["GIT_PAGER", "MANPAGER", "PAGER", "SYSTEMD_PAGER"];

/// The longest value that still counts as a plain word.
const MAX_VALUE: usize = 64;

/// Whether setting `name` for one command changes nothing but how its output looks, as far as a name and a value can
/// tell. A value that is not known is never harmless.
#[must_use]
pub fn is_harmless_assignment(name: &str, value: Option<&str>) -> bool {
    let Some(value) = value else { return false };
    if !is_identifier(name) || value.len() > MAX_VALUE {
        return false;
    }
    // Some systems and many programs do not mind the case.
    let name = name.to_ascii_uppercase();
    match name.as_str() {
        "TZ" => is_zone(value),
        pager if PAGERS.contains(&pager) => matches!(value, "" | "cat"),
        known if PRESENTATION.contains(&known) || HARMLESS.contains(&known) || known.starts_with("LC_") => {
            is_plain(value)
        }
        // What begins with a dash or an at sign may be an option or a file after all.
        unknown => !steers(unknown) && is_plain(value) && !value.starts_with(['-', '+', '@']),
    }
}

fn is_identifier(name: &str) -> bool {
    name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn steers(name: &str) -> bool {
    REFUSED.contains(&name)
        || REFUSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || REFUSED_PARTS.iter().any(|part| name.contains(part))
        || name.split('_').any(|segment| REFUSED_SEGMENTS.contains(&segment))
        // `MYVIMRC`, `HGRCPATH`, `WGETRC`, `MAKEFLAGS` and whatever comes next.
        || ["RC", "DIR", "FILE", "LIB", "CMD", "CONF", "ENV", "EXE", "OPT"].iter().any(|end| name.ends_with(end))
}

fn is_plain(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.,:@%+-".contains(&byte))
}

/// A time zone by name or rule, never a file of the caller's choice.
fn is_zone(value: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part != "." && part != ".." && is_plain(part);
    value.is_empty() || (!value.starts_with(':') && value.split('/').all(is_part))
}
