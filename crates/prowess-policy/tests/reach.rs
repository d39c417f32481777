//! Can the arguments of an allowed program make it do something else?

use crate::commands;
use crate::support;
use std::path::Path;

use commands::{ORDINARY, TRICKS, tools};
use proptest::prelude::*;
use prowess_policy::reach::{Called, Farther, Kind, Reach, reach};
use prowess_policy::script::{Span, Value, Word};
use prowess_policy::wrapper::Tail;
use support::words;

fn judge(command: &str, tail: Tail) -> Reach {
    let words = words(command);
    let Value::Literal(program) = &words[0].value else { panic!("{command} has no program") };
    reach(Called { token: program, real: Path::new(program), text: command }, &words[1..], tail)
}

#[track_caller]
fn plain(commands: &[&str]) {
    let wrong: Vec<String> = commands
        .iter()
        .filter_map(|command| match judge(command, Tail::Closed) {
            Reach::Plain => None,
            Reach::Script(at) => Some(format!("{command}: script {at}")),
            Reach::Farther(found) => Some(format!("{command}: {found} ({found:?})")),
        })
        .collect();
    assert!(wrong.is_empty(), "ordinary commands refused:\n{}", wrong.join("\n"));
}

#[track_caller]
fn farther(commands: &[(&str, Kind)]) {
    let wrong: Vec<String> = commands
        .iter()
        .filter_map(|(command, kind)| match judge(command, Tail::Closed) {
            Reach::Farther(Farther { kind: found, .. }) if found == *kind => None,
            other => Some(format!("{command}: expected {kind:?}, found {other:?}")),
        })
        .collect();
    assert!(wrong.is_empty(), "tricks:\n{}", wrong.join("\n"));
}

#[test]
fn ordinary_commands_are_plain() {
    plain(ORDINARY);
    plain(tools::ORDINARY);
}

#[test]
fn options_that_start_or_load_something() {
    farther(TRICKS);
    farther(tools::TRICKS);
}

#[test]
fn interpreters() {
    use Kind::{InlineCode, InputCode, LoadsCode, UnknownOption};
    farther(&[
        ("python3 -c 'import os'", InlineCode),
        ("python3.12 -Bc 'import os'", InlineCode),
        ("python3 -m http.server", LoadsCode),
        ("python3 -W error::x.Y x.py", LoadsCode),
        ("python3", InputCode),
        ("python3 -", InputCode),
        ("python3 -i x.py", InputCode),
        ("python3 /dev/stdin", InputCode),
        ("python3 --frob x.py", UnknownOption),
        ("python3 $x", Kind::Dynamic),
        ("node -e 1", InlineCode),
        ("node -pe 1", InlineCode),
        ("node --eval=1", InlineCode),
        ("node --ev 1", InlineCode),
        ("node -r ./x y.js", LoadsCode),
        ("node --require=./x y.js", LoadsCode),
        ("node --import ./x y.js", LoadsCode),
        ("node", InputCode),
        ("perl -e 1", InlineCode),
        ("perl -lane 'print'", InlineCode),
        ("perl -0777ne 'print'", InlineCode),
        ("perl -w0e 1", InlineCode),
        ("ruby -W0e 1", InlineCode),
        ("perl -Mx y.pl", LoadsCode),
        ("perl -I/tmp y.pl", LoadsCode),
        ("ruby -e 1", InlineCode),
        ("ruby -ne 1", InlineCode),
        ("ruby -r./x y.rb", LoadsCode),
        ("php -r 1", InlineCode),
        ("php -d x=y z.php", LoadsCode),
        ("php -S localhost:1", LoadsCode),
        ("lua -e 1", InlineCode),
        ("lua5.4 -l x y.lua", LoadsCode),
        ("Rscript -e 1", InlineCode),
        ("julia -e 1", InlineCode),
        ("osascript -e 1", InlineCode),
        ("tclsh", InputCode),
        ("deno eval 1", InlineCode),
        ("deno run --allow-run x.ts", LoadsCode),
        ("java -cp x Main", LoadsCode),
        ("bash x.sh", Kind::Shell),
        ("sh -c id", Kind::Shell),
        ("zsh", Kind::Shell),
        ("busybox ls", Kind::Shell),
        ("pwsh -File x", Kind::Shell),
    ]);
    let scripts = [
        ("python3 x.py -c y", 0),
        ("python3 -u -B x.py", 2),
        ("python3 -- x.py", 1),
        ("node --no-warnings x.js $y", 1),
        ("node --max-old-space-size=4096 x.js", 1),
        ("perl -w x.pl", 1),
        ("ruby x.rb", 0),
        ("php x.php", 0),
        ("java -jar x.jar", 1),
        ("deno run --allow-net x.ts", 2),
        ("bun ./x.ts", 0),
        ("Rscript --vanilla x.R", 1),
    ];
    for (command, at) in scripts {
        assert_eq!(judge(command, Tail::Closed), Reach::Script(at), "{command}");
    }
}

