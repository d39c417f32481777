//! Starting: what does a sandbox add to the start of a program?
//!
//! Both are measured in turn in the same run: `/bin/true` as it is, and by way of the helper, without and with a network
//! of its own.

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsString;
    use std::io::{Read, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use command_fds::{CommandFdExt, FdMapping};
    use criterion::{Criterion, criterion_group};
    use prowess_exec::sandbox::{
        Choice, Confinement, Cwd, Kind, Limits, ORDER_FD, Order, OwnView, Proxy, Sandbox, Survey, read_report,
        temp_name,
    };
    use prowess_testkit::bench::ratio;

    pub(super) fn main() {
        benches();
        let workspace = tempfile::tempdir().expect("a workspace");
        for setup in setups() {
            let name = &setup.name;
            let result = ratio(&format!("{name} / bare"), 200, bare, || confined(&setup, workspace.path()));
            println!("{name} adds {:.2?}", result.ours.saturating_sub(result.floor));
        }
    }

    criterion_group!(benches, starts);

    fn starts(criterion: &mut Criterion) {
        let workspace = tempfile::tempdir().expect("a workspace");
        let mut group = criterion.benchmark_group("spawn");
        group.sample_size(50);
        group.bench_function("bare", |bench| bench.iter(bare));
        for setup in setups() {
            group.bench_function(&setup.name, |bench| bench.iter(|| confined(&setup, workspace.path())));
        }
        group.finish();
    }

    /// A sandbox, as commands get it.
    struct Setup {
        name: String,
        kind: Kind,
        view: OwnView,
        proxy: Proxy,
    }

    fn setups() -> Vec<Setup> {
        let survey = Survey::with_helper(helper());
        let mut setups = Vec::new();
        for kind in [Kind::None, Kind::Landlock, Kind::Bubblewrap] {
            if Sandbox::choose(&Choice::Kind(kind.clone()), &survey).is_err() {
                continue;
            }
            let has_view = survey.view().works && kind != Kind::None;
            let view = if has_view { OwnView::Required } else { OwnView::No };
            setups.push(Setup { name: kind.to_string(), kind: kind.clone(), view, proxy: Proxy::None });
            if has_view && survey.network().works {
                setups.push(Setup { name: format!("{kind} with a network"), kind, view, proxy: Proxy::Separate });
            }
        }
        setups
    }

    fn bare() {
        assert!(Command::new("/bin/true").env_clear().status().expect("started").success());
    }

    fn confined(setup: &Setup, workspace: &Path) {
        let meta = std::fs::metadata(workspace).expect("a folder");
        let mut confinement = Confinement::baseline(workspace, &[], None);
        confinement.temp = Some(temp_name());
        (confinement.view, confinement.proxy) = (setup.view, setup.proxy);
        confinement.own_terminals = setup.view == OwnView::Required;
        let order = Order {
            program: "/bin/true".into(),
            argv: vec![OsString::from("true")],
            cwd: Cwd { path: workspace.to_owned(), device: meta.dev(), inode: meta.ino() },
            pins: Vec::new(),
            terminal: false,
            confinement: Some(confinement),
            limits: Limits::default(),
            cgroup: None,
            env_names: Vec::new(),
        };
        let launch = Sandbox::new(setup.kind.clone(), helper()).prepare(order).expect("prepared");
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).env_clear();
        let maps = vec![FdMapping { parent_fd: OwnedFd::from(theirs), child_fd: ORDER_FD }];
        let mut child = command.fd_mappings(maps).expect("mapped").spawn().expect("started");
        drop(command);
        ours.write_all(launch.order.as_deref().unwrap_or_default()).expect("sent");
        let mut said = Vec::new();
        ours.read_to_end(&mut said).expect("read");
        // The sockets of a network come with a zero and nine bytes more. Here, nobody serves them.
        let report = if said.first() == Some(&0) { &said[10..] } else { &said };
        assert_eq!(read_report(report), None);
        assert!(child.wait().expect("ended").success());
        launch.cleanup.finish();
    }

    fn helper() -> PathBuf {
        Path::new(env!("CARGO_BIN_EXE_prowess-confine")).to_owned()
    }
}
