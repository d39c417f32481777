//! A node host and a gateway that is not always there, or not always sane: what becomes of commands?

use std::path::PathBuf;
use std::time::Duration;

use prowess_config::Secret;
use prowess_gateway::node_host::{NodeHost, NodeHostError, Options, WhenLost};
use prowess_testkit::Tree;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::feigned::{Feigned, Line, output};
use crate::machine::{allowing, helper, home, machine_ground, real, soon, until};
use crate::node_host::{everything, lines};
use crate::room::TOKEN;

/// A node host that dials a feigned gateway.
struct Host {
    tree: Tree,
    stop: CancellationToken,
    serving: JoinHandle<Result<(), NodeHostError>>,
}

impl Host {
    fn start(gateway: &Feigned, rules: &Value, when_lost: WhenLost) -> Self {
        let tree = home(rules, &[]);
        let stop = CancellationToken::new();
        let serving = tokio::spawn(NodeHost::run(options(&tree, gateway, when_lost), stop.clone()));
        Self { tree, stop, serving }
    }

    async fn join(gateway: &Feigned, rules: &Value, when_lost: WhenLost) -> (Self, Line) {
        let host = Self::start(gateway, rules, when_lost);
        let line = gateway.accept().await;
        (host, line)
    }

    /// A file in the folder where its commands run.
    fn file(&self, name: &str) -> PathBuf {
        self.tree.root().join(".openclaw/workspace").join(name)
    }

    async fn has(&self, name: &str) {
        until(name, async || self.file(name).exists()).await;
    }

    async fn end(self) {
        self.stop.cancel();
        soon("the node ends", self.serving).await.expect("no panic").expect("nothing went wrong");
    }
}

fn options(tree: &Tree, gateway: &Feigned, when_lost: WhenLost) -> Options {
    Options {
        token: Some(Secret::new(TOKEN)),
        helper: helper(),
        patience: Duration::from_millis(5),
        when_lost,
        ..Options::new(machine_ground(tree), gateway.url()).expect("this program")
    }
}

#[tokio::test]
async fn a_gateway_that_cannot_tell_now_is_asked_again() {
    let gateway = Feigned::open().await;
    let host = Host::start(&gateway, &everything(), WhenLost::End);
    for _ in 0..2 {
        gateway.refuse(json!({"code": "UNAVAILABLE", "message": "devices/paired.json is not readable"})).await;
    }
    let mut line = gateway.accept().await;
    line.run("1", "echo here").await;
    assert_eq!(line.result("1").await.expect("it runs")["stdout"], "here\n");
    host.end().await;
}

#[tokio::test]
async fn a_node_that_was_replaced_does_not_fight_for_its_place() {
    let gateway = Feigned::open().await;
    let (host, line) = Host::join(&gateway, &everything(), WhenLost::End).await;
    line.close(1000, "replaced by a newer connection").await;
    let ended = soon("it gives up", host.serving).await.expect("no panic");
    let error = ended.expect_err("it was replaced");
    assert!(matches!(error, NodeHostError::Replaced(_)), "{error}");
    assert!(error.to_string().contains("its own state directory"), "{error}");
}

#[tokio::test]
async fn two_node_hosts_do_not_share_their_files() {
    let gateway = Feigned::open().await;
    let (host, mut line) = Host::join(&gateway, &everything(), WhenLost::End).await;
    let other = NodeHost::run(options(&host.tree, &gateway, WhenLost::End), CancellationToken::new());
    let error = soon("it gives up", other).await.expect_err("there is one already");
    assert!(matches!(error, NodeHostError::Taken(..)), "{error}");
    line.run("1", "echo undisturbed").await;
    assert_eq!(line.result("1").await.expect("it runs")["stdout"], "undisturbed\n");
    let tree = host.tree;
    host.stop.cancel();
    soon("the node ends", host.serving).await.expect("no panic").expect("nothing went wrong");
    let stop = CancellationToken::new();
    let next = tokio::spawn(NodeHost::run(options(&tree, &gateway, WhenLost::End), stop.clone()));
    gateway.accept().await;
    stop.cancel();
    soon("the next ends", next).await.expect("no panic").expect("it was let go");
}

#[tokio::test]
async fn a_command_that_is_called_off_before_it_began_does_not_begin() {
    let gateway = Feigned::open().await;
    let (host, mut line) = Host::join(&gateway, &allowing(&[&real("touch")]), WhenLost::End).await;
    line.silent_on = "skills.bins";
    line.run("1", "touch begun").await;
    line.until("the programs of skills are asked for", |request| request["method"] == "skills.bins").await;
    line.cancel("1").await;
    assert_eq!(line.result("1").await, Err("cancelled before it began".to_owned()));
    assert!(!host.file("begun").exists());
    host.end().await;
}

#[tokio::test]
async fn the_programs_of_skills_are_asked_for_once_however_many_wait() {
    let gateway = Feigned::open().await;
    let (host, mut line) = Host::join(&gateway, &allowing(&[&real("uname")]), WhenLost::End).await;
    line.silent_on = "skills.bins";
    for id in ["1", "2", "3"] {
        line.run(id, "uname").await;
    }
    line.until("they are asked for", |request| request["method"] == "skills.bins").await;
    line.refuse("not now").await;
    let mut answers = 0;
    while answers < 3 {
        let is = |request: &Value| request["method"] == "node.invoke.result";
        assert_eq!(line.until("all are answered", is).await["params"]["ok"], true);
        answers += 1;
    }
    assert_eq!(line.count("skills.bins"), 1, "who waited has the same answer, and so has who comes next");
    host.end().await;
}

