//! Confining: what happens between the parent's order and the program's first instruction?
//!
//! The parent starts this same binary again with one argument. That process has one thread, so it can bind itself to
//! the rules of the order, step by step, and then turn into the program. Whatever goes wrong on the way is a refusal: it
//! is reported on the socket that brought the order, and nothing is started. When the program does start, the socket
//! closes without a word.
//!
//! The helper does not ask the kernel to end the run when the parent ends. The kernel means the *thread* that started it,
//! and threads that start runs come and go: one that was lent to blocking work ends after seconds of idleness, and an
//! embedding program may drive the runtime from any thread. Runs would be killed for no reason. A parent that ends in
//! order ends its runs itself; one that is killed outright leaves them to their limits. (Bubblewrap does ask. There the
//! parent is all that keeps hold of the namespace.)

#[cfg(target_os = "linux")]
mod calls;
mod channel;
#[cfg(target_os = "linux")]
mod dial;
#[cfg(target_os = "linux")]
mod files;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod namespaces;
#[cfg(target_os = "linux")]
mod network;
mod pins;
mod powers;

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

#[cfg(target_os = "linux")]
use crate::sandbox::OwnView;
use crate::sandbox::{Confinement, Cwd, Order, REFUSED_EXIT, Refused, cgroup};
use channel::Channel;
#[cfg(target_os = "linux")]
pub(crate) use dial::Dial;

/// Where terminals are.
const TERMINALS: &str = "/dev/pts";

/// Where programs share memory.
const SHARED_MEMORY: &str = "/dev/shm";

/// The argument that makes a helper of this binary.
pub const VERB: &str = "__confine";

/// The argument that makes it join a control group and become another program.
pub(crate) const JOIN_VERB: &str = "__join";

/// The argument that makes it connect to a program in the network of a run, and hand over the socket.
pub(crate) const DIAL_VERB: &str = "__dial";

/// The argument that makes it try out the namespaces of a run, and print an [`Attempt`].
pub(crate) const TRY_VERB: &str = "__namespaces";

/// What came of trying out the namespaces of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attempt {
    /// Whether a run has mounts of its own, so that single files can be made read-only in it.
    pub(crate) mounts: bool,
    /// Whether a run has System V shared memory and message queues of its own.
    pub(crate) ipc: bool,
    /// Whether a run has a network of its own.
    #[serde(default)]
    pub(crate) network: bool,
    /// Mounts that stay writable although everything was to be read-only.
    pub(crate) open: Vec<PathBuf>,
    /// What went wrong.
    pub(crate) why: Option<String>,
}

/// Becomes the helper if the command line asks for it, and then never returns. Call it before anything else in `main`:
/// before other threads, and before any file is opened.
pub fn run_if_asked() {
    let mut args = std::env::args_os().skip(1);
    let Some(verb) = args.next() else { return };
    if verb == VERB {
        confine();
    } else if verb == JOIN_VERB {
        join(args);
    } else if verb == DIAL_VERB {
        dial(args);
    } else if verb == TRY_VERB {
        println!("{}", serde_json::to_string(&try_namespaces()).unwrap_or_default());
        std::process::exit(0)
    }
}

/// This binary, as a helper.
pub fn helper() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// How much of Landlock this kernel has: 0 is none, 1 files, 4 also TCP, 6 also signals.
#[must_use]
pub fn landlock_level() -> u8 {
    #[cfg(target_os = "linux")]
    return files::level();
    #[cfg(not(target_os = "linux"))]
    return 0;
}

/// Whether system calls can be filtered on this kind of processor.
pub(crate) fn filters_this_processor() -> bool {
    #[cfg(target_os = "linux")]
    return calls::is_known_processor();
    #[cfg(not(target_os = "linux"))]
    return false;
}

