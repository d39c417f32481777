//! `CONNECT` and SOCKS5 tunnels: what may be said in them.

use std::sync::Arc;
use std::time::Duration;

use prowess_egress::parse::{Inspection, Inspector};
use prowess_egress::{Outcome, Protocol, ProxyListener, Refusal, Token};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ClientConnection};

use crate::egress::origin::{Authority, Origin};
use crate::egress::proxy::{Proxy, lets, rest, status};

/// The first bytes of a TLS client that wants `name`.
fn client_hello(name: &str) -> Vec<u8> {
    let config: ClientConfig = ClientConfig::clone(Authority::new().client().config());
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut connection = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes).expect("written");
    bytes
}

#[tokio::test]
async fn tls_for_the_right_host_passes() {
    let authority = Authority::new();
    let origin = Origin::https(&authority, &["wttr.in"], std::path::Path::new("/nonexistent")).await;
    let proxy = Proxy::to("wttr.in", 443, origin.address).await;
    // The host is compared without case and trailing dot.
    let (tunnel, answer) = proxy.tunnel("WTTR.in.:443").await;
    assert_eq!(status(&answer), 200);
    let mut tls =
        authority.client().connect(ServerName::try_from("wttr.in").expect("a name"), tunnel).await.expect("TLS");
    tls.write_all(b"GET /hello HTTP/1.1\r\nHost: wttr.in\r\nConnection: close\r\n\r\n").await.expect("sent");
    let mut body = String::new();
    tls.read_to_string(&mut body).await.ok();
    assert!(body.ends_with("hello from wttr.in\n"), "{body}");
    drop(tls);
    let records = proxy.close().await;
    assert_eq!((&records[0].outcome, records[0].protocol), (&Outcome::Served, Protocol::Connect));
    assert_eq!(records[0].host, Some("wttr.in".parse().expect("a host")));
}

type Row<'a> = (&'a str, &'a [u8], fn(&Refusal) -> bool);

