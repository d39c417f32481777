//! One attempt to get out of a sandbox, by name. It says `ok` when the attempt succeeded, and why it did not otherwise.
//!
//! Made for the tests of this crate, which start it inside a sandbox and, to see that it would succeed, outside of one.

#[cfg(target_os = "linux")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match attempts::run(&args) {
        Ok(said) => println!("ok {said}"),
        Err(error) => println!("failed: {error}"),
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
mod attempts {
    use std::fs;
    use std::io::{self, IoSliceMut, Write};
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::{SocketAddr, UnixStream};
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use nix::mount::{MsFlags, mount, umount};
    use nix::sched::{CloneFlags, unshare};
    use nix::sys::personality::{self, Persona};
    use nix::sys::ptrace;
    use nix::sys::signal::{Signal, kill};
    use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, sendto, socketpair};
    use nix::sys::uio::{RemoteIoVec, process_vm_readv};
    use nix::sys::wait::waitpid;
    use nix::unistd::{Pid, chroot, setsid, truncate};

    pub(super) fn run(args: &[&str]) -> io::Result<String> {
        match args {
            ["read", path] => fs::read_to_string(path),
            ["list", path] => Ok(names(path)?.join(" ")),
            ["write", path] => done(fs::write(path, "overwritten")),
            ["truncate", path] => done(truncate(*path, 0)),
            ["remove", path] => done(fs::remove_file(path)),
            ["rename", from, to] => done(fs::rename(from, to)),
            ["chmod", path, mode] => {
                let mode = u32::from_str_radix(mode, 8).map_err(io::Error::other)?;
                done(fs::set_permissions(path, fs::Permissions::from_mode(mode)))
            }
            ["read-through-link", link, secret] => {
                std::os::unix::fs::symlink(secret, link)?;
                fs::read_to_string(link)
            }
            ["read-through-hard-link", link, secret] => {
                fs::hard_link(secret, link)?;
                fs::read_to_string(link)
            }
            ["tcp", address] => done(TcpStream::connect(address)),
            ["listen"] => done(TcpListener::bind("127.0.0.1:0")),
            ["udp", address] => done(UdpSocket::bind("127.0.0.1:0")?.send_to(b"leak", address)),
            ["unix", path] => done(UnixStream::connect(path)),
            ["abstract", name] => done(UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)),
            ["half-a-pair", path] => half_a_pair(path),
            ["stream-pair"] => done(UnixStream::pair()),
            ["ptrace", pid] => {
                let pid = number(pid)?;
                ptrace::attach(pid)?;
                waitpid(pid, None)?;
                done(ptrace::detach(pid, None))
            }
            ["memory", pid, address, length] => memory(number(pid)?, address, length),
            ["kill", pid] => done(kill(number(pid)?, Signal::SIGTERM)),
            ["mount", dir] => {
                mount(None::<&str>, *dir, Some("tmpfs"), MsFlags::empty(), None::<&str>)?;
                done(umount(*dir))
            }
            ["namespace"] => done(unshare(CloneFlags::CLONE_NEWNS)),
            ["user-namespace"] => done(unshare(CloneFlags::CLONE_NEWUSER)),
            ["chroot", dir] => done(chroot(*dir)),
            ["personality"] => done(personality::set(Persona::ADDR_NO_RANDOMIZE)),
            ["fork", count] => fork(count.parse().map_err(io::Error::other)?),
            ["euid"] => Ok(rustix::process::geteuid().as_raw().to_string()),
            ["thread"] => Ok(std::thread::spawn(|| "ran").join().unwrap_or("panicked").to_owned()),
            ["child", program] => done(Command::new(program).status()),
            ["outlive"] => outlive(),
            ["linger"] => linger(),
            other => Err(io::Error::other(format!("no such attempt: {other:?}"))),
        }
    }

    fn done<T, E: Into<io::Error>>(result: Result<T, E>) -> io::Result<String> {
        result.map(|_| String::new()).map_err(Into::into)
    }

    fn number(pid: &str) -> io::Result<Pid> {
        pid.parse().map(Pid::from_raw).map_err(io::Error::other)
    }

    fn names(path: &str) -> io::Result<Vec<String>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    /// A pair is no way to open a socket, unless one half can be pointed elsewhere.
    fn half_a_pair(path: &str) -> io::Result<String> {
        let (half, _other) = socketpair(AddressFamily::Unix, SockType::Datagram, None, SockFlag::empty())?;
        done(sendto(half.as_raw_fd(), b"leak", &UnixAddr::new(path)?, MsgFlags::empty()))
    }

    fn memory(pid: Pid, address: &str, length: &str) -> io::Result<String> {
        let len = length.parse().map_err(io::Error::other)?;
        let mut bytes = vec![0; len];
        let remote = RemoteIoVec { base: address.parse().map_err(io::Error::other)?, len };
        process_vm_readv(pid, &mut [IoSliceMut::new(&mut bytes)], &[remote])?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Starts as many processes as it can, up to `count`, and says how many that were.
    fn fork(count: usize) -> io::Result<String> {
        let children: Vec<Child> = (0..count)
            .map_while(|_| Command::new("/bin/sleep").arg("60").stdin(Stdio::null()).stdout(Stdio::null()).spawn().ok())
            .collect();
        let reached = children.len();
        for mut child in children {
            child.kill()?;
            child.wait()?;
        }
        Ok(reached.to_string())
    }

    /// Leaves the session, starts a child and goes, so that the child is nobody's.
    fn outlive() -> io::Result<String> {
        // A process that leads a group cannot leave its session, so this one is started first.
        let me = std::env::current_exe()?;
        let middle = Command::new("/bin/sh").args(["-c", "\"$0\" linger & exit 0"]).arg(me).status()?;
        Ok(middle.to_string())
    }

    fn linger() -> io::Result<String> {
        setsid()?;
        println!("lingering pid={}", std::process::id());
        io::stdout().flush()?;
        std::thread::sleep(Duration::from_secs(600));
        Ok(String::new())
    }
}
