//! The network and the processes of a session: do commands reach what their own session serves, and does everything that
//! they leave behind end with them?

#![cfg(target_os = "linux")]

use crate::world;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prowess_exec::approver::Nobody;
use prowess_exec::exec_tool::ExecCall;
use prowess_exec::sandbox::Survey;
use prowess_policy::SandboxChoice;
use prowess_policy::posture::Security;
use world::{World, call};

/// A world for each sandbox in which commands have a network of their own here. Nobody answers in it.
fn worlds() -> Vec<(&'static str, World)> {
    let survey = Survey::with_helper(PathBuf::from(env!("CARGO_BIN_EXE_prowess-confine")));
    if !survey.network().works || !survey.view().works {
        eprintln!("skipped: {}, {}", survey.network().what, survey.view().what);
        return Vec::new();
    }
    let mut sandboxes = vec![("landlock", SandboxChoice::Landlock)];
    sandboxes.extend(survey.bubblewrap().works.then_some(("bubblewrap", SandboxChoice::Bubblewrap)));
    let world = |(name, sandbox)| {
        let mut world = World::new(Arc::new(Nobody));
        world.setting.settings.security = Some(Security::Contained);
        world.setting.settings.sandbox = sandbox;
        (name, world)
    };
    sandboxes.into_iter().map(world).collect()
}

/// Says what it was asked for, and at which port.
const SERVER: &str = "
import http.server, sys
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'served ' + self.path.encode())
address = (sys.argv[1], int(sys.argv[2]))
http.server.HTTPServer(address, Answer).serve_forever()
";

#[tokio::test]
async fn a_server_in_the_background_is_reached_by_its_session_alone() {
    for (sandbox, mut world) in worlds() {
        world.file("server.py", SERVER);
        let in_background = ExecCall { background: true, ..call("python3 server.py 0.0.0.0 18123") };
        let started = world.call(&in_background).await;
        assert!(!started.is_error, "{sandbox}: {}", started.text());
        let fetch = "curl -sS -m 10 http://localhost:18123/page";
        let mut text = String::new();
        for _ in 0..200 {
            text = world.run(fetch).await.text();
            if text == "served /page" {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(text, "served /page", "{sandbox}");
        assert_eq!(world.run("curl -sS -m 10 http://127.0.0.1:18123/again").await.text(), "served /again", "{sandbox}");
        let other = world.run("curl -sS -m 10 http://localhost:18124/").await.text();
        assert!(other.contains("localhost:18124"), "{sandbox}: nobody listens there: {other}");
        world.setting.session = "another".to_owned();
        let stranger = world.run(fetch).await.text();
        assert!(stranger.contains("exec denied"), "{sandbox}: {stranger}");
    }
}

#[tokio::test]
async fn a_command_reaches_what_it_serves_itself() {
    for (sandbox, world) in worlds() {
        world.file("server.py", SERVER);
        let text = "python3 server.py 127.0.0.1 18125 2>/dev/null & \
            for i in $(seq 100); do curl -sf -m 5 http://localhost:18125/own && break; sleep 0.05; done";
        let result = world.run(text).await;
        assert!(result.text().contains("served /own"), "{sandbox}: {}", result.text());
    }
}

/// The proxy of another command would serve whatever that one may reach.
#[tokio::test]
async fn the_proxy_of_another_command_is_out_of_reach() {
    for (sandbox, world) in worlds() {
        let waiting = ExecCall { background: true, ..call("sleep 30") };
        assert!(!world.call(&waiting).await.is_error, "{sandbox}");
        let text = world.run("curl -sS -m 10 http://localhost:3128/").await.text();
        assert!(text.contains("exec denied"), "{sandbox}: {text}");
    }
}

#[tokio::test]
async fn what_begins_a_session_of_its_own_ends_with_the_command() {
    for (sandbox, world) in worlds() {
        let mark = format!("1000.{}", uuid::Uuid::new_v4().as_u128() % 1_000_000_007);
        // An orphan in a session and a group of its own: nothing but its network tells where it came from.
        let text = format!("setsid --fork sh -c '(sleep {mark} > /dev/null 2>&1 &)'; sleep 0.2; echo done");
        let result = world.run(&text).await;
        assert!(result.text().ends_with("done"), "{sandbox}: {}", result.text());
        assert_eq!(running(&mark), 0, "{sandbox}");
    }
}

#[tokio::test]
async fn a_program_can_have_a_terminal_of_its_own() {
    const TERMINAL: &str = "
import os, pty
child, terminal = pty.fork()
if child == 0:
    os.execvp('sh', ['sh', '-c', 'echo at $(tty); kill -INT 0; echo still here'])
said = b''
try:
    while chunk := os.read(terminal, 1024):
        said += chunk
except OSError:
    pass
print(said.decode().split(), os.waitstatus_to_exitcode(os.wait()[1]))
";
    for (sandbox, world) in worlds() {
        world.file("terminal.py", TERMINAL);
        let text = world.run("python3 terminal.py").await.text();
        assert!(text.starts_with("['at', '/dev/pts/0']"), "{sandbox}: {text}");
    }
}

/// How many processes have `mark` among their arguments.
fn running(mark: &str) -> usize {
    let numbers = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    numbers
        .filter(|entry| std::fs::read_to_string(entry.path().join("cmdline")).is_ok_and(|line| line.contains(mark)))
        .count()
}
