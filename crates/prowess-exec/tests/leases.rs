//! Leases, from the question to the wire: what does a command reach, and who allowed it?
//!
//! The servers are on this machine and named by their address, which is private and so reached only where a lease names
//! it. Where the kernel gives no network of its own to a run, there is no proxy, and nothing here to test.

#![cfg(target_os = "linux")]

#[path = "support/world.rs"]
mod world;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use prowess_exec::SkillShare;
use prowess_exec::approver::{Approver, Nobody};
use prowess_exec::sandbox::Survey;
use prowess_policy::ownership::OwnCommands;
use prowess_policy::posture::Security;
use prowess_policy::{Answer, Question};
use world::{Says, World};

/// A server that says hello to everybody, for as long as the test runs.
fn server() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let mut head = [0; 1024];
            let _ = stream.read(&mut head);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
        }
    });
    address
}

/// Whether this machine can do what is tested. It says so where it cannot.
fn has_proxy() -> bool {
    let helper = PathBuf::from(env!("CARGO_BIN_EXE_prowess-confine"));
    let finding = Survey::with_helper(helper).network().clone();
    let has_curl = std::path::Path::new("/usr/bin/curl").exists();
    if !finding.works || !has_curl {
        eprintln!("skipped: {}, curl {has_curl}", finding.what);
    }
    finding.works && has_curl
}

fn contained(approver: Arc<dyn Approver>) -> World {
    let mut world = World::new(approver);
    world.setting.settings.security = Some(Security::Contained);
    world
}

/// The phrases of each question that was put.
type Asked = Arc<Mutex<Vec<Vec<String>>>>;

/// Answers in turn, and keeps what was asked.
fn answering(answers: &[Answer]) -> (Arc<dyn Approver>, Asked) {
    let (asked, answers) = (Asked::default(), Mutex::new(answers.to_vec()));
    let heard = Arc::clone(&asked);
    let says = Says(move |question: &Question| {
        heard.lock().expect("a list").push(question.judgment().lacks().phrases());
        let mut answers = answers.lock().expect("a list");
        if answers.is_empty() { None } else { Some(answers.remove(0)) }
    });
    (Arc::new(says), asked)
}

#[tokio::test]
async fn what_a_person_allows_is_reached_and_nothing_else() {
    if !has_proxy() {
        return;
    }
    let (one, two) = (server(), server());
    let (approver, asked) = answering(&[Answer::Once, Answer::No]);
    let world = contained(approver);
    let fetch = |address: SocketAddr| format!("curl -sS -m 10 http://{address}/");
    assert_eq!(world.run(&fetch(one)).await.text(), "hello");
    let refused = world.run(&fetch(two)).await.text();
    assert!(refused.contains("denied by the user"), "{refused}");
    assert_eq!(*asked.lock().unwrap(), [[format!("reach {one}")], [format!("reach {two}")]]);
    let trail = std::fs::read_to_string(world.exec.connections.path()).expect("one line");
    assert!(trail.lines().count() == 1 && trail.contains("\"outcome\":\"served\""), "{trail}");
}

#[tokio::test]
async fn a_host_that_was_not_foreseen_is_held_back() {
    if !has_proxy() {
        return;
    }
    let address = server();
    let world = contained(Arc::new(Nobody));
    // The judge does not look into other languages, so the command runs, and the proxy refuses.
    let get = format!("import urllib.request as u; print(u.urlopen('http://{address}/').read())");
    let told = world.run(&format!("python3 -c \"{get}\"")).await.text();
    assert!(told.contains("403"), "{told}");
    // A program that bypasses the proxy reaches nothing: the namespace has no other way out.
    let direct = format!("import socket; socket.create_connection(('127.0.0.1', {}), 5)", address.port());
    let told = world.run(&format!("python3 -c \"{direct}\"")).await.text();
    assert!(told.contains("ConnectionRefused") || told.contains("Connection refused"), "{told}");
    let trail = std::fs::read_to_string(world.exec.connections.path()).expect("one line");
    assert!(trail.lines().count() == 1 && trail.contains("\"outcome\":\"refused\""), "{trail}");
}

#[tokio::test]
async fn a_lease_lasts_as_long_as_was_said() {
    if !has_proxy() {
        return;
    }
    let address = server();
    let fetch = format!("curl -sS -m 10 http://{address}/");
    for (answer, other_session_asks) in [(Answer::Session, true), (Answer::Always, false)] {
        let (approver, asked) = answering(&[answer]);
        let mut world = contained(approver);
        assert_eq!(world.run(&fetch).await.text(), "hello");
        assert_eq!(world.run(&fetch).await.text(), "hello", "it is held");
        world.setting.session = "another".to_owned();
        let text = world.run(&fetch).await.text();
        assert_eq!(text != "hello", other_session_asks, "{text}");
        assert_eq!(asked.lock().unwrap().len(), 1 + usize::from(other_session_asks));
        let file = std::fs::read_to_string(world.exec.leases.path()).unwrap_or_default();
        assert_eq!(file.contains("127.0.0.1"), answer == Answer::Always, "{file}");
    }
}

#[tokio::test]
async fn what_a_skill_was_given_serves_its_own_commands_only() {
    if !has_proxy() {
        return;
    }
    let address = server();
    let mut world = contained(Arc::new(Nobody));
    let skill = |name: &str, program: &str, key: &str| SkillShare {
        name: name.to_owned(),
        source: format!("managed:/skills/{name}"),
        vars: vec![(key.to_owned(), "canary".into())],
        own: Some(OwnCommands { programs: vec![program.to_owned()], ..OwnCommands::default() }),
        ..SkillShare::default()
    };
    let mut weather = skill("weather", "curl", "WEATHER_KEY");
    weather.pinned.hosts = vec![address.to_string().parse().expect("a rule")];
    world.setting.skills = vec![weather, skill("files", "printenv", "FILES_KEY")];
    assert_eq!(world.run(&format!("curl -sS -m 10 http://{address}/ | cat")).await.text(), "hello");
    assert_eq!(world.run("printenv FILES_KEY").await.text(), "canary", "the control");
    for command in ["printenv WEATHER_KEY", "env | grep -c canary", "curl -sS file:///proc/self/environ; env"] {
        let text = world.run(command).await.text();
        assert!(!text.contains("canary"), "{command}: {text}");
    }
    let around = world.run(&format!("wget -qO- http://{address}/")).await.text();
    assert!(around.contains("exec denied"), "{around}");
}
