//! Getting out: does each sandbox hold, and would we notice if it did not?
//!
//! Every attempt is made three times: without a sandbox, where it must succeed, and under each kind that works here,
//! where it must fail. What must keep working is tried the same way, the other way round.

#![cfg(target_os = "linux")]

#[path = "escape/names.rs"]
mod names;
#[path = "escape/namespaces.rs"]
mod namespaces;
#[path = "escape/protected.rs"]
mod protected;
#[path = "escape/room.rs"]
mod room;

use crate::processes;
use crate::support;
use std::fs;
use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use processes::{is_running, pids, says};
use prowess_exec::job::{Exit, Handle, Input, Then};
use prowess_exec::sandbox::{Kind, Limits, Order, Sandbox};
use prowess_policy::Grants;
use room::{Bystander, Outcome, Room, attempt, is_root, kinds, pin};
use rustix::process::{Pid, Signal, kill_process};
use support::{Begin, Begins, bash, runner, soon, start};

/// Succeeds without a sandbox, fails in every other. `make` gets a fresh room each time.
#[track_caller]
fn contained(make: impl Fn(&Room) -> Vec<String>) {
    for kind in kinds() {
        let room = Room::new();
        let words = make(&room);
        let said = room.attempt(&kind, &words);
        if kind == Kind::None {
            assert!(said.starts_with("ok"), "the control failed, so the test proves nothing: {words:?} {said}");
        } else {
            assert!(said.starts_with("failed"), "{kind} let it happen: {words:?} {said}");
        }
    }
}

/// Succeeds everywhere.
#[track_caller]
fn works(grants: &Grants, make: impl Fn(&Room) -> Vec<String>) {
    for kind in kinds() {
        let room = Room::new().grant(grants.clone());
        let words = make(&room);
        let said = room.attempt(&kind, &words);
        assert!(said.starts_with("ok"), "{kind} does not let it happen: {words:?} {said}");
    }
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|&word| word.to_owned()).collect()
}

fn text(path: &Path) -> String {
    path.to_str().expect("a path of text").to_owned()
}

#[test]
fn what_runs_need_works() {
    let none = Grants::default();
    works(&none, |room| words(&["write", &text(&room.workspace().join("new"))]));
    works(&none, |room| words(&["write", &text(&room.temp().join("new"))]));
    works(&none, |_| words(&["write", "/dev/null"]));
    works(&none, |_| words(&["read", "/etc/passwd"]));
    works(&none, |_| words(&["list", "/etc"]));
    works(&none, |_| words(&["child", "/bin/true"]));
    works(&none, |_| words(&["thread"]));
    works(&none, |_| words(&["stream-pair"]));
    works(&none, |room| {
        fs::write(room.workspace().join("a"), "x").unwrap();
        fs::create_dir(room.workspace().join("sub")).unwrap();
        words(&["rename", &text(&room.workspace().join("a")), &text(&room.workspace().join("sub/a"))])
    });
    works(&none, |room| {
        fs::write(room.workspace().join("script"), "x").unwrap();
        words(&["chmod", &text(&room.workspace().join("script")), "755"])
    });
}

#[test]
fn shells_work_as_ever() {
    let script = "cat <(echo one) | tee copy > /dev/stdout; setsid echo two; cat copy; echo three > /dev/stdout";
    for kind in kinds() {
        let said = Room::new().run(&kind, Path::new("/bin/bash"), &words(&["-c", script])).stdout;
        assert_eq!(said, "one\ntwo\none\nthree\n", "{kind}");
    }
}

#[test]
fn what_the_operator_grants_works() {
    let other = tempfile::tempdir().unwrap();
    let file = other.path().join("file");
    fs::write(&file, "x").unwrap();
    let read = Grants { read: vec![other.path().to_owned()], ..Grants::default() };
    works(&read, |_| words(&["read", &text(&file)]));
    let write = Grants { write: vec![other.path().to_owned()], ..Grants::default() };
    works(&write, |_| words(&["write", &text(&file)]));

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let network = Grants { network: true, ..Grants::default() };
    works(&network, |_| words(&["tcp", &address]));
    works(&network, |_| words(&["listen"]));

    let socket = other.path().join("socket");
    let _service = UnixListener::bind(&socket).unwrap();
    let sockets = Grants { unix_sockets: true, write: vec![other.path().to_owned()], ..Grants::default() };
    works(&sockets, |_| words(&["unix", &text(&socket)]));
}

