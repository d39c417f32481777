//! Running: does a command get exactly what it should, and is nothing of it left when it is over?

#![cfg(target_os = "linux")]

use crate::processes;
use crate::support;
use std::collections::HashSet;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use processes::{is_running, pids, says};
use prowess_exec::job::{Clock, Exit, Input, Leftovers, Limits, Outcome, Random, Runner, Start, StartError, Then};
use prowess_exec::sandbox::{Confinement, Kind, Sandbox};
use rustix::process::{Pid, Signal, kill_process};
use support::{Bash, Begin, Begins, bash, launch, runner, soon, start};
use tempfile::TempDir;

/// Says who it is, starts one more of the kind, and does not end by itself.
const TWO: &str = "sleep 1000 & echo pid=$$ pid=$! ready; wait";

/// A helper that is this script. Its order is so long that it has to be sent in pieces.
fn helper(text: &str) -> Bash {
    let mut confinement = Confinement::baseline(std::path::Path::new("/tmp/nobody"), &[], None);
    let long = format!("/nowhere{}", format!("/{}", "x".repeat(250)).repeat(15));
    confinement.read.extend((0..160).map(|number| format!("{long}/{number}").into()));
    let sandboxed = bash("true").helped_by(text, Kind::Landlock);
    sandboxed.confined_to(confinement)
}

async fn outcome(text: &str) -> Arc<Outcome> {
    outcome_of(text, |start| start).await
}

async fn outcome_of(text: &str, change: impl FnOnce(Begin) -> Begin) -> Arc<Outcome> {
    let folder = TempDir::new().expect("a folder");
    let handle = runner().begin(bash(text), change(start(folder.path()))).await.expect("a start");
    soon(handle.job().wait()).await
}

#[tokio::test]
async fn output_and_errors_keep_their_order() {
    let outcome = outcome("echo 1; echo 2 >&2; echo 3; echo 4 >&2; exit 5").await;
    assert_eq!(outcome.output.text(), "1\n2\n3\n4\n");
    assert_eq!((&outcome.exit, outcome.code, &outcome.signal), (&Exit::Code(5), Some(5), &None));
}

#[tokio::test]
async fn a_command_gets_the_variables_it_was_given_and_no_others() {
    let names = outcome_of("compgen -e", |start| Begin { env: vec![("FOO".to_owned(), "bar".into())], ..start });
    let text = names.await.output.text();
    // Bash exports these three of its own accord.
    let names: HashSet<&str> = text.lines().filter(|name| !["PWD", "SHLVL", "_", "OLDPWD"].contains(name)).collect();
    assert_eq!(names, HashSet::from(["FOO", "PATH"]));
}

#[tokio::test]
async fn a_command_gets_no_descriptors_of_ours() {
    // A file, a pipe and a socket of ours, open while the command starts.
    let folder = TempDir::new().unwrap();
    let mine = (std::fs::File::create(folder.path().join("mine")).unwrap(), std::io::pipe().unwrap());
    let socket = std::os::unix::net::UnixStream::pair().unwrap();
    let outcome = outcome("readlink /proc/$$/fd/*; read -r line || echo closed").await;
    let text = outcome.output.text();
    let links = |fd: i32| std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap().display().to_string();
    let ours = [mine.0.as_raw_fd(), mine.1.0.as_raw_fd(), socket.0.as_raw_fd(), socket.1.as_raw_fd()].map(links);
    assert!(ours.iter().all(|link| !text.contains(link)), "{ours:?} in {text}");
    assert!(text.starts_with("/dev/null\n") && text.ends_with("closed\n"), "{text}");
}

#[tokio::test]
async fn long_output_keeps_its_end_whoever_holds_the_pipe() {
    for rest in ["", "sleep 1000 &"] {
        let outcome = outcome(&format!("{rest} head -c 300000 /dev/zero | tr '\\0' x; echo; echo END")).await;
        assert!(outcome.output.text().ends_with("x\nEND\n"));
        assert_eq!((outcome.output.total_bytes, outcome.output.total_lines), (300_005, 2));
    }
}

#[tokio::test]
async fn everyone_is_ended_even_who_does_not_listen() {
    let deaf = "echo pid=$$; (trap '' TERM; echo pid=$BASHPID ready; while :; do sleep 1000; done) & wait";
    let stopped = "echo pid=$$ ready; kill -STOP $$";
    let folder = TempDir::new().unwrap();
    for (text, signal) in
        [(TWO, "SIGTERM"), (deaf, "SIGTERM"), (stopped, "SIGTERM"), (&format!("trap '' TERM; {TWO}"), "SIGKILL")]
    {
        let handle = runner().begin(bash(text), start(folder.path())).await.unwrap();
        let pids = pids(&says(handle.job(), "ready").await);
        handle.job().kill();
        let outcome = soon(handle.job().wait()).await;
        assert_eq!(
            (&outcome.exit, outcome.signal.as_deref(), outcome.left),
            (&Exit::Killed, Some(signal), 0),
            "{text}"
        );
        assert!(!pids.is_empty() && !pids.iter().any(|&pid| is_running(pid)), "{text}: {pids:?}");
    }
}