/// M-NODE-03
#[tokio::test]
async fn the_programs_of_skills_are_asked_for_and_the_answer_is_kept_for_a_while() {
    let gateway = Feigned::open().await;
    let (host, mut line) = Host::join(&gateway, &allowing(&[]), WhenLost::End).await;
    line.silent_on = "skills.bins";
    line.run("1", "uname").await;
    line.until("they are asked for", |request| request["method"] == "skills.bins").await;
    line.answer(&json!({"bins": ["uname"]})).await;
    for id in ["1", "2", "3"] {
        if id != "1" {
            line.run(id, "uname").await;
        }
        assert_eq!(line.result(id).await.expect("it runs unasked")["success"], true);
    }
    assert_eq!(line.count("skills.bins"), 1, "the answer still counts");
    host.end().await;
}

/// A command that waits for a file, under a name of its own.
async fn ask_once(line: &mut Line, id: &str) {
    let text = "echo ran >> runs; while ! test -e go; do sleep 0.02; done; cat runs";
    line.ask(id, "the-key", "system.run", &json!({"command": ["/bin/sh", "-c", text]})).await;
}

/// A node that was cut off without a word while the command ran, and is back and asked once more, as request 2.
async fn cut_off(gateway: &Feigned, when_lost: WhenLost) -> (Host, Line) {
    let (host, mut line) = Host::join(gateway, &everything(), when_lost).await;
    ask_once(&mut line, "1").await;
    host.has("runs").await;
    drop(line);
    let mut line = gateway.accept().await;
    ask_once(&mut line, "2").await;
    (host, line)
}

#[tokio::test]
async fn a_command_that_goes_on_without_the_gateway_is_done_once_and_told_to_who_asks_again() {
    let gateway = Feigned::open().await;
    let (host, mut line) = cut_off(&gateway, WhenLost::GoOn).await;
    std::fs::write(host.file("go"), "").expect("written");
    assert_eq!(line.result("2").await.expect("it is done")["stdout"], "ran\n");
    ask_once(&mut line, "3").await;
    assert_eq!(line.result("3").await.expect("it was done")["stdout"], "ran\n");
    assert_eq!(lines(&host.file("runs")), 1);
    host.end().await;
}

#[tokio::test]
async fn a_node_that_is_cut_off_ends_its_commands() {
    let gateway = Feigned::open().await;
    let (host, mut line) = cut_off(&gateway, WhenLost::End).await;
    let ended = line.result("2").await.expect("an end");
    assert_eq!((&ended["error"], &ended["success"]), (&json!("cancelled"), &json!(false)));
    host.end().await;
}

#[tokio::test]
async fn a_command_that_does_not_want_to_end_is_ended() {
    let gateway = Feigned::open().await;
    let (host, mut line) = Host::join(&gateway, &everything(), WhenLost::End).await;
    line.run("1", "trap '' TERM INT HUP; echo ran >> runs; while :; do sleep 0.05; done").await;
    host.has("runs").await;
    line.cancel("1").await;
    assert_eq!(line.result("1").await.expect("an end")["error"], "cancelled");
    host.end().await;
}

#[tokio::test]
async fn characters_that_come_in_halves_are_told_whole() {
    let gateway = Feigned::open().await;
    let (host, mut line) = Host::join(&gateway, &everything(), WhenLost::End).await;
    let wait = |name: &str| format!("while ! test -e {name}; do sleep 0.02; done");
    // Three bytes of one character, each told about before the next is written.
    let text = format!(
        "printf 'a\\342'; {}; printf 'b\\n\\342'; {}; printf '\\202'; printf '\\254c\\n'",
        wait("one"),
        wait("two")
    );
    line.run("1", &text).await;
    let said = |end: &'static str| move |request: &Value| output(request).is_some_and(|output| output.ends_with(end));
    line.until("the beginning is told", said("a")).await;
    std::fs::write(host.file("one"), "").expect("written");
    line.until("the middle is told", said("b\n")).await;
    std::fs::write(host.file("two"), "").expect("written");
    let result = line.result("1").await.expect("an end");
    assert_eq!(result["stdout"], "a\u{fffd}b\n€c\n", "a half without its other half is shown as such");
    let cut = line.outputs().into_iter().find(|output| output.ends_with('\u{fffd}'));
    assert_eq!(cut, None, "a half whose other half may come is not told");
    host.end().await;
}

#[tokio::test]
async fn far_more_output_than_is_sent_is_read_to_its_end() {
    let gateway = Feigned::open().await;
    let (host, mut line) = Host::join(&gateway, &everything(), WhenLost::End).await;
    line.run("1", "echo first; head -c 16000000 /dev/zero | tr '\\0' x; echo; echo last > last").await;
    let result = line.result("1").await.expect("an end");
    let said = result["stdout"].as_str().expect("a text");
    assert_eq!((&result["exitCode"], &result["truncated"]), (&json!(0), &json!(true)));
    assert!(said.starts_with("first\nxxx") && said.len() <= 200_000, "{} bytes", said.len());
    assert!(host.file("last").exists());
    let most = line.heard.iter().map(|request| request.to_string().len()).max();
    assert!(most.is_some_and(|most| most < 400_000), "{most:?}");
    host.end().await;
}
