//! Clients that want too much: bytes, time, connections, heads.

use std::time::{Duration, Instant};

use prowess_egress::{Outcome, Refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::egress::origin::Origin;
use crate::egress::proxy::{Proxy, lets, rest, status};

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
async fn more_connections_than_allowed_are_told_so() {
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
    let answer = proxy.send("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n").await;
    assert_eq!(status(&answer), 503);
    assert!(answer.contains("the command has 3 connections open, which is the limit"), "{answer}");
    let mut socks = proxy.connect().await;
    socks.write_all(&[5, 1, 0]).await.expect("sent");
    let mut refused = Vec::new();
    socks.read_to_end(&mut refused).await.expect("an answer");
    assert_eq!(refused, [5, 0xff]);
    // Clients that say nothing do not keep others from being told.
    let mut silent = Vec::new();
    for _ in 0..200 {
        silent.push(proxy.connect().await);
    }
    assert_eq!(status(&proxy.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n").await), 503);
    drop((open.pop(), silent));
    let mut again = proxy.tunnel("a.example:443").await.1;
    for _ in 0..100 {
        if status(&again) == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
        again = proxy.tunnel("a.example:443").await.1;
    }
    assert_eq!(status(&again), 200, "one that ends makes room for another");
    let is_told = |outcome: &Outcome| *outcome == Outcome::Refused(Refusal::TooManyConnections(3));
    assert!(proxy.close().await.iter().filter(|record| is_told(&record.outcome)).count() >= 3);
}