#[test]
fn the_network_does_not_bring_the_services_along() {
    let other = tempfile::tempdir().unwrap();
    let socket = other.path().join("socket");
    let _service = UnixListener::bind(&socket).unwrap();
    for kind in kinds().into_iter().filter(|kind| *kind != Kind::None) {
        let grants = Grants { network: true, write: vec![other.path().to_owned()], ..Grants::default() };
        let said = Room::new().grant(grants).attempt(&kind, &words(&["unix", &text(&socket)]));
        assert!(said.starts_with("failed"), "{kind}: {said}");
    }
}

#[test]
fn nothing_outside_is_written() {
    contained(|room| words(&["write", &text(&room.home().join("new"))]));
    contained(|room| words(&["write", &text(&room.secret())]));
    contained(|room| words(&["truncate", &text(&room.secret())]));
    contained(|room| words(&["remove", &text(&room.secret())]));
    contained(|room| words(&["rename", &text(&room.secret()), &text(&room.workspace().join("mine"))]));
}

#[test]
fn no_secret_is_read() {
    contained(|room| words(&["read", &text(&room.secret())]));
    contained(|room| words(&["list", &text(&room.home())]));
    contained(|room| words(&["read-through-link", &text(&room.workspace().join("link")), &text(&room.secret())]));
    contained(|room| words(&["read-through-hard-link", &text(&room.workspace().join("link")), &text(&room.secret())]));
}

#[test]
fn the_systems_secrets_are_hidden_even_from_root() {
    if !is_root() || !Path::new("/etc/shadow").exists() {
        eprintln!("skipped: only root could read /etc/shadow anyway");
        return;
    }
    for kind in kinds() {
        let said = Room::new().attempt(&kind, &words(&["read", "/etc/shadow"]));
        // Bubblewrap leaves an empty file in its place.
        assert_eq!(said.contains("root:"), kind == Kind::None, "{kind}: {}", said.len());
    }
}

#[test]
fn modes_of_files_outside_stay() {
    let finding = room::survey().metadata().clone();
    if !finding.works {
        eprintln!("skipped: {}", finding.what);
        return;
    }
    contained(|room| words(&["chmod", &text(&room.secret()), "666"]));
}

#[test]
fn no_program_is_made_set_user_id() {
    contained(|room| {
        let program = room.workspace().join("program");
        fs::write(&program, "x").unwrap();
        words(&["chmod", &text(&program), "4755"])
    });
}

#[test]
fn other_processes_keep_their_secrets() {
    let bystander = Bystander::new();
    let pid = bystander.pid().to_string();
    for kind in kinds() {
        let said = Room::new().attempt(&kind, &words(&["read", &format!("/proc/{pid}/environ")]));
        assert_eq!(said.contains("bystanders-secret"), kind == Kind::None, "{kind}");
    }
    contained(|_| words(&["ptrace", &pid]));

    let secret = b"in the memory of another".to_vec();
    let (address, length) = ((secret.as_ptr() as usize).to_string(), secret.len().to_string());
    contained(|_| words(&["memory", &std::process::id().to_string(), &address, &length]));
}

#[test]
fn one_run_does_not_see_the_variables_of_another() {
    for kind in kinds() {
        let (one, other) = (Room::new(), Room::new());
        let mut run = one.start(&kind, Path::new("/bin/sleep"), &words(&["600"]));
        let said = other.attempt(&kind, &words(&["read", &format!("/proc/{}/environ", run.pid())]));
        // Every run is given the name of its own folder for temporary files.
        assert_eq!(said.contains(&text(&one.temp())), kind == Kind::None, "{kind}");
        run.end();
    }
}

#[test]
fn other_processes_live_on() {
    for kind in kinds() {
        let mut bystander = Bystander::new();
        let said = Room::new().attempt(&kind, &words(&["kill", &bystander.pid().to_string()]));
        assert_eq!(said.starts_with("ok"), kind == Kind::None, "{kind}: {said}");
        assert_eq!(bystander.lives(), kind != Kind::None, "{kind}");
    }
}

