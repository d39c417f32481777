//! Names of variables: which of them steer a process, and which hold a credential?
//!
//! *Hijackers* change which code a child runs, what it trusts, where its traffic goes, or how a shell reads the command
//! it is given: nobody may set them for a run. *Credentials* are fine for the skill that says it needs them, and for no
//! other. Names are compared without regard to case.

/// Names that steer a process, or the shell that reads a judged command.
#[rustfmt::skip]
const HIJACKERS: &[&str] = &[
    "ALL_PROXY", "ALSA_CONFIG_PATH", "ANSIBLE_CALLBACK_PLUGINS", "ANSIBLE_COLLECTIONS_PATH", "ANSIBLE_CONFIG",
    "ANSIBLE_CONNECTION_PLUGINS", "ANSIBLE_FILTER_PLUGINS", "ANSIBLE_INVENTORY_PLUGINS", "ANSIBLE_LIBRARY",
    "ANSIBLE_LOOKUP_PLUGINS", "ANSIBLE_MODULE_UTILS", "ANSIBLE_REMOTE_TEMP", "ANSIBLE_ROLES_PATH",
    "ANSIBLE_STRATEGY_PLUGINS", "ANT_OPTS", "AR", "AS", "AWKLIBPATH", "AWKPATH", "AWS_CONFIG_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_SHARED_CREDENTIALS_FILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE", "AZURE_AUTH_LOCATION", "BASHOPTS", "BASH_COMPAT", "BASH_ENV",
    "BASH_LOADABLES_PATH", "BASH_XTRACEFD", "BAT_CONFIG_PATH", "BAT_PAGER", "BROWSER", "BUNDLE_GEMFILE",
    "BUN_CONFIG_REGISTRY", "BUN_OPTIONS", "BZR_EDITOR", "BZR_PLUGIN_PATH", "BZR_SSH", "CAML_LD_LIBRARY_PATH",
    "CARGO_BUILD_RUSTC", "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER", "CARGO_BUILD_RUSTDOC",
    "CARGO_HOME", "CATALINA_OPTS", "CC", "CDPATH", "CFLAGS", "CGO_CFLAGS", "CGO_LDFLAGS", "CLASSPATH",
    "CMAKE_CXX_COMPILER", "CMAKE_C_COMPILER", "CMAKE_TOOLCHAIN_FILE", "COMPOSER_HOME", "COMSPEC", "CONDA_DEFAULT_ENV",
    "CONDA_PREFIX", "CONFIG_SHELL", "CONFIG_SITE", "CORECLR_ENABLE_PROFILING", "CORECLR_PROFILER",
    "CORECLR_PROFILER_PATH", "COR_ENABLE_PROFILING", "COR_PROFILER", "COR_PROFILER_PATH", "CPATH",
    "CPLUS_INCLUDE_PATH", "CPP", "CPPFLAGS", "CURL_CA_BUNDLE", "CURL_HOME", "CVSEDITOR", "CVS_RSH", "CXX", "CXXCPP",
    "CXXFLAGS", "C_INCLUDE_PATH", "DELTA_PAGER", "DENO_CERT", "DENO_CONFIG", "DENO_DIR", "DOCKER_CERT_PATH",
    "DOCKER_CONFIG", "DOCKER_CONTEXT", "DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOTNET_ADDITIONAL_DEPS", "DOTNET_ROOT",
    "DOTNET_STARTUP_HOOKS", "EDITOR", "ELIXIR_ERL_OPTIONS", "EMACSLOADPATH", "ENV", "ERL_AFLAGS", "ERL_FLAGS",
    "ERL_ZFLAGS", "EXECIGNORE", "EXINIT", "FCEDIT", "FPATH", "FTP_PROXY", "FZF_DEFAULT_COMMAND", "FZF_DEFAULT_OPTS",
    "GCONV_PATH", "GDK_PIXBUF_MODULE_FILE", "GEM_HOME", "GEM_PATH", "GH_BROWSER", "GH_CONFIG_DIR", "GH_EDITOR",
    "GH_PAGER", "GIO_EXTRA_MODULES", "GIO_MODULE_DIR", "GIT_ALLOW_PROTOCOL", "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ASKPASS", "GIT_ATTR_SOURCE", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_DIR", "GIT_EDITOR", "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF", "GIT_HOOK_PATH", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY", "GIT_PAGER",
    "GIT_PROTOCOL_FROM_USER", "GIT_PROXY_COMMAND", "GIT_QUARANTINE_PATH", "GIT_REDIRECT_STDERR", "GIT_REDIRECT_STDIN",
    "GIT_REDIRECT_STDOUT", "GIT_REPLACE_REF_BASE", "GIT_SEQUENCE_EDITOR", "GIT_SHALLOW_FILE", "GIT_SSH",
    "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_NO_VERIFY", "GIT_TEMPLATE_DIR", "GIT_TRACE",
    "GIT_WORK_TREE", "GLIBC_TUNABLES", "GLOBIGNORE", "GMON_OUT_PREFIX", "GNUMAKEFLAGS", "GNUPGHOME", "GOENV",
    "GOFLAGS", "GONOPROXY", "GONOSUMCHECK", "GONOSUMDB", "GOPATH", "GOPRIVATE", "GOPROXY", "GRADLE_HOME",
    "GRADLE_OPTS", "GRADLE_USER_HOME", "GREP_OPTIONS", "GST_PLUGIN_PATH", "GST_PLUGIN_SYSTEM_PATH", "GTK_MODULES",
    "GTK_PATH", "GUILE_LOAD_PATH", "GVIMINIT", "HELM_HOME", "HELM_PLUGINS", "HGEDITOR", "HGMERGE", "HGRCPATH",
    "HISTFILE", "HOME", "HOSTALIASES", "HTTPS_PROXY", "HTTP_PROXY", "IFS", "INPUTRC", "JAVA_HOME", "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "JULIA_DEPOT_PATH", "JULIA_EDITOR", "JULIA_LOAD_PATH", "JULIA_PROJECT",
    "KRB5_CONFIG", "KSH_ENV", "KUBECONFIG", "LD", "LDAPCONF", "LDAPRC", "LDFLAGS", "LESS", "LESSCLOSE", "LESSEDIT",
    "LESSKEY", "LESSKEYIN", "LESSOPEN", "LIBGL_DRIVERS_PATH", "LIBRARY_PATH", "LIBVA_DRIVERS_PATH", "LOCALDOMAIN",
    "LOCPATH", "LUA_CPATH", "LUA_CPATH_5_1", "LUA_CPATH_5_2", "LUA_CPATH_5_3", "LUA_CPATH_5_4", "LUA_INIT",
    "LUA_INIT_5_1", "LUA_INIT_5_2", "LUA_INIT_5_3", "LUA_INIT_5_4", "LUA_PATH", "LUA_PATH_5_1", "LUA_PATH_5_2",
    "LUA_PATH_5_3", "LUA_PATH_5_4", "M2_HOME", "MAKE", "MAKEFILES", "MAKEFLAGS", "MALLOC_TRACE", "MANPAGER",
    "MAVEN_ARGS", "MAVEN_HOME", "MAVEN_OPTS", "MFLAGS", "MYSQL_HOME", "MYVIMRC", "NETRC", "NLSPATH", "NM",
    "NODE_EXTRA_CA_CERTS", "NODE_ICU_DATA", "NODE_OPTIONS", "NODE_PATH", "NODE_REDIRECT_WARNINGS",
    "NODE_REPL_EXTERNAL_MODULE", "NODE_REPL_HISTORY", "NODE_TLS_REJECT_UNAUTHORIZED", "NODE_V8_COVERAGE", "NO_PROXY",
    "OBJC_INCLUDE_PATH", "OCAMLPARAM", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES", "PACKER_PLUGIN_PATH",
    "PAGER", "PATH", "PATHEXT", "PERL5DB", "PERL5DBCMD", "PERL5LIB", "PERL5OPT", "PERL5SHELL", "PERLIO_DEBUG",
    "PERLLIB", "PGPASSFILE", "PGSERVICEFILE", "PGSYSCONFDIR", "PHPRC", "PHP_INI_SCAN_DIR", "PIP_CONFIG_FILE",
    "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_PYPI_URL", "PIP_TRUSTED_HOST", "POSIXLY_CORRECT",
    "PROMPT_COMMAND", "PS4", "PSQLRC", "PSQL_PAGER", "PYTHONBREAKPOINT", "PYTHONCASEOK", "PYTHONEXECUTABLE",
    "PYTHONHOME", "PYTHONINSPECT", "PYTHONPATH", "PYTHONPLATLIBDIR", "PYTHONPYCACHEPREFIX", "PYTHONSTARTUP",
    "PYTHONUSERBASE", "PYTHONWARNINGS", "QML2_IMPORT_PATH", "QT_PLUGIN_PATH", "REQUESTS_CA_BUNDLE", "RES_OPTIONS",
    "RIPGREP_CONFIG_PATH", "RSYNC_CONNECT_PROG", "RSYNC_PROXY", "RSYNC_RSH", "RUBYGEMS_GEMDEPS", "RUBYLIB", "RUBYOPT",
    "RUBYSHELL", "RUSTC", "RUSTC_WORKSPACE_WRAPPER", "RUSTC_WRAPPER", "RUSTDOC", "RUSTFLAGS", "RUSTUP_DIST_ROOT",
    "RUSTUP_DIST_SERVER", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUSTUP_UPDATE_ROOT", "R_ENVIRON", "R_ENVIRON_USER",
    "R_HOME", "R_LIBS", "R_LIBS_USER", "R_PROFILE", "R_PROFILE_USER", "SASL_PATH", "SBT_OPTS", "SHELL", "SHELLOPTS",
    "SOCKS_PROXY", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "SSH_AUTH_SOCK", "SSH_SK_PROVIDER", "SSLKEYLOGFILE",
    "SSL_CERT_DIR", "SSL_CERT_FILE", "SUDO_ASKPASS", "SUDO_EDITOR", "SVN_EDITOR", "SVN_SSH", "SYSTEMD_PAGER",
    "SYSTEMROOT", "TAR_OPTIONS", "TCLLIBPATH", "TERMCAP", "TERMINFO", "TERMINFO_DIRS", "TERMPATH",
    "TF_CLI_CONFIG_FILE", "TF_PLUGIN_CACHE_DIR", "TS_NODE_PROJECT", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL",
    "UV_INDEX", "UV_INDEX_URL", "UV_PYTHON", "VAGRANT_VAGRANTFILE", "VIMINIT", "VIRTUAL_ENV", "VISUAL",
    "VK_LAYER_PATH", "WGETRC", "WINDIR", "XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS",
    "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "YARN_RC_FILENAME", "ZDOTDIR", "ZIPOPT", "_JAVA_OPTIONS",
    "_POSIX2_VERSION",
];

