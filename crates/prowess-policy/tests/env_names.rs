//! The environment guard: does a command get only what it may?

#[cfg(unix)]
use std::ffi::OsString;
use std::path::PathBuf;

use proptest::prelude::*;
use prowess_policy::env::{
    EnvInputs, EnvRefusal, RunEnv, compose, hijacks, is_credential, is_inherited, is_shell_safe,
};
use prowess_testkit::{assert_documented, cases, check_all_but};

const STEER: &str = "names that steer a command or hold a credential";
const INHERIT: &str = "variables of the host";

fn pair<V: for<'a> From<&'a str>>(name: &str, value: &str) -> (String, V) {
    (name.to_owned(), value.into())
}

fn with_caller(caller: &[(String, String)]) -> Result<RunEnv, EnvRefusal> {
    compose(EnvInputs { caller, ..EnvInputs::default() })
}

const OLDER: &[(&str, &str)] = &[
    ("LDFLAGS", STEER),
    ("GIT_SSH_COMMAND", STEER),
    ("GIT_DIR", STEER),
    ("PYTHONSTARTUP", STEER),
    ("OPENSSL_CONF", STEER),
    ("GH_TOKEN", STEER),
    ("GITHUB_TOKEN", STEER),
    ("HTTP_PROXY", STEER),
    ("EDITOR", STEER),
    ("PAGER", STEER),
    ("NPM_CONFIG_REGISTRY", STEER),
    ("CARGO_TARGET_X_RUNNER", STEER),
    ("JAVA_TOOL_OPTIONS", STEER),
    ("MAKEFLAGS", STEER),
    ("KUBECONFIG", STEER),
    ("SSH_AUTH_SOCK", STEER),
    ("EXINIT", STEER),
];

fn kept(case: &serde_json::Value, column: &str) -> Result<(), String> {
    let name = case["name"].as_str().expect("a name");
    let found = with_caller(&[pair(name, "v")]);
    let is_kept = found.as_ref().is_ok_and(|env| env.get(name.trim()) == Some("v".as_ref()));
    if case[column] == is_kept { Ok(()) } else { Err(format!("found {found:?}")) }
}

#[test]
fn a_caller_sets_what_openclaw_lets_it_set_but_for_names_that_steer() {
    assert_documented(OLDER);
    check_all_but(OLDER, cases(include_str!("golden/env-names.json")), |case| kept(case, "keptOlder"));
}

#[test]
fn a_caller_sets_what_the_newer_openclaw_lets_it_set() {
    check_all_but(&[], cases(include_str!("golden/env-names.json")), |case| kept(case, "keptNewer"));
}

#[test]
fn refusals_read_as_in_openclaw() {
    // Those that OpenClaw does not refuse are the business of the tests above.
    let refused = cases(include_str!("golden/env-names.json")).filter(|(_, case)| !case["refused"].is_null());
    check_all_but(&[], refused, |case| {
        let error =
            with_caller(&[pair(case["name"].as_str().expect("a name"), "v")]).map_err(|error| error.to_string());
        match error {
            Err(error) if case["refused"] == *error => Ok(()),
            other => Err(format!("found {other:?}")),
        }
    });
}

#[test]
fn a_shell_with_inline_text_keeps_what_openclaw_keeps() {
    check_all_but(&[], cases(include_str!("golden/env-names.json")), |case| {
        let found = is_shell_safe(case["name"].as_str().expect("a name"));
        if case["shellKept"] == found { Ok(()) } else { Err(format!("found {found}")) }
    });
}

const INHERITED: &[(&str, &str)] = &[
    ("path", INHERIT),
    ("ZDOTDIR", INHERIT),
    ("HTTP_PROXY", INHERIT),
    ("PAGER", INHERIT),
    ("FOO", INHERIT),
    ("foo-bar", INHERIT),
    ("1FOO", INHERIT),
    (" FOO ", INHERIT),
    ("NPM_CONFIG_REGISTRY", INHERIT),
    ("CARGO_TARGET_X_RUNNER", INHERIT),
    ("KUBECONFIG", INHERIT),
    ("SSH_AUTH_SOCK", INHERIT),
];

#[test]
fn the_host_gives_less_than_in_openclaw_and_never_more() {
    assert_documented(INHERITED);
    check_all_but(INHERITED, cases(include_str!("golden/env-names.json")), |case| {
        let name = case["name"].as_str().expect("a name");
        let env =
            compose(EnvInputs { host: &[pair(name, "/v")], ..EnvInputs::default() }).map_err(|e| e.to_string())?;
        let found = env.get(name) == Some("/v".as_ref());
        assert!(!found || (case["inheritedOlder"] == true && case["inheritedNewer"] == true), "more than the peer");
        if case["inheritedNewer"] == found { Ok(()) } else { Err(format!("found {found}")) }
    });
}

