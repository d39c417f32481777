//! Starting: what does a sandbox add to the start of a program?
//!
//! Both are measured in turn in the same run: `/bin/true` as it is, and by way of the helper.

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
        Choice, Confinement, Cwd, Kind, Limits, ORDER_FD, Order, Sandbox, Survey, read_report, temp_name,
    };
    use prowess_testkit::bench::ratio;

    pub(super) fn main() {
        benches();
        let workspace = tempfile::tempdir().expect("a workspace");
        for kind in kinds() {
            let result = ratio(&format!("{kind} / bare"), 200, bare, || confined(&kind, workspace.path()));
            println!("{kind} adds {:.2?}", result.ours.saturating_sub(result.floor));
        }
    }

    criterion_group!(benches, starts);

    fn starts(criterion: &mut Criterion) {
        let workspace = tempfile::tempdir().expect("a workspace");
        let mut group = criterion.benchmark_group("spawn");
        group.sample_size(50);
        group.bench_function("bare", |bench| bench.iter(bare));
        for kind in kinds() {
            group.bench_function(kind.to_string(), |bench| bench.iter(|| confined(&kind, workspace.path())));
        }
        group.finish();
    }

    fn kinds() -> Vec<Kind> {
        let survey = Survey::default();
        let kinds = [Kind::None, Kind::Landlock, Kind::Bubblewrap];
        kinds.into_iter().filter(|kind| Sandbox::choose(&Choice::Kind(kind.clone()), &survey).is_ok()).collect()
    }

    fn bare() {
        assert!(Command::new("/bin/true").env_clear().status().expect("started").success());
    }

    fn confined(kind: &Kind, workspace: &Path) {
        let meta = std::fs::metadata(workspace).expect("a folder");
        let mut confinement = Confinement::baseline(workspace, &[], None);
        confinement.temp = Some(temp_name());
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
        let launch = Sandbox::new(kind.clone(), helper()).prepare(order).expect("prepared");
        let (mut ours, theirs) = UnixStream::pair().expect("a pair");
        let mut command = Command::new(&launch.program);
        command.args(&launch.args).env_clear();
        let maps = vec![FdMapping { parent_fd: OwnedFd::from(theirs), child_fd: ORDER_FD }];
        let mut child = command.fd_mappings(maps).expect("mapped").spawn().expect("started");
        drop(command);
        ours.write_all(launch.order.as_deref().unwrap_or_default()).expect("sent");
        let mut said = Vec::new();
        ours.read_to_end(&mut said).expect("read");
        assert_eq!(read_report(&said), None);
        assert!(child.wait().expect("ended").success());
        launch.cleanup.finish();
    }

    fn helper() -> PathBuf {
        Path::new(env!("CARGO_BIN_EXE_prowess-confine")).to_owned()
    }
}
