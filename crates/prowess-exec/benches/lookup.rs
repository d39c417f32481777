//! Lookup: what does it cost to find the programs of a command on this machine, compared with only opening them?

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::path::Path;

    use criterion::{Criterion, criterion_group};
    use prowess_exec::lookup::Disk;
    use prowess_policy::lookup::Lookup;
    use prowess_testkit::bench::ratio;

    /// Programs that every machine has.
    const NAMES: [&str; 3] = ["ls", "head", "grep"];

    pub(super) fn main() {
        benches();
        let found: Vec<_> = NAMES.iter().filter_map(|name| disk().program(name)).collect();
        println!();
        ratio(
            "three programs found / opened",
            200,
            || found.iter().filter_map(|program| File::open(&program.real).ok()).count(),
            || look(&disk()),
        );
    }

    criterion_group!(benches, lookups);

    fn lookups(criterion: &mut Criterion) {
        criterion.bench_function("three programs, folders unknown", |bench| bench.iter(|| look(&disk())));
        let known = disk();
        criterion.bench_function("three programs, folders known", |bench| bench.iter(|| look(&known)));
        criterion.bench_function("no such program", |bench| bench.iter(|| known.program("no-such-program")));
    }

    fn disk() -> Disk {
        Disk::new("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", Path::new("/"))
    }

    fn look(disk: &Disk) -> usize {
        NAMES.iter().filter_map(|name| disk.program(name)).count()
    }
}
