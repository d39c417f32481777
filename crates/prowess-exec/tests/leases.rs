//! Leases, from the question to the wire: what does a command reach, and who allowed it?
//!
//! The servers are on this machine and named by their address, which is private and so reached only where a lease names
//! it. Where the kernel gives no network of its own to a run, there is no proxy, and nothing here to test.

#![cfg(target_os = "linux")]

use crate::world;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use prowess_egress::{LookingUp, Lookup, Names};
use prowess_exec::SkillShare;
use prowess_exec::approver::{Approver, Nobody, ToolQuestion};
use prowess_exec::exec_tool::ExecCall;
use prowess_exec::sandbox::Survey;
use prowess_policy::approvals::Entry;
use prowess_policy::ownership::OwnCommands;
use prowess_policy::posture::{Ask, Security};
use prowess_policy::{Answer, Question, SandboxChoice};
use world::{World, answering};

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
    assert!(refused.contains("the user said no"), "{refused}");
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
    let get = format!("import urllib.request as u; print(u.urlopen('htt' 'p://{address}/').read())");
    let told = world.run(&format!("python3 -c \"{get}\"")).await.text();
    assert!(told.contains("403"), "{told}");
    // A program that bypasses the proxy reaches nothing: the namespace has no other way out.
    let direct = format!("import socket; socket.create_connection(('127.0.0.1', {}), 5)", address.port());
    let told = world.run(&format!("python3 -c \"{direct}\"")).await.text();
    assert!(told.contains("ConnectionRefused") || told.contains("Connection refused"), "{told}");
    let trail = std::fs::read_to_string(world.exec.connections.path()).expect("one line");
    assert!(trail.lines().count() == 1 && trail.contains("\"outcome\":\"refused\""), "{trail}");
}

/// A name that nobody knows.
struct NoNames;

impl Lookup for NoNames {
    fn addresses<'a>(&'a self, _name: &'a str) -> LookingUp<'a> {
        Box::pin(std::future::ready(Err(std::io::Error::other("Name or service not known"))))
    }
}

#[tokio::test]
async fn why_a_host_could_not_be_reached_is_in_the_result() {
    if !has_proxy() {
        return;
    }
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address")
    };
    let (approver, _) = answering(&[Answer::Once, Answer::Once]);
    let mut world = contained(approver);
    world.exec.names = Names::new(NoNames);
    // curl says no more than that the proxy answered 502, or nothing at all.
    let told = world.run("curl -fs -m 10 http://nowhere.test/").await.text();
    let why =
        "The sandbox's proxy cannot reach nowhere.test:80: cannot resolve nowhere.test: Name or service not known";
    assert!(told.starts_with(why), "{told}");
    let told = world.run(&format!("curl -fs -m 10 http://{closed}/")).await.text();
    assert!(
        told.starts_with(&format!("The sandbox's proxy cannot reach {closed}: connection refused by {closed}")),
        "{told}"
    );
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

#[tokio::test]
async fn contained_is_the_default_where_the_sandbox_holds() {
    if !has_proxy() {
        return;
    }
    let verdict = |world: &World| {
        let call = ExecCall { command: "for f in *; do echo $f; done".to_owned(), ..ExecCall::default() };
        world.exec.judge(&call, &world.setting).expect("judged").judgment.posture().security
    };
    let mut world = World::new(Arc::new(Nobody));
    world.setting.settings.security = None;
    assert_eq!(verdict(&world), Security::Contained);
    // An operator who set any of these keeps exactly that.
    world.setting.settings.ask = Some(Ask::OnMiss);
    assert_eq!(verdict(&world), Security::Allowlist);
    world.setting.settings.ask = None;
    world.setting.settings.sandbox = SandboxChoice::Off;
    assert_eq!(verdict(&world), Security::Allowlist, "there is no sandbox");
    world.setting.settings.sandbox = SandboxChoice::Auto;
    let entry = Entry { pattern: "/usr/bin/git".to_owned(), ..Entry::default() };
    world.exec.approvals.update(|approvals| approvals.grant(None, &entry)).expect("stored");
    assert_eq!(verdict(&world), Security::Allowlist);
    world.setting.settings.security = Some(Security::Contained);
    assert_eq!(verdict(&world), Security::Contained, "asked for by name");
}

#[tokio::test]
async fn a_host_that_only_the_proxy_sees_can_be_allowed_for_longer() {
    if !has_proxy() {
        return;
    }
    let address = server();
    let get = format!("python3 -c \"import urllib.request as u; print(u.urlopen('htt' 'p://{address}/').read())\"");
    let asked = Arc::new(Mutex::new(Vec::new()));
    let world = contained(Arc::new(ToolAnswers(Arc::clone(&asked), Answer::Always)));
    for _ in 0..2 {
        let told = world.run(&get).await.text();
        assert!(told.contains("hello"), "{told}");
    }
    assert_eq!(*asked.lock().unwrap(), [format!("reach {address}")], "asked once");
    assert_eq!(world.exec.leases.load().expect("leases").len(), 1);
    let world = contained(Arc::new(Nobody));
    let told = world.run(&get).await.text();
    assert!(told.contains(&format!("prowess leases allow --host {address}")), "{told}");
}

/// Answers questions about tools, and keeps them.
struct ToolAnswers(Arc<Mutex<Vec<String>>>, Answer);

impl Approver for ToolAnswers {
    fn ask<'a>(&'a self, _question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        Box::pin(std::future::ready(None))
    }

    fn ask_tool<'a>(&'a self, question: &'a ToolQuestion) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        self.0.lock().expect("a list").push(question.summary.clone());
        Box::pin(std::future::ready(Some(self.1)))
    }
}