/// Beginnings of names that do.
const HIJACKING_PREFIXES: &[&str] = &[
    "BASH_FUNC_",
    "CARGO_REGISTRIES_",
    "CLAWDBOT_",
    "DYLD_",
    "GIT_CONFIG_",
    "GIT_TRACE_",
    "LD_",
    "NPM_CONFIG_",
    "OPENCLAW_",
    "PROWESS_",
    "TF_VAR_",
];

/// Names with something in the middle that do: `CARGO_TARGET_<TRIPLE>_LINKER`.
const HIJACKING_FRAMES: &[(&str, &str)] = &[("CARGO_TARGET_", "_LINKER"), ("CARGO_TARGET_", "_RUNNER")];

/// Credentials whose names do not end like one.
const CREDENTIALS: &[&str] = &[
    "AMQP_URL",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SECRET_KEY",
    "AZURE_CLIENT_ID",
    "DATABASE_URL",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "MONGODB_URI",
    "REDIS_URL",
];

/// Endings of names that hold a credential.
const CREDENTIAL_SUFFIXES: &[&str] = &["API_KEY", "TOKEN", "PASSWORD", "PRIVATE_KEY", "SECRET", "_ADMIN_KEY"];

/// Whether setting this name could make a child run something else, or talk to someone else.
#[must_use]
pub fn hijacks(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    HIJACKERS.binary_search(&name.as_str()).is_ok()
        || HIJACKING_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || HIJACKING_FRAMES.iter().any(|(start, end)| name.starts_with(start) && name.ends_with(end))
}