#[test]
fn nobody_is_called() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    contained(|_| words(&["tcp", &address]));

    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let address = receiver.local_addr().unwrap().to_string();
    for kind in kinds() {
        // In a network namespace the datagram is sent, to nobody.
        Room::new().attempt(&kind, &words(&["udp", &address]));
        assert_eq!(receiver.recv(&mut [0; 16]).is_ok(), kind == Kind::None, "{kind}");
    }

    let other = tempfile::tempdir().unwrap();
    let socket = other.path().join("socket");
    let _service = UnixListener::bind(&socket).unwrap();
    contained(|_| words(&["unix", &text(&socket)]));
    let name = format!("prowess-{}", std::process::id());
    let _hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    contained(|_| words(&["abstract", &name]));
}

#[test]
fn a_pair_of_sockets_is_no_way_out() {
    let other = tempfile::tempdir().unwrap();
    let socket = other.path().join("log");
    let _service = UnixDatagram::bind(&socket).unwrap();
    contained(|_| words(&["half-a-pair", &text(&socket)]));
}

#[test]
fn the_kernel_is_left_alone() {
    contained(|_| words(&["personality"]));
    contained(|_| words(&["user-namespace"]));
    if !is_root() {
        eprintln!("skipped: only root can mount without a sandbox");
        return;
    }
    contained(|_| words(&["namespace"]));
    contained(|room| words(&["mount", &text(room.workspace())]));
    contained(|room| words(&["chroot", &text(room.workspace())]));
}

#[test]
fn nobody_gains_privileges() {
    for kind in kinds() {
        let said = Room::new().attempt(&kind, &words(&["read", "/proc/self/status"]));
        let field = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name)).expect("a field");
            line.trim_start_matches(':').trim().to_owned()
        };
        let confined = kind != Kind::None;
        assert_eq!(field("NoNewPrivs") == "1", confined, "{kind}");
        assert_eq!(field("Seccomp") == "2", confined, "{kind}");
        if is_root() {
            for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
                assert!(!confined || field(set) == "0000000000000000", "{kind}: {set} {}", field(set));
            }
            assert_eq!(field("CapEff") == "0000000000000000", confined, "{kind}");
        }
    }
}

#[test]
fn a_set_user_id_program_runs_as_the_caller() {
    if !is_root() {
        eprintln!("skipped: only root can make a program of another user");
        return;
    }
    for kind in kinds() {
        let room = Room::new();
        let program = room.workspace().join("nobodys");
        fs::copy(attempt(), &program).unwrap();
        std::os::unix::fs::chown(&program, Some(65534), Some(65534)).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o4755)).unwrap();
        let said = room.run(&kind, &program, &words(&["euid"])).stdout;
        assert_eq!(said.trim() == "ok 65534", kind == Kind::None, "{kind}: {said}");
    }
}

#[test]
fn a_fork_bomb_is_stopped_at_the_limit() {
    let limit = 40;
    // For an ordinary user the kernel counts what else that user runs; at most all there is.
    let others = if is_root() { 0 } else { 2 * room::tasks() };
    let wanted = limit + others + 50;
    for kind in kinds() {
        let limits = match kind {
            Kind::None => Limits::none(),
            _ => Limits { processes: Some(limit), ..Limits::default() },
        };
        let said = Room::new().limit(limits).attempt(&kind, &words(&["fork", &wanted.to_string()]));
        let reached: u64 = said.trim().trim_start_matches("ok ").parse().expect(&said);
        assert_eq!(reached == wanted, kind == Kind::None, "{kind}: {reached}");
        assert!(reached <= limit + others || kind == Kind::None, "{kind}: {reached}");
    }
}

#[test]
fn what_was_made_for_a_run_goes_with_it() {
    let room = Room::new();
    let launch = room.prepare(&Kind::Landlock, attempt(), &words(&["thread"]));
    let group = Order::parse(&launch.order.as_ref().unwrap()[4..]).unwrap().cgroup;
    let counted = room::survey().processes().works;
    assert_eq!(group.is_some(), is_root() && counted, "only root needs a group to be counted");
    assert!(room.temp().exists() && group.iter().all(|group| group.exists()));
    drop(launch);
    assert!(!room.temp().exists() && !group.iter().any(|group| group.exists()));
}

#[test]
fn what_is_still_running_when_a_run_is_over_ends_with_its_group() {
    if !is_root() || !room::survey().processes().works {
        eprintln!("skipped: no control groups here");
        return;
    }
    let room = Room::new();
    let mut run = room.start(&Kind::Landlock, Path::new("/bin/sh"), &words(&["-c", "sleep 600 & echo started"]));
    let mut output = run.take_stdout();
    assert!(run.wait().success());
    drop(run);
    let mut said = String::new();
    output.read_to_string(&mut said).unwrap();
    assert_eq!(said, "started\n", "the pipe ends because the sleeper did");
}

