//! The order: what exactly is the helper to start, and within which bounds?
//!
//! The parent decides everything and writes it down once; the helper only checks and obeys. The order travels over a
//! socket and never over a command line, so nobody else on the machine can read it.

use std::ffi::OsString;
use std::path::PathBuf;

use prowess_policy::lookup::Identity;
use serde::{Deserialize, Serialize};

use super::confinement::Confinement;

/// The descriptor on which the helper finds its order.
pub const ORDER_FD: i32 = 3;

/// The longest order, in bytes, that a helper reads.
pub const MAX_ORDER: usize = 1 << 20;

/// The byte that comes with the socket of the proxy, before anything that a helper says. The number of the network
/// namespace follows in eight bytes, least first, then how many more sockets came with it, and for each of those its
/// place among the sockets of [`NamedHost`](super::NamedHost)s.
pub(crate) const LISTENER: u8 = 0;

/// The exit code of a helper that refused.
pub const REFUSED_EXIT: i32 = 125;

/// Everything the helper needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The program, as an absolute path.
    pub program: PathBuf,
    /// Its arguments, the name it is called by first.
    #[serde(with = "words")]
    pub argv: Vec<OsString>,
    /// Where it runs.
    pub cwd: Cwd,
    /// Files that must still be what they were when the command was judged.
    pub pins: Vec<Pin>,
    /// Whether standard input becomes the controlling terminal.
    pub terminal: bool,
    /// What it may touch. Nothing only when the operator chose to run without a sandbox.
    pub confinement: Option<Confinement>,
    /// How much it may use.
    pub limits: Limits,
    /// The control group to join, made by [`Sandbox::prepare`](super::Sandbox::prepare).
    #[serde(default)]
    pub cgroup: Option<PathBuf>,
    /// Names of the run's variables, which a container's client hands over by name. The helper has no use for them.
    #[serde(skip)]
    pub env_names: Vec<String>,
}

/// A folder as it was when somebody looked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cwd {
    /// Its absolute path.
    pub path: PathBuf,
    /// The file system.
    pub device: u64,
    /// The folder on it.
    pub inode: u64,
}

/// A file that must not have changed since it was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// Its absolute path.
    pub path: PathBuf,
    /// What it was.
    pub identity: Identity,
}

/// How much a run may use. `None` leaves the limit of the parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Processes and threads at a time.
    pub processes: Option<u64>,
    /// Open files of each process.
    pub files: Option<u64>,
    /// Bytes of the largest file it may write.
    pub file_size: Option<u64>,
    /// Bytes of address space of each process.
    pub memory: Option<u64>,
    /// How much of the machine's memory each process may have for itself, in percent. Address space that is only
    /// reserved does not count, so runtimes with garbage collectors work.
    #[serde(default)]
    pub memory_percent: Option<u8>,
    /// Seconds of processor time of each process.
    pub cpu_seconds: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            processes: Some(512),
            files: Some(4096),
            file_size: Some(16 << 30),
            // Runtimes with garbage collectors reserve far more address space than they use.
            memory: None,
            memory_percent: Some(50),
            cpu_seconds: None,
        }
    }
}

impl Limits {
    /// No limits but those of the parent.
    #[must_use]
    pub fn none() -> Self {
        Self { processes: None, files: None, file_size: None, memory: None, memory_percent: None, cpu_seconds: None }
    }
}

/// Why a helper did not start the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// A stable word: `order`, `session`, `limits`, `cwd`, `drift`, `sandbox` or `exec`.
    pub code: String,
    /// What happened and what to do about it.
    pub message: String,
}

impl Refused {
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into() }
    }
}

/// The line in which a helper refuses.
#[derive(Serialize, Deserialize)]
struct Report {
    refused: Refused,
}

/// Why an order cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// Too long to be one.
    #[error("the order has {0} bytes, more than the {MAX_ORDER} that a helper reads; shorten the command")]
    TooLong(usize),
    /// Not an order.
    #[error("the order cannot be written or read: {0}")]
    Malformed(#[from] serde_json::Error),
}

