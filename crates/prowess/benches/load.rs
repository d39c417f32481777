//! Load: how many people does a gateway serve at once, and what does each of them cost?
//!
//! A thousand clients that only listen, two hundred that ask small things one after the other, and a hundred turns at
//! once against a model on this machine. The same is done with a server that does nothing but answer, which is the
//! floor. `PROWESS_PEER` names the folder of an OpenClaw to put the same load on.

#![expect(clippy::cast_precision_loss, reason = "these numbers are for people")]

#[path = "load/crowd.rs"]
mod crowd;
#[path = "load/floor.rs"]
mod floor;
#[path = "load/stand.rs"]
mod stand;

use std::time::Duration;

use crowd::{Crowd, Measured};
use stand::{Stand, TOKEN};

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
        let small = Crowd::gather(&floor.url(), "", ACTIVE).await.ask(REQUESTS).await;
        tell("floor: small requests", &small);
        tell("floor: the model itself", &floor.turns(TURNS, ROUNDS).await);
        drop(floor);

        let stand = Stand::start();
        let before = stand.memory();
        let idle = Crowd::gather(stand.url(), TOKEN, IDLE).await.listen();
        let settled = stand.settled_memory().await;
        let each = settled.saturating_sub(before) as f64 / IDLE as f64;
        println!(
            "gateway: {each:.1} KiB for each of {IDLE} idle clients ({before} KiB before, {settled} KiB with them)"
        );
        let mut active = Crowd::gather(stand.url(), TOKEN, ACTIVE).await;
        tell("gateway: small requests", &active.ask(REQUESTS).await);
        let active = active.listen();
        let mut speakers = Crowd::gather(stand.url(), TOKEN, TURNS).await;
        tell("gateway: turns", &speakers.talk(ROUNDS).await);
        println!("gateway: {} KiB after the load, with {} clients", stand.memory(), IDLE + ACTIVE + TURNS);
        drop((idle, active, speakers));
    });
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
