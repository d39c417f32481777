//! Programs that know no proxy: do they find the hosts that a command may reach, and no others?

#![cfg(target_os = "linux")]

use crate::support as bash;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bash::{Begins, bash, runner, soon, start};
use prowess_egress::{CommandContext, ConnectionRecord, Names, Outcome, Protocol};
use prowess_exec::job::Exit;
use prowess_exec::sandbox::{Choice, Confinement, Kind, NamedHost, OwnView, Proxy, Sandbox, Survey};
use prowess_testkit::free_port;
use tempfile::TempDir;

fn helper() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_prowess-confine"))
}

/// The sandboxes in which a command can have a network of its own here.
fn kinds() -> Vec<Kind> {
    let survey = Survey::with_helper(helper());
    if !survey.network().works || !survey.view().works {
        eprintln!("skipped: commands cannot have a network or mounts of their own here");
        return Vec::new();
    }
    let wanted = [Kind::Landlock, Kind::Bubblewrap].map(Choice::Kind);
    wanted.iter().filter_map(|choice| Sandbox::choose(choice, &survey).ok()).collect()
}

/// A server with a thread for each client.
fn serve(talk: impl Fn(TcpStream) + Send + Copy + 'static) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || talk(stream));
        }
    });
    address
}

/// What a command printed in a sandbox in which `name:port` stands for `origin`, and its connections.
async fn run(
    kind: Kind,
    folder: &Path,
    text: &str,
    (name, port): (&str, u16),
    origin: SocketAddr,
) -> (String, Vec<ConnectionRecord>) {
    let records = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&records);
    let mut context = CommandContext::new(text, move |record| sink.lock().expect("records").push(record));
    context.rules = vec![format!("{name}:{port}").parse().expect("a rule")];
    context.names = Names::default().stand_in(name, port, origin).expect("a host");
    let view = if kind == Kind::Landlock { OwnView::Required } else { OwnView::WherePossible };
    let confinement = Confinement {
        proxy: Proxy::Separate,
        hosts: NamedHost::all(&context.rules),
        view,
        ..Confinement::baseline(folder, &[], None)
    };
    let command = bash(&format!("export HOME=$PWD\n{text}"))
        .within(Sandbox::new(kind, helper()))
        .confined_to(confinement)
        .served(context);
    let runner = runner();
    let handle = soon(runner.begin(command, start(folder))).await.expect("it starts");
    let outcome = soon(handle.job().wait()).await;
    let printed = outcome.output.head.clone();
    assert_eq!(outcome.exit, Exit::Code(0), "{text}: {printed}");
    let records = records.lock().expect("records").clone();
    (printed, records)
}

/// Looks for three hosts, and says what it found.
const LOOK: &str = "
import socket
stream = socket.create_connection(('db.test', 5432), 10)
stream.sendall(b'hello')
print(stream.recv(5).decode(), stream.getpeername()[0])
for name, port in (('db.test', 5433), ('evil.test', 5432)):
    try:
        socket.create_connection((name, port), 2)
        print('reached', name, port)
    except OSError as error:
        print(type(error).__name__)
print(open('/etc/hosts').read().count('db.test'))
";

#[tokio::test]
async fn a_host_of_the_lease_is_found_by_name_and_no_other() {
    let origin = serve(|mut stream| {
        let mut message = [0; 5];
        stream.read_exact(&mut message).expect("a message");
        stream.write_all(&message).expect("sent");
    });
    for kind in kinds() {
        let folder = TempDir::new().expect("a folder");
        std::fs::write(folder.path().join("look.py"), LOOK).expect("written");
        let text = "python3 look.py";
        let (printed, records) = run(kind.clone(), folder.path(), text, ("db.test", 5432), origin).await;
        assert_eq!(printed, "hello 127.77.0.1\nConnectionRefusedError\ngaierror\n1\n", "{kind}");
        let [record] = records.as_slice() else { panic!("{records:?}") };
        assert_eq!((record.protocol, &record.outcome), (Protocol::Direct, &Outcome::Served), "{kind}");
        assert_eq!((record.up, record.down, record.port), (5, 5, Some(5432)), "{kind}");
    }
    let own = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    assert!(!own.contains("db.test"), "the machine's own names stay as they are");
}

