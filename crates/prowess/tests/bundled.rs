//! Do the skills that come with prowess work, in the sandbox, with what they declare?
//!
//! The first commands of each ready skill run unchanged in an empty home. Their hosts are stand-ins on loopback, which the
//! proxy of the sandbox leads to.

#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use prowess_config::Env;
use prowess_exec::approver::Approver;
use prowess_exec::exec_tool::ExecCall;
use prowess_exec::job::{Limits, Runner};
use prowess_exec::sandbox::Survey;
use prowess_exec::{Exec, Setting};
use prowess_host::{Context, Flags, Ground, Shares, View, base};
use prowess_policy::{Answer, Question};
use prowess_skills::Skill;
use prowess_testkit::Tree;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Says yes, this once, and keeps what was asked.
#[derive(Default)]
struct Yes(Mutex<Vec<String>>);

impl Approver for Yes {
    fn ask<'a>(&'a self, question: &'a Question) -> Pin<Box<dyn Future<Output = Option<Answer>> + Send + 'a>> {
        self.0.lock().expect("a list").extend(question.judgment().lacks().phrases());
        Box::pin(std::future::ready(Some(Answer::Once)))
    }
}

/// Serves the same page for all `hosts` over HTTPS. Returns where, and the certificate of the authority.
fn stand_in(hosts: &[String]) -> (SocketAddr, String) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.distinguished_name.push(rcgen::DnType::CommonName, "loopback tests");
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate().expect("a key")).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(hosts.to_vec()).expect("names").signed_by(&key, &authority).expect("signed");
    let private = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().expect("versions");
    let config =
        config.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], private).expect("a certificate");
    let config = Arc::new(config);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away is no failure of the test.
            let _ = answer(stream, Arc::clone(&config));
        }
    });
    (address, authority.pem())
}

fn answer(stream: TcpStream, config: Arc<ServerConfig>) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = StreamOwned::new(connection, stream);
    let mut head = [0; 4096];
    let _ = stream.read(&mut head)?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\nConnection: close\r\n\r\nsunny +21C")?;
    stream.conn.send_close_notify();
    stream.flush()
}

/// The first block of commands in the skill's text.
fn first_commands(skill: &Skill) -> String {
    let text = std::fs::read_to_string(&skill.file).expect("a text");
    let (_, rest) = text.split_once("```bash\n").expect("commands");
    let (block, _) = rest.split_once("```").expect("an end");
    block.replace("{baseDir}", &skill.dir().to_string_lossy())
}

/// What a user would do next, and what has to be in the answer, where the first commands alone show too little.
fn followed_by(skill: &Skill) -> &'static [(&'static str, &'static str)] {
    match skill.name.as_str() {
        "tmux" => &[
            ("tmux -L agent send-keys -t '=build:' 'echo $((6 * 7)) > answer' Enter; sleep 1; cat answer", "42"),
            ("tmux -L agent list-sessions", "build: 1 windows"),
            ("tmux -L agent kill-server && echo ended", "ended"),
        ],
        _ => &[],
    }
}

/// The ready skills that come with prowess, in an empty home.
fn view(tree: &Tree) -> View {
    let path = format!("{}:{}", tree.path("trusting").display(), std::env::var("PATH").unwrap_or_default());
    let mut env: Env = [("PATH", path)].into_iter().collect();
    env.insert("HOME", tree.root().to_string_lossy());
    let ground = Ground { flags: Flags::default(), env, cwd: tree.root().to_owned() };
    View::load(Context::load(&ground).expect("a configuration"), None).expect("skills")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_commands_of_every_ready_skill_work() {
    let helper = PathBuf::from(env!("CARGO_BIN_EXE_prowess"));
    let survey = Survey::with_helper(helper.clone());
    if !survey.network().works || !survey.view().works {
        eprintln!("skipped: {}, {}", survey.network().what, survey.view().what);
        return;
    }
    let tree = Tree::new().file(".openclaw/agents/main/sessions/a.jsonl", "{\"type\":\"session\"}\n");
    let ca = tree.path("trusting/ca.pem");
    // The only thing that differs from what a user has: whom curl trusts.
    let curl = format!("#!/bin/sh\nexec /usr/bin/curl --cacert '{}' \"$@\"\n", ca.display());
    let tree = tree.dir(".openclaw/workspace").file("trusting/curl", curl);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(tree.path("trusting/curl"), executable).expect("changed");
    let view = view(&tree);
    let shares = Shares::of(&view);
    let snapshot = view.snapshot(&view.budget());
    let ready: Vec<_> = snapshot.skills().iter().collect();
    assert!(ready.iter().any(|skill| skill.name.as_str() == "healthcheck"), "some are always ready");
    for skill in ready {
        let share = shares.share(skill).expect("a share");
        let hosts: Vec<String> = share.declared.hosts.iter().map(ToString::to_string).collect();
        let declared = share.declared.clone();
        let (address, pem) = stand_in(&hosts);
        let approver = Arc::new(Yes::default());
        let workspace = tree.path(".openclaw/workspace");
        let state = tree.path(".openclaw");
        let mut exec = Exec::new(&state, approver.clone(), Runner::new(Limits::default()), helper.clone());
        for host in &hosts {
            exec.names = exec.names.stand_in(host, 443, address).expect("a host");
        }
        std::fs::write(&ca, pem).expect("written");
        let mut setting = base(&view.context, workspace.clone(), "agent:main:main");
        setting.readable.push(skill.dir().to_owned());
        let Setting { skills, .. } = &mut setting;
        skills.push(share);
        let call = ExecCall { command: first_commands(skill), ..ExecCall::default() };
        let result = exec.run(&call, &setting).await;
        let (text, asked) = (result.text(), approver.0.lock().expect("a list").clone());
        assert_eq!(result.details["exitCode"], 0, "{}: {text}\nasked: {asked:?}", skill.name);
        let of_skill = declared.seen_from(&workspace).phrases();
        assert!(asked.iter().all(|one| of_skill.contains(one)), "{}: {asked:?}, declared {of_skill:?}", skill.name);
        if !hosts.is_empty() {
            assert!(text.contains("sunny +21C"), "{}: {text}", skill.name);
        }
        for (command, expected) in followed_by(skill) {
            let call = ExecCall { command: (*command).to_owned(), ..ExecCall::default() };
            let text = exec.run(&call, &setting).await.text();
            assert!(text.contains(expected), "{}: {command}: {text}", skill.name);
        }
    }
}