/// Whether the settings of a skill must leave this name alone. A command may move its own temporary files; the settings
/// of a skill would move those of every command it ever runs.
pub(super) fn is_out_of_bounds(name: &str) -> bool {
    hijacks(name) || name.eq_ignore_ascii_case("TMPDIR")
}

/// Whether this name holds a credential.
#[must_use]
pub fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    CREDENTIALS.contains(&name.as_str()) || CREDENTIAL_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

/// Whether a child could be given a variable of this name at all.
#[must_use]
pub fn is_valid_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_sorted_for_searching_and_holds_no_credential() {
        assert!(HIJACKERS.is_sorted());
        assert!(!CREDENTIALS.iter().any(|name| hijacks(name)));
    }

    #[test]
    fn names_are_judged_in_any_case() {
        for name in ["LD_PRELOAD", "ld_preload", "Path", "BASH_FUNC_x", "NODE_OPTIONS", "GIT_CONFIG_COUNT", "HOME"] {
            assert!(hijacks(name), "{name}");
        }
        for name in ["GH_TOKEN", "my_secret", "DATABASE_URL", "X_API_KEY"] {
            assert!(!hijacks(name) && is_credential(name), "{name}");
        }
        assert!(!hijacks("FOO") && !is_credential("FOO"));
        assert!(hijacks("cargo_target_x_runner") && !hijacks("CARGO_TARGET_DIR"));
        assert!(!hijacks("TMPDIR") && is_out_of_bounds("tmpdir") && is_out_of_bounds("HOME"));
        assert!(
            !is_valid_name("A=B")
                && !is_valid_name("1A")
                && !is_valid_name("")
                && !is_valid_name("A\0")
                && is_valid_name("_a1")
        );
    }
}