/// A database that knows one answer, in the protocol of Postgres.
fn database(stream: &TcpStream) {
    let read = |count: usize| {
        let mut bytes = vec![0; count];
        { stream }.read_exact(&mut bytes).map(|()| bytes)
    };
    let send = |kind: u8, body: &[u8]| {
        let length = u32::try_from(body.len() + 4).expect("short");
        { stream }.write_all(&[&[kind], length.to_be_bytes().as_slice(), body].concat()).expect("sent");
    };
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().expect("four bytes")) as usize;
    loop {
        let Ok(head) = read(8) else { return };
        // A request for TLS or for GSS encryption is answered with no, and the client begins without.
        if number(&head) == 8 {
            { stream }.write_all(b"N").expect("sent");
            continue;
        }
        read(number(&head) - 8).expect("who it is");
        break;
    }
    send(b'R', &[0; 4]);
    send(b'Z', b"I");
    while let Ok(head) = read(5) {
        let body = read(number(&head[1..]) - 4).expect("a message");
        if head[0] != b'Q' {
            return;
        }
        assert_eq!(body, b"select 42\0");
        let column =
            [b"answer\0".as_slice(), &[0; 6], &25_u32.to_be_bytes(), &[0xff, 0xff], &[0xff; 4], &[0, 0]].concat();
        send(b'T', &[&[0, 1], column.as_slice()].concat());
        send(b'D', &[&[0, 1, 0, 0, 0, 2], b"42".as_slice()].concat());
        send(b'C', b"SELECT 1\0");
        send(b'Z', b"I");
    }
}

#[tokio::test]
async fn psql_reaches_its_database() {
    if !Path::new("/usr/bin/psql").exists() {
        eprintln!("skipped: psql is not installed");
        return;
    }
    let origin = serve(|stream| database(&stream));
    for kind in kinds() {
        let folder = TempDir::new().expect("a folder");
        let text = "psql -X -A -t -h db.test -U me -d data -c 'select 42'";
        let (printed, records) = run(kind, folder.path(), text, ("db.test", 5432), origin).await;
        assert_eq!(printed, "42\n");
        assert!(records.iter().all(|record| record.protocol == Protocol::Direct), "{records:?}");
    }
}

#[tokio::test]
async fn node_fetches_without_a_word_about_proxies() {
    if !Path::new("/usr/bin/node").exists() {
        eprintln!("skipped: node is not installed");
        return;
    }
    let origin = serve(|mut stream| {
        let mut head = [0; 1024];
        let count = stream.read(&mut head).expect("a request");
        assert!(head[..count].starts_with(b"GET /hello HTTP/1.1"), "{}", head[..count].escape_ascii());
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello").expect("sent");
    });
    if kinds().contains(&Kind::Landlock) {
        let folder = TempDir::new().expect("a folder");
        let text = "node -e \"fetch('http://web.test/hello').then(r => r.text()).then(t => console.log(t))\"";
        let (printed, records) = run(Kind::Landlock, folder.path(), text, ("web.test", 80), origin).await;
        assert_eq!(printed, "hello\n");
        assert_eq!(records[0].protocol, Protocol::Direct);
    }
}

/// A server that ends with its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[tokio::test]
async fn ssh_and_git_over_ssh_reach_their_host() {
    let sshd = Path::new("/usr/sbin/sshd");
    if !sshd.exists() || !Path::new("/usr/bin/ssh").exists() || !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs ssh, sshd and root, for whom the server is started");
        return;
    }
    let (server, client) = (TempDir::new().expect("a folder"), TempDir::new().expect("a folder"));
    let at = |folder: &TempDir, name: &str| folder.path().join(name).display().to_string();
    for key in [at(&server, "host"), at(&client, "user")] {
        let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &key]).status();
        assert!(made.expect("ssh-keygen").success());
    }
    let port = free_port();
    let settings = format!(
        "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n\
         PermitRootLogin yes\nPasswordAuthentication no\n",
        at(&server, "host"),
        at(&client, "user.pub")
    );
    std::fs::write(at(&server, "config"), settings).expect("written");
    std::fs::create_dir_all("/run/sshd").ok();
    let mut start = Command::new(sshd);
    start.args(["-D", "-e", "-f", &at(&server, "config")]).stderr(Stdio::null());
    let _running = Running(start.spawn().expect("sshd"));
    let origin = SocketAddr::from(([127, 0, 0, 1], port));
    for _ in 0..200 {
        if TcpStream::connect(origin).is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let repository = at(&server, "repo");
    let made = Command::new("git").args(["init", "-q", "--bare", &repository]).status();
    let options =
        "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o BatchMode=yes -o LogLevel=ERROR -i user";
    let has_git = made.is_ok_and(|made| made.success());
    let list = format!("git -c core.sshCommand='ssh {options}' ls-remote root@box.test:{repository} && echo listed");
    let list = if has_git { list } else { String::new() };
    let text = format!("ssh {options} root@box.test echo through the proxy\n{list}");
    if kinds().contains(&Kind::Landlock) {
        let (printed, records) = run(Kind::Landlock, client.path(), &text, ("box.test", 22), origin).await;
        assert_eq!(printed, if has_git { "through the proxy\nlisted\n" } else { "through the proxy\n" });
        assert_eq!(records.len(), if has_git { 2 } else { 1 }, "{records:?}");
        assert!(records.iter().all(|record| record.outcome == Outcome::Served), "{records:?}");
    }
}