/// Enters the namespaces of a run and mounts everything read-only, for nobody.
fn try_namespaces() -> Attempt {
    #[cfg(target_os = "linux")]
    {
        let failed = |why: String| Attempt { why: Some(why), ..Attempt::default() };
        let entered = match namespaces::enter(OwnView::WherePossible) {
            Ok(entered) => entered,
            Err(refused) => return failed(refused.message),
        };
        let network = network::can_separate();
        if !entered.mounts {
            return Attempt { ipc: entered.ipc, network, ..failed("the kernel does not allow it".to_owned()) };
        }
        match mounts::protect(&Confinement::default(), entered) {
            Ok(()) => Attempt { mounts: true, ipc: entered.ipc, network, open: mounts::left_open(), why: None },
            Err(error) => Attempt { ipc: entered.ipc, network, ..failed(error.to_string()) },
        }
    }
    #[cfg(not(target_os = "linux"))]
    Attempt { why: Some("this system has no namespaces".to_owned()), ..Attempt::default() }
}

fn confine() -> ! {
    let mut channel = open_channel();
    let Err(refused) = channel.read_order().and_then(|order| start(&order, &channel));
    refuse(channel, &refused)
}

/// Joins the group that the first argument names and becomes the rest. The order stays where it is, for the next.
fn join(mut args: impl Iterator<Item = OsString>) -> ! {
    let (Some(group), Some(program)) = (args.next(), args.next()) else { std::process::exit(REFUSED_EXIT) };
    let refused = match cgroup::join(Path::new(&group)) {
        Ok(()) => not_started(Path::new(&program), &Command::new(&program).args(args).exec()),
        Err(error) => Refused::new("limits", format!("the control group of the run cannot be joined: {error}")),
    };
    refuse(open_channel(), &refused)
}

/// Connects to where the arguments say. The parent takes silence for a refusal.
fn dial(args: impl Iterator<Item = OsString>) -> ! {
    #[cfg(target_os = "linux")]
    if let (channel, Some(dial)) = (open_channel(), Dial::parse(args))
        && let Ok(socket) = dial.connect()
        && channel.send(&[0], &[socket.as_fd()]).is_ok()
    {
        std::process::exit(0)
    }
    #[cfg(not(target_os = "linux"))]
    drop(args);
    std::process::exit(REFUSED_EXIT)
}

fn open_channel() -> Channel {
    Channel::take().unwrap_or_else(|refused| {
        eprintln!("prowess: {refused}");
        std::process::exit(REFUSED_EXIT)
    })
}

fn refuse(channel: Channel, refused: &Refused) -> ! {
    channel.report(refused);
    std::process::exit(REFUSED_EXIT)
}

/// Carries out the order. Comes back only with the reason why not.
fn start(order: &Order, channel: &Channel) -> Result<Infallible, Refused> {
    check(order)?;
    lead_session(order)?;
    powers::limit(&order.limits)?;
    if let Some(group) = &order.cgroup {
        cgroup::join(group).map_err(|error| {
            Refused::new("limits", format!("the control group of the run cannot be joined: {error}"))
        })?;
    }
    let mut own_places = Vec::new();
    if let Some(confinement) = &order.confinement {
        own_places = protect(confinement)?;
        separate(confinement, channel)?;
    }
    enter(&order.cwd)?;
    let pinned = pins::verify(&order.pins)?;
    if let Some(mut confinement) = order.confinement.clone() {
        confinement.write.extend(own_places.into_iter().map(PathBuf::from));
        bind(&confinement.with_private_tmp())?;
    }
    // Rules about files say nothing about looking at them, so this can be the last thing that happens.
    pinned.verify_again()?;
    let program = pinned.door(&order.program).unwrap_or_else(|| order.program.clone());
    let mut command = Command::new(program);
    if let Some((name, args)) = order.argv.split_first() {
        command.arg0(name).args(args);
    }
    Err(not_started(&order.program, &command.exec()))
}

