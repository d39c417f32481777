//! A terminal of our own: how does a program that wants one get it?
//!
//! The child's end goes to the child as its three standard streams; making it the *controlling* terminal is up to the
//! helper that becomes the child. Our end is read and written without blocking.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::net::unix::pipe;

/// The peer's size of a terminal.
const SIZE: Winsize = Winsize { ws_row: 30, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };

/// How our end is opened: not as our own terminal, and, where that can be said at once, not for children.
#[cfg(target_os = "linux")]
const OPEN: OpenptFlags = OpenptFlags::RDWR.union(OpenptFlags::NOCTTY).union(OpenptFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const OPEN: OpenptFlags = OpenptFlags::RDWR.union(OpenptFlags::NOCTTY);

/// The answer to a program that asks where the cursor is: nobody draws, so it is at home.
pub const CURSOR_AT_HOME: &[u8] = b"\x1b[1;1R";

/// What a terminal sends for the end of input.
pub const END_OF_INPUT: u8 = 0x04;

/// The kind of terminal a program is told it has, unless its environment says otherwise.
pub const KIND: &str = "xterm-256color";

/// Our end of a terminal. It is read and written like the two ends of a pipe.
#[derive(Debug)]
pub struct Terminal {
    reader: pipe::Receiver,
    writer: pipe::Sender,
}

/// Makes a terminal: our end and the child's.
pub fn open() -> io::Result<(Terminal, File)> {
    let ours = openpt(OPEN)?;
    // Elsewhere this cannot be asked for when it is opened.
    fcntl_setfd(&ours, FdFlags::CLOEXEC)?;
    grantpt(&ours)?;
    unlockpt(&ours)?;
    let name = ptsname(&ours, Vec::new())?;
    let no_control = i32::try_from(OFlags::NOCTTY.bits()).unwrap_or_default();
    let theirs = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(no_control)
        .open(std::ffi::OsStr::from_bytes(name.as_bytes()))?;
    tcsetwinsize(&theirs, SIZE)?;
    fcntl_setfl(&ours, fcntl_getfl(&ours)? | OFlags::NONBLOCK)?;
    let writer = pipe::Sender::from_owned_fd_unchecked(ours.try_clone()?)?;
    let reader = pipe::Receiver::from_owned_fd_unchecked(ours)?;
    Ok((Terminal { reader, writer }, theirs))
}

impl Terminal {
    /// Waits for the next bytes the program printed. Zero is the end.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        ended(read(&self.reader, buffer).await)
    }

    /// The next bytes, if there are any now.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        ended(self.reader.try_read(buffer))
    }

    /// Waits until some of `bytes` could be typed.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        write(&self.writer, bytes).await
    }
}

/// Waits for the next bytes. Nothing is lost if nobody waits until the end.
pub(crate) async fn read(from: &pipe::Receiver, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        from.readable().await?;
        match from.try_read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

/// Waits until some of `bytes` is written.
pub(crate) async fn write(to: &pipe::Sender, bytes: &[u8]) -> io::Result<usize> {
    loop {
        to.writable().await?;
        match to.try_write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

/// Linux says EIO when the last program has closed its end.
fn ended(read: io::Result<usize>) -> io::Result<usize> {
    match read {
        Err(error) if error.raw_os_error() == Some(Errno::IO.raw_os_error()) => Ok(0),
        other => other,
    }
}