#[tokio::test]
async fn when_its_time_is_up_it_is_ended() {
    let timeout = Some(Duration::from_millis(200));
    let outcome = outcome_of(TWO, |start| Begin { timeout, ..start }).await;
    assert_eq!((&outcome.exit, outcome.signal.as_deref(), outcome.left), (&Exit::TimedOut, Some("SIGTERM"), 0));
    assert!(!pids(&outcome.output.text()).iter().any(|&pid| is_running(pid)));
}

#[tokio::test]
async fn whoever_moved_to_a_session_of_its_own_is_ended_too() {
    let folder = TempDir::new().unwrap();
    let text = "setsid bash -c 'echo pid=$$; sleep 1000 & echo pid=$!; echo ready; wait' & wait";
    let handle = runner().begin(bash(text), start(folder.path())).await.unwrap();
    let pids = pids(&says(handle.job(), "ready").await);
    assert!(pids.len() == 2 && pids.iter().all(|&pid| is_running(pid)), "{pids:?}");
    handle.job().kill();
    let outcome = soon(handle.job().wait()).await;
    assert_eq!((&outcome.exit, outcome.signal.as_deref()), (&Exit::Killed, Some("SIGTERM")));
    assert!(!pids.iter().any(|&pid| is_running(pid)), "{pids:?}");
}

#[tokio::test]
async fn whoever_stops_waiting_ends_the_command() {
    let folder = TempDir::new().unwrap();
    let handle = runner().begin(bash(TWO), start(folder.path())).await.unwrap();
    let pids = pids(&says(handle.job(), "ready").await);
    let mut state = handle.job().watch();
    drop(handle);
    soon(state.wait_for(|state| matches!(state, prowess_exec::job::State::Finished(_)))).await.unwrap();
    assert!(pids.len() == 2 && !pids.iter().any(|&pid| is_running(pid)), "{pids:?}");
}

