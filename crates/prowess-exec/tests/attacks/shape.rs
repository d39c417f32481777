//! A18, A19, A20: can the text of a command smuggle in what nobody allowed?

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use prowess_exec::approver::Nobody;

use crate::attacks::target;
use crate::world::{World, path_text};

/// Puts the paths of `world` into an attack. A path goes in last: its random part may spell `WS` or `MARK`.
fn aimed(command: &str, world: &World) -> String {
    command.replace("MARK", "WS/mark").replace("WS", path_text(&world.setting.workspace))
}

/// Whether the payload ran: the mark is there, or the secret was said.
fn is_hit(world: &World, said: &str) -> bool {
    world.ws("mark").exists() || said.contains("hunter2")
}

/// What an ordinary shell makes of the attack.
fn in_a_bare_shell(attack: &str, world: &World) -> String {
    let mut bash = std::process::Command::new("/bin/bash");
    bash.args(["--norc", "--noprofile", "-c", &aimed(attack, world)]).current_dir(&world.setting.workspace);
    let output = bash.stdin(std::process::Stdio::null()).env_remove("BASH_ENV").output().expect("there is a shell");
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Each attack leaves no mark while nobody says yes, and one line in the trail; in an ordinary shell it leaves its mark.
async fn check_attacks(attacks: &[&str]) {
    let mut failures = Vec::new();
    for attack in attacks {
        let world = target(Arc::new(Nobody));
        let before = files(&world);
        let result = world.run(&aimed(attack, &world)).await;
        if is_hit(&world, &result.text()) || !result.is_error {
            failures.push(format!("RAN UNASKED: {attack:?}: {}", result.text()));
        }
        if world.endings() != ["refused"] {
            failures.push(format!("not one line of audit: {attack:?}: {:?}", world.endings()));
        }
        if files(&world) != before {
            failures.push(format!("left files behind: {attack:?}"));
        }
        let control = target(Arc::new(Nobody));
        let said = in_a_bare_shell(attack, &control);
        // What an attack leaves in the background may take a moment longer than the shell.
        let mut moments = 0;
        while !is_hit(&control, &said) && moments < 500 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            moments += 1;
        }
        if !is_hit(&control, &said) {
            failures.push(format!("the control does not see it: {attack:?}: {said}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// All files of a world but the trail.
fn files(world: &World) -> Vec<String> {
    fn walk(dir: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry")) {
            let path = entry.path();
            if path.is_dir() && !path.is_symlink() {
                walk(&path, found);
            } else {
                found.push(format!("{} {}", path.display(), std::fs::read_to_string(&path).unwrap_or_default()));
            }
        }
    }
    let mut found = Vec::new();
    walk(&world.root(), &mut found);
    found.retain(|path| !path.contains("/state/audit/"));
    found.sort();
    found
}

/// A18: structure of the shell around allowed programs.
#[tokio::test]
async fn what_hides_in_the_shape_of_a_command_does_not_run() {
    let attacks = [
        "ls; touch MARK",
        "ls && touch MARK",
        "ls nothing || touch MARK",
        "ls | touch MARK",
        "ls |& touch MARK",
        "ls & touch MARK",
        "ls\ntouch MARK",
        "ls \n\n\t touch MARK",
        "ls $(touch MARK)",
        "ls \"$(touch MARK)\"",
        "ls `touch MARK`",
        "ls <(touch MARK)",
        "ls > >(touch MARK; cat >/dev/null)",
        "ls ${nothing:-$(touch MARK)}",
        "echo $((nothing[$(touch MARK)]))",
        "echo \"${nothing:=`touch MARK`}\"",
        "ls > MARK",
        "ls >> MARK",
        "ls >| MARK",
        "ls &> MARK",
        "ls 2> MARK",
        "ls <> MARK",
        "ls >& MARK",
        "ls() { touch MARK; }; ls",
        "function ls { touch MARK; }; ls",
        "(touch MARK)",
        "{ touch MARK; }",
        "if ls; then touch MARK; fi",
        "for i in 1; do touch MARK; done",
        "while touch MARK; do break; done",
        "until touch MARK; do :; done",
        "case x in x) touch MARK;; esac",
        "[[ -n $(touch MARK) ]]",
        "! touch MARK",
        "$'\\x74ouch' MARK",
        "ls; t\\ouch MARK",
        "ls; \"tou\"ch MARK",
        "eval touch MARK",
        "eval 'tou''ch MARK'",
        "trap 'touch MARK' EXIT; ls",
        "coproc touch MARK; wait",
        "echo <<EOF\n$(touch MARK)\nEOF",
        "ls <<< \"$(touch MARK)\"",
        "ls # \\\ntouch MARK",
        "ls #\ntouch MARK",
        "ls \\\n; touch MARK",
        "X=touch; $X MARK",
        "tou{ch,} MARK",
        "/usr/bin/touc? MARK",
        "exec touch MARK",
        "command touch MARK",
        "builtin eval touch MARK",
        "time touch MARK",
        ". WS/rc",
        "source WS/rc",
        "PATH=WS/evil:$PATH ls",
        "PATH=WS/evil; ls",
        "export PATH=WS/evil; ls",
        "hash -p WS/evil/ls ls; ls",
        "./evil/ls",
        "cd evil; ./ls",
        "BASH_ENV=WS/rc bash -c ls",
        "shopt -s expand_aliases\nalias ls='touch MARK'\nls",
        "set -- touch MARK; \"$@\"",
        "mapfile -C 'touch MARK #' -c 1 < WS/secret",
        "printf -v nothing x; touch MARK",
        "declare -n a=b; touch MARK",
        "enable -n touch; touch MARK",
    ];
    check_attacks(&attacks).await;
}

/// A18: arguments that make an allowed program start another one.
#[tokio::test]
async fn what_hides_in_the_arguments_of_an_allowed_program_does_not_run() {
    let attacks = [
        "find . -maxdepth 0 -exec touch MARK \\;",
        "find . -maxdepth 0 -execdir touch MARK \\;",
        "find . -maxdepth 0 -fprint MARK",
        "find . -maxdepth 0 -fprintf MARK x",
        "find . -maxdepth 0 -fls MARK",
        "tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec='touch MARK' secret names rc",
        "tar -cf /dev/null --checkpoint=1 --checkpoint-act=exec='touch MARK' secret names rc",
        "tar -cf x.tar -I 'touch MARK #' secret",
        "tar -cf x.tar --use-compress-program='touch MARK #' secret",
        "tar -cf x.tar --to-command='touch MARK' secret; tar -xf x.tar --to-command='touch MARK'",
        "git -c alias.x='!touch MARK' x",
        "git -c protocol.ext.allow=always ls-remote 'ext::touch MARK'",
        "git --config-env=alias.x=HOME -c alias.y='!touch MARK' y",
        "GIT_EXTERNAL_DIFF='touch MARK #' git diff --no-index secret rc",
        "git -c diff.external='touch MARK #' diff --no-index secret rc",
        "awk 'BEGIN{system(\"touch MARK\")}'",
        "awk 'BEGIN{print 1 > \"MARK\"}'",
        "awk 'BEGIN{print 1 | \"touch MARK\"}'",
        "sed -n '1e touch MARK' secret",
        "sed -n 'w MARK' secret",
        "sed 's/h/h/w MARK' secret",
        "perl -e 'system(\"touch MARK\")'",
        "perl -Mstrict -e 'system(\"touch MARK\")'",
        "echo MARK | xargs touch",
        "echo MARK | xargs -I{} sh -c 'touch {}'",
    ];
    check_attacks(&attacks).await;
}

/// A19: safe programs are safe only while they filter what they are given.
#[tokio::test]
async fn safe_programs_open_no_files() {
    let attacks = [
        "head -n1 secret",
        "head secret",
        "head -n1 WS/secret",
        "head -n1 secre?",
        "head *",
        "head -n1 $PWD/secret",
        "head -n1 \"$PWD\"/secret",
        "head -n1 < secret",
        "tail -n1 ./secret",
        "tail -n +1 -- secret",
        "cut -d: -f1 secret",
        "cut -f1 -- secret",
        "tr a a < secret",
        "tr a a <secret",
        "uniq secret",
        "uniq secret mark",
        "uniq - mark < /dev/null",
        "echo x | uniq - MARK",
        "head -qn1 secret",
        "head --line=1 secret",
        "wc -l --files0-from=secret",
        "wc --files0=secret",
        "wc --files0-fro=secret",
        "cd .; head -n1 secret",
        "echo x | head -n1 secret",
        "head -n1 {secret,rc}",
        "head -n1 ~+/secret",
    ];
    check_attacks(&attacks).await;
}

/// A20: programs that start programs, allowed or not.
#[tokio::test]
async fn a_wrapper_is_no_way_around() {
    let attacks = [
        "env touch MARK",
        "/usr/bin/env touch MARK",
        "env -i touch MARK",
        "env -i PATH=/usr/bin touch MARK",
        "env FOO=1 touch MARK",
        "env -S 'touch MARK'",
        "env -S'touch MARK'",
        "env --split-string='touch MARK'",
        "env --split='touch MARK'",
        "env -vS 'touch MARK'",
        "env -u X touch MARK",
        "env PATH=WS/evil ls",
        "env -C evil ./ls",
        "env -C WS/evil ./ls",
        "env env env env env env env env env env env touch MARK",
        "env env env env env env env env env env env sh -c 'touch MARK'",
        "nice touch MARK",
        "nice -n 5 touch MARK",
        "nohup touch MARK",
        "timeout 5 touch MARK",
        "timeout -k 1 5 touch MARK",
        "stdbuf -o0 touch MARK",
        "setsid -w touch MARK",
        "sh -c 'touch MARK'",
        "sh -ec 'touch MARK'",
        "bash -c 'touch MARK'",
        "bash -lc 'touch MARK'",
        "/bin/sh -c 'touch MARK'",
        "bash -c 'sh -c \"touch MARK\"'",
        "sh -c '$0 MARK' touch",
        "sh -c '\"$@\"' sh touch MARK",
        "sh -c 'ls; touch MARK'",
        "env sh -c 'touch MARK'",
        "nice nohup timeout 5 sh -c 'touch MARK'",
        "echo 'touch MARK' | sh",
        "echo 'touch MARK' | env sh",
        "echo 'touch MARK' | timeout 5 bash",
        "sh rc",
        "bash WS/rc",
        "time -p touch MARK",
        "exec env touch MARK",
        "command env touch MARK",
        "nice env timeout 5 perl -e 'system(\"touch MARK\")'",
    ];
    check_attacks(&attacks).await;
}

/// The control of the controls: what is allowed runs, without a question and with one line of audit.
#[tokio::test]
async fn ordinary_commands_run_unasked() {
    for command in [
        "ls -la",
        "ls | head -n 5",
        "ls && echo done",
        "echo 'literal $(id)'",
        "echo hello | tr a-z A-Z",
        "env FOO=1 ls",
        "nice -n 5 timeout 5 ls",
        "git --version; ls",
        "find . -name secret | wc -l",
        "ls *",
        "echo \"$HOME\"",
        "sh -c 'ls; echo x'",
        "cd evil && ls 2>/dev/null",
        "tar -cf backup.tar secret",
    ] {
        let world = target(Arc::new(Nobody));
        let result = world.run(command).await;
        assert!(!result.is_error, "{command}: {}", result.text());
        assert_eq!(world.endings(), ["allowed"], "{command}");
        assert!(!world.ws("mark").exists());
    }
}