impl Order {
    /// The bytes to send: a length of four bytes, least first, and JSON.
    pub fn frame(&self) -> Result<Vec<u8>, OrderError> {
        let body = serde_json::to_vec(self)?;
        let length = u32::try_from(body.len()).ok().filter(|_| body.len() <= MAX_ORDER);
        let length = length.ok_or(OrderError::TooLong(body.len()))?;
        let mut frame = Vec::with_capacity(4 + body.len());
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(&body);
        Ok(frame)
    }

    /// The order in `body`, without the length.
    pub fn parse(body: &[u8]) -> Result<Self, OrderError> {
        Ok(serde_json::from_slice(body)?)
    }
}

/// The line that carries `refused` to the parent.
pub(crate) fn render_report(refused: &Refused) -> Vec<u8> {
    let mut line = serde_json::to_vec(&Report { refused: refused.clone() }).unwrap_or_else(|_| b"{}".to_vec());
    line.push(b'\n');
    line
}

/// What the helper had to say. Silence means that the program was started; anything else means that it was not.
#[must_use]
pub fn read_report(bytes: &[u8]) -> Option<Refused> {
    if bytes.is_empty() {
        return None;
    }
    Some(match serde_json::from_slice::<Report>(bytes) {
        Ok(report) => report.refused,
        Err(_) => Refused::new("order", "the sandbox helper sent an invalid report; the program was not started"),
    })
}

/// Arguments are text where they can be, and bytes where they must be.
mod words {
    use std::ffi::OsString;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};

    use serde::ser::SerializeSeq;
    use serde::{Deserialize, Deserializer, Serializer};

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Word {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub(super) fn serialize<S: Serializer>(words: &[OsString], serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(words.len()))?;
        for word in words {
            match word.to_str() {
                Some(text) => list.serialize_element(text)?,
                None => list.serialize_element(word.as_bytes())?,
            }
        }
        list.end()
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<OsString>, D::Error> {
        let words = Vec::<Word>::deserialize(deserializer)?;
        Ok(words
            .into_iter()
            .map(|word| match word {
                Word::Text(text) => OsString::from(text),
                Word::Bytes(bytes) => OsString::from_vec(bytes),
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;

    use super::*;

    fn order() -> Order {
        Order {
            program: "/bin/sh".into(),
            argv: vec!["sh".into(), OsString::from_vec(vec![0xff, b'a'])],
            cwd: Cwd { path: "/w".into(), device: u64::MAX, inode: 2 },
            pins: vec![Pin {
                path: "/bin/sh".into(),
                identity: Identity {
                    device: 1,
                    inode: 2,
                    length: 3,
                    modified: -5_000_000_000,
                    changed: 0,
                    digest: None,
                },
            }],
            terminal: true,
            confinement: None,
            limits: Limits::default(),
            cgroup: None,
            env_names: Vec::new(),
        }
    }

    #[test]
    fn an_order_arrives_as_it_was_sent() {
        let frame = order().frame().unwrap();
        let length = u32::from_le_bytes(frame[..4].try_into().unwrap()) as usize;
        assert_eq!(length, frame.len() - 4);
        assert_eq!(Order::parse(&frame[4..]).unwrap(), order());
    }

    #[test]
    fn an_order_that_is_too_long_is_not_sent() {
        let mut long = order();
        long.argv.push("x".repeat(MAX_ORDER).into());
        assert!(matches!(long.frame(), Err(OrderError::TooLong(_))));
    }

    #[test]
    fn an_order_with_more_than_we_know_is_none() {
        let text = String::from_utf8(order().frame().unwrap().split_off(4)).unwrap();
        assert!(Order::parse(text.replacen('{', "{\"extra\":1,", 1).as_bytes()).is_err());
    }

    #[test]
    fn only_silence_is_success() {
        let refused = Refused::new("drift", "a file changed");
        assert_eq!(read_report(&render_report(&refused)), Some(refused));
        assert_eq!(read_report(b""), None);
        for noise in [&b"{}"[..], b"ok", b"\0", b"{\"refused\":{}}"] {
            assert_eq!(read_report(noise).unwrap().code, "order");
        }
    }
}