#[tokio::test]
async fn commands_of_a_session_share_a_tmp_that_nobody_else_sees() {
    if !has_proxy() {
        return;
    }
    let outside = tempfile::Builder::new().prefix("others-").tempdir_in("/tmp").expect("a directory");
    std::fs::write(outside.path().join("private"), "secret").expect("written");
    let mut world = contained(Arc::new(Nobody));
    assert_eq!(world.run("echo kept > /tmp/a && mktemp >/dev/null && cat /tmp/a").await.text(), "kept");
    assert_eq!(world.run("cat /tmp/a; echo ws > in-ws; cat $PWD/in-ws").await.text(), "kept\nws");
    // A path that the text shows would be asked about.
    let look = format!("dir={}; ls /tmp; cat $dir/private", outside.path().display());
    let told = world.run(&look).await.text();
    assert!(!told.contains("secret") && !told.lines().any(|line| line.starts_with("others-")), "{told}");
    assert!(!Path::new("/tmp/a").exists() || std::fs::read("/tmp/a").is_ok_and(|text| text != b"kept\n"));
    world.setting.session = "another".to_owned();
    assert!(world.run("cat /tmp/a").await.text().contains("No such file"));
}

#[tokio::test]
async fn what_a_run_may_only_read_stays_so_below_its_own_tmp() {
    if !has_proxy() {
        return;
    }
    // The whole world of a test is below /tmp, the workspace included.
    let mut world = contained(Arc::new(Nobody));
    let (readable, hidden) = (world.root().join("readable"), world.root().join("readable/hidden"));
    std::fs::create_dir(&readable).expect("a directory");
    std::fs::write(readable.join("open"), "open").expect("written");
    std::fs::write(&hidden, "secret").expect("written");
    world.setting.readable = vec![readable.clone()];
    world.setting.hidden = vec![hidden];
    let told = world
        .run(&format!("to={}; cd $to; cat open; cat hidden; echo x > new; rm open", readable.display()))
        .await
        .text();
    assert!(told.contains("open") && !told.contains("secret"), "{told}");
    assert!(readable.join("open").exists() && !readable.join("new").exists(), "{told}");
}

#[tokio::test]
async fn a_directory_to_work_in_is_asked_about_once() {
    if !has_proxy() {
        return;
    }
    let (approver, asked) = answering(&[Answer::Session]);
    let world = contained(approver);
    let elsewhere = world.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a directory");
    let call = ExecCall {
        command: "echo hi > new && cat new".to_owned(),
        workdir: Some(elsewhere.display().to_string()),
        ..ExecCall::default()
    };
    for _ in 0..2 {
        assert_eq!(world.exec.run(&call, &world.setting).await.text(), "hi");
    }
    assert_eq!(*asked.lock().unwrap(), [[format!("change {}", elsewhere.display())]]);
    assert!(elsewhere.join("new").exists());
}

#[tokio::test]
async fn protected_files_can_be_changed_with_approval() {
    if !has_proxy() {
        return;
    }
    let (approver, asked) = answering(&[Answer::Once, Answer::Once]);
    let world = contained(approver);
    let told = world.run("git init -q . && git remote add up https://example.com/x && git remote").await.text();
    let told = if told.contains("up") {
        told
    } else {
        world.run("git remote add up https://example.com/x && git remote").await.text()
    };
    assert!(told.contains("up"), "{told}");
    let told = world.run("mkdir -p skills/x && echo '# X' > skills/x/SKILL.md && ls skills").await.text();
    assert_eq!(told, "x");
    let workspace = world.setting.workspace.display().to_string();
    assert!(asked.lock().unwrap().iter().any(|one| *one == [format!("change {workspace}/skills")]), "{asked:?}");
    let told = world.run("python3 -c \"open('.git/config', 'a').write('x')\"").await.text();
    assert!(told.contains("Error"), "what the text does not show is not asked about, and fails: {told}");
}

#[tokio::test]
async fn a_symlink_that_a_run_left_in_its_tmp_leads_nowhere() {
    if !has_proxy() {
        return;
    }
    let world = contained(Arc::new(Nobody));
    let target = world.root().join("target");
    std::fs::create_dir(&target).expect("a directory");
    let first = world.root().strip_prefix("/tmp").expect("the world is below /tmp").to_owned();
    let first = format!("/tmp/{}", first.components().next().expect("a name").as_os_str().display());
    // The workspace is mounted below this directory; the next run would look for it behind the link.
    let plant = format!("a={first} b={}; mv $a /tmp/moved && ln -s $b $a && ls -la /tmp", target.display());
    let told = world.run(&plant).await.text();
    assert!(told.contains("->"), "the link was made: {told}");
    assert_eq!(world.run("echo works > it && cat it").await.text(), "works");
    assert_eq!(std::fs::read_dir(&target).expect("a directory").count(), 0, "nothing was made behind the link");
}

#[tokio::test]
async fn many_repositories_do_not_crowd_out_the_protection_of_one() {
    if !has_proxy() {
        return;
    }
    let world = contained(Arc::new(Nobody));
    let fill = "for i in $(seq 150); do d=a$i/.git; mkdir -p $d/objects $d/refs $d/hooks $d/info; echo 'ref: x' > $d/HEAD; \
                echo '[core]' > $d/config; done; touch $(seq 1 200); git init -q proj && ls proj/.git/config";
    assert_eq!(world.run(fill).await.text(), "proj/.git/config");
    let hit = "p=proj/.git/config; echo x >> $p; echo \"rc $?\"";
    let told = world.run(hit).await.text();
    assert!(told.contains("rc 1"), "{told}");
    assert!(!std::fs::read_to_string(world.ws("proj/.git/config")).expect("a file").contains('x'), "{told}");
}
