//! Names that lead to addresses which no rule names, and names that are addresses in disguise.

use std::sync::Arc;

use prowess_egress::{AddressKind, Names, Outcome, Refusal};

use crate::egress::origin::Origin;
use crate::egress::proxy::{ALLOW, NoLookup, Proxy, Table, asker, status};

#[tokio::test]
async fn a_name_that_leads_inside_is_refused() {
    for addresses in [
        ["127.0.0.1"].as_slice(),
        &["::1"],
        &["169.254.169.254"],
        &["10.0.0.1"],
        &["::ffff:10.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["0.0.0.0"],
        &["100.64.0.1"],
        // One of several is enough.
        &["93.184.216.34", "192.168.0.1"],
    ] {
        let proxy = Proxy::start(|context| {
            context.rules = vec!["a.example:80".parse().expect("a rule")];
            context.names = Names::new(Table::new("a.example", &[addresses]));
        })
        .await;
        let answer = proxy.send("GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n").await;
        assert_eq!(status(&answer), 403, "{addresses:?}");
        assert!(matches!(proxy.refusal().await, Refusal::Address(..)), "{addresses:?}");
    }
}

#[tokio::test]
async fn an_answer_for_a_name_is_no_rule_for_its_address() {
    let (ask, asked) = asker(ALLOW);
    let proxy = Proxy::start(|context| {
        context.asker = Arc::new(ask);
        context.names = Names::new(Table::new("a.example", &[&["127.0.0.1"]]));
    })
    .await;
    assert_eq!(status(&proxy.send("CONNECT a.example:443 HTTP/1.1\r\n\r\n").await), 403);
    assert_eq!(asked.lock().expect("questions").len(), 1);
    assert_eq!(
        proxy.refusal().await,
        Refusal::Address("127.0.0.1".parse().expect("an address"), AddressKind::Loopback)
    );
}

#[tokio::test]
async fn a_rule_for_the_address_opens_the_name() {
    let origin = Origin::http().await;
    let port = origin.address.port();
    for rule in ["127.0.0.0/8", "127.0.0.1", "localhost"] {
        let proxy = Proxy::start(|context| {
            context.rules = vec![
                format!("a.example:{port}").parse().expect("a rule"),
                format!("{rule}:{port}").parse().expect("a rule"),
            ];
            context.names = Names::new(Table::new("a.example", &[&["127.0.0.1"]]));
        })
        .await;
        let request = format!(
            "GET http://a.example:{port}/hello HTTP/1.1\r\nHost: a.example:{port}\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(status(&proxy.send(request).await), 200, "{rule}");
    }
    // A rule for another port opens nothing.
    let proxy = Proxy::start(|context| {
        context.rules =
            vec![format!("a.example:{port}").parse().expect("a rule"), "localhost:1".parse().expect("a rule")];
        context.names = Names::new(Table::new("a.example", &[&["127.0.0.1"]]));
    })
    .await;
    let request = format!("GET http://a.example:{port}/hello HTTP/1.1\r\nHost: a.example:{port}\r\n\r\n");
    assert_eq!(status(&proxy.send(request).await), 403);
}

#[tokio::test]
async fn a_name_whose_address_changes_is_checked_each_time() {
    let origin = Origin::http().await;
    let port = origin.address.port();
    let proxy = Proxy::start(|context| {
        context.rules = vec![
            format!("a.example:{port}").parse().expect("a rule"),
            format!("127.0.0.1:{port}").parse().expect("a rule"),
        ];
        context.names = Names::new(Table::new("a.example", &[&["127.0.0.1"], &["127.0.0.2"]]));
    })
    .await;
    let request =
        format!("GET http://a.example:{port}/hello HTTP/1.1\r\nHost: a.example:{port}\r\nConnection: close\r\n\r\n");
    assert_eq!(status(&proxy.send(&request).await), 200);
    assert_eq!(status(&proxy.send(&request).await), 403);
    let records = proxy.close().await;
    assert_eq!(records[0].address, Some(origin.address));
    assert_eq!(records[1].address, None);
    assert!(matches!(records[1].outcome, Outcome::Refused(Refusal::Address(..))));
}

#[tokio::test]
async fn addresses_in_disguise_never_reach_the_resolver() {
    for host in [
        "0x7f.1",
        "0x7f000001",
        "017700000001",
        "2130706433",
        "127.1",
        "127.0.0.1.1",
        "127.0.0.01",
        "localhost%00",
        "%6cocalhost",
    ] {
        // The resolver would fail with its own message; the rules would ask.
        let proxy = Proxy::start(|context| context.names = Names::new(NoLookup)).await;
        let answer = proxy.send(format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n")).await;
        assert_eq!(status(&answer), 400, "{host}: {answer}");
        let answer = proxy.send(format!("CONNECT {host}:80 HTTP/1.1\r\n\r\n")).await;
        assert_eq!(status(&answer), 400, "{host}: {answer}");
        assert!(
            proxy.close().await.iter().all(|record| matches!(record.outcome, Outcome::Refused(Refusal::BadHost(_)))),
            "{host}"
        );
    }
    for host in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "127.0.0.1.", "169.254.169.254"] {
        let proxy = Proxy::start(|_| {}).await;
        assert_eq!(status(&proxy.send(format!("CONNECT {host}:80 HTTP/1.1\r\n\r\n")).await), 403, "{host}");
        assert!(matches!(proxy.refusal().await, Refusal::NotAllowed(_)), "{host}");
    }
}

#[tokio::test]
async fn wildcards_cover_whole_labels() {
    let origin = Origin::echo().await;
    let table = [
        ("a.example.com", 200),
        ("b.a.example.com", 200),
        ("example.com", 403),
        ("evil-example.com", 403),
        ("evilexample.com", 403),
        ("example.com.evil.com", 403),
        ("A.EXAMPLE.COM.", 200),
        ("a.example.com.evil.com", 403),
    ];
    for (host, expected) in table {
        let proxy = Proxy::start(|context| {
            context.rules = vec!["*.example.com:443".parse().expect("a rule")];
            for name in ["a.example.com", "b.a.example.com", "example.com", "evil-example.com", "evilexample.com"] {
                context.names = context.names.clone().stand_in(name, 443, origin.address).expect("a host");
            }
        })
        .await;
        assert_eq!(status(&proxy.tunnel(&format!("{host}:443")).await.1), expected, "{host}");
    }
}

#[tokio::test]
async fn a_name_without_an_address_fails_with_its_name() {
    let proxy = Proxy::start(|context| context.rules = vec!["gone.example:80".parse().expect("a rule")]).await;
    let answer = proxy.send("GET http://gone.example/ HTTP/1.1\r\nHost: gone.example\r\n\r\n").await;
    assert_eq!(status(&answer), 502);
    assert!(answer.contains("gone.example"), "{answer}");
}
