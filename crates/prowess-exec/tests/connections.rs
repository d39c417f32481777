//! Connections of commands: are they written down before the command is over, and told while they are open?

#![cfg(target_os = "linux")]

use crate::world;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use prowess_exec::SkillShare;
use prowess_exec::connections::ConnectionQuery;
use prowess_exec::sandbox::Survey;
use prowess_policy::ownership::OwnCommands;
use prowess_policy::posture::Security;
use serde_json::json;
use world::{World, yes};

/// A server that answers one request as soon as it is told to.
fn server(may_answer: mpsc::Receiver<()>) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut head = [0; 1024];
        let read = stream.read(&mut head).expect("a request");
        assert!(read > 0);
        may_answer.recv().expect("told to");
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello").expect("sent");
    });
    address
}

#[tokio::test]
async fn a_connection_is_told_while_it_is_open_and_in_the_log_when_the_command_is_over() {
    let helper = PathBuf::from(env!("CARGO_BIN_EXE_prowess-confine"));
    let finding = Survey::with_helper(helper).network().clone();
    if !finding.works || !std::path::Path::new("/usr/bin/curl").exists() {
        eprintln!("skipped: {}, or no curl", finding.what);
        return;
    }
    let (answer, may_answer) = mpsc::channel();
    let address = server(may_answer);
    let mut world = World::new(yes());
    world.setting.settings.security = Some(Security::Contained);
    world.setting.skills = vec![SkillShare {
        name: "weather".to_owned(),
        own: Some(OwnCommands { programs: vec!["curl".to_owned()], ..OwnCommands::default() }),
        ..SkillShare::default()
    }];
    let live = world.exec.connections.watch();
    let watching = async {
        loop {
            live.changed(Duration::from_millis(10)).await;
            let news = live.news().unwrap_or_default();
            if news["open"][0]["outcome"] == "open" && news["open"][0]["up"].as_u64() > Some(0) {
                answer.send(()).expect("the server waits");
                return news;
            }
        }
    };
    let command = format!("curl -sS -m 20 http://{address}/");
    let (result, news) = tokio::join!(world.run(&command), watching);
    assert_eq!(result.text(), "hello");
    let open = &news["open"][0];
    assert_eq!((&open["skill"], &open["command"]), (&json!("weather"), &json!(command)));
    assert_eq!((&open["host"], &open["port"]), (&json!("127.0.0.1"), &json!(address.port())));
    assert!(open["reason"].is_null() && news["openCount"] == 1, "{news}");

    let page = world.exec.connections.log().page(&ConnectionQuery::default()).expect("a page");
    let entry = &page["entries"][0];
    assert_eq!((&entry["id"], &entry["outcome"]), (&open["id"], &json!("served")));
    assert_eq!((&entry["skill"], &entry["session"]), (&json!("weather"), &json!("test")));
    assert!(entry["up"].as_u64() > Some(0) && entry["down"].as_u64() > Some(40), "{entry}");
    let news = live.news().expect("it ended");
    assert_eq!((&news["ended"][0], &news["openCount"]), (entry, &json!(0)));
}