#[tokio::test]
async fn a_first_message_for_another_host_never_leaves() {
    let other = client_hello("evil.com");
    let address = client_hello("127.0.0.1");
    let mut split = other.clone();
    // The same hello, in two TLS records.
    let body = split.split_off(5);
    let (first, second) = body.split_at(40);
    let record = |part: &[u8]| [&[0x16, 3, 1, 0, u8::try_from(part.len() % 256).expect("a byte")], part].concat();
    let split = if second.len() < 256 { [record(first), record(second)].concat() } else { other.clone() };
    let table: &[Row<'_>] = &[
        ("another server name", &other, |r| matches!(r, Refusal::ServerName(name) if name == "evil.com")),
        ("two records", &split, |r| matches!(r, Refusal::ServerName(_))),
        ("no server name", &address, |r| *r == Refusal::NoServerName),
        ("not a hello", b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00", |r| matches!(r, Refusal::BadHello(_))),
        ("an old hello", b"\x16\x03\x01\x00\x04\x01\x00\x00\x00", |r| matches!(r, Refusal::BadHello(_))),
        ("another Host", b"GET / HTTP/1.1\r\nHost: evil.com\r\n\r\n", |r| matches!(r, Refusal::HostHeader(_))),
        ("no Host", b"GET / HTTP/1.1\r\n\r\n", |r| matches!(r, Refusal::Malformed(_))),
        ("two Hosts", b"GET / HTTP/1.1\r\nHost: a.example\r\nHost: evil.com\r\n\r\n", |r| {
            matches!(r, Refusal::Malformed(_))
        }),
        ("a URL", b"GET http://evil.com/ HTTP/1.1\r\nHost: a.example\r\n\r\n", |r| matches!(r, Refusal::Malformed(_))),
        ("bare line feeds", b"GET / HTTP/1.1\nHost: a.example\n\n", |r| matches!(r, Refusal::Malformed(_))),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", |r| matches!(r, Refusal::Unsupported(_))),
    ];
    for (what, bytes, is_expected) in table {
        let (origin, noted) = Origin::noting("").await;
        let proxy = Proxy::to("a.example", 443, origin.address).await;
        let (mut tunnel, answer) = proxy.tunnel("a.example:443").await;
        assert_eq!(status(&answer), 200, "{what}");
        tunnel.write_all(bytes).await.expect("sent");
        rest(&mut tunnel).await;
        let refusal = proxy.refusal().await;
        assert!(is_expected(&refusal), "{what}: {refusal:?}");
        assert_eq!(noted.lock().expect("notes").len(), 0, "{what}: bytes left");
    }
}

#[tokio::test]
async fn a_tls_client_sees_an_alert_when_it_is_refused() {
    let authority = Authority::new();
    let origin = Origin::https(&authority, &["a.example", "evil.com"], std::path::Path::new("/nonexistent")).await;
    let proxy = Proxy::to("a.example", 443, origin.address).await;
    let (tunnel, _) = proxy.tunnel("a.example:443").await;
    let error = authority.client().connect(ServerName::try_from("evil.com").expect("a name"), tunnel).await;
    assert!(error.expect_err("refused").to_string().contains("AccessDenied"));
}

#[tokio::test]
async fn a_hello_may_arrive_byte_by_byte_and_before_the_answer() {
    let origin = Origin::echo().await;
    let proxy = Proxy::to("a.example", 443, origin.address).await;
    let hello = client_hello("a.example");
    let (mut tunnel, _) = proxy.tunnel("a.example:443").await;
    for byte in &hello {
        tunnel.write_all(&[*byte]).await.expect("sent");
        tokio::task::yield_now().await;
    }
    let mut back = vec![0; hello.len()];
    tunnel.read_exact(&mut back).await.expect("everything passed");
    assert_eq!(back, hello);

    let mut eager = proxy.connect().await;
    let request = [b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n".as_slice(), &hello].concat();
    eager.write_all(&request).await.expect("sent");
    assert_eq!(status(&crate::egress::proxy::head(&mut eager).await), 200);
    eager.read_exact(&mut back).await.expect("everything passed");
    assert_eq!(back, hello);
}

#[tokio::test]
async fn an_address_needs_no_server_name_and_takes_no_other() {
    let mut ours = Inspector::new("192.0.2.7".parse().expect("a host"), 32_768);
    assert_eq!(ours.look(&client_hello("192.0.2.7")), Inspection::Pass);
    let mut other = Inspector::new("192.0.2.7".parse().expect("a host"), 32_768);
    assert!(matches!(other.look(&client_hello("evil.com")), Inspection::Refuse(Refusal::ServerName(_))));
}

#[tokio::test]
async fn a_server_may_speak_first() {
    let origin = Origin::raw(|mut stream| async move {
        stream.write_all(b"SSH-2.0-test\r\n").await.ok();
        let mut line = [0; 10];
        stream.read_exact(&mut line).await.ok();
        stream.write_all(&line).await.ok();
    })
    .await;
    let proxy = Proxy::to("git.example", 22, origin.address).await;
    let (mut tunnel, _) = proxy.tunnel("git.example:22").await;
    let mut greeting = [0; 14];
    tunnel.read_exact(&mut greeting).await.expect("a greeting");
    assert_eq!(&greeting, b"SSH-2.0-test\r\n");
    tunnel.write_all(b"SSH-2.0-me").await.expect("sent");
    assert_eq!(rest(&mut tunnel).await, "SSH-2.0-me");
    let records = proxy.close().await;
    assert_eq!((records[0].up, records[0].down, &records[0].outcome), (10, 24, &Outcome::Served));
}

#[tokio::test]
async fn protocols_without_a_host_pass_and_half_closed_tunnels_finish() {
    for first in [
        b"EHLO me\r\n".as_slice(),
        b"*1\r\n$4\r\nPING\r\n",
        b"\x00\x00\x00\x10\x00\x03\x00\x00user\0me\0\0",
        b"\xff\xfe",
    ] {
        let origin = Origin::echo().await;
        let proxy = Proxy::to("a.example", 2525, origin.address).await;
        let (mut tunnel, _) = proxy.tunnel("a.example:2525").await;
        tunnel.write_all(first).await.expect("sent");
        tunnel.shutdown().await.expect("half closed");
        let mut back = Vec::new();
        tunnel.read_to_end(&mut back).await.expect("read");
        assert_eq!(back, first);
        assert_eq!(proxy.close().await[0].outcome, Outcome::Served);
    }
}

#[test]
fn tls_in_the_middle_of_postgres_is_inspected_too() {
    let host = || "db.example".parse().expect("a host");
    let ask = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
    assert_eq!(Inspector::new(host(), 9000).look(&ask[..5]), Inspection::More);
    assert_eq!(Inspector::new(host(), 9000).look(&ask), Inspection::PassAndInspect);
    let eager = [ask.as_slice(), &client_hello("evil.com")].concat();
    assert!(matches!(Inspector::new(host(), 9000).look(&eager), Inspection::Refuse(_)));
}

#[tokio::test]
async fn postgres_over_tls_works_and_another_name_is_refused() {
    for (name, passes) in [("db.example", true), ("evil.com", false)] {
        let origin = Origin::raw(|mut stream| async move {
            let mut ask = [0; 8];
            stream.read_exact(&mut ask).await.ok();
            stream.write_all(b"S").await.ok();
            let (mut from, mut to) = stream.split();
            tokio::io::copy(&mut from, &mut to).await.ok();
        })
        .await;
        let proxy = Proxy::to("db.example", 5432, origin.address).await;
        let (mut tunnel, _) = proxy.tunnel("db.example:5432").await;
        tunnel.write_all(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]).await.expect("sent");
        assert_eq!(tunnel.read_u8().await.expect("an answer"), b'S');
        let hello = client_hello(name);
        tunnel.write_all(&hello).await.expect("sent");
        let mut back = vec![0; hello.len()];
        let read = tunnel.read_exact(&mut back).await.is_ok();
        assert_eq!(read && back == hello, passes, "{name}");
    }
}

/// A SOCKS5 client: the reply to the request, and the tunnel.
async fn socks(proxy: &Proxy, login: Option<(&str, &str)>, address: &[u8], port: u16) -> (TcpStream, Vec<u8>) {
    let mut client = proxy.connect().await;
    let mut reply = Vec::new();
    let method = if login.is_some() { 2 } else { 0 };
    client.write_all(&[5, 1, method]).await.expect("sent");
    let mut answer = [0; 2];
    client.read_exact(&mut answer).await.expect("a method");
    if answer[1] == 0xff {
        return (client, answer.to_vec());
    }
    if let Some((user, password)) = login {
        let field = |text: &str| [&[u8::try_from(text.len()).expect("short")], text.as_bytes()].concat();
        client.write_all(&[vec![1], field(user), field(password)].concat()).await.expect("sent");
        client.read_exact(&mut answer).await.expect("an answer");
        if answer[1] != 0 {
            return (client, answer.to_vec());
        }
    }
    client.write_all(&[&[5, 1, 0], address, &port.to_be_bytes()].concat()).await.expect("sent");
    (&mut client).take(10).read_to_end(&mut reply).await.expect("a reply");
    (client, reply)
}

fn domain(name: &str) -> Vec<u8> {
    [&[3, u8::try_from(name.len()).expect("short")], name.as_bytes()].concat()
}

#[tokio::test]
async fn socks_reaches_allowed_hosts_by_name_and_by_address() {
    let origin = Origin::echo().await;
    let port = origin.address.port();
    let proxy = Proxy::start(|context| {
        lets(context, "a.example", 443, origin.address);
        context.rules.push(format!("127.0.0.1:{port}").parse().expect("a rule"));
    })
    .await;
    for (address, port) in [(domain("a.example"), 443), (vec![1, 127, 0, 0, 1], port)] {
        let (mut tunnel, reply) = socks(&proxy, None, &address, port).await;
        assert_eq!(reply[..2], [5, 0]);
        tunnel.write_all(b"\x01hi").await.expect("sent");
        let mut back = [0; 3];
        tunnel.read_exact(&mut back).await.expect("an echo");
        assert_eq!(&back, b"\x01hi");
    }
    // A refused host, an IPv6 loopback address, unusual spellings, and a mapped address.
    let mapped = [vec![4], vec![0; 10], vec![0xff, 0xff, 10, 0, 0, 1]].concat();
    let v6 = [vec![4], vec![0; 15], vec![1]].concat();
    for address in [domain("evil.com"), domain("0x7f.1"), domain("2130706433"), domain("a b"), v6, mapped] {
        let (_, reply) = socks(&proxy, None, &address, 443).await;
        assert_eq!(reply[..2], [5, 2], "{address:?}");
    }
    let records = proxy.close().await;
    assert!(records.iter().all(|record| record.protocol == Protocol::Socks5));
    let refused = |record: &&prowess_egress::ConnectionRecord| matches!(record.outcome, Outcome::Refused(_));
    assert_eq!(records.iter().filter(refused).count(), 6);
}

#[tokio::test]
async fn socks_checks_tls_names_passwords_and_commands() {
    let (origin, noted) = Origin::noting("").await;
    let token = Token::random();
    let right = token.reveal().to_owned();
    let proxy = Proxy::start(|context| {
        lets(context, "a.example", 443, origin.address);
        context.token = Some(token);
    })
    .await;
    let (_, reply) = socks(&proxy, None, &domain("a.example"), 443).await;
    assert_eq!(reply, [5, 0xff]);
    let (_, reply) = socks(&proxy, Some(("proxy", "wrong")), &domain("a.example"), 443).await;
    assert_eq!(reply, [1, 1]);
    let (mut tunnel, reply) = socks(&proxy, Some(("anybody", &right)), &domain("a.example"), 443).await;
    assert_eq!(reply[..2], [5, 0]);
    tunnel.write_all(&client_hello("evil.com")).await.expect("sent");
    rest(&mut tunnel).await;
    assert_eq!(noted.lock().expect("notes").len(), 0);

    let proxy = Proxy::to("a.example", 443, origin.address).await;
    for (request, code) in [
        (vec![5, 2, 0, 1, 1, 2, 3, 4, 0, 80], 7),
        (vec![5, 3, 0, 1, 1, 2, 3, 4, 0, 80], 7),
        (vec![5, 1, 0, 9, 1, 2], 8),
    ] {
        let mut client = proxy.connect().await;
        client.write_all(&[&[5, 1, 0], request.as_slice()].concat()).await.expect("sent");
        let mut reply = Vec::new();
        client.read_to_end(&mut reply).await.ok();
        assert_eq!(reply.get(..4), Some([5, 0, 5, code].as_slice()), "{request:?}");
    }
    // SOCKS4, TLS to the proxy, and a greeting that never ends.
    for first in [[4_u8, 1, 0, 80, 1, 2, 3, 4, 0].as_slice(), &client_hello("a.example"), &[5, 200, 0]] {
        let mut client = proxy.connect().await;
        client.write_all(first).await.expect("sent");
        client.shutdown().await.expect("closed");
        let answer = tokio::time::timeout(Duration::from_secs(5), rest(&mut client)).await.expect("closed in time");
        assert_eq!(answer, "");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_listener_and_a_listener_of_another_program_serve_too() {
    use prowess_egress::{CommandContext, ConnectionRecord, Names, Outlet};
    let origin = Origin::echo().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("proxy.sock");
    let context = || {
        let mut context = CommandContext::new("run-8", |_: ConnectionRecord| {});
        context.names = Names::new(crate::egress::proxy::NoLookup);
        lets(&mut context, "a.example", 443, origin.address);
        context
    };
    let unix = std::os::unix::net::UnixListener::bind(&path).expect("bound");
    let outlet = Outlet::serve(ProxyListener::try_from(unix).expect("taken over"), context());
    let mut client = tokio::net::UnixStream::connect(&path).await.expect("connected");
    client.write_all(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n\x01hi").await.expect("sent");
    let mut answer = vec![0; 42];
    client.read_exact(&mut answer).await.expect("an answer");
    assert!(answer.ends_with(b"\r\n\r\n\x01hi"), "{}", answer.escape_ascii());

    // Dropping the handle closes what is open and refuses what comes.
    drop(outlet);
    assert_eq!(client.read(&mut answer).await.expect("closed"), 0);
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = tcp.local_addr().expect("its address");
    let outlet = Outlet::serve(ProxyListener::try_from(tcp).expect("taken over"), context());
    assert!(TcpStream::connect(address).await.is_ok());
    outlet.close().await;
    assert!(TcpStream::connect(address).await.is_err());
}
