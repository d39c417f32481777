//! Names of variables: which may a caller set, and which does a command get from the host?
//!
//! Which names steer a process and which hold a credential is the same question for a skill's settings, and answered
//! there. Credentials are the operator's: a skill that declares one gets it for its own runs, and no caller can put
//! another in its place.

use prowess_skills::env::is_valid_name;

/// Credentials that no caller may set.
#[rustfmt::skip]
const CREDENTIALS: &[&str] = &[
    "AMQP_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SECURITY_TOKEN",
    "AWS_SESSION_TOKEN", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "DATABASE_URL", "GH_TOKEN", "GITHUB_TOKEN",
    "GITLAB_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "MONGODB_URI", "NODE_AUTH_TOKEN", "NPM_TOKEN", "REDIS_URL",
];

/// Host variables that reach a command: what a program needs to find others, to know its user and to format text.
/// Everything else stays behind, above all credentials, agents' sockets and proxies.
const INHERITED: &[&str] = &[
    "CI",
    "COLORTERM",
    "FORCE_COLOR",
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
];

/// What a caller may still set when the command is a shell with inline text.
const SHELL_SAFE: &[&str] =
    &["COLORTERM", "FORCE_COLOR", "LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "NO_COLOR", "TERM"];

/// Whether it is one of the credentials that no caller may set.
pub(super) fn is_named_credential(name: &str) -> bool {
    CREDENTIALS.binary_search(&name.to_ascii_uppercase().as_str()).is_ok()
}

/// Whether a command gets the host's variable of this name.
#[must_use]
pub fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name) || (name.starts_with("LC_") && is_valid_name(name))
}

/// Whether a caller may set this name for a shell with inline text: nothing there but how text looks.
#[must_use]
pub fn is_shell_safe(name: &str) -> bool {
    SHELL_SAFE.contains(&name)
}

#[cfg(test)]
mod tests {
    use prowess_skills::env::{hijacks, is_credential};

    use super::*;

    #[test]
    fn the_lists_are_sorted_for_searching_and_do_not_overlap() {
        assert!(CREDENTIALS.is_sorted());
        assert!(CREDENTIALS.iter().all(|name| is_credential(name) && !hijacks(name)));
        // What only the operator's own host may say is both: nobody else sets it.
        let both: Vec<_> = INHERITED.iter().filter(|name| hijacks(name)).collect();
        assert_eq!(both, [&"HOME", &"PATH"]);
        assert!(!SHELL_SAFE.iter().any(|name| hijacks(name) || is_credential(name)));
    }
}