#[test]
fn words_that_may_become_options() {
    use Kind::Dynamic;
    farther(&[
        ("tar cf x.tar *", Dynamic),
        ("tar -cf x.tar $files", Dynamic),
        ("tar -cf x.tar ./$files", Dynamic),
        ("tar $x", Dynamic),
        ("tar cf $out dir", Dynamic),
        ("find $dir -name x", Dynamic),
        ("find \"$dir\"", Dynamic),
        ("find . -name *.rs", Dynamic),
        ("sort *", Dynamic),
        ("sort -{o,x} y", Dynamic),
        ("sort --$x", Dynamic),
        ("rg $x", Dynamic),
        ("rg -n$x y", Dynamic),
        ("rg -e $x", Dynamic),
        ("git $x", Dynamic),
        ("git log $x", Dynamic),
        ("git log \"$x\"", Dynamic),
        ("git -C $dir status", Dynamic),
        ("git -C a* status", Dynamic),
        ("git clone \"$url\"", Kind::StartsProgram),
        ("npm $x", Dynamic),
        ("npm run \"$x\"", Dynamic),
        ("docker \"$x\"", Dynamic),
        ("socat - TCP:$host:80", Dynamic),
        ("sed p *", Dynamic),
        ("rsync -a $x y", Dynamic),
    ]);
    plain(&[
        "tar -cf x.tar ./*",
        "tar -cf x.tar -- *",
        "tar -cf x.tar dir/\"$x\"",
        "tar -cf x.tar ~/dir",
        "sort -- *",
        "sort -k \"$k\" file",
        "sort file.*",
        "sed p -- *",
        "git log -- $files",
        "git checkout $branch",
        "rg -e \"$x\" -- $files",
        "find . -name \"$x\"",
    ]);
}

#[test]
fn arguments_that_are_added_later() {
    for command in
        ["tar cf x.tar", "git", "git log", "sort", "find", "npm", "sed p", "rg x", "curl", "python3", "uniq", "uniq --"]
    {
        assert_ne!(judge(command, Tail::Open), Reach::Plain, "{command}");
    }
    for command in
        ["ls", "cat -n", "git add", "git checkout", "rg x --", "sort --", "sed p --", "awk '{print}'", "wc -l"]
    {
        assert_eq!(judge(command, Tail::Open), Reach::Plain, "{command}");
    }
    assert_eq!(judge("python3 x.py", Tail::Open), Reach::Script(0));
}

#[test]
fn both_names_count() {
    let by = |token: &str, real: &str, args: &str| {
        reach(Called { token, real: Path::new(real), text: args }, &words(args), Tail::Closed)
    };
    assert!(matches!(by("harmless", "/usr/bin/bash", "x"), Reach::Farther(_)));
    assert!(matches!(by("harmless", "/usr/bin/find", ". -delete"), Reach::Farther(_)));
    assert!(matches!(by("python", "/usr/bin/python3.12", "-c 1"), Reach::Farther(_)));
    assert!(matches!(by("npm", "/usr/lib/npm-cli.js", "exec x"), Reach::Farther(_)));
    assert!(matches!(by("awk", "/usr/bin/mawk", "'BEGIN{system(1)}'"), Reach::Farther(_)));
    assert!(matches!(by("FIND", "/usr/bin/FIND", ". -delete"), Reach::Farther(_)));
    assert!(matches!(by("find.exe", "/x/find.exe", ". -delete"), Reach::Farther(_)));
    assert_eq!(by("rglink", "/usr/bin/rg", "x"), Reach::Plain);
    assert_eq!(by("ls", "/bin/busybox", "-la"), Reach::Plain);
    assert!(matches!(by("sh", "/bin/busybox", "x"), Reach::Farther(_)));
    assert!(matches!(by("find", "/bin/busybox", ". -exec id"), Reach::Farther(_)));
    assert_eq!(by("cargo", "/home/x/.cargo/bin/rustup", "build"), Reach::Plain);
}

#[test]
fn files_that_are_read_at_start_up() {
    use Kind::StartupFile;
    farther(&[
        ("tee ~/.bashrc", StartupFile),
        ("tee -a .zshrc", StartupFile),
        ("cp x \"$HOME/.ssh/authorized_keys\"", StartupFile),
        ("cp x $HOME/.s\"sh\"/config", StartupFile),
        ("mv x .git/hooks/pre-commit", StartupFile),
        ("ln -s x /etc/cron.d/x", StartupFile),
        ("curl -o ~/.profile https://example.com", StartupFile),
        ("wget -O .BASHRC https://example.com", StartupFile),
    ]);
    plain(&["cat ~/.bashrc", "ls ~/.ssh", "tee notes.txt", "cp ~/a b"]);
}

