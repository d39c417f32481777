//! Tunnels: what does the proxy add to a connection, and how does it compare with tinyproxy?
//!
//! A direct connection is the floor. All are measured in turn in the same run, against the same servers on loopback.
//! tinyproxy is a process of its own, as the proxy here would be seen by a command; where it is not installed, its rows are
//! left out.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use prowess_egress::{CommandContext, ConnectionRecord, Names, Outlet, ProxyListener};
use prowess_testkit::bench::ratio;
use prowess_testkit::free_port;

const BULK: usize = 256 << 20;
const ROUND_TRIPS: usize = 2_000;
const CONNECTIONS: usize = 200;

/// Something to measure, by this way.
type Run<'a> = &'a dyn Fn(Option<SocketAddr>);

fn main() {
    let source = serve(|mut stream| {
        let chunk = vec![b'x'; 1 << 20];
        let mut asked = [0; 1];
        if stream.read_exact(&mut asked).is_ok() {
            for _ in 0..BULK / chunk.len() {
                stream.write_all(&chunk).expect("sent");
            }
        }
    });
    let echo = serve(|mut stream| {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            stream.write_all(&buffer[..count]).expect("sent");
        }
    });
    let (runtime, ours) = proxy(&[source, echo]);
    let mut ways = vec![("ours", ours)];
    let tinyproxy = Tinyproxy::start();
    match &tinyproxy {
        Some(other) => ways.push(("tinyproxy", other.address)),
        None => println!("skipped: tinyproxy is not installed"),
    }
    let bulk = |way| bulk(way, source);
    let round_trips = |way| round_trips(way, echo);
    let connections = |way| connections(way, echo);
    let kinds: [(String, Run<'_>); 3] = [
        (format!("{} MiB", BULK >> 20), &bulk),
        (format!("{ROUND_TRIPS} round trips"), &round_trips),
        (format!("{CONNECTIONS} connections"), &connections),
    ];
    // Words choose what is measured, for example `round`.
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    for (kind, run) in kinds.iter().filter(|(kind, _)| words.iter().all(|word| kind.contains(word.as_str()))) {
        println!();
        for (name, way) in &ways {
            ratio(&format!("{kind} through {name} / direct"), 9, || run(None), || run(Some(*way)));
        }
        if let Some(other) = &tinyproxy {
            ratio(&format!("{kind}: ours / tinyproxy"), 9, || run(Some(other.address)), || run(Some(ours)));
        }
    }
    drop(runtime);
}

/// A server on a thread of its own, with a thread for each client.
fn serve(talk: impl Fn(TcpStream) + Send + Copy + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_nodelay(true).expect("no delay");
            thread::spawn(move || talk(stream));
        }
    });
    address
}

/// Our proxy, with rules for the servers.
fn proxy(servers: &[SocketAddr]) -> ((tokio::runtime::Runtime, Outlet), SocketAddr) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("its address");
    let mut context = CommandContext::new("bench", |_: ConnectionRecord| {});
    context.names = Names::default();
    context.rules = servers.iter().map(|server| server.to_string().parse().expect("a rule")).collect();
    let outlet =
        runtime.block_on(async { Outlet::serve(ProxyListener::try_from(listener).expect("a listener"), context) });
    ((runtime, outlet), address)
}

/// A connection to `server`, directly or through a proxy.
fn connect(way: Option<SocketAddr>, server: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(way.unwrap_or(server)).expect("connected");
    stream.set_nodelay(true).expect("no delay");
    if way.is_some() {
        // In one piece, as clients do. The server says nothing before it is asked, so nothing follows the answer.
        let request = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut head = Vec::new();
        let mut piece = [0; 1024];
        while !head.ends_with(b"\r\n\r\n") {
            let count = stream.read(&mut piece).expect("an answer");
            assert!(count > 0, "closed after {}", head.escape_ascii());
            head.extend_from_slice(&piece[..count]);
        }
        assert!(head.starts_with(b"HTTP/1.1 200") || head.starts_with(b"HTTP/1.0 200"), "{}", head.escape_ascii());
    }
    stream
}

fn bulk(way: Option<SocketAddr>, server: SocketAddr) {
    let mut stream = connect(way, server);
    stream.write_all(&[1]).expect("sent");
    let mut buffer = vec![0; 1 << 20];
    let mut total = 0;
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        total += count;
    }
    assert_eq!(total, BULK);
}

fn round_trips(way: Option<SocketAddr>, server: SocketAddr) {
    let mut stream = connect(way, server);
    let mut message = [7; 64];
    for _ in 0..ROUND_TRIPS {
        stream.write_all(&message).expect("sent");
        stream.read_exact(&mut message).expect("an echo");
    }
}

fn connections(way: Option<SocketAddr>, server: SocketAddr) {
    for _ in 0..CONNECTIONS {
        let mut stream = connect(way, server);
        let mut message = [7; 64];
        stream.write_all(&message).expect("sent");
        stream.read_exact(&mut message).expect("an echo");
    }
}

/// A running tinyproxy. It ends with the bench.
struct Tinyproxy {
    address: SocketAddr,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Tinyproxy {
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("tinyproxy.conf");
        let port = free_port();
        let settings = format!(
            "Port {port}\nListen 127.0.0.1\nTimeout 600\nMaxClients 100\nLogLevel Critical\nDisableViaHeader Yes\n"
        );
        fs::write(&config, settings).expect("written");
        let child = Command::new("tinyproxy")
            .args(["-d", "-c"])
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let tinyproxy = Self { address: SocketAddr::from(([127, 0, 0, 1], port)), child, _folder: folder };
        for _ in 0..100 {
            if TcpStream::connect(tinyproxy.address).is_ok() {
                return Some(tinyproxy);
            }
            thread::sleep(Duration::from_millis(50));
        }
        None
    }
}

impl Drop for Tinyproxy {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
