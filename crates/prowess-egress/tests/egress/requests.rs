//! Plain HTTP requests through the proxy.

use prowess_egress::{Outcome, Protocol, Refusal, Token};
use tokio::io::AsyncWriteExt;

use crate::egress::origin::Origin;
use crate::egress::proxy::{Proxy, head, lets, rest, status};

#[tokio::test]
async fn a_request_to_an_allowed_host_is_served_and_recorded() {
    let origin = Origin::http().await;
    let proxy = Proxy::to("wttr.in", 80, origin.address).await;
    let answer = proxy.send("GET http://wttr.in/hello HTTP/1.1\r\nHost: wttr.in\r\nConnection: close\r\n\r\n").await;
    assert_eq!(status(&answer), 200);
    assert!(answer.ends_with("hello from wttr.in\n"), "{answer}");
    let records = proxy.close().await;
    let [record] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!(record.outcome, Outcome::Served);
    assert_eq!((record.skill.as_deref(), record.command.as_str()), (Some("weather"), "run-7"));
    assert_eq!((record.protocol, record.port, record.address), (Protocol::Http, Some(80), Some(origin.address)));
    assert!(record.up > 20 && record.down > 60, "{record:?}");
    let json = serde_json::to_value(record).expect("json");
    assert_eq!((&json["host"], &json["outcome"]), (&"wttr.in".into(), &"served".into()));
}

#[tokio::test]
async fn each_request_on_a_kept_connection_is_checked() {
    let origin = Origin::http().await;
    let proxy = Proxy::to("wttr.in", 80, origin.address).await;
    let mut client = proxy.connect().await;
    for _ in 0..3 {
        client
            .write_all(b"POST http://wttr.in/echo HTTP/1.1\r\nHost: wttr.in\r\nContent-Length: 3\r\n\r\nabc")
            .await
            .expect("sent");
        let answer = head(&mut client).await;
        assert_eq!(status(&answer), 200);
        let mut body = [0; 3];
        tokio::io::AsyncReadExt::read_exact(&mut client, &mut body).await.expect("a body");
        assert_eq!(&body, b"abc");
    }
    client.write_all(b"GET http://evil.com/ HTTP/1.1\r\nHost: evil.com\r\n\r\n").await.expect("sent");
    let answer = rest(&mut client).await;
    assert_eq!(status(&answer), 403);
    assert!(answer.contains("evil.com"), "{answer}");
    let records = proxy.close().await;
    let served = records.iter().filter(|record| record.outcome == Outcome::Served).count();
    assert_eq!((records.len(), served), (4, 3));
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let origin = Origin::http().await;
    let proxy = Proxy::to("wttr.in", 80, origin.address).await;
    let one =
        "POST http://wttr.in/echo HTTP/1.1\r\nHost: wttr.in\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n";
    let two = "POST http://wttr.in/echo HTTP/1.1\r\nHost: wttr.in\r\nContent-Length: 3\r\nConnection: close\r\n\r\ntwo";
    let answer = proxy.send(format!("{one}{two}")).await;
    let (first, second) = (answer.find("one"), answer.find("two"));
    assert!(first.is_some() && first < second, "{answer}");
    assert_eq!(proxy.close().await.len(), 2);
}

#[tokio::test]
async fn hop_by_hop_fields_stay_here() {
    let origin = Origin::http().await;
    let proxy = Proxy::to("wttr.in", 80, origin.address).await;
    let answer = proxy
        .send(
            "GET http://wttr.in/fields HTTP/1.1\r\nHost: wttr.in\r\nProxy-Connection: close\r\nConnection: X-Secret\r\n\
             X-Secret: 1\r\nX-Kept: 2\r\nTE: trailers\r\nUpgrade: h2c\r\nProxy-Authorization: Basic eDp5\r\nKeep-Alive: 5\r\n\r\n",
        )
        .await;
    let fields = answer.split("\r\n\r\n").nth(1).expect("a body");
    assert_eq!(fields, "host: \"wttr.in\"\nx-kept: \"2\"\nconnection: \"close\"\n");
}