#[test]
fn when_the_program_ends_its_commands_end() {
    let folder = TempDir::new().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let pids = runtime.block_on(async {
        let handle = runner().begin(bash(TWO), start(folder.path())).await.unwrap();
        let job = handle.into_background();
        pids(&says(&job, "ready").await)
    });
    assert!(pids.len() == 2);
    drop(runtime);
    // They have been killed; dying takes a moment.
    for _ in 0..6_000 {
        if !pids.iter().any(|&pid| is_running(pid)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{pids:?} still run");
}

#[tokio::test]
async fn what_a_command_leaves_behind_is_ended_with_it() {
    let folder = TempDir::new().unwrap();
    // With job control, what is left behind is in a group of its own, but still in the session.
    let controlled = "cat <&3 >/dev/null; exec 3>&- setsid bash -c 'set -m; sleep 1000 & echo pid=$!'";
    for text in ["sleep 1000 & echo pid=$!", "sleep 1000 >/dev/null 2>&1 & echo pid=$!", controlled] {
        let command = if text == controlled { helper(text) } else { bash(text) };
        let handle = runner().begin(command, start(folder.path())).await.unwrap();
        let outcome = soon(handle.job().wait()).await;
        let pids = pids(&outcome.output.text());
        assert_eq!((&outcome.exit, outcome.ended_with_it, outcome.left), (&Exit::Code(0), 1, 0), "{text}");
        assert!(pids.len() == 1 && !is_running(pids[0]), "{text}");
    }
}

#[tokio::test]
async fn what_is_to_be_kept_goes_on_and_nobody_waits_for_it() {
    let kept = outcome_of("sleep 1000 & echo pid=$!", |start| Begin { leftovers: Leftovers::Keep, ..start }).await;
    // It left the family, so nobody can know that it came from here.
    let moved = outcome("(setsid sleep 1000 & echo pid=$!)").await;
    for outcome in [kept, moved] {
        let pids = pids(&outcome.output.text());
        assert_eq!((&outcome.exit, outcome.ended_with_it), (&Exit::Code(0), 0));
        let went_on = is_running(pids[0]);
        kill_process(Pid::from_raw(pids[0]).unwrap(), Signal::KILL).unwrap();
        assert!(went_on);
    }
}

#[tokio::test]
async fn a_signal_is_called_by_its_name() {
    assert_eq!(outcome("kill -SEGV $$").await.exit, Exit::Signal("SIGSEGV".to_owned()));
    assert_eq!(outcome("kill -KILL $$").await.exit, Exit::Signal("SIGKILL".to_owned()));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error() {
    let folder = TempDir::new().unwrap();
    let nowhere = bash("true").within(Sandbox::new(Kind::None, "/nowhere/at/all".into()));
    assert!(matches!(runner().begin(nowhere, start(folder.path())).await, Err(StartError::Spawn(_))));
    let gone = folder.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    let launch = launch(&bash("true"), &start(&gone));
    std::fs::remove_dir(&gone).unwrap();
    assert!(matches!(runner().start(launch, Start::default()).await, Err(StartError::Spawn(_))));
}

#[tokio::test]
async fn a_helper_is_told_what_to_do() {
    let folder = TempDir::new().unwrap();
    let told = helper("order=$(cat <&3 | tr -d '\\0'); exec 3>&-; exec echo ${#order} ${order: -1}");
    let handle = runner().begin(told, start(folder.path())).await.unwrap();
    let said = soon(handle.job().wait()).await.output.text();
    let (length, end) = said.trim().split_once(' ').unwrap();
    assert!(length.parse::<usize>().unwrap() > 500_000 && end == "}", "{said}");
}

#[tokio::test]
async fn a_helper_may_refuse() {
    let folder = TempDir::new().unwrap();
    let no = r#"{"refused":{"code":"drift","message":"no way"}}"#;
    for text in [
        format!("cat <&3 >/dev/null; echo '{no}' >&3"),
        format!("echo '{no}' >&3; exit 1"),
        format!("echo '{no}' >&3; exec 3>&-; sleep 1000"),
    ] {
        let runner = runner();
        match soon(runner.begin(helper(&text), start(folder.path()))).await {
            Err(StartError::Refused(refused)) => assert_eq!(refused.message, "no way"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_session_that_a_helper_began_ends_as_one() {
    let folder = TempDir::new().unwrap();
    // Closing the line means that the rest is the program.
    let text = "cat <&3 >/dev/null; exec 3>&- setsid bash -c 'sleep 1000 & echo pid=$$ pid=$! ready; wait'";
    let handle = runner().begin(helper(text), start(folder.path())).await.unwrap();
    let pids = pids(&says(handle.job(), "ready").await);
    assert_eq!(u32::try_from(pids[0]), Ok(handle.job().pid), "it is the leader itself");
    assert_eq!(rustix::process::getsid(Pid::from_raw(pids[1])).unwrap(), Pid::from_raw(pids[0]).unwrap());
    handle.job().kill();
    soon(handle.job().wait()).await;
    assert!(!pids.iter().any(|&pid| is_running(pid)), "{pids:?}");
}

#[tokio::test]
async fn a_terminal_has_a_size_and_answers() {
    // An answer must not be shown because it came before the program was ready to read it.
    let text = "stty -echo; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && stty size; echo $TERM; \
                printf '\\033[6n'; IFS= read -rs -d R place; echo \"${place@Q}\"; \
                echo ready; read -r line; echo \"got $line\"";
    let folder = TempDir::new().unwrap();
    let begin = Begin { input: Input::Terminal, ..start(folder.path()) };
    let handle = runner().begin(bash(text), begin).await.unwrap();
    let said = says(handle.job(), "ready").await;
    assert!(said.starts_with("30 120\nxterm-256color\n$'\\E[1;1'\n"), "{said:?}");
    handle.job().write(b"hello\r".to_vec(), Then::Continue).await.unwrap();
    let outcome = soon(handle.job().wait()).await;
    assert!(outcome.output.text().ends_with("got hello\n"), "{outcome:?}");
    assert_eq!(outcome.exit, Exit::Code(0));
}

#[tokio::test]
async fn a_terminal_can_be_told_that_this_is_all() {
    let folder = TempDir::new().unwrap();
    let begin = Begin { input: Input::Terminal, ..start(folder.path()) };
    let handle = runner().begin(bash("cat; echo over"), begin).await.unwrap();
    handle.job().write(b"one\n".to_vec(), Then::Close).await.unwrap();
    assert!(soon(handle.job().wait()).await.output.text().ends_with("one\nover\n"));
}

#[tokio::test]
async fn a_pipe_takes_input_until_it_is_closed() {
    let folder = TempDir::new().unwrap();
    let begin = Begin { input: Input::Piped, ..start(folder.path()) };
    let handle = runner().begin(bash("wc -c"), begin).await.unwrap();
    // More than a pipe holds, so that it has to be written in pieces.
    handle.job().write(vec![b'x'; 300_000], Then::Continue).await.unwrap();
    handle.job().write(b"end".to_vec(), Then::Close).await.unwrap();
    assert!(handle.job().write(b"more".to_vec(), Then::Continue).await.is_err());
    assert_eq!(soon(handle.job().wait()).await.output.text().trim(), "300003");
}

#[tokio::test]
async fn only_so_many_run_at_once() {
    let folder = TempDir::new().unwrap();
    let runner = Runner::new(Limits { running: 1, ..Limits::default() });
    let first = runner.begin(bash("sleep 1000"), start(folder.path())).await.unwrap();
    assert!(matches!(runner.begin(bash("true"), start(folder.path())).await, Err(StartError::TooMany(1))));
    first.job().kill();
    soon(first.job().wait()).await;
    let second = runner.begin(bash("echo 2"), start(folder.path())).await.unwrap();
    assert_eq!(soon(second.job().wait()).await.output.text(), "2\n");
}

#[tokio::test]
async fn finished_jobs_are_kept_for_a_while() {
    let folder = TempDir::new().unwrap();
    let seconds = Arc::new(AtomicU64::new(1_000));
    let shown = Arc::clone(&seconds);
    let clock = Clock::new(move || UNIX_EPOCH + Duration::from_secs(shown.load(Ordering::Relaxed)));
    let limits = Limits { finished: 2, ..Limits::default() }.keep(Duration::from_secs(1));
    assert_eq!(limits.keep, Duration::from_secs(60), "a minute is the least");
    let runner = Runner::with(limits, clock, Random::new(|| 7));
    let mut ids = Vec::new();
    for _ in 0..3 {
        let handle = runner.begin(bash("true"), start(folder.path())).await.unwrap();
        let job = handle.into_background();
        soon(job.wait()).await;
        ids.push(job.id.clone());
    }
    assert_eq!(ids[1], format!("{}-2", ids[0]));
    // The oldest had to make room.
    let listed: Vec<String> = runner.list("scope").iter().map(|job| job.id.clone()).collect();
    assert_eq!(listed, [ids[2].clone(), ids[1].clone()]);
    assert!(runner.list("other").is_empty() && runner.find("other", &ids[2]).is_none());
    seconds.store(1_060, Ordering::Relaxed);
    assert!(runner.find("scope", &ids[2]).is_some());
    seconds.store(1_061, Ordering::Relaxed);
    assert!(runner.find("scope", &ids[2]).is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_side_by_side_do_not_mix() {
    let folder = TempDir::new().unwrap();
    let runner = runner();
    let runs = (0..60).map(|number| {
        let (runner, mut begin) = (runner.clone(), start(folder.path()));
        begin.env.push(("NUMBER".to_owned(), number.to_string().into()));
        tokio::spawn(async move {
            let handle = runner.begin(bash("echo $NUMBER; sleep 0.0$RANDOM; echo $NUMBER"), begin).await.unwrap();
            assert_eq!(soon(handle.job().wait()).await.output.text(), format!("{number}\n{number}\n"));
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.unwrap();
    }
}

#[tokio::test]
async fn a_name_that_is_no_text_hides_nobody() {
    let folder = TempDir::new().unwrap();
    let text = "cp /bin/sleep $'odd\\xff) Z 1' && { ./odd* 1000 >/dev/null & echo pid=$!; }";
    let handle = runner().begin(bash(text), start(folder.path())).await.unwrap();
    let outcome = soon(handle.job().wait()).await;
    let pids = pids(&outcome.output.text());
    assert_eq!((outcome.ended_with_it, outcome.left), (1, 0), "{}", outcome.output.text());
    assert!(pids.len() == 1 && !is_running(pids[0]));
}

#[tokio::test]
async fn a_variable_that_is_not_utf_8_reaches_the_command_unchanged() {
    use std::os::unix::ffi::OsStringExt;
    let odd = std::ffi::OsString::from_vec(b"caf\xe9\xff".to_vec());
    let text = "printf %s \"$ODD\" | od -An -tx1";
    let outcome = outcome_of(text, |start| Begin { env: vec![("ODD".to_owned(), odd)], ..start }).await;
    assert_eq!(outcome.output.text().trim(), "63 61 66 e9 ff");
}

#[test]
fn values_of_variables_are_not_shown() {
    let mut begin = start(std::path::Path::new("/"));
    begin.env.push(("TOKEN".to_owned(), "canary".into()));
    let shown = format!("{:?}", launch(&bash("true"), &begin));
    assert!(shown.contains("TOKEN") && !shown.contains("canary"), "{shown}");
}
