//! Containers: does killing a run end it inside the container, where our signals do not arrive?

#![cfg(target_os = "linux")]

use crate::processes;
use crate::support;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use processes::{is_running, pids, says};
use prowess_exec::job::{Exit, Limits, Runner};
use prowess_exec::sandbox::{Engine, Kind, Sandbox};
use support::{Begin, Begins, bash, runner, soon, start};
use tempfile::TempDir;

/// A client of an engine whose "container" is out of reach for signals to the client: commands run in a session of their
/// own, as children of nobody here, and the client only waits for them. It writes down what it was asked.
const CLIENT: &str = r#"#!/bin/bash
trap : TERM
echo "$@" | head -n 1 >> FOLDER/calls
while :; do
  case $1 in exec | -i | -t) shift ;; -w | -e) shift 2 ;; *) break ;; esac
done
shift
setsid --fork bash -c 'trap : TERM; "$@"; echo $? > FOLDER/code.$0' $$ "$@"
until [ -s FOLDER/code.$$ ]; do sleep 0.02; done
exit "$(cat FOLDER/code.$$)"
"#;

fn client(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("engine");
    std::fs::write(&path, CLIENT.replace("FOLDER", &folder.path().display().to_string())).expect("a script");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("the mode is set");
    path
}

fn in_container(folder: &TempDir, text: &str) -> support::Bash {
    let kind = Kind::Container { engine: Engine::Docker, name: "box".to_owned() };
    bash(text).by_sh().within(Sandbox::new(kind, "/nowhere".into()).client_at(client(folder)))
}

/// Says who it is, and starts one that has no variables and so does not carry the mark of the run.
const TWO: &str = "env -i sleep 1000 & echo pid=$$ pid=$! ready; wait";

#[tokio::test]
async fn a_run_that_is_killed_ends_inside_its_container() {
    let folder = TempDir::new().expect("a folder");
    let handle = runner().begin(in_container(&folder, TWO), start(folder.path())).await.expect("a start");
    let pids = pids(&says(handle.job(), "ready").await);
    handle.job().kill();
    let outcome = soon(handle.job().wait()).await;
    assert_eq!((&outcome.exit, outcome.left), (&Exit::Killed, 0));
    assert!(pids.len() == 2 && !pids.iter().any(|&pid| is_running(pid)), "{pids:?}");
    let calls = std::fs::read_to_string(folder.path().join("calls")).expect("calls");
    let calls: Vec<&str> = calls.lines().collect();
    assert!(calls[0].starts_with("exec -i -w") && calls[0].contains("-e PROWESS_RUN_ID box /bin/sh -c"), "{calls:?}");
    assert!(calls[1].starts_with("exec box /bin/sh -c"), "{calls:?}");
}

#[tokio::test]
async fn a_run_is_asked_before_it_is_killed_inside() {
    let folder = TempDir::new().expect("a folder");
    let patient = Runner::new(Limits { grace: Duration::from_secs(30), ..Limits::default() });
    let text = "trap 'echo asked; exit 3' TERM; echo pid=$$ ready; while :; do sleep 0.05; done";
    let handle = patient.begin(in_container(&folder, text), start(folder.path())).await.expect("a start");
    says(handle.job(), "ready").await;
    handle.job().kill();
    let outcome = soon(handle.job().wait()).await;
    let said = outcome.output.text();
    assert_eq!((&outcome.exit, outcome.left, said.contains("asked")), (&Exit::Killed, 0, true), "{said}");
}

#[tokio::test]
async fn a_run_that_takes_too_long_and_does_not_listen_is_killed_inside() {
    let folder = TempDir::new().expect("a folder");
    let text = "trap '' TERM; echo pid=$$ ready; while :; do sleep 0.05; done";
    let begin = Begin { timeout: Some(Duration::from_secs(2)), ..start(folder.path()) };
    let handle = runner().begin(in_container(&folder, text), begin).await.expect("a start");
    let outcome = soon(handle.job().wait()).await;
    let said = outcome.output.text();
    assert_eq!((&outcome.exit, outcome.left), (&Exit::TimedOut, 0), "{said}");
    assert!(!pids(&said).iter().any(|&pid| is_running(pid)), "{said}");
}

#[tokio::test]
async fn a_run_that_ends_by_itself_is_left_in_peace() {
    let folder = TempDir::new().expect("a folder");
    let handle =
        runner().begin(in_container(&folder, "echo done; exit 7"), start(folder.path())).await.expect("a start");
    let outcome = soon(handle.job().wait()).await;
    assert_eq!((&outcome.exit, outcome.output.text().as_str()), (&Exit::Code(7), "done\n"));
    let calls = std::fs::read_to_string(folder.path().join("calls")).expect("calls");
    assert_eq!(calls.lines().count(), 1, "{calls}");
}
