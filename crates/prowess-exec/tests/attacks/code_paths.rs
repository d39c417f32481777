//! Editors, pagers, hooks and filters: does code that a file names start with the tool that reads the file?

use std::process::Command;

use prowess_policy::SandboxChoice;

use crate::world::{World, yes};

/// A repository whose settings start a program at every turn. Each leaves a mark.
const SETTINGS: &str = "[core]\n\tfsmonitor = touch MARK-fsmonitor && false\n\tpager = touch MARK-pager && cat\n\
    \teditor = touch MARK-editor && false\n\thooksPath = hooks\n\tsshCommand = touch MARK-ssh && false\n\taskPass = touch MARK-askpass\n\
    [diff]\n\texternal = touch MARK-external && true\n[diff \"d\"]\n\ttextconv = touch MARK-textconv && cat\n\
    [filter \"f\"]\n\tclean = touch MARK-clean && cat\n\tsmudge = touch MARK-smudge && cat\n\trequired = true\n\
    [sequence]\n\teditor = touch MARK-sequence && false\n[credential]\n\thelper = !touch MARK-credential\n\
    [merge \"m\"]\n\tdriver = touch MARK-driver && false\n[pager]\n\tlog = touch MARK-log && cat\n";

fn world(sandbox: SandboxChoice) -> Option<World> {
    let mut world = World::new(yes());
    world.setting.settings.sandbox = sandbox;
    let path = "/usr/local/bin:/usr/bin:/bin";
    world.setting.host_env.retain(|(name, _)| name != "PATH");
    world.setting.host_env.push(("PATH".to_owned(), path.into()));
    let script = "git init -q . && echo a > a && git add a && git -c user.name=a -c user.email=a@b commit -qm one && \
        printf 'a diff=d filter=f merge=m\\n' > .gitattributes && mkdir hooks && printf '#!/bin/sh\\ntouch MARK-hook\\n' > hooks/pre-commit \
        && chmod +x hooks/pre-commit && echo b >> a";
    let mut made = Command::new("/bin/sh");
    made.args(["-c", script]).current_dir(world.ws("")).env("HOME", "/nonexistent").env("PATH", path);
    if !made.output().is_ok_and(|made| made.status.success()) {
        eprintln!("skipped: git is missing");
        return None;
    }
    world.file(".git/config", SETTINGS);
    std::fs::write(world.setting.home.join(".gitconfig"), "[user]\n\tname = Ann\n\temail = ann@x\n").expect("a file");
    Some(world)
}

fn marks(world: &World) -> Vec<String> {
    let names = std::fs::read_dir(world.ws("")).expect("a workspace").flatten();
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    let mut marks: Vec<String> = names.filter(|name| name.starts_with("MARK")).collect();
    marks.sort();
    marks
}

const COMMANDS: &str = "git status --short; git diff; git diff HEAD; git log -p; git add a; git commit -m two; git commit --amend; \
    git tag -a t; git notes add; git branch --edit-description; git checkout HEAD~1; git checkout -; git stash; git rebase -i HEAD~1; \
    git ls-remote ssh://localhost/x; git config edit; true";

#[tokio::test]
async fn nothing_that_a_repository_names_is_started() {
    let Some(control) = world(SandboxChoice::Off) else { return };
    control.run(COMMANDS).await;
    let started = marks(&control);
    assert!(started.len() > 5 && started.contains(&"MARK-editor".to_owned()), "the control: {started:?}");
    let Some(world) = world(SandboxChoice::Auto) else { return };
    let result = world.run(COMMANDS).await;
    assert_eq!(marks(&world), [] as [&str; 0], "{}", result.text());
    assert!(result.text().contains("No editor is available here"), "{}", result.text());
}

#[tokio::test]
async fn git_is_of_use_all_the_same() {
    let Some(world) = world(SandboxChoice::Auto) else { return };
    let result = world.run("git add a .gitattributes && git commit -qm two && git diff HEAD~1 -- a && git log -1 --format='%an <%ae> %s'").await;
    assert!(result.text().contains("+b") && result.text().contains("Ann <ann@x> two"), "{}", result.text());
    let result = world
        .run("git commit -q --amend --no-edit && git checkout -q -b topic && git merge -q --no-edit HEAD && echo fine")
        .await;
    assert!(result.text().ends_with("fine"), "{}", result.text());
}

#[tokio::test]
async fn editors_of_other_tools_do_not_start() {
    let Some(world) = world(SandboxChoice::Auto) else { return };
    let result = world.run("for name in EDITOR VISUAL KUBE_EDITOR SYSTEMD_EDITOR SUDO_EDITOR PAGER MANPAGER; do printenv $name; done | sort | uniq -c").await;
    let words: Vec<String> = result.text().split_whitespace().map(str::to_owned).collect();
    assert_eq!(words, ["2", "cat", "5", "false"], "{}", result.text());
}

#[tokio::test]
async fn the_result_says_which_files_were_renamed() {
    let mut world = World::new(yes());
    let result = world.run("f=.envrc; echo x > $f; echo done").await;
    assert!(result.text().contains(".envrc") && result.text().contains("asks the user"), "{}", result.text());
    assert!(!world.ws(".envrc").exists() && world.ws(".envrc.quarantined-by-prowess").exists());
    // The operator's list counts.
    world.setting.settings.protected.remove = vec![".envrc".to_owned()];
    world.setting.settings.protected.add = vec!["deploy.sh".to_owned()];
    let result = world.run("for f in .envrc deploy.sh; do echo x > $f; done").await;
    assert!(world.ws(".envrc").exists() && !world.ws("deploy.sh").exists(), "{}", result.text());
}
