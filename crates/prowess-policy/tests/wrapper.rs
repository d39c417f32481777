//! Which program does a command really start?

use crate::support;
use proptest::prelude::*;
use prowess_policy::script::{Value, Word};
use prowess_policy::wrapper::{
    Inner, MAX_WRAPPERS, Reason, Tail, Unwrapped, WrapperKind, is_harmless_assignment, is_harmless_builtin, unwrap,
};
use prowess_testkit::{assert_documented, cases, check_all, check_all_but};
use support::words;

/// Where we see more than the peer does.
const DEVIATIONS: &[(&str, &str)] = &[
    ("env-assign", "`env NAME=value` with a harmless variable"),
    ("stdbuf", "`stdbuf -oL`, the value attached to the option"),
];

fn show(word: &Word) -> String {
    match &word.value {
        Value::Literal(text) => text.clone(),
        Value::Dynamic { prefix, splits, .. } => format!("{prefix}<{}>", if *splits { "some" } else { "one" }),
    }
}

/// `wrapper wrapper NAME=value : program arguments`, or what else it comes to.
fn render(found: &Unwrapped<'_>) -> String {
    let mut text = String::new();
    for wrapper in &found.wrappers {
        text += &show(wrapper.word);
        text += match wrapper.kind {
            WrapperKind::Program => " ",
            WrapperKind::Shell => "! ",
            WrapperKind::Either => "? ",
        };
    }
    for (name, value) in &found.assignments {
        text += &[name, "=", value.as_deref().unwrap_or("<one>"), " "].concat();
    }
    let inner = match &found.inner {
        Inner::Command(words) => words.iter().map(show).collect::<Vec<_>>().join(" "),
        Inner::Script { text, .. } => format!("script {text}"),
        Inner::Query => "query".to_owned(),
        Inner::Opaque(reason) => format!("{reason:?}"),
    };
    let tail = if found.tail == Tail::Open { " <more>" } else { "" };
    format!("{text}: {inner}{tail}")
}

