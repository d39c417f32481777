//! Clients that want too much: bytes, time, connections, heads.

use std::time::{Duration, Instant};

use prowess_egress::{Outcome, Refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::origin::Origin;
use crate::proxy::{Proxy, lets, rest, status};

#[tokio::test]
async fn heads_are_bounded_in_size() {
    let proxy = Proxy::start(|context| context.limits.head_bytes = 4096).await;
    let long = "x".repeat(5000);
    for request in [
        format!("GET http://a.example/{long} HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        format!("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nX: {long}\r\n\r\n"),
        long.clone(),
    ] {
        assert_eq!(status(&proxy.send(request).await), 431);
    }
    let many = "X: y\r\n".repeat(101);
    assert_eq!(
        status(&proxy.send(format!("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n{many}\r\n")).await),
        400
    );
    assert_eq!(proxy.close().await.len(), 4);
}

#[tokio::test]
async fn slow_heads_and_slow_hellos_end() {
    let origin = Origin::echo().await;
    let proxy = Proxy::start(|context| {
        lets(context, "a.example", 443, origin.address);
        context.limits.head_time = Duration::from_millis(200);
    })
    .await;
    let start = Instant::now();
    let mut slow = proxy.connect().await;
    slow.write_all(b"GET http://a.example/ HT").await.expect("sent");
    assert_eq!(status(&rest(&mut slow).await), 408);
    let mut socks = proxy.connect().await;
    socks.write_all(&[5, 9, 0]).await.expect("sent");
    rest(&mut socks).await;
    for first in [b"\x16\x03\x01\x02\x00".as_slice(), b"GET / HTTP/1.1\r\nHo"] {
        let (mut tunnel, _) = proxy.tunnel("a.example:443").await;
        tunnel.write_all(first).await.expect("sent");
        rest(&mut tunnel).await;
    }
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    let records = proxy.close().await;
    assert!(records.iter().all(|record| record.outcome == Outcome::Refused(Refusal::HeadTooSlow)), "{records:?}");
    assert_eq!(records.len(), 4);
}

#[tokio::test]
async fn silence_and_long_connections_end() {
    let origin = Origin::echo().await;
    let proxy = Proxy::start(|context| {
        lets(context, "a.example", 443, origin.address);
        context.limits.idle_time = Duration::from_millis(150);
        context.limits.total_time = Duration::from_millis(600);
    })
    .await;
    let (mut silent, _) = proxy.tunnel("a.example:443").await;
    rest(&mut silent).await;
    let (mut busy, _) = proxy.tunnel("a.example:443").await;
    let start = Instant::now();
    let mut echoed = [0; 1];
    while busy.write_all(&[1]).await.is_ok() && busy.read_exact(&mut echoed).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!((Duration::from_millis(500)..Duration::from_secs(3)).contains(&start.elapsed()), "{:?}", start.elapsed());
    let reasons: Vec<String> = proxy.close().await.into_iter().map(|record| format!("{:?}", record.outcome)).collect();
    assert!(reasons[0].contains("silent") && reasons[1].contains("open for"), "{reasons:?}");
}

#[tokio::test]
async fn bytes_are_bounded_for_a_connection_and_for_a_command() {
    let origin = Origin::http().await;
    let proxy = Proxy::start(|context| {
        lets(context, "a.example", 80, origin.address);
        context.limits.connection_bytes = 1 << 20;
        context.limits.command_bytes = 3 << 20;
    })
    .await;
    let request = "GET http://a.example/big HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    let mut codes = Vec::new();
    for _ in 0..5 {
        let answer = proxy.send(request).await;
        codes.push(status(&answer));
        assert!(answer.len() <= 1 << 20, "{} bytes", answer.len());
    }
    // The head of the response had already passed in the first ones.
    assert_eq!((codes[0], codes[4]), (200, 403));
    let records = proxy.close().await;
    assert_eq!(records[0].outcome, Outcome::Refused(Refusal::TooManyBytes("a connection")));
    assert_eq!(records[4].outcome, Outcome::Refused(Refusal::TooManyBytes("the command")));
    assert!(records.iter().map(|record| record.up + record.down).sum::<u64>() <= 3 << 20);
}

#[tokio::test]
async fn more_connections_than_allowed_wait_for_their_turn() {
    let origin = Origin::echo().await;
    let proxy = Proxy::start(|context| {
        lets(context, "a.example", 443, origin.address);
        context.limits.connections = 3;
    })
    .await;
    let mut open = Vec::new();
    for _ in 0..3 {
        open.push(proxy.tunnel("a.example:443").await);
    }
    let mut fourth = Box::pin(proxy.tunnel("a.example:443"));
    assert!(tokio::time::timeout(Duration::from_millis(150), &mut fourth).await.is_err());
    open.pop();
    assert_eq!(status(&fourth.await.1), 200);
}

/// The kernel's limit on open files decides how many are possible here; each connection needs four in one process.
#[tokio::test]
async fn thousands_of_connections_stay_small() {
    let count = usize::try_from(open_files() / 5).unwrap_or(10_000).min(10_000);
    let origin = Origin::echo().await;
    let proxy = Proxy::to("a.example", 443, origin.address).await;
    let before = resident_kib();
    let mut tunnels = Vec::new();
    for _ in 0..count {
        let (mut tunnel, answer) = proxy.tunnel("a.example:443").await;
        assert_eq!(status(&answer), 200);
        tunnel.write_all(b"\x01 and some text").await.expect("sent");
        tunnels.push(tunnel);
    }
    let mut back = [0; 15];
    for tunnel in &mut tunnels {
        tunnel.read_exact(&mut back).await.expect("an echo");
    }
    let each = resident_kib().saturating_sub(before) / count;
    println!("{count} open tunnels, {each} KiB each, client and server included");
    // Client, server, their tasks and the proxy's all live in this process; the echo server alone keeps 8 KiB.
    assert!(each < 40, "{each} KiB for each of {count}");
    drop(tunnels);
    for _ in 0..500 {
        if proxy.records().len() == count {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let records = proxy.close().await;
    assert_eq!(records.len(), count);
    assert!(records.iter().all(|record| record.outcome == Outcome::Served));
}

/// How many files this process may open, after it asked for as many as it can get.
fn open_files() -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).ok();
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}
