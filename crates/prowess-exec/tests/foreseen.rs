//! What a command was foreseen to need: once a person allows it, does the command work?
//!
//! Protected files need a view of the file systems of the run's own; where the kernel gives none, there is nothing to test.

#![cfg(target_os = "linux")]

use crate::world;
use std::path::PathBuf;

use prowess_exec::sandbox::Survey;
use prowess_policy::Answer;
use prowess_policy::posture::Security;
use world::{Asked, World, answering, path_text, write};

/// A world in which the sandbox decides and a person says yes to everything else, if this machine can do that.
fn contained() -> Option<(World, Asked)> {
    let works = Survey::with_helper(PathBuf::from(env!("CARGO_BIN_EXE_prowess-confine"))).view().works;
    let has_git = PathBuf::from("/usr/bin/git").exists();
    if !works || !has_git {
        eprintln!("skipped: protected files {works}, git {has_git}");
        return None;
    }
    let (approver, asked) = answering(&[Answer::Once; 32]);
    let mut world = World::new(approver);
    world.setting.settings.security = Some(Security::Contained);
    Some((world, asked))
}

/// Runs `command` and compares the end of its output, and the paths that it asked to change.
async fn check((world, asked): &(World, Asked), command: &str, output: &str, changes: &[&str]) {
    asked.lock().expect("a list").clear();
    let result = world.run(command).await.text();
    assert!(result.ends_with(output), "{command}: {result}");
    let root = world.root();
    let expected: Vec<String> = changes.iter().map(|path| format!("change {}", root.join(path).display())).collect();
    assert_eq!(asked.lock().expect("a list").concat(), expected, "{command}");
}

#[tokio::test]
async fn git_changes_its_configuration_after_a_yes() {
    let Some(world) = contained() else { return };
    let made = "git init -q . && git config --list >/dev/null && git -c user.name=a -c user.email=a@b commit -q \
                --allow-empty -m one && git init -q sub && mkdir -p deep/er && echo made";
    check(&world, made, "made", &[]).await;
    let config = "ws/.git/config";
    check(&world, "git -C sub config a.b c && git -C sub config a.b", "c", &["ws/sub/.git/config"]).await;
    check(&world, "cd deep/er && git config a.b d && git config a.b", "d", &[config]).await;
    check(&world, "git branch -m topic && git branch --show-current", "topic", &[config]).await;
    check(&world, "git remote add up https://example.com/x && git remote", "up", &[config]).await;
    check(&world, "git init -q . && echo again", "again", &[config]).await;
    let hook = "echo true > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit && echo hooked";
    check(&world, hook, "hooked", &["ws/.git/hooks"]).await;
    check(&world, "git worktree add -q tree 2>&1 && git -C tree status -s && echo added", "added", &[]).await;
    check(&world, "cd tree && git config a.b e && git config a.b", "e", &[config]).await;
    let removed = ["ws/.git/worktrees", "ws/tree/.git"];
    check(&world, "git worktree remove tree && git worktree list | wc -l", "1", &removed).await;
    check(&world, "rm -rf sub && ls -d sub 2>/dev/null || echo gone", "gone", &["ws/sub/.git"]).await;
}

#[tokio::test]
async fn the_operators_git_settings_are_written_after_a_yes() {
    let Some(world) = contained() else { return };
    let file = world.0.setting.home.join(".gitconfig");
    let name = "git config --global user.name Ann && git config --global user.name";
    check(&world, name, "Ann", &["home/.gitconfig"]).await;
    assert!(std::fs::read_to_string(&file).unwrap().contains("name = Ann"));
    let mail = "git config --global user.email ann@x && git config --global --list | wc -l";
    check(&world, mail, "2", &["home/.gitconfig"]).await;
    assert!(std::fs::read_to_string(&file).unwrap().contains("name = Ann"), "what was there stays");
}

#[tokio::test]
async fn files_outside_are_made_after_a_yes() {
    let Some(world) = contained() else { return };
    world.0.file("a.txt", "a\n");
    let home = world.0.setting.home.clone();
    check(&world, "tar czf ~/new.tgz a.txt && tar tzf ~/new.tgz", "a.txt", &["home/new.tgz"]).await;
    check(&world, "cp a.txt ~/copy.txt && cat ~/copy.txt", "a", &["home/copy.txt"]).await;
    check(&world, "mkdir -p ~/d/e && touch ~/d/e/f && find ~/d -type f | wc -l", "1", &["home/d"]).await;
    assert!(home.join("new.tgz").metadata().unwrap().len() > 0 && home.join("d/e/f").exists());
    check(&world, "false && tee ~/never.txt; echo done", "done", &["home/never.txt"]).await;
    assert!(!home.join("never.txt").exists(), "what the command did not touch is not left behind");
    let refused = world.0.run("mv a.txt ~/moved.txt").await.text();
    assert!(refused.contains("no answer can allow that") && refused.contains("copy it with cp"), "{refused}");
}

#[tokio::test]
async fn the_shells_own_commands_are_the_shells() {
    let Some(world) = contained() else { return };
    check(&world, "TZ=UTC printf '%(%Y)T\\n' 0", "1970", &[]).await;
    check(&world, "sleep 20 & kill %1 && wait; echo ended", "ended", &[]).await;
    check(&world, "x=5; printf -v y '%03d' $x; echo $y", "005", &[]).await;
}

#[tokio::test]
async fn programs_have_a_place_for_what_they_keep() {
    let Some(world) = contained() else { return };
    check(&world, "mkdir -p \"$XDG_CACHE_HOME/x\" && echo kept > \"$XDG_CACHE_HOME/x/y\" && echo made", "made", &[])
        .await;
    check(&world, "cat \"$XDG_CACHE_HOME/x/y\"", "kept", &[]).await;
    if PathBuf::from("/usr/bin/go").exists() {
        let build = "go mod init x 2>/dev/null && printf 'package main\nfunc main() { println(1) }\n' > main.go && go run . 2>&1";
        check(&world, build, "1", &[]).await;
    }
}

#[tokio::test]
async fn the_shims_of_a_version_manager_find_their_programs() {
    let Some((mut world, asked)) = contained() else { return };
    let root = world.setting.home.join(".pyenv");
    let shim = format!("#!/usr/bin/env bash\nexec \"{}/libexec/pyenv\" exec \"${{0##*/}}\" \"$@\"\n", path_text(&root));
    write(&root.join("shims/tool"), &shim, 0o755);
    let manager = format!("#!/bin/sh\nshift\nname=$1\nshift\nexec {}/versions/3/bin/$name \"$@\"\n", path_text(&root));
    write(&root.join("libexec/pyenv"), &manager, 0o755);
    write(&root.join("versions/3/bin/tool"), "#!/bin/sh\necho real $1\n", 0o755);
    let path = format!("{}:/usr/bin:/bin", path_text(&root.join("shims")));
    world.setting.host_env.retain(|(name, _)| name != "PATH");
    world.setting.host_env.push(("PATH".to_owned(), path.into()));
    check(&(world, asked), "tool x", "real x", &[]).await;
}
