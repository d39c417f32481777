//! Many tunnels at once. Both their ends are other processes, and no other test runs in this one, so that what is measured
//! here is the proxy alone.

use crate::egress::proxy;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use prowess_egress::{Outcome, Refusal};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use proxy::{Proxy, lets};

/// The most memory of the proxy that one open tunnel takes, in bytes.
const MAX_BYTES: usize = 8 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_thousand_tunnels_stay_small_and_more_are_refused() {
    crowd(1_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
#[ignore = "takes a minute, and as many open files as there may be"]
async fn ten_thousand_tunnels_stay_small_and_more_are_refused() {
    crowd(10_000).await;
}

async fn crowd(wanted: usize) {
    // Each tunnel has two sockets here.
    let count = wanted.min((open_files() - 60) / 2);
    if count < wanted {
        eprintln!("only {count} instead of {wanted} tunnels: this process may not open more files");
    }
    let mut server = Ends::start(&["serve"]);
    let origin: SocketAddr = server.answer().parse().expect("an address");
    let proxy = Proxy::start(|context| {
        lets(context, "a.example", 443, origin);
        context.limits.connections = count;
    })
    .await;
    // Pools and tables have their size before anything is measured.
    let mut first = Ends::clients(&proxy, 20);
    first.ask("close");
    settled(&proxy, 20).await;
    let before = resident();

    let mut clients = Ends::clients(&proxy, count);
    clients.ask("echo");
    let full = resident();
    let each = full.saturating_sub(before) / count;
    println!("{count} open tunnels, {each} bytes each");
    assert!(each < MAX_BYTES, "{each} bytes for each of {count} tunnels");

    // The proxy tells the next client why it refuses. That takes no memory, and the open tunnels go on.
    assert_eq!(clients.say("more 300"), "HTTP/1.1 503 Service Unavailable");
    let grown = resident().saturating_sub(full);
    assert!(grown < 2 << 20, "{grown} more bytes after clients that were refused");
    clients.ask("echo");

    clients.ask("close");
    settled(&proxy, 20 + count + 300).await;
    let mut again = Ends::clients(&proxy, 20);
    again.ask("echo");
    drop((first, clients, again));
    let records = proxy.close().await;
    let refused = Outcome::Refused(Refusal::TooManyConnections(count));
    assert_eq!(records.iter().filter(|record| record.outcome == refused).count(), 300);
    assert!(records.iter().all(|record| record.outcome == refused || record.outcome == Outcome::Served));
}

/// Waits until the proxy has delivered this many records.
async fn settled(proxy: &Proxy, count: usize) {
    for _ in 0..6_000 {
        if proxy.records().len() >= count {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("{} records instead of {count}", proxy.records().len());
}

/// A process at the other end.
struct Ends {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Ends {
    fn start(words: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_prowess-egress-ends"))
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the ends");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        Self { child, input, output: BufReader::new(output) }
    }

    /// Clients with `count` open tunnels.
    fn clients(proxy: &Proxy, count: usize) -> Self {
        let mut clients = Self::start(&["connect", &proxy.address.to_string(), "a.example:443", &count.to_string()]);
        assert_eq!(clients.answer(), "open");
        clients
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        line.trim_end().to_owned()
    }

    fn say(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").expect("it listens");
        self.answer()
    }

    /// Says something that must be done.
    fn ask(&mut self, line: &str) {
        assert!(["echoed", "closed"].contains(&self.say(line).as_str()), "{line}");
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// How many files this process, and those that it starts, may open, after it asked for as many as it can get.
fn open_files() -> usize {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("its own limit");
    limit.maximum.map_or(usize::MAX, |files| usize::try_from(files).unwrap_or(usize::MAX))
}

/// Bytes of memory of this process.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a size");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("a number") * 1024
}