fn check(table: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for (command, expected) in table {
        let words = words(command);
        let found = render(&unwrap(&words, 0));
        if found != *expected {
            wrong.push(format!("{command}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn plain_commands_are_themselves() {
    check(&[
        ("rg x", ": rg x"),
        ("/usr/bin/rg x", ": /usr/bin/rg x"),
        ("rg nice timeout", ": rg nice timeout"),
        ("~/.local/bin/tool x", ": <one> x"),
        ("$x y", ": Dynamic"),
        ("/usr/bin/$x", ": Dynamic"),
        ("", ": MissingCommand"),
        ("find . -exec rg x {} \\;", ": find . -exec rg x {} ;"),
        ("xargs", ": xargs"),
        ("xargs -0", ": xargs -0"),
    ]);
}

#[test]
fn wrappers_are_peeled_off() {
    check(&[
        ("env rg x", "env : rg x"),
        ("/usr/bin/env rg x", "/usr/bin/env : rg x"),
        ("env -- rg x", "env : rg x"),
        ("env FOO=1 ls", "env FOO=1 : ls"),
        ("env -- FOO=1 BAR=2 ls -l", "env FOO=1 BAR=2 : ls -l"),
        ("env FOO=\"$x\" ls", "env FOO=<one> : ls"),
        ("env PATH=/tmp ls", "env PATH=/tmp : ls"),
        ("nice rg", "nice : rg"),
        ("nice -n 5 rg", "nice : rg"),
        ("nice -n5 rg", "nice : rg"),
        ("nice -5 rg", "nice : rg"),
        ("nice --5 rg", "nice : rg"),
        ("nice --adjustment=5 rg", "nice : rg"),
        ("nice --adjustment 5 rg", "nice : rg"),
        ("nice -n 5 -- rg", "nice : rg"),
        ("nohup rg", "nohup : rg"),
        ("stdbuf -oL rg", "stdbuf : rg"),
        ("stdbuf -o L -e 0 rg", "stdbuf : rg"),
        ("stdbuf --output=L rg", "stdbuf : rg"),
        ("timeout 5 rg", "timeout : rg"),
        ("timeout 1.5m rg -x", "timeout : rg -x"),
        ("timeout -k 1 -s KILL --foreground 5 rg", "timeout : rg"),
        ("timeout --kill-after=1s --signal=TERM 5 rg", "timeout : rg"),
        ("gtimeout 5 rg", "gtimeout : rg"),
        ("time rg", "time? : rg"),
        ("time -p rg", "time? : rg"),
        ("command rg", "command! : rg"),
        ("exec rg x", "exec! : rg x"),
        ("command exec rg", "command! exec! : rg"),
        ("command -v rg", ": query"),
        ("command -V $x", ": query"),
        ("nice nohup timeout 5 nice rg x", "nice nohup timeout nice : rg x"),
        ("xargs rg x", "xargs : rg x <more>"),
        ("xargs -0 -n 1 rg x", "xargs : rg x <more>"),
        ("xargs -0n1 -P4 rg", "xargs : rg <more>"),
        ("xargs -I{} cp {} dest/{}", "xargs : cp <one> dest/<one>"),
        ("xargs -I % -n 1 cp %", "xargs : cp <one> <more>"),
        ("xargs -d , timeout 5 rg", "xargs timeout : rg <more>"),
        ("nice xargs -r ls", "nice xargs : ls <more>"),
        ("xargs -I{} rg ~/{}", "xargs : rg <one>"),
    ]);
}

#[test]
fn shells_with_a_text_are_scripts() {
    check(&[
        ("bash -c 'rg x'", "bash : script rg x"),
        ("sh -c 'rg x; ls'", "sh : script rg x; ls"),
        ("sh -ec 'rg x'", "sh : script rg x"),
        ("bash -euxc 'rg x'", "bash : script rg x"),
        ("bash -e -u -c 'rg x'", "bash : script rg x"),
        ("bash -c -e 'rg x'", "bash : script rg x"),
        ("bash --norc --noprofile -c 'rg x'", "bash : script rg x"),
        ("bash -c -- 'rg x'", "bash : script rg x"),
        ("nice nohup timeout 5 sh -c id", "nice nohup timeout sh : script id"),
        ("sh script.sh", ": sh script.sh"),
        ("bash -x script.sh a", ": bash -x script.sh a"),
        ("bash --version", ": bash --version"),
        ("zsh script.zsh", ": zsh script.zsh"),
        ("fish $x", ": fish <some>"),
    ]);
}

const OPAQUE: &[(&str, &str)] = &[
    ("env", ": MissingCommand"),
    ("env FOO=1", ": MissingCommand"),
    ("env -i rg", ": Environment"),
    ("env - rg", ": Environment"),
    ("/usr/bin/env -i PATH=/tmp ls", ": Environment"),
    ("env -u FOO rg", ": Environment"),
    ("env -uFOO rg", ": Environment"),
    ("env --uns=FOO rg", ": Environment"),
    ("env -C /tmp rg", ": Directory"),
    ("env --chdir=/tmp rg", ": Directory"),
    ("env -S 'rg x'", ": SplitString"),
    ("env -S'rg x'", ": SplitString"),
    ("env --split-string='rg x'", ": SplitString"),
    ("env --s='rg x'", ": SplitString"),
    ("env -vS 'rg x'", ": UnknownOption"),
    ("env --block-signal rg", ": UnknownOption"),
    ("env $x rg", ": Dynamic"),
    ("env \"$x\" rg", ": Dynamic"),
    ("env FOO=$x rg", ": Dynamic"),
    ("env $x=1 rg", ": Dynamic"),
    ("env $x", ": Dynamic"),
    ("nice --foo rg", ": UnknownOption"),
    ("nice --adj=5 rg", ": UnknownOption"),
    ("nice -n x rg", ": UnknownOption"),
    ("nice", ": MissingCommand"),
    ("nice -n 5", ": MissingCommand"),
    ("nice $x rg", ": Dynamic"),
    ("nice -n 5 $x", ": Dynamic"),
    ("nohup --help rg", ": UnknownOption"),
    ("stdbuf --out=L rg", ": UnknownOption"),
    ("stdbuf -x rg", ": UnknownOption"),
    ("timeout 5", ": MissingCommand"),
    ("timeout rg x", ": UnknownOption"),
    ("timeout --sig=KILL 5 rg", ": UnknownOption"),
    ("timeout $x rg", ": Dynamic"),
    ("timeout 5 $x", "timeout : Dynamic"),
    ("time -v rg", ": UnknownOption"),
    ("time -o /tmp/x rg", ": UnknownOption"),
    ("time FOO=1 rg", ": Environment"),
    ("time", ": MissingCommand"),
    ("sudo rg", ": OtherUser"),
    ("doas rg", ": OtherUser"),
    ("su -c rg", ": OtherUser"),
    ("chroot / rg", ": OtherUser"),
    ("chrt 1 rg", ": Supervisor"),
    ("ionice -c3 rg", ": Supervisor"),
    ("taskset 1 rg", ": Supervisor"),
    ("setsid rg", ": Supervisor"),
    ("strace rg", ": Supervisor"),
    ("watch rg", ": Supervisor"),
    ("nice sudo rg", "nice : OtherUser"),
    ("busybox sh -c 'rg x'", ": Multiplexer"),
    ("busybox ls", ": Multiplexer"),
    ("toybox ls", ": Multiplexer"),
    ("eval rg x", ": Evaluates"),
    (". ./run.sh", ": Evaluates"),
    ("source ./run.sh", ": Evaluates"),
    ("trap id EXIT", ": Evaluates"),
    ("coproc rg", ": Evaluates"),
    ("command eval id", "command! : Evaluates"),
    ("export X=1", ": ShellState"),
    ("alias ls=id", ": ShellState"),
    ("builtin eval id", ": ShellState"),
    ("hash -p /tmp/x ls", ": ShellState"),
    ("enable -f /tmp/x.so x", ": ShellState"),
    ("printf -v x y", ": ShellState"),
    ("exec", ": MissingCommand"),
    ("exec -a x rg", ": UnknownOption"),
    ("exec $x", ": Dynamic"),
    ("command -p rg", ": UnknownOption"),
    ("bash", ": ReadsInput"),
    ("sh -s", ": ReadsInput"),
    ("sh -", ": ReadsInput"),
    ("bash -lc 'rg x'", ": StartupFiles"),
    ("bash -ic 'rg x'", ": StartupFiles"),
    ("bash --login -c 'rg x'", ": StartupFiles"),
    ("bash --rcfile x -c 'rg x'", ": StartupFiles"),
    ("bash -o pipefail -c 'rg x'", ": UnknownOption"),
    ("bash -O extglob -c 'rg x'", ": UnknownOption"),
    ("bash +e -c 'rg x'", ": UnknownOption"),
    ("bash --nor -c 'rg x'", ": UnknownOption"),
    ("bash -c", ": MissingCommand"),
    ("bash -c 'rg x' arg0", ": ExtraOperands"),
    ("sh -c '$0' evil", ": ExtraOperands"),
    ("bash -c $x", ": Dynamic"),
    ("bash -c \"$x\"", ": Dynamic"),
    ("zsh -c 'rg x'", ": OtherLanguage"),
    ("fish -c 'rg x'", ": OtherLanguage"),
    ("ksh -c 'rg x'", ": OtherLanguage"),
    ("pwsh -Command ls", ": OtherLanguage"),
    ("cmd /c dir", ": OtherLanguage"),
    ("zsh", ": ReadsInput"),
    ("xargs $x", ": Dynamic"),
    ("xargs -I{} {}", "xargs : Dynamic"),
    ("xargs sh -c 'rg x'", "xargs : ExtraOperands <more>"),
    ("xargs -I{} sh -c 'rg {}'", "xargs : Dynamic"),
    ("xargs -a file rg", ": UnknownOption"),
    ("xargs -i rg {}", ": UnknownOption"),
    ("xargs --max-a=1 rg", ": UnknownOption"),
    ("xargs --replace rg", ": UnknownOption"),
];

#[test]
fn what_is_not_understood_is_opaque() {
    check(OPAQUE);
}

#[test]
fn only_the_shell_has_builtins() {
    check(&[
        ("nice eval id", "nice : eval id"),
        ("env command rg", "env : command rg"),
        ("exec eval id", "exec! : eval id"),
        ("timeout 5 exec rg", "timeout : exec rg"),
        ("./eval x", ": ./eval x"),
    ]);
}

#[test]
fn the_fifth_wrapper_is_too_many() {
    let deep = words("env env env env sh -c id");
    assert_eq!(unwrap(&deep, 0).inner, Inner::Opaque(Reason::TooDeep));
    let deep = words("env env env env env env env env env env env sh -c id");
    assert_eq!(unwrap(&deep, 0).inner, Inner::Opaque(Reason::TooDeep));
    let four = words("env env env env rg");
    assert!(matches!(unwrap(&four, 0).inner, Inner::Command(_)));
    assert_eq!(unwrap(&four, 1).inner, Inner::Opaque(Reason::TooDeep));
    let plain = words("rg");
    assert!(matches!(unwrap(&plain, MAX_WRAPPERS).inner, Inner::Command(_)));
    let script = words("sh -c id");
    assert_eq!(unwrap(&script, MAX_WRAPPERS).inner, Inner::Opaque(Reason::TooDeep));
}

#[test]
fn wrappers_as_the_peer_sees_them() {
    assert_documented(DEVIATIONS);
    check_all_but(DEVIATIONS, cases(include_str!("golden/wrapper.json")), |case| {
        let command = case["command"].as_str().ok_or("no command")?;
        let peer = case["o3"] == true || case["o9"] == true;
        let words = words(command);
        let found = unwrap(&words, 0);
        let seen = match &found.inner {
            Inner::Command(words) => show(&words[0]) == "rg",
            Inner::Script { text, .. } => *text == "rg x",
            Inner::Query | Inner::Opaque(_) => false,
        };
        if seen == peer { Ok(()) } else { Err(render(&found)) }
    });
}

#[test]
fn no_name_that_steers_is_harmless() {
    check_all(cases(include_str!("golden/refused-names.json")), |case| {
        let name = case["id"].as_str().ok_or("no name")?;
        for name in [name.to_owned(), name.to_lowercase()] {
            if is_harmless_assignment(&name, Some("1")) || is_harmless_assignment(&name, Some("/tmp/x")) {
                return Err(format!("{name} is harmless"));
            }
        }
        Ok(())
    });
}

#[test]
fn harmless_assignments() {
    let table = [
        ("FOO", "1", true),
        ("FOO", "", true),
        ("DEBUG", "app:db", true),
        ("VERBOSE", "true", true),
        ("LANG", "de_DE.UTF-8", true),
        ("LC_ALL", "C", true),
        ("TERM", "xterm-256color", true),
        ("NO_COLOR", "1", true),
        ("CI", "true", true),
        ("TZ", "Europe/Berlin", true),
        ("TZ", "UTC+1", true),
        ("TZ", ":/etc/shadow", false),
        ("TZ", "/etc/shadow", false),
        ("TZ", "../../tmp/x", false),
        ("NODE_ENV", "test", true),
        ("RUST_BACKTRACE", "1", true),
        ("PYTHONUNBUFFERED", "1", true),
        ("GIT_PAGER", "cat", true),
        ("PAGER", "", true),
        ("GIT_PAGER", "sh", false),
        ("PAGER", "less", false),
        ("FOO", "/tmp/x", false),
        ("FOO", "a b", false),
        ("FOO", "$(id)", false),
        ("FOO", "a=b", false),
        ("FOO", "x;y", false),
        ("LC_ALL", "../x", false),
        ("TERM", "/tmp/x", false),
        ("PATH", "x", false),
        ("path", "x", false),
        ("HOME", "x", false),
        ("LD_PRELOAD", "x.so", false),
        ("DYLD_INSERT_LIBRARIES", "x", false),
        ("BASH_ENV", "x", false),
        ("BASH_FUNC_ls", "x", false),
        ("ENV", "x", false),
        ("IFS", "x", false),
        ("PS4", "x", false),
        ("GIT_SSH_COMMAND", "id", false),
        ("GIT_CONFIG_COUNT", "1", false),
        ("NODE_OPTIONS", "x", false),
        ("PYTHONPATH", "x", false),
        ("PYTHONWARNINGS", "x", false),
        ("PERL5OPT", "x", false),
        ("RUBYOPT", "x", false),
        ("EDITOR", "id", false),
        ("VISUAL", "id", false),
        ("MY_EDITOR", "id", false),
        ("TAR_OPTIONS", "x", false),
        ("ZIPOPT", "x", false),
        ("UNKNOWN", "-x", false),
        ("GREP_OPTIONS", "x", false),
        ("LESSOPEN", "x", false),
        ("MAKEFLAGS", "x", false),
        ("npm_config_script_shell", "x", false),
        ("RUSTC_WRAPPER", "x", false),
        ("http_proxy", "x:80", false),
        ("RIPGREP_CONFIG_PATH", "x", false),
        ("SSH_ASKPASS", "x", false),
        ("OPENAI_API_KEY", "x", false),
        ("DATABASE_URL", "x", false),
        ("1FOO", "1", false),
        ("A-B", "1", false),
        ("", "1", false),
        ("A[0]", "1", false),
    ];
    for (name, value, expected) in table {
        assert_eq!(is_harmless_assignment(name, Some(value)), expected, "{name}={value}");
        assert!(!is_harmless_assignment(name, None), "{name} with an unknown value");
    }
    assert!(!is_harmless_assignment("FOO", Some(&"x".repeat(65))));
}

#[test]
fn harmless_builtins() {
    let table = [
        (":", true),
        ("true x", true),
        ("false", true),
        ("pwd", true),
        ("pwd -P", true),
        ("cd /tmp", true),
        ("cd", true),
        ("cd -", true),
        ("cd \"$x\"", true),
        ("cd -P /tmp", false),
        ("cd a b", false),
        ("test -f x", true),
        ("[ -f x ]", true),
        ("[ -f \"$x\" ]", true),
        ("[ ! -f \"$x\" ]", true),
        ("[ \"$x\" = y ]", true),
        ("[ -f x", false),
        ("[ -v x ]", false),
        ("test -v 'a[$(id)]'", false),
        ("[ -f $x ]", false),
        ("[ \"$x\" \"$y\" ]", false),
        ("[ \"$x\" \"$y\" z ]", false),
        ("echo x", false),
        ("eval x", false),
    ];
    for (command, expected) in table {
        assert_eq!(is_harmless_builtin(&words(command)), expected, "{command}");
    }
}

#[test]
fn every_reason_is_a_sentence() {
    for reason in [Reason::MissingCommand, Reason::Dynamic, Reason::TooDeep, Reason::Multiplexer] {
        let text = reason.to_string();
        assert!(text.len() > 15 && !text.ends_with('.') && !text.starts_with(char::is_uppercase), "{text}");
    }
}

proptest! {
    #[test]
    fn any_words_can_be_unwrapped(list in prop::collection::vec(
        prop_oneof![
            "[ -~é]{0,12}",
            prop::sample::select(vec![
                "env", "nice", "timeout", "5", "-n", "xargs", "-I", "-I{}", "{}", "sh", "-c", "--", "-", "time", "exec",
                "command", "stdbuf", "-oL", "A=1", "", "=", "-0",
            ]).prop_map(str::to_owned),
        ], 0..12), depth in 0_usize..6)
    {
        let words: Vec<Word> = list.iter().flat_map(|text| {
            let mut found = words(text);
            found.push(Word { span: prowess_policy::script::Span { start: 0, end: 0 }, value: Value::Literal(text.clone()) });
            found
        }).collect();
        let found = unwrap(&words, depth);
        prop_assert!(found.wrappers.len() <= MAX_WRAPPERS);
        if let Inner::Command(words) = &found.inner {
            prop_assert!(!words.is_empty());
        }
    }
}
