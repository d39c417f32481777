//! Hosts without a rule: who is asked, how often, and what the answer does.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use prowess_egress::{Answer, HostQuestion, Lifetime, Outcome, Protocol, Refusal};
use tokio::io::AsyncWriteExt;

use crate::egress::origin::Origin;
use crate::egress::proxy::{ALLOW, Proxy, asker, head, lets, rest, status};

#[tokio::test]
async fn connections_to_one_host_share_one_question() {
    let origin = Origin::echo().await;
    let (sender, receiver) = tokio::sync::watch::channel(false);
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let proxy = Proxy::start(|context| {
        context.names = context.names.clone().stand_in("new.example", 443, origin.address).expect("a host");
        context.asker = Arc::new(move |question: HostQuestion| {
            counted.fetch_add(1, Ordering::Relaxed);
            assert_eq!((question.host.to_string().as_str(), question.port), ("new.example", 443));
            assert_eq!((question.skill.as_deref(), question.command.as_str()), (Some("weather"), "run-7"));
            assert_eq!(question.protocol, Protocol::Connect);
            let mut receiver = receiver.clone();
            async move {
                receiver.wait_for(|answered| *answered).await.expect("an answer");
                Answer::Allow(Lifetime::Session)
            }
        });
    })
    .await;
    let mut held = Vec::new();
    for _ in 0..5 {
        let mut client = proxy.connect().await;
        client.write_all(b"CONNECT new.example:443 HTTP/1.1\r\n\r\n").await.expect("sent");
        held.push(client);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!((count.load(Ordering::Relaxed), proxy.records().len()), (1, 0));
    sender.send_replace(true);
    for client in &mut held {
        assert_eq!(status(&head(client).await), 200);
    }
    // Later connections do not ask again.
    assert_eq!(status(&proxy.tunnel("new.example:443").await.1), 200);
    assert_eq!(count.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_refusal_is_remembered_and_another_port_asks_again() {
    let (ask, asked) = asker(Answer::Refuse("the person said no".to_owned()));
    let proxy = Proxy::start(|context| context.asker = Arc::new(ask)).await;
    for _ in 0..4 {
        let answer = proxy.send("CONNECT evil.com:443 HTTP/1.1\r\n\r\n").await;
        assert_eq!(status(&answer), 403);
        assert!(answer.contains("evil.com") && answer.contains("the person said no"), "{answer}");
    }
    assert_eq!(status(&proxy.send("CONNECT evil.com:444 HTTP/1.1\r\n\r\n").await), 403);
    assert_eq!(asked.lock().expect("questions").len(), 2);
    assert_eq!(proxy.close().await.len(), 5);
}

#[tokio::test]
async fn a_redirect_to_another_host_asks_again() {
    let origin = Origin::http().await;
    let (ask, asked) = asker(Answer::Refuse("no".to_owned()));
    let proxy = Proxy::start(|context| {
        lets(context, "wttr.in", 80, origin.address);
        context.names = context.names.clone().stand_in("evil.com", 80, origin.address).expect("a host");
        context.asker = Arc::new(ask);
    })
    .await;
    let mut client = proxy.connect().await;
    let request =
        "GET http://wttr.in/redirect?http://evil.com/hello HTTP/1.1\r\nHost: wttr.in\r\nConnection: close\r\n\r\n";
    client.write_all(request.as_bytes()).await.expect("sent");
    let answer = rest(&mut client).await;
    assert!(answer.to_lowercase().contains("location: http://evil.com/hello"), "{answer}");
    assert!(asked.lock().expect("questions").is_empty());
    // What every client does next.
    let answer = proxy.send("GET http://evil.com/hello HTTP/1.1\r\nHost: evil.com\r\n\r\n").await;
    assert_eq!(status(&answer), 403);
    assert_eq!(asked.lock().expect("questions")[0].host.to_string(), "evil.com");
}

#[tokio::test]
async fn an_answer_covers_the_address_that_was_asked_about() {
    let origin = Origin::http().await;
    let (ask, asked) = asker(ALLOW);
    let proxy = Proxy::start(|context| context.asker = Arc::new(ask)).await;
    let url = format!("http://{}/hello", origin.address);
    let answer =
        proxy.send(format!("GET {url} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", origin.address)).await;
    assert_eq!(status(&answer), 200);
    assert_eq!(asked.lock().expect("questions")[0].host.to_string(), "127.0.0.1");
}

#[tokio::test]
async fn questions_are_bounded_in_time_and_number() {
    let proxy = Proxy::start(|context| {
        context.asker = Arc::new(|_: HostQuestion| std::future::pending::<Answer>());
        context.limits.answer_time = Duration::from_millis(200);
        context.limits.questions = 3;
        context.limits.held = 2;
    })
    .await;
    let mut clients = Vec::new();
    for host in ["a.example", "b.example", "c.example", "d.example"] {
        let mut client = proxy.connect().await;
        client.write_all(format!("CONNECT {host}:443 HTTP/1.1\r\n\r\n").as_bytes()).await.expect("sent");
        clients.push(client);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for client in &mut clients {
        assert_eq!(status(&rest(client).await), 403);
    }
    let mut refusals: Vec<String> = proxy
        .close()
        .await
        .into_iter()
        .map(|record| match record.outcome {
            Outcome::Refused(refusal) => refusal.code().to_owned(),
            other => panic!("{other:?}"),
        })
        .collect();
    refusals.sort();
    assert_eq!(refusals, ["no-answer", "no-answer", "too-many-held", "too-many-questions"]);
}

#[tokio::test]
async fn a_client_that_leaves_frees_its_place() {
    let proxy = Proxy::start(|context| {
        context.asker = Arc::new(|_: HostQuestion| std::future::pending::<Answer>());
        context.limits.held = 1;
    })
    .await;
    let mut client = proxy.connect().await;
    client.write_all(b"CONNECT slow.example:443 HTTP/1.1\r\n\r\n").await.expect("sent");
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(client);
    for _ in 0..100 {
        if !proxy.records().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let records = proxy.records();
    assert!(
        matches!(&records[..], [record] if matches!(&record.outcome, Outcome::Failed(why) if why.contains("left"))),
        "{records:?}"
    );
}

#[tokio::test]
async fn closing_the_proxy_records_what_was_held() {
    let proxy =
        Proxy::start(|context| context.asker = Arc::new(|_: HostQuestion| std::future::pending::<Answer>())).await;
    let mut client = proxy.connect().await;
    client.write_all(b"CONNECT slow.example:443 HTTP/1.1\r\n\r\n").await.expect("sent");
    tokio::time::sleep(Duration::from_millis(50)).await;
    let records = proxy.close().await;
    assert_eq!(records[0].outcome, Outcome::Failed("the command ended".to_owned()));
    assert_eq!(records[0].host, Some("slow.example".parse().expect("a host")));
    assert_eq!(rest(&mut client).await, "");
    assert_ne!(records[0].outcome, Outcome::Refused(Refusal::NoAnswer));
}