#[test]
fn the_first_name_that_is_not_allowed_is_named() {
    let refusal =
        |names: &[&str]| with_caller(&names.iter().map(|name| pair(name, "v")).collect::<Vec<_>>()).unwrap_err();
    assert_eq!(refusal(&["FOO", "Path", "LD_PRELOAD"]), EnvRefusal::Path);
    assert_eq!(refusal(&["ld_preload", "PATH"]), EnvRefusal::Forbidden("ld_preload".to_owned()));
    assert_eq!(refusal(&[" LD_PRELOAD"]), EnvRefusal::Forbidden("LD_PRELOAD".to_owned()), "space does not hide a name");
    assert_eq!(refusal(&["A=B"]), EnvRefusal::BadName("A=B".to_owned()));
    assert_eq!(
        refusal(&["BASH_FUNC_ls%%"]).to_string(),
        "Security Violation: Environment variable 'BASH_FUNC_ls%%' is forbidden during host execution."
    );
    assert!(!refusal(&["LD_\u{1b}[2J"]).to_string().contains('\u{1b}'));
}

#[test]
fn names_that_hijack_are_refused_whoever_brings_them() {
    for name in [
        "LD_PRELOAD",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "BASH_ENV",
        "ENV",
        "NODE_OPTIONS",
        "PYTHONSTARTUP",
        "GIT_SSH_COMMAND",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG",
        "PATH",
        "HOME",
        "ZDOTDIR",
        "PS4",
        "IFS",
        "CDPATH",
        "GLOBIGNORE",
        "POSIXLY_CORRECT",
        "_POSIX2_VERSION",
        "PERL5OPT",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "TAR_OPTIONS",
        "LESSOPEN",
        "PAGER",
        "EDITOR",
        "SSH_AUTH_SOCK",
        "HTTPS_PROXY",
        "https_proxy",
        "SSL_CERT_FILE",
        "OPENCLAW_SHELL",
        "PROWESS_X",
        "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER",
        "cargo_target_x_runner",
        "TF_VAR_x",
        "npm_config_registry",
    ] {
        assert!(hijacks(name), "{name}");
        assert!(with_caller(&[pair(name, "v")]).is_err(), "{name} from a caller");
        let refused = compose(EnvInputs { skill: &[pair(name, "v")], ..EnvInputs::default() });
        assert_eq!(refused, Err(EnvRefusal::Hijacks(name.to_owned())), "from a skill");
    }
    for name in ["FOO", "LDAP", "GITHUB_REPO", "CARGO_TARGET_DIR", "DEBUG", "RUST_LOG", "TMPDIR"] {
        assert!(!hijacks(name) && with_caller(&[pair(name, "v")]).is_ok(), "{name}");
    }
}

#[test]
fn a_declared_credential_reaches_its_skill_and_nobody_else_sets_one() {
    let token = [pair("GH_TOKEN", "canary-1")];
    let env = compose(EnvInputs { skill: &token, ..EnvInputs::default() }).unwrap();
    assert_eq!(env.get("GH_TOKEN"), Some("canary-1".as_ref()));
    assert!(!format!("{env:?}").contains("canary"), "values do not print");
    assert!(with_caller(&[pair("GH_TOKEN", "canary-1")]).is_err());
    let env = compose(EnvInputs { host: &token, ..EnvInputs::default() }).unwrap();
    assert_eq!(env.get("GH_TOKEN"), None, "the host's own token stays behind");
    assert!(is_credential("GH_TOKEN") && is_credential("my_api_key") && !is_credential("FOO"));
}

#[cfg(unix)]
#[test]
fn values_that_are_not_utf_8_are_handed_on_as_they_are() {
    use std::os::unix::ffi::OsStringExt;
    let odd = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
    let host = [("LANG".to_owned(), odd(b"caf\xe9")), ("PATH".to_owned(), odd(b"/a\xff:/b"))];
    let skill = [("KEY".to_owned(), odd(b"\xff\xfe"))];
    let env = compose(EnvInputs { host: &host, skill: &skill, ..EnvInputs::default() }).unwrap();
    assert_eq!(env.get("LANG"), Some(&*odd(b"caf\xe9")));
    assert_eq!(env.get("KEY"), Some(&*odd(b"\xff\xfe")));
    assert_eq!(env.path().collect::<Vec<_>>(), [odd(b"/a\xff"), "/b".into()]);
    let other = compose(EnvInputs { host: &host, skill: &[], ..EnvInputs::default() }).unwrap();
    assert_ne!(env.digest(), other.digest());
}

