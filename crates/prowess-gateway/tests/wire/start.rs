//! What does a gateway need to start, and how does it end?

use prowess_config::{Config, Env};
use prowess_gateway::client::{Client, Introduction};
use prowess_gateway::settings::{Auth, Settings};
use prowess_gateway::{Gateway, Options, StartError};
use prowess_host::Ground;
use prowess_testkit::Tree;
use serde_json::json;

use crate::room::{self, Room, TOKEN};
use crate::wire::line::{Heard, Line, connect};

/// Without a token in the environment.
fn bare(tree: &Tree) -> Ground {
    let home = tree.root().to_string_lossy().into_owned();
    Ground { env: Env::from_iter([("HOME", home.as_str())]), ..room::ground(tree) }
}

fn options() -> Options {
    Options { port: Some(0), ..Options::default() }
}

#[tokio::test]
async fn without_a_token_one_is_made_and_written_where_others_find_it() {
    let tree = Tree::new().file(".openclaw/openclaw.json", "{\n  // mine\n  agents: {},\n}\n");
    let running = Gateway::start(bare(&tree), options()).await.expect("a gateway");
    let written = std::fs::read_to_string(tree.root().join(".openclaw/openclaw.json")).expect("the configuration");
    assert!(written.contains("// mine"), "{written}");
    let config = Config::parse(&written, &Env::from_iter([("X", "")])).expect("a configuration");
    let Auth::Token(token) = Settings::read(&config).expect("settings").auth else { panic!("no token: {written}") };
    assert!(token.expose().len() >= 43);
    let url = format!("ws://{}", running.address);
    assert!(Client::connect(&url, &Introduction::operator(token.expose())).await.is_ok());
    assert!(Client::connect(&url, &Introduction::operator("")).await.is_err());
    running.end().await;
    let again = Gateway::start(bare(&tree), options()).await.expect("a gateway");
    let same = std::fs::read_to_string(tree.root().join(".openclaw/openclaw.json")).expect("the configuration");
    assert_eq!(same, written);
    again.end().await;
}

#[tokio::test]
async fn it_does_not_listen_wider_than_this_machine_without_a_secret() {
    let tree = Tree::new().file(".openclaw/openclaw.json", "{ gateway: { auth: { mode: 'none' } } }");
    let wide = Options { bind: Some("lan".into()), ..options() };
    let refused = Gateway::start(bare(&tree), wide).await.err().expect("refused");
    assert!(matches!(refused, StartError::Settings(_)), "{refused}");
    Gateway::start(bare(&tree), options()).await.expect("here it may").end().await;
}

#[tokio::test]
async fn everybody_hears_of_the_end_before_it_comes() {
    let room = Room::open(Tree::new()).await;
    let mut line = Line::open(&room).await;
    line.nonce().await;
    assert_eq!(line.ask("connect", connect(TOKEN)).await["ok"], true);
    let mut stranger = Line::open(&room).await;
    stranger.nonce().await;
    let ended = tokio::spawn(room.running.end());
    let shutdown = loop {
        let Heard::Frame(frame) = line.hear().await else { panic!("it ended without a word") };
        if frame["event"] == "shutdown" {
            break frame;
        }
    };
    assert_eq!(shutdown["payload"]["restartExpectedMs"], json!(null));
    assert_eq!(line.last_word().await, Heard::Closed(1012, "service restart".into()));
    assert_eq!(stranger.last_word().await, Heard::Closed(1012, "service restart".into()));
    ended.await.expect("it ended");
}