#[tokio::test]
async fn bodies_larger_than_any_buffer_pass_both_ways() {
    let origin = Origin::http().await;
    let proxy = Proxy::to("wttr.in", 8080, origin.address).await;
    let body = "y".repeat(1_500_000);
    let request = format!(
        "POST http://wttr.in:8080/echo HTTP/1.1\r\nHost: wttr.in:8080\r\nConnection: close\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let answer = proxy.send(request).await;
    assert!(answer.ends_with(&body), "{} bytes came back", answer.len());
    let records = proxy.close().await;
    assert!(records[0].up > 1_500_000 && records[0].down > 1_500_000, "{records:?}");
}

#[tokio::test]
async fn a_body_without_a_length_ends_with_the_connection() {
    let (origin, _) = Origin::noting("HTTP/1.0 200 OK\r\n\r\nuntil I close").await;
    let proxy = Proxy::start(|context| {
        lets(context, "old.example", 80, origin.address);
        context.limits.idle_time = std::time::Duration::from_millis(300);
    })
    .await;
    let answer = proxy.send("GET http://old.example/ HTTP/1.0\r\n\r\n").await;
    assert!(answer.contains("Connection: close") && answer.ends_with("until I close"), "{answer}");
}

#[tokio::test]
async fn a_host_that_answers_nonsense_fails() {
    for nonsense in [
        "SSH-2.0-x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
    ] {
        let (origin, _) = Origin::noting(nonsense).await;
        let proxy = Proxy::to("odd.example", 80, origin.address).await;
        let answer = proxy.send("GET http://odd.example/ HTTP/1.1\r\nHost: odd.example\r\n\r\n").await;
        assert_eq!(status(&answer), 502, "{nonsense:?}: {answer}");
        assert!(matches!(proxy.close().await[0].outcome, Outcome::Failed(_)));
    }
}

#[tokio::test]
async fn a_refusal_names_the_host_the_reason_and_the_hint() {
    let proxy = Proxy::start(|context| context.hint = Some("Ask the operator for a rule.".to_owned())).await;
    let answer = proxy.send("GET http://evil.com/ HTTP/1.1\r\nHost: evil.com\r\n\r\n").await;
    assert_eq!(status(&answer), 403);
    for part in ["evil.com", "no rule allows it", "Ask the operator for a rule.", "text/plain"] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    assert_eq!(proxy.refusal().await, Refusal::NotAllowed("no rule allows it".to_owned()));
}

#[tokio::test]
async fn a_token_is_needed_where_one_is_set() {
    use base64::Engine as _;
    let origin = Origin::http().await;
    let token = Token::random();
    let right = token.clone();
    let proxy = Proxy::start(|context| {
        lets(context, "wttr.in", 80, origin.address);
        context.token = Some(token);
    })
    .await;
    let send = async |login: &str| {
        let encoded = base64::engine::general_purpose::STANDARD.encode(login);
        let line = if login.is_empty() { String::new() } else { format!("Proxy-Authorization: Basic {encoded}\r\n") };
        proxy
            .send(format!("GET http://wttr.in/hello HTTP/1.1\r\nHost: wttr.in\r\nConnection: close\r\n{line}\r\n"))
            .await
    };
    for wrong in ["", "proxy:", "proxy:wrong", &right.reveal()[1..]] {
        let answer = send(wrong).await;
        assert_eq!(status(&answer), 407, "{wrong}");
        assert!(answer.contains("Proxy-Authenticate: Basic"), "{answer}");
    }
    assert_eq!(status(&send(&format!("proxy:{}", right.reveal())).await), 200);
    assert!(proxy.close().await.iter().take(4).all(|record| record.outcome == Outcome::Refused(Refusal::Unauthorized)));
}