/// Starts a script in the room, as the product does.
async fn script(room: &Room, kind: &Kind, script: &str) -> Handle {
    // Without limits, so that no control group ends what ought to be found by other means.
    let order = room.order(Path::new("/bin/sh"), &words(&[]));
    let script = bash(&script.replace("\"$0\"", &format!("'{}'", text(attempt())))).by_sh();
    let script = script.within(Sandbox::new(kind.clone(), room::helper().to_owned()));
    let script = match order.confinement {
        Some(confinement) => script.confined_to(confinement),
        None => script,
    };
    let start = Begin { input: Input::Piped, ..start(room.workspace()) };
    soon(runner().begin(script, start)).await.expect("it starts")
}

#[tokio::test]
async fn nobody_survives_the_end_of_a_run() {
    for kind in kinds() {
        for killed in [true, false] {
            let room = Room::new();
            let run = script(&room, &kind, "\"$0\" outlive; read line; exit 0").await;
            let said = says(run.job(), "lingering").await;
            assert!(room.processes().len() > 1, "{kind}: the leader and who lingers: {said}");
            if killed {
                run.job().kill();
            } else {
                run.job().write(b"\n".to_vec(), Then::Continue).await.unwrap();
            }
            let outcome = soon(run.job().wait()).await;
            assert_eq!(outcome.exit, if killed { Exit::Killed } else { Exit::Code(0) }, "{kind}");
            assert_eq!(outcome.left, 0, "{kind}");
            let survivors = room.processes();
            if kind == Kind::None {
                assert_eq!(survivors, pids(&said), "without a sandbox it leaves the session and gets away");
                for &pid in survivors.iter().filter(|&&pid| is_running(pid)) {
                    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
                }
            } else {
                assert!(survivors.is_empty(), "{kind}, killed {killed}: {survivors:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_run_is_asked_before_it_is_killed() {
    // Whoever watches over bubblewrap's namespace is asked too, and takes everyone in it along at once.
    for kind in kinds().into_iter().filter(|kind| *kind != Kind::Bubblewrap) {
        let room = Room::new();
        let run =
            script(&room, &kind, "trap 'echo asked; exit 7' TERM; echo ready; while :; do sleep 0.05; done").await;
        says(run.job(), "ready").await;
        run.job().kill();
        let outcome = soon(run.job().wait()).await;
        let said = outcome.output.text();
        assert!(said.ends_with("asked\n"), "{kind}: {said}");
        assert!(room.processes().is_empty(), "{kind}");
    }
}

#[test]
fn a_terminal_belongs_to_the_run() {
    for kind in kinds() {
        let (master, slave) = room::terminal();
        let room = Room::new();
        let script = "test -t 0 && echo spoken > /dev/tty";
        let order = room.order(Path::new("/bin/sh"), &words(&["-c", script]));
        let launch = room::prepare(&kind, Order { terminal: true, ..order });
        let mut run = room.launch_on(launch, slave.into());
        assert!(run.wait().success(), "{kind}");
        let mut said = [0; 6];
        fs::File::from(master).read_exact(&mut said).unwrap();
        assert_eq!(&said, b"spoken", "{kind}");
    }
}

#[test]
fn only_standard_files_reach_the_program() {
    for kind in kinds() {
        let room = Room::new().leak(fs::File::open("/etc/passwd").unwrap());
        let said = room.attempt(&kind, &words(&["list", "/proc/self/fd"]));
        let mut open: Vec<u32> =
            said.trim_start_matches("ok ").split_whitespace().map(|n| n.parse().unwrap()).collect();
        open.sort_unstable();
        // The fourth is the folder being listed.
        assert_eq!(open, [0, 1, 2, 3], "{kind}");
    }
}

#[test]
fn a_changed_file_is_not_run() {
    for kind in kinds() {
        let room = Room::new();
        let script = room.workspace().join("script.sh");
        fs::write(&script, "echo old").unwrap();
        let pinned = pin(&script);
        let go = |pins| room.run_pinned(&kind, Path::new("/bin/sh"), &words(&[&text(&script)]), pins);
        assert_eq!(go(vec![pinned.clone()]).stdout, "old\n", "{kind}: the control");

        let drifted = |outcome: Outcome| {
            assert_eq!(outcome.refused.expect("a refusal").code, "drift", "{kind}");
            assert_eq!(outcome.stdout, "", "{kind}");
            assert_eq!(outcome.status.code(), Some(125), "{kind}");
        };
        // The same length and time, in the same file: only the content tells.
        let time = fs::metadata(&script).unwrap().modified().unwrap();
        fs::write(&script, "echo NEW").unwrap();
        fs::File::options().write(true).open(&script).unwrap().set_modified(time).unwrap();
        drifted(go(vec![pinned.clone()]));
        // Another file under the same name.
        let other = room.workspace().join("other");
        fs::write(&other, "echo old").unwrap();
        fs::rename(&other, &script).unwrap();
        drifted(go(vec![pinned.clone()]));
        // A pipe, which would make a reader wait.
        fs::remove_file(&script).unwrap();
        assert!(Command::new("mkfifo").arg(&script).status().unwrap().success());
        drifted(go(vec![pinned.clone()]));
        fs::remove_file(&script).unwrap();
        drifted(go(vec![pinned]));
    }
}

#[test]
fn a_pinned_program_runs_from_the_file_that_was_looked_at() {
    for kind in kinds() {
        let room = Room::new();
        let program = room.workspace().join("program");
        fs::copy(attempt(), &program).unwrap();
        let pins = vec![pin(&program)];
        assert_eq!(room.run_pinned(&kind, &program, &words(&["thread"]), pins).stdout, "ok ran\n", "{kind}");
    }
}

#[test]
fn another_folder_of_the_same_name_is_not_entered() {
    for kind in kinds() {
        let room = Room::new();
        let cwd = room.workspace().join("dir");
        fs::create_dir(&cwd).unwrap();
        let order = room.order_at(&cwd, Path::new("/bin/pwd"), &[]);
        assert_eq!(room.carry_out(&kind, order.clone()).stdout, format!("{}\n", cwd.display()), "{kind}: the control");
        fs::rename(&cwd, room.workspace().join("moved")).unwrap();
        fs::create_dir(&cwd).unwrap();
        let outcome = room.carry_out(&kind, order);
        assert_eq!(outcome.refused.expect("a refusal").code, "cwd", "{kind}");
        assert_eq!(outcome.stdout, "", "{kind}");
    }
}

#[test]
fn nothing_but_an_order_is_obeyed() {
    let room = Room::new();
    let proof = room.workspace().join("proof");
    let order = room.order(Path::new("/bin/touch"), &words(&[&text(&proof)]));
    let good = Order { confinement: None, ..order }.frame().unwrap();
    let frame = |body: &[u8]| [&u32::try_from(body.len()).unwrap().to_le_bytes()[..], body].concat();
    let relative = String::from_utf8(good[4..].to_vec()).unwrap().replace("\"/bin/touch\"", "\"touch\"");
    let attacks: Vec<(&str, Vec<u8>)> = vec![
        ("nothing", Vec::new()),
        ("half a length", vec![1, 0]),
        ("garbage", frame(b"\xff\xfe garbage")),
        ("another shape", frame(b"{\"program\":\"/bin/touch\"}")),
        ("half an order", good[..good.len() - 1].to_vec()),
        ("too long", [&u32::MAX.to_le_bytes()[..], &good[4..]].concat()),
        ("just too long", [&(1_u32 << 20 | 1).to_le_bytes()[..], &vec![b' '; 1 << 20], b"x"].concat()),
        ("a relative program", frame(relative.as_bytes())),
    ];
    for (name, bytes) in attacks {
        let outcome = room.send(&bytes);
        assert_eq!(outcome.refused.expect(name).code, "order", "{name}");
        assert_eq!(outcome.status.code(), Some(125), "{name}");
        assert!(!proof.exists(), "{name}");
    }
    assert_eq!(room.send(&good).refused, None);
    assert!(proof.exists(), "the control");
}

#[test]
fn a_helper_without_a_socket_does_nothing() {
    for verb in ["__confine", "__join"] {
        let output = Command::new(room::helper()).arg(verb).stdin(Stdio::null()).output().unwrap();
        assert_eq!(output.status.code(), Some(125), "{verb}");
    }
}

#[test]
fn a_program_that_is_not_there_is_reported() {
    for kind in kinds() {
        let outcome = Room::new().run(&kind, Path::new("/nonexistent/program"), &[]);
        assert_eq!(outcome.refused.expect("a refusal").code, "exec", "{kind}");
    }
}
