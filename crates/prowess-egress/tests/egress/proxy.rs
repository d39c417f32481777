//! A proxy for one test, with its records and questions.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use prowess_egress::{
    Answer, CommandContext, ConnectionRecord, HostQuestion, Lifetime, LookingUp, Lookup, Names, Outcome, Outlet,
    Refusal,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A running proxy.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    outlet: Outlet,
    records: Arc<Mutex<Vec<ConnectionRecord>>>,
}

impl Proxy {
    /// Starts a proxy that `change` has set up.
    pub(crate) async fn start(change: impl FnOnce(&mut CommandContext)) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let records = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&records);
        let mut context = CommandContext::new("run-7", move |record| sink.lock().expect("records").push(record));
        context.skill = Some("weather".to_owned());
        context.names = Names::new(NoLookup);
        change(&mut context);
        Self { address, outlet: Outlet::serve(listener, context), records }
    }

    /// A proxy whose rules cover `host:port`, which stands for `origin`.
    pub(crate) async fn to(host: &str, port: u16, origin: SocketAddr) -> Self {
        Self::start(|context| lets(context, host, port, origin)).await
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("the proxy accepts")
    }

    /// Sends `request`, and reads until the proxy closes.
    pub(crate) async fn send(&self, request: impl AsRef<[u8]>) -> String {
        let mut client = self.connect().await;
        client.write_all(request.as_ref()).await.expect("sent");
        rest(&mut client).await
    }

    /// Opens a tunnel, and returns it with the proxy's answer.
    pub(crate) async fn tunnel(&self, target: &str) -> (TcpStream, String) {
        let mut client = self.connect().await;
        client
            .write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes())
            .await
            .expect("sent");
        let answer = head(&mut client).await;
        (client, answer)
    }

    /// The records so far.
    pub(crate) fn records(&self) -> Vec<ConnectionRecord> {
        self.records.lock().expect("records").clone()
    }

    /// Stops the proxy, and returns all its records.
    pub(crate) async fn close(self) -> Vec<ConnectionRecord> {
        self.outlet.close().await;
        self.records.lock().expect("records").clone()
    }

    /// Stops the proxy, which must have refused exactly one connection.
    pub(crate) async fn refusal(self) -> Refusal {
        let records = self.close().await;
        match records.as_slice() {
            [ConnectionRecord { outcome: Outcome::Refused(refusal), .. }] => refusal.clone(),
            other => panic!("not one refusal: {other:?}"),
        }
    }
}

/// Adds a rule for `host:port`, and lets it stand for `origin`.
pub(crate) fn lets(context: &mut CommandContext, host: &str, port: u16, origin: SocketAddr) {
    context.rules.push(format!("{host}:{port}").parse().expect("a rule"));
    context.names = context.names.clone().stand_in(host, port, origin).expect("a host");
}

/// Everything until the other side closes. A reset ends it too.
pub(crate) async fn rest(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.ok();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Everything up to the first empty line, or to the end.
pub(crate) async fn head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => bytes.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The status of a response.
pub(crate) fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("no status: {answer:?}"))
}

/// An asker that gives the same answer to everybody, and the questions it got.
pub(crate) fn asker(
    answer: Answer,
) -> (impl Fn(HostQuestion) -> std::future::Ready<Answer>, Arc<Mutex<Vec<HostQuestion>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&asked);
    let ask = move |question| {
        list.lock().expect("questions").push(question);
        std::future::ready(answer.clone())
    };
    (ask, asked)
}

pub(crate) const ALLOW: Answer = Answer::Allow(Lifetime::Once);

/// A lookup that must not be asked.
pub(crate) struct NoLookup;

impl Lookup for NoLookup {
    fn addresses<'a>(&'a self, name: &'a str) -> LookingUp<'a> {
        Box::pin(async move { Err(io::Error::other(format!("{name} is nowhere"))) })
    }
}

/// A lookup with fixed answers; the last of several is repeated.
pub(crate) struct Table(Mutex<HashMap<String, Vec<Vec<IpAddr>>>>);

impl Table {
    pub(crate) fn new(name: &str, answers: &[&[&str]]) -> Self {
        let read = |texts: &&[&str]| texts.iter().map(|text| text.parse().expect("an address")).collect();
        Self(Mutex::new(HashMap::from([(name.to_owned(), answers.iter().map(read).collect())])))
    }
}

impl Lookup for Table {
    fn addresses<'a>(&'a self, name: &'a str) -> LookingUp<'a> {
        let mut table = self.0.lock().expect("table");
        let answers = table.get_mut(name);
        let answer = answers.map(|answers| if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() });
        Box::pin(async move { answer.ok_or_else(|| io::Error::other("no such name")) })
    }
}
