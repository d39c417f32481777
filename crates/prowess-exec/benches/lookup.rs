//! Lookup: what does it cost to find the programs of a command on this machine, compared with only opening them?

#[cfg(not(unix))]
fn main() {}

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(unix)]
#[path = "../../prowess-policy/tests/support/asked.rs"]
mod asked;

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::path::Path;

    use asked::{request, rules};
    use criterion::{Criterion, criterion_group};
    use prowess_exec::lookup::Disk;
    use prowess_policy::lookup::Lookup;
    use prowess_testkit::bench::ratio;

    use super::asked;

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
        many_files();
    }

    /// A command that names files, one or many, all of which others could change.
    fn many_files() {
        let dir = tempfile::tempdir().expect("a folder");
        let large = File::create(dir.path().join("large.py")).expect("a file");
        large.set_len(60 * 1024 * 1024).expect("longer");
        for number in 0..400 {
            std::fs::write(dir.path().join(format!("{number}.txt")), vec![b'x'; 64 * 1024]).expect("written");
        }
        let rules = rules(&[]);
        let judge = |command: &str| {
            let disk = Disk::new("/usr/bin:/bin", dir.path()).open_to_runs([dir.path().to_owned()]);
            rules.judge(request(command, dir.path()), &disk).verdict()
        };
        let same = format!("sort{}", " large.py".repeat(400));
        ratio("400 words for one large file / one word", 10, || judge("sort large.py"), || judge(&same));
        let names: Vec<String> = (0..400).map(|number| format!("{number}.txt")).collect();
        let others = format!("sort large.py {}", names.join(" "));
        ratio("and 400 other files beside it / without", 10, || judge("sort large.py"), || judge(&others));
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