#[test]
fn values_that_could_pass_for_more_are_refused() {
    for value in ["a\0b", "a\nb", "a\rLD_PRELOAD=x", &"x".repeat(200_000)] {
        assert_eq!(with_caller(&[pair("FOO", value)]), Err(EnvRefusal::BadValue("FOO".to_owned())));
        assert!(compose(EnvInputs { skill: &[pair("FOO", value)], ..EnvInputs::default() }).is_err());
        let host = [pair("LANG", value)];
        assert_eq!(compose(EnvInputs { host: &host, ..EnvInputs::default() }).unwrap().get("LANG"), None);
    }
}

#[test]
fn later_layers_replace_earlier_ones() {
    let env = compose(EnvInputs {
        host: &[pair("LANG", "host"), pair("TERM", "host"), pair("FOO", "host")],
        skill: &[pair("LANG", "skill"), pair("KEY", "skill")],
        caller: &[pair("LANG", "caller"), pair(" BAR ", "caller")],
        fixed: &[("OPENCLAW_SHELL", "exec")],
        path_prepend: &[],
    })
    .unwrap();
    let vars = env.iter().filter(|(name, _)| *name != "PATH");
    let vars: Vec<_> = vars.map(|(name, value)| (name, value.to_str().expect("text"))).collect();
    let expected =
        [("BAR", "caller"), ("KEY", "skill"), ("LANG", "caller"), ("OPENCLAW_SHELL", "exec"), ("TERM", "host")];
    assert_eq!(vars, expected);
}

#[test]
fn the_search_path_has_no_place_that_anyone_could_fill() {
    let path = |host: &str, first: &[&str]| {
        let first: Vec<PathBuf> = first.iter().map(PathBuf::from).collect();
        let host = [pair("PATH", host)];
        let env = compose(EnvInputs { host: &host, path_prepend: &first, ..EnvInputs::default() });
        env.map(|env| env.get("PATH").and_then(|path| path.to_str()).expect("always set").to_owned())
    };
    assert_eq!(path("/a:/b::.:bin:/a:", &["/s/bins", "/b"]).unwrap(), "/s/bins:/b:/a");
    let default = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    assert_eq!(path("", &[]).unwrap(), default);
    assert_eq!(path(".:x", &["/s"]).unwrap(), format!("/s:{default}"));
    assert_eq!(compose(EnvInputs::default()).unwrap().get("PATH"), Some(default.as_ref()));
    for folder in ["bins", "", "/s:/evil", "/s\n", "~/bin"] {
        assert!(matches!(path("/a", &[folder]), Err(EnvRefusal::BadFolder(_))), "{folder:?}");
    }
}

#[test]
fn the_digest_tells_every_environment_from_every_other() {
    let digest = |vars: &[(&str, &str)]| {
        let vars: Vec<_> = vars.iter().map(|(name, value)| pair(name, value)).collect();
        with_caller(&vars).unwrap().digest()
    };
    let all = [
        digest(&[]),
        digest(&[("A", "")]),
        digest(&[("A", "B")]),
        digest(&[("AB", "")]),
        digest(&[("A", ""), ("B", "")]),
        digest(&[("A", "1B2")]),
        digest(&[("A", "1"), ("B", "2")]),
    ];
    for (at, one) in all.iter().enumerate() {
        assert!(!all[..at].contains(one), "{at}");
    }
    assert_eq!(digest(&[("A", "1"), ("B", "2")]), digest(&[("B", "2"), ("A", "1")]));
}

proptest! {
    #[test]
    fn whatever_is_composed_holds_nothing_that_was_to_stay_out(
        host in prop::collection::vec(("[A-Za-z_]{1,8}|LD_PRELOAD|PATH|LC_ALL", any::<String>()), 0..6),
        caller in prop::collection::vec((any::<String>(), any::<String>()), 0..3),
    ) {
        let host: Vec<_> = host.into_iter().map(|(name, value)| (name, value.into())).collect();
        if let Ok(env) = compose(EnvInputs { host: &host, caller: &caller, ..EnvInputs::default() }) {
            for (name, value) in env.iter() {
                prop_assert!(!hijacks(name) || ["PATH", "HOME"].contains(&name), "{}", name);
                prop_assert!(!value.as_encoded_bytes().iter().any(|byte| b"\0\n".contains(byte)));
                prop_assert!(is_inherited(name) || caller.iter().any(|(given, _)| given.trim() == name));
            }
        }
    }
}