fn check(order: &Order) -> Result<(), Refused> {
    let paths = [&order.program, &order.cwd.path].into_iter().chain(order.pins.iter().map(|pin| &pin.path));
    if let Some(relative) = paths.into_iter().find(|path| !path.is_absolute()) {
        return Err(Refused::new("order", format!("{} is not an absolute path", relative.display())));
    }
    if order.argv.is_empty() {
        return Err(Refused::new("order", "the order has no arguments"));
    }
    Ok(())
}

/// Makes the run a session of its own, so that all of it can be found later.
fn lead_session(order: &Order) -> Result<(), Refused> {
    use rustix::process::{getpid, getsid, ioctl_tiocsctty, setsid};
    if let Err(error) = setsid()
        && getsid(None) != Ok(getpid())
    {
        return Err(Refused::new(
            "session",
            format!("the run cannot become a session leader ({error}); start the helper without its own process group"),
        ));
    }
    if order.terminal {
        ioctl_tiocsctty(io::stdin())
            .map_err(|error| Refused::new("session", format!("the terminal cannot be taken over: {error}")))?;
    }
    Ok(())
}

/// Goes to the folder that was judged, and no other that took its place.
fn enter(cwd: &Cwd) -> Result<(), Refused> {
    let path = cwd.path.display();
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | pins::LOOK;
    let dir = rustix::fs::open(&cwd.path, flags, Mode::empty())
        .map_err(|error| Refused::new("cwd", format!("the folder {path} cannot be opened: {error}")))?;
    let stat = rustix::fs::fstat(&dir)
        .map_err(|error| Refused::new("cwd", format!("the folder {path} cannot be examined: {error}")))?;
    if (pins::number(stat.st_dev), pins::number(stat.st_ino)) != (cwd.device, cwd.inode) {
        return Err(Refused::new(
            "cwd",
            format!("{path} is not the folder it was when the command was judged; judge it again"),
        ));
    }
    rustix::process::fchdir(&dir)
        .map_err(|error| Refused::new("cwd", format!("the folder {path} cannot be entered: {error}")))
}

/// Gives the run a network of its own, and the parent the sockets that listen in it.
fn separate(confinement: &Confinement, channel: &Channel) -> Result<(), Refused> {
    #[cfg(target_os = "linux")]
    if let Some(sockets) = network::separate(confinement)? {
        channel.hand_over(&sockets)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (confinement, channel);
    Ok(())
}

/// Gives the run namespaces of its own, and mounts everything else read-only where this process may: Landlock guards
/// contents, but not modes and times. Returns which places for terminals and memory are the run's own.
fn protect(confinement: &Confinement) -> Result<Vec<&'static str>, Refused> {
    #[cfg(target_os = "linux")]
    {
        let entered = namespaces::enter(confinement.view)?;
        if !entered.mounts {
            return Ok(Vec::new());
        }
        match mounts::protect(confinement, entered) {
            Err(error) if confinement.view == OwnView::Required => {
                Err(Refused::new("sandbox", format!("files outside cannot be made read-only: {error}")))
            }
            Ok(()) => {
                let terminals = confinement.own_terminals && mounts::separate_terminals().is_ok();
                let memory = confinement.view == OwnView::Required && mounts::separate_memory().is_ok();
                Ok([(terminals, TERMINALS), (memory, SHARED_MEMORY)]
                    .into_iter()
                    .filter(|(is_own, _)| *is_own)
                    .map(|(_, place)| place)
                    .collect())
            }
            Err(_) => Ok(Vec::new()),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = confinement;
        Ok(Vec::new())
    }
}

/// Gives up every power and every right that the confinement does not name.
fn bind(confinement: &Confinement) -> Result<(), Refused> {
    #[cfg(target_os = "linux")]
    {
        powers::drop_all()?;
        let level = files::restrict(confinement)?;
        calls::filter(confinement, level)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = confinement;
        Err(Refused::new("sandbox", "this system has no Landlock; choose a container"))
    }
}

fn not_started(program: &Path, error: &io::Error) -> Refused {
    Refused::new("exec", format!("{} cannot be started: {error}", program.display()))
}