#[test]
fn reasons_are_said_plainly() {
    let table = [
        ("find . -exec id \\;", "`find -exec` starts another program"),
        ("tar --to-c=sh -xf x", "`tar --to-command` starts another program"),
        ("python3 -c 1", "`python3 -c` runs code from its arguments"),
        ("python3", "`python3` runs code from its input"),
        ("bash x", "`bash` is a shell and can start anything"),
        ("git frob", "`git` has a subcommand that may be an alias or an extension"),
        ("git config a b", "`git config` changes what later commands do"),
        ("sort *", "an argument of `sort` is known only at run time and may do more than expected"),
        ("docker run x", "`docker run` runs commands on another machine or in a container"),
        ("vim x", "`vim` takes commands while it runs and can start anything"),
    ];
    for (command, expected) in table {
        let Reach::Farther(found) = judge(command, Tail::Closed) else { panic!("{command} is plain") };
        assert_eq!(found.to_string(), expected, "{command}");
    }
}

#[test]
fn the_argument_is_named() {
    let table = [
        ("find . -delete", Some(1)),
        ("git -C x log --output=y", Some(3)),
        ("git frob", Some(0)),
        ("tar xf a.tar -I sh", Some(2)),
        ("npm run x --script-shell=y", Some(2)),
        ("bash", None),
    ];
    for (command, at) in table {
        let Reach::Farther(found) = judge(command, Tail::Closed) else { panic!("{command} is plain") };
        assert_eq!(found.at, at, "{command}");
    }
}

fn argument() -> impl Strategy<Value = Word> {
    let text = prop_oneof![
        "[ -~é]{0,10}",
        prop::sample::select(vec![
            "-", "--", "-e", "-c", "--x=", "=", "s/a/b/", "{print}", "[", "\\", "run", "-n", "", "/"
        ])
        .prop_map(str::to_owned),
    ];
    (text, 0_u8..4).prop_map(|(text, kind)| {
        let span = Span { start: 0, end: 1 };
        let value = match kind {
            0 => Value::Dynamic {
                prefix: text,
                expansions: vec![prowess_policy::script::Expansion::Variable],
                splits: true,
            },
            1 => Value::Dynamic {
                prefix: text,
                expansions: vec![prowess_policy::script::Expansion::Glob],
                splits: false,
            },
            _ => Value::Literal(text),
        };
        Word { span, value }
    })
}

const PROGRAMS: &[&str] = &[
    "git", "tar", "find", "awk", "sed", "npm", "sort", "python3", "node", "java", "deno", "bun", "sqlite3", "psql",
    "make", "curl", "docker", "xargs", "crontab", "go", "gcc", "é", "", ".", "perl", "rg", "gh", "ip",
];

proptest! {
    #[test]
    fn nothing_panics(program in prop::sample::select(PROGRAMS), args in prop::collection::vec(argument(), 0..8)) {
        for tail in [Tail::Closed, Tail::Open] {
            let found = reach(Called { token: program, real: Path::new(program), text: "é" }, &args, tail);
            if let Reach::Farther(found) = found {
                prop_assert!(found.at.is_none_or(|at| at < args.len()));
                prop_assert!(!found.to_string().is_empty());
            }
        }
    }

    /// A dangerous option is found behind and in front of any other words that do not end the options.
    #[test]
    fn noise_hides_nothing(
        (program, option) in prop::sample::select(vec![
            ("rg", "--pre=x"), ("sort", "--compress-program=x"), ("curl", "-Kx"), ("rsync", "--rsh=x"), ("find", "-exec"),
            ("wget", "--execute=x"), ("zip", "--unzip-command=x"), ("make", "--eval=x"), ("cargo", "--config=x"),
        ]),
        before in prop::collection::vec("-{0,2}[a-z]{1,4}", 0..5),
        after in prop::collection::vec("-{0,2}[a-z]{1,4}", 0..5),
    ) {
        let list: Vec<Word> = before.iter().map(String::as_str).chain([option]).chain(after.iter().map(String::as_str))
            .map(|text| Word { span: Span { start: 0, end: 0 }, value: Value::Literal(text.to_owned()) })
            .collect();
        let found = reach(Called { token: program, real: Path::new(program), text: "" }, &list, Tail::Closed);
        prop_assert!(matches!(found, Reach::Farther(_)), "{program} {list:?}");
    }
}
