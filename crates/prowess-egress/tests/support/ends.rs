//! Both ends of many tunnels, outside the process whose memory a test measures.
//!
//! `serve` answers each message with itself, and prints its address. `connect PROXY HOST:PORT COUNT` opens tunnels; then each
//! line on its standard input is done and answered with one line:
//!
//! - `echo`: sends a message through each tunnel and reads it back,
//! - `more N`: tries to open N more, and prints the status lines that it got, each once,
//! - `close`: closes all.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

const MESSAGE: &[u8] = b"\x01 and some text";

fn main() -> io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["serve"] => serve(),
        ["connect", proxy, target, count] => connect(proxy, target, count.parse().map_err(io::Error::other)?),
        _ => Err(io::Error::other("usage: serve | connect PROXY HOST:PORT COUNT")),
    }
}

fn serve() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        println!("{}", listener.local_addr()?);
        loop {
            let (mut stream, _) = listener.accept().await?;
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await.ok();
            });
        }
    })
}

fn connect(proxy: &str, target: &str, count: usize) -> io::Result<()> {
    let mut tunnels = Vec::with_capacity(count);
    for number in 0..count {
        let (stream, status) = tunnel(proxy, target)?;
        if !status.starts_with("HTTP/1.1 200") {
            return Err(io::Error::other(format!("tunnel {number}: {status}")));
        }
        tunnels.push(stream);
    }
    println!("open");
    for line in io::stdin().lock().lines() {
        let line = line?;
        let answer = match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["echo"] => echo(&mut tunnels)?,
            ["more", more] => {
                let mut seen = BTreeSet::new();
                for _ in 0..more.parse().map_err(io::Error::other)? {
                    seen.insert(tunnel(proxy, target)?.1);
                }
                seen.into_iter().collect::<Vec<_>>().join(", ")
            }
            ["close"] => {
                tunnels.clear();
                "closed".to_owned()
            }
            _ => return Err(io::Error::other(line)),
        };
        println!("{answer}");
    }
    Ok(())
}

/// Asks for a tunnel, and returns it with the first line of the answer.
fn tunnel(proxy: &str, target: &str) -> io::Result<(TcpStream, String)> {
    let mut stream = TcpStream::connect(proxy)?;
    write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")?;
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let line = String::from_utf8_lossy(&head).lines().next().unwrap_or_default().to_owned();
    Ok((stream, line))
}

fn echo(tunnels: &mut [TcpStream]) -> io::Result<String> {
    for tunnel in tunnels.iter_mut() {
        tunnel.write_all(MESSAGE)?;
    }
    let mut back = [0; MESSAGE.len()];
    for tunnel in tunnels {
        tunnel.read_exact(&mut back)?;
        if back != MESSAGE {
            return Err(io::Error::other("something else came back"));
        }
    }
    Ok("echoed".to_owned())
}
