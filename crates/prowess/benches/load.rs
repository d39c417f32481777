//! Load: how many people does a gateway serve at once, and what does each of them cost?
//!
//! A thousand clients that only listen, two hundred that ask small things one after the other, and a hundred turns at
//! once against a model on this machine. The same is done with a server that does nothing but answer, which is the
//! floor. Then turns where each session has one listener, in an empty home and in one with many sessions, and what is
//! left in memory a minute later. `PROWESS_PEER` names the folder of an OpenClaw to put the same load on.

#![expect(clippy::cast_precision_loss, reason = "these numbers are for people")]

#[path = "load/crowd.rs"]
mod crowd;
#[path = "load/floor.rs"]
mod floor;
#[path = "load/stand.rs"]
mod stand;

use std::time::Duration;

use crowd::{Crowd, Events, Measured};
use stand::{HELLO, Stand, TOKEN};

/// Clients that only listen.
const IDLE: usize = 1_000;
/// Clients that ask, each one thing after the other.
const ACTIVE: usize = 200;
/// What each of them asks.
const REQUESTS: usize = 50;
/// Turns at once.
const TURNS: usize = 100;
/// How many times so many.
const ROUNDS: usize = 3;
/// The same with one listener for each session.
const QUIET_ROUNDS: usize = 10;
/// How many sessions there are already, in turn.
const SESSIONS: [usize; 2] = [0, 10_000];
/// How often the model says hello in one answer, where bytes are counted.
const LONG: usize = 150;
/// How long the gateway is left alone before its memory is looked at again.
const IDLE_TIME: Duration = Duration::from_secs(60);

fn main() {
    // `cargo bench` and `cargo test --benches` pass words of their own; this measures only when it is asked to.
    if !std::env::args().any(|word| word == "--bench") {
        return;
    }
    rustls::crypto::ring::default_provider().install_default().expect("nobody else did");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let floor = floor::Floor::start().await;
        let small = Crowd::gather(&floor.url(), "", ACTIVE, Events::Whole).await.ask(REQUESTS).await;
        tell("floor: small requests", &small);
        tell("floor: the model itself", &floor.turns(TURNS, ROUNDS).await);
        drop(floor);

        let stand = Stand::start(HELLO.to_owned(), 0);
        let before = stand.memory();
        let idle = Crowd::gather(stand.url(), TOKEN, IDLE, Events::Whole).await.listen();
        let settled = stand.settled_memory().await;
        let each = settled.saturating_sub(before) as f64 / IDLE as f64;
        println!(
            "gateway: {each:.1} KiB for each of {IDLE} idle clients ({before} KiB before, {settled} KiB with them)"
        );
        let mut active = Crowd::gather(stand.url(), TOKEN, ACTIVE, Events::Whole).await;
        tell("gateway: small requests", &active.ask(REQUESTS).await);
        let active = active.listen();
        let mut speakers = Crowd::gather(stand.url(), TOKEN, TURNS, Events::Whole).await;
        tell("gateway: turns", &speakers.talk(ROUNDS).await);
        println!("gateway: {} KiB after the load, with {} clients", stand.memory(), IDLE + ACTIVE + TURNS);
        drop((idle, active, speakers));
        if std::env::var_os("PROWESS_PEER").is_none() {
            for sessions in SESSIONS {
                quietly(sessions).await;
            }
        }
    });
}

/// Turns with one listener for each session, and what they leave behind.
async fn quietly(sessions: usize) {
    let stand = Stand::start(HELLO.to_owned(), sessions);
    let before = stand.settled_memory().await;
    let mut speakers = Crowd::gather(stand.url(), TOKEN, TURNS, Events::Deltas).await;
    tell(&format!("gateway with {sessions} sessions: turns"), &speakers.talk(QUIET_ROUNDS).await);
    let loaded = stand.memory();
    drop(speakers);
    tokio::time::sleep(IDLE_TIME).await;
    println!(
        "gateway with {sessions} sessions: {before} KiB at the start, {loaded} KiB under load, {} KiB after {IDLE_TIME:?}",
        stand.memory()
    );
    drop(stand);

    let text = HELLO.repeat(LONG);
    let length = text.len();
    let stand = Stand::start(text, sessions);
    let mut speaker = Crowd::gather(stand.url(), TOKEN, 1, Events::Deltas).await;
    speaker.chat(QUIET_ROUNDS).await;
    let each = speaker.received() / QUIET_ROUNDS;
    println!(
        "gateway with {sessions} sessions: {each} bytes for a turn of {length}, {:.2} times",
        each as f64 / length as f64
    );
}

fn tell(what: &str, measured: &Measured) {
    let Measured { times, errors, took } = measured;
    let rate = times.len() as f64 / took.as_secs_f64();
    println!(
        "{what}: {rate:.0} a second, p50 {:.1?}, p99 {:.1?}, {errors} errors ({} in {took:.1?})",
        at(times, 50),
        at(times, 99),
        times.len()
    );
}

/// What so many of a hundred took at most.
fn at(sorted: &[Duration], percent: usize) -> Duration {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or_default()
}
