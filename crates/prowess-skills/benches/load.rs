//! Loading: what does it cost to get from folders to a snapshot, compared with only reading the files?
//!
//! With `PROWESS_CORPUS` the real skills of that folder are used, else made-up ones of the same shape.

use std::path::{Path, PathBuf};

use criterion::{Criterion, Throughput, criterion_group};
use prowess_skills::{
    Budget, Catalog, Document, Filters, Gate, Limits, Machine, Places, RESERVED, Reach, Skill, SkillsConfig, Snapshot,
    Tier, World, commands, probe, render, resolve, wanted_bins,
};
use prowess_testkit::bench::ratio;

/// Skills of the made-up tree, and their folders.
const SKILLS: usize = 1_680;
const OWNERS: usize = 600;

fn main() {
    benches();
    let scratch = tempfile::tempdir().expect("a scratch folder");
    let corpus = corpus(scratch.path(), 1);
    let files = files(&corpus);
    println!("\n{} skills", files.len());
    ratio("discover to snapshot / open and read the same files", 60, || read_all(&files), || snapshot(&corpus));

    let tenfold = tempfile::tempdir().expect("a scratch folder");
    let large = self::corpus(tenfold.path(), 10);
    let large_files = self::files(&large);
    println!("{} skills", large_files.len());
    ratio("the same at ten times the size", 15, || read_all(&large_files), || snapshot(&large));
    ratio("ten times the skills / one time (linear is 10)", 15, || snapshot(&corpus), || snapshot(&large));
}

criterion_group!(benches, hot_paths);

fn hot_paths(criterion: &mut Criterion) {
    let text = skill_file(7);
    let mut group = criterion.benchmark_group("frontmatter");
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("document", |bench| bench.iter(|| Document::parse(text.as_bytes())));
    let broken = text.replacen("description: ", "description: Use when: ", 1);
    group.bench_function("document, mended", |bench| bench.iter(|| Document::parse(broken.as_bytes())));
    let path = Path::new("/skills/a/SKILL.md");
    group.bench_function("skill", |bench| bench.iter(|| Skill::parse(text.as_bytes(), path, Tier::Workspace)));
    group.finish();

    let skills: Vec<Skill> = (0..150)
        .map(|index| {
            Skill::parse(skill_file(index).as_bytes(), Path::new(&format!("/s/{index}/SKILL.md")), Tier::Workspace)
        })
        .map(|read| read.expect("a skill").0)
        .collect();
    let (world, config, filters) = (World::default(), SkillsConfig::default(), Filters::default());
    let gate = Gate { world: &world, config: &config, filters: &filters };
    criterion.bench_function("gate, 150 skills", |bench| {
        bench.iter(|| skills.iter().map(|skill| gate.objections(skill).len()).sum::<usize>());
    });
    for (name, chars) in [("prompt, 150 skills, fits", usize::MAX), ("prompt, 150 skills, cut", 20_000)] {
        let budget = Budget { skills: 150, chars, tokens: None };
        criterion.bench_function(name, |bench| bench.iter(|| render(&skills, None, None, &budget)));
    }
    let specs = commands(&skills, RESERVED);
    criterion.bench_function("commands, 150 skills", |bench| bench.iter(|| commands(&skills, RESERVED)));
    criterion.bench_function("resolve a message", |bench| bench.iter(|| resolve("/skill skill-149 some text", &specs)));
}

/// The floor: open and read, one after the other.
fn read_all(files: &[PathBuf]) -> usize {
    files.iter().map(|file| std::fs::read(file).expect("a file").len()).sum()
}

fn snapshot(corpus: &Path) -> (Catalog, Snapshot) {
    let limits = Limits { candidates_per_root: 100_000, skills_per_root: 100_000, ..Limits::default() };
    let places = Places { extra: vec![corpus.to_owned()], ..Places::default() };
    let catalog = Catalog::load(&places.roots(), &Reach { limits: limits.clone(), link_targets: Vec::new() });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let bins = probe(&wanted_bins(&catalog), &path, None);
    let world = World { machines: vec![Machine { os: "linux".to_owned(), bins }], ..World::default() };
    let (config, filters) = (SkillsConfig::default(), Filters::default());
    let gate = Gate { world: &world, config: &config, filters: &filters };
    let snapshot = Snapshot::take(&catalog, &gate, None, &Budget::from(&limits));
    (catalog, snapshot)
}

/// The real skills, or made-up ones; `copies` times as many below `scratch`.
fn corpus(scratch: &Path, copies: usize) -> PathBuf {
    let real = std::env::var_os("PROWESS_CORPUS").map(|dir| PathBuf::from(dir).join("real-skills"));
    match real {
        Some(real) if copies == 1 => return real,
        Some(real) => {
            for copy in 0..copies {
                for file in files(&real) {
                    let place = scratch.join(format!("copy-{copy}")).join(file.strip_prefix(&real).expect("below"));
                    std::fs::create_dir_all(place.parent().expect("a folder")).expect("made");
                    std::fs::copy(file, place).expect("copied");
                }
            }
        }
        None => {
            for index in 0..SKILLS * copies {
                let place = scratch.join(format!("copy-{}/owner-{}/skill-{index}", index / SKILLS, index % OWNERS));
                std::fs::create_dir_all(&place).expect("made");
                std::fs::write(place.join("SKILL.md"), skill_file(index)).expect("written");
            }
        }
    }
    scratch.to_owned()
}

/// A skill file as they are: half a kilobyte of frontmatter, six of body.
fn skill_file(index: usize) -> String {
    let sentence = "Does one thing well and says when to use it and when not to. ";
    let description = sentence.repeat(3 + index % 5);
    let metadata = match index % 3 {
        0 => {
            "metadata: {\"openclaw\":{\"emoji\":\"🌤️\",\"requires\":{\"bins\":[\"curl\",\"jq\"],\"env\":[\"X_API_KEY\"]}}}\n"
        }
        1 => "metadata:\n  openclaw:\n    emoji: x\n    requires:\n      bins: [git]\n    os: [linux, darwin]\n",
        _ => "license: MIT\n",
    };
    let body = "Run the command and read what it prints.\n".repeat(150);
    format!(
        "---\nname: skill-{index}\ndescription: {description}\nhomepage: https://example.org\n{metadata}---\n# Skill\n\n{body}"
    )
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in dir.read_dir().expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.ends_with("SKILL.md") {
            found.push(path);
        }
    }
    found.sort();
    found
}
