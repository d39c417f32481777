//! Paths: which of the files that a program is given does it read, and which does it change?

use super::hosts::plain;

/// What a program does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathUse {
    /// It looks at it.
    Reads,
    /// It changes it.
    Changes(Makes),
}

/// What a program needs to bring a file about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Makes {
    /// It opens the file; one that is there and empty will do.
    File,
    /// It fills a directory; one that is there and empty will do.
    Dir,
    /// It makes, renames or removes the name itself, for which it must be able to change the directory around it.
    Name,
    /// It changes what is there.
    Nothing,
}

/// What the words of a program are that are no options.
#[derive(Debug, Clone, Copy)]
enum Operands {
    /// Text, also where they look like paths.
    Text,
    /// Files that it reads.
    Read,
    /// A pattern or a program, and files that it reads.
    AfterPattern,
    /// Files that it changes.
    Change(Makes),
    /// The same, after a word that is none.
    ChangeAfterFirst(Makes),
    /// The last one is where it writes, the others are read.
    Copy(Makes),
    /// The last one is where it writes, the others are text.
    LastChanges(Makes),
    /// The first one is where it writes, the others are read.
    Into(Makes),
    /// The first one is where it writes, the others are text.
    IntoThenText(Makes),
}

/// What some programs do with paths.
struct PathFact {
    programs: &'static [&'static str],
    /// The first word, where it depends on that.
    subcommands: &'static [&'static str],
    operands: Operands,
    /// Options whose value is written to.
    outputs: &'static [&'static str],
    makes: Makes,
    /// Options whose value is read.
    inputs: &'static [&'static str],
    /// Options whose value is neither.
    values: &'static [&'static str],
}

const PLAIN: PathFact = PathFact {
    programs: &[],
    subcommands: &[],
    operands: Operands::Read,
    outputs: &["-o", "--output", "--out", "--outfile", "--output-file", "--out-file"],
    makes: Makes::File,
    inputs: &[],
    values: &[],
};

const fn operands(programs: &'static [&'static str], operands: Operands) -> PathFact {
    PathFact { programs, operands, outputs: &[], ..PLAIN }
}

#[rustfmt::skip]
static FACTS: &[PathFact] = &[
    operands(&["echo", "printf", "test", "[", "[[", "expr", "basename", "dirname", "realpath", "export", "alias", "trap", "cd", "pushd", "true", "false", "which", "type", "command", "hash", "seq", "git", "kubectl", "ssh", "http", "https", "xh", "yt-dlp"], Operands::Text),
    PathFact { programs: &["docker"], operands: Operands::Text, outputs: &[], inputs: &["--env-file"], ..PLAIN },
    PathFact { programs: &["curl"], operands: Operands::Text, outputs: &["-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar"], inputs: &["-T", "--upload-file", "-K", "--config", "--cacert", "-E", "--cert", "--key"], ..PLAIN },
    PathFact { programs: &["wget"], operands: Operands::Text, outputs: &["-O", "--output-document", "-o", "--output-file"], inputs: &["-i", "--input-file"], ..PLAIN },
    PathFact { programs: &["grep", "egrep", "fgrep", "rg", "ag", "ack"], operands: Operands::AfterPattern, outputs: &[], inputs: &["-f"], values: &["-e", "-A", "-B", "-C", "-m", "--include", "--exclude", "--exclude-dir", "-g", "-t"], ..PLAIN },
    PathFact { programs: &["awk", "gawk", "mawk", "jq", "sed", "yq"], operands: Operands::AfterPattern, outputs: &[], inputs: &["-f", "--from-file", "--slurpfile"], values: &["-e", "-v", "-F", "--arg", "--argjson"], ..PLAIN },
    operands(&["rm", "rmdir", "unlink", "shred"], Operands::Change(Makes::Nothing)),
    operands(&["mkfifo", "mknod"], Operands::Change(Makes::Name)),
    operands(&["mkdir"], Operands::Change(Makes::Dir)),
    PathFact { values: &["-d", "-r", "-t", "--date", "--reference"], ..operands(&["touch"], Operands::Change(Makes::File)) },
    operands(&["tee", "vi", "vim", "nvim", "nano", "emacs", "ed", "ex"], Operands::Change(Makes::File)),
    PathFact { values: &["-s", "--size", "-r"], ..operands(&["truncate"], Operands::Change(Makes::File)) },
    operands(&["chmod", "chown", "chgrp", "setfacl", "setfattr"], Operands::ChangeAfterFirst(Makes::Nothing)),
    operands(&["patch"], Operands::Change(Makes::Name)),
    operands(&["gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "zstd", "unzstd"], Operands::Change(Makes::Name)),
    operands(&["mv"], Operands::Change(Makes::Name)),
    PathFact { outputs: &["-t", "--target-directory"], makes: Makes::Nothing, ..operands(&["cp"], Operands::Copy(Makes::File)) },
    PathFact { values: &["-m", "-o", "-g", "--mode"], outputs: &["-t", "--target-directory"], makes: Makes::Dir, ..operands(&["install"], Operands::Copy(Makes::Name)) },
    PathFact { outputs: &["-t", "--target-directory"], makes: Makes::Dir, ..operands(&["ln"], Operands::LastChanges(Makes::Name)) },
    PathFact { values: &["-e", "--rsh", "--exclude", "--include"], ..operands(&["rsync"], Operands::Copy(Makes::Dir)) },
    PathFact { values: &["-i", "-P", "-o", "-F", "-J", "-l", "-c"], ..operands(&["scp"], Operands::Copy(Makes::File)) },
    PathFact { values: &["-i", "-x"], ..operands(&["zip"], Operands::Into(Makes::Name)) },
    PathFact { outputs: &["-d"], makes: Makes::Dir, ..operands(&["unzip"], Operands::Read) },
    operands(&["sqlite3"], Operands::IntoThenText(Makes::File)),
    PathFact { programs: &["gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "rustc", "go", "nvcc"], outputs: &["-o", "--out-dir"], makes: Makes::Name, ..PLAIN },
    PathFact { programs: &["javac"], outputs: &["-d"], makes: Makes::Dir, ..PLAIN },
    PathFact { inputs: &["-i"], values: &["-f", "-c:v", "-c:a", "-c", "-ss", "-t", "-to", "-r", "-s", "-vf", "-af", "-b:v", "-b:a", "-crf", "-preset", "-map", "-filter_complex", "-vframes", "-frames:v", "-q:a", "-q:v"], ..operands(&["ffmpeg"], Operands::Copy(Makes::Name)) },
    PathFact { values: &["-resize", "-quality", "-density", "-crop", "-rotate", "-size", "-fill", "-font"], ..operands(&["convert", "magick"], Operands::Copy(Makes::File)) },
    PathFact { programs: &["openssl"], outputs: &["-out", "-keyout"], inputs: &["-in", "-key", "-inkey", "-CA", "-CAkey", "-config"], values: &["-subj", "-newkey", "-days", "-passin", "-passout", "-connect"], ..PLAIN },
    PathFact { programs: &["ssh-keygen"], outputs: &["-f"], makes: Makes::Name, values: &["-t", "-C", "-N", "-b"], ..PLAIN },
    PathFact { programs: &["make", "gmake", "ninja"], outputs: &["-C", "--directory"], makes: Makes::Nothing, ..PLAIN },
    PathFact { programs: &["cmake"], outputs: &["-B", "--build", "--prefix", "--install-prefix"], makes: Makes::Dir, ..PLAIN },
    PathFact { programs: &["npm", "pnpm", "yarn"], outputs: &["--prefix", "-C", "--dir", "--cwd"], makes: Makes::Nothing, ..PLAIN },
    PathFact { programs: &["pip", "pip3"], outputs: &["-t", "--target", "--prefix", "-d", "--dest"], makes: Makes::Dir, ..PLAIN },
    PathFact { programs: &["cargo"], subcommands: &["new"], operands: Operands::ChangeAfterFirst(Makes::Name), ..PLAIN },
    PathFact { programs: &["cargo"], subcommands: &["init"], operands: Operands::ChangeAfterFirst(Makes::Dir), ..PLAIN },
    PathFact { programs: &["cargo"], outputs: &["--target-dir", "--root", "--out-dir"], makes: Makes::Dir, ..PLAIN },
    PathFact { programs: &["uv"], subcommands: &["venv", "init"], operands: Operands::ChangeAfterFirst(Makes::Dir), ..PLAIN },
    operands(&["venv", "virtualenv"], Operands::Change(Makes::Dir)),
    PathFact { programs: &["mktemp"], operands: Operands::Text, outputs: &["-p", "--tmpdir"], makes: Makes::Nothing, ..PLAIN },
    PathFact { programs: &["split", "csplit"], operands: Operands::Read, outputs: &["-f", "--prefix"], makes: Makes::Name, values: &["-l", "-b", "-n"], ..PLAIN },
    operands(&["ps"], Operands::Text),
];

/// The words of a program that are paths, and what it does with each. A word that it only reads counts where it looks
/// like a path.
pub(super) fn paths<'a>(name: &str, args: &'a [String]) -> Vec<(&'a str, PathUse)> {
    match name {
        "tar" | "bsdtar" => return tar(args),
        "dd" => return dd(args),
        "find" => return find(args),
        _ => {}
    }
    let first = plain(args, &[]).next().unwrap_or_default();
    let mut facts = FACTS.iter().filter(|fact| fact.programs.contains(&name));
    let fact = facts.find(|fact| fact.subcommands.is_empty() || fact.subcommands.contains(&first)).unwrap_or(&PLAIN);
    let (mut used, rest) = options(fact, args);
    let in_place = matches!(name, "sed" | "yq" | "perl") && args.iter().any(|word| is_in_place(word));
    let without_name = matches!(name, "mkdir") && !args.iter().any(|word| is_short(word, 'p') || word == "--parents");
    let is_recursive =
        name == "cp" && args.iter().any(|word| is_short(word, 'r') || is_short(word, 'R') || is_short(word, 'a'));
    let to_output = matches!(fact.operands, Operands::Change(Makes::Name))
        && name != "mv"
        && args.iter().any(|word| is_short(word, 'c') || word == "--stdout");
    let operands = match fact.operands {
        Operands::AfterPattern if in_place => Operands::ChangeAfterFirst(Makes::Name),
        Operands::Change(_) if without_name => Operands::Change(Makes::Name),
        Operands::Change(_) if to_output => Operands::Read,
        Operands::Copy(_) if is_recursive => Operands::Copy(Makes::Name),
        // What the option names is where it goes.
        Operands::Copy(_) if !used.is_empty() && matches!(name, "cp" | "install") => Operands::Read,
        other => other,
    };
    let has_pattern = args.iter().any(|word| matches!(word.as_str(), "-e" | "-f" | "--from-file" | "--expression"));
    let last = rest.len().saturating_sub(1);
    for (at, word) in rest.into_iter().enumerate() {
        let does = match operands {
            Operands::AfterPattern | Operands::ChangeAfterFirst(_) if at == 0 && !has_pattern => continue,
            Operands::Copy(makes) | Operands::LastChanges(makes) if at == last => PathUse::Changes(makes),
            Operands::Into(makes) | Operands::IntoThenText(makes) if at == 0 => PathUse::Changes(makes),
            Operands::Change(makes) | Operands::ChangeAfterFirst(makes) => PathUse::Changes(makes),
            Operands::Read | Operands::AfterPattern | Operands::Copy(_) | Operands::Into(_) => PathUse::Reads,
            Operands::Text | Operands::LastChanges(_) | Operands::IntoThenText(_) => continue,
        };
        used.push((word, does));
    }
    used.retain(|(word, does)| matches!(does, PathUse::Changes(_)) || looks_like_path(word));
    used
}

/// The values of the options that name files, and the words that are neither options nor values.
fn options<'a>(fact: &PathFact, args: &'a [String]) -> (Vec<(&'a str, PathUse)>, Vec<&'a str>) {
    let (mut used, mut rest) = (Vec::new(), Vec::new());
    let does = |name: &str| {
        if fact.outputs.contains(&name) {
            Some(PathUse::Changes(fact.makes))
        } else {
            fact.inputs.contains(&name).then_some(PathUse::Reads)
        }
    };
    let mut words = args.iter().map(String::as_str);
    let mut only_words = false;
    while let Some(word) = words.next() {
        if only_words || !word.starts_with('-') || word == "-" {
            rest.push(word);
        } else if word == "--" {
            only_words = true;
        } else if let Some(does) = does(word) {
            used.extend(
                words
                    .next()
                    .filter(|value| looks_like_path(value) || fact.programs != PLAIN.programs)
                    .map(|value| (value, does)),
            );
        } else if fact.values.contains(&word) {
            words.next();
        } else if let Some((name, value)) = word.split_once('=') {
            used.push((value, does(name).unwrap_or(PathUse::Reads)));
        } else if let Some(value) = glued(word).filter(|value| looks_like_path(value)) {
            used.extend(does(&word[..2]).map(|does| (value, does)));
        }
    }
    (used, rest)
}

/// The value in `-oFILE`.
fn glued(word: &str) -> Option<&str> {
    let is_short = word.as_bytes().get(1).is_some_and(u8::is_ascii_alphabetic);
    word.get(2..).filter(|value| is_short && !value.is_empty())
}

pub(super) fn looks_like_path(word: &str) -> bool {
    word.trim_start_matches('"').starts_with(['/', '~', '.']) || word.trim_start_matches('"').starts_with("$HOME/")
}

/// Whether `word` is a group of short options with this letter.
fn is_short(word: &str, letter: char) -> bool {
    word.strip_prefix('-').is_some_and(|letters| !letters.starts_with('-') && letters.contains(letter))
}

fn is_in_place(word: &str) -> bool {
    word.starts_with("--in-place") || word.starts_with("-i") || matches!(word, "-ni" | "-Ei" | "-ri" | "-pi")
}

/// `tar` writes the archive when it creates one, and a directory when it extracts.
fn tar(args: &[String]) -> Vec<(&str, PathUse)> {
    let mut used = Vec::new();
    let bundle = args.first().map(|word| word.trim_start_matches('-')).filter(|_| !args[0].starts_with("--"));
    let has = |letter: char, long: &str| {
        bundle.is_some_and(|letters| letters.contains(letter))
            || args.iter().any(|word| word == long || is_short(word, letter))
    };
    let creates = has('c', "--create") || has('r', "--append") || has('u', "--update");
    let extracts = has('x', "--extract") || has('x', "--get");
    let mut words = args.iter().enumerate();
    while let Some((at, word)) = words.next() {
        let value = |name: &str| word.strip_prefix(name).and_then(|rest| rest.strip_prefix('='));
        let takes_file =
            is_short(word, 'f') && word.ends_with('f') || at == 0 && !word.starts_with('-') && word.contains('f');
        let archive = value("--file")
            .or_else(|| (takes_file || word == "--file").then(|| words.next())?.map(|(_, word)| word.as_str()));
        if let Some(archive) = archive {
            used.push((archive, if creates { PathUse::Changes(Makes::File) } else { PathUse::Reads }));
        } else if matches!(word.as_str(), "-C" | "--directory") || value("--directory").is_some() {
            let dir = value("--directory").or_else(|| words.next().map(|(_, word)| word.as_str()));
            let does = if extracts { PathUse::Changes(Makes::Nothing) } else { PathUse::Reads };
            used.extend(dir.map(|dir| (dir, does)));
        } else if at > 0 && looks_like_path(word) && !extracts {
            used.push((word.as_str(), PathUse::Reads));
        }
    }
    used.retain(|(word, _)| !word.is_empty() && *word != "-");
    used
}

fn dd(args: &[String]) -> Vec<(&str, PathUse)> {
    let uses = args.iter().filter_map(|word| {
        let read = word.strip_prefix("if=").map(|path| (path, PathUse::Reads));
        read.or_else(|| Some((word.strip_prefix("of=")?, PathUse::Changes(Makes::File))))
    });
    uses.collect()
}

/// `find` reads the directories in front of its conditions, unless what it does with what it finds changes them.
fn find(args: &[String]) -> Vec<(&str, PathUse)> {
    const CHANGERS: &[&str] = &["rm", "mv", "chmod", "chown", "chgrp", "sed", "touch", "truncate"];
    let starts = args.iter().take_while(|word| !word.starts_with(['-', '(', '!']));
    let runs = |name: &String| CHANGERS.contains(&super::base(name));
    let changes = args.iter().any(|word| word == "-delete")
        || args.windows(2).any(|pair| matches!(pair[0].as_str(), "-exec" | "-execdir" | "-ok") && runs(&pair[1]));
    let does = if changes { PathUse::Changes(Makes::Nothing) } else { PathUse::Reads };
    starts.filter(|word| looks_like_path(word)).map(|word| (word.as_str(), does)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paths of a command, those that it changes with `!` in front.
    fn check(command: &str) -> Vec<String> {
        let mut words = command.split(' ').map(str::to_owned);
        let name = words.next().unwrap();
        let args: Vec<String> = words.collect();
        let shown = |(word, does): (&str, PathUse)| match does {
            PathUse::Reads => word.to_owned(),
            PathUse::Changes(Makes::Name) => format!("!!{word}"),
            PathUse::Changes(_) => format!("!{word}"),
        };
        paths(&name, &args).into_iter().map(shown).collect()
    }

    #[test]
    fn each_path_is_read_or_changed() {
        let table: &[(&str, &[&str])] = &[
            ("cat /a ~/b x", &["/a", "~/b"]),
            ("tar czf ~/x.tgz .", &["!~/x.tgz", "."]),
            ("tar -cz --file=~/x.tgz /srv", &["!~/x.tgz", "/srv"]),
            ("tar xzf ~/x.tgz -C /srv", &["~/x.tgz", "!/srv"]),
            ("tar tf ~/x.tgz", &["~/x.tgz"]),
            ("cp -r /a ~/b", &["/a", "!!~/b"]),
            ("cp a ~/b", &["!~/b"]),
            ("cp -t /srv /a /b", &["!/srv", "/a", "/b"]),
            ("mv a ~/b", &["!!a", "!!~/b"]),
            ("mkdir ~/d", &["!!~/d"]),
            ("mkdir -p ~/d", &["!~/d"]),
            ("chmod 755 ~/d", &["!~/d"]),
            ("sed s/a/b/ /etc/x", &["/etc/x"]),
            ("sed -i s/a/b/ ~/x", &["!!~/x"]),
            ("sed -n -e /x/p ~/x", &["~/x"]),
            ("grep -o /x ~/y", &["~/y"]),
            ("find ~/x -name y", &["~/x"]),
            ("find ~/x -name y -delete", &["!~/x"]),
            ("dd if=/dev/zero of=~/x bs=1", &["/dev/zero", "!~/x"]),
            ("gcc -O2 -o ~/x /a.c", &["!!~/x", "/a.c"]),
            ("sort -o ~/x /y", &["!~/x", "/y"]),
            ("pandoc /a.md --output=~/x", &["!~/x", "/a.md"]),
            ("curl -o ~/x https://e.example/y", &["!~/x"]),
            ("ffmpeg -i ~/in.mp4 -vn out.mp3", &["~/in.mp4", "!!out.mp3"]),
            ("zip -r ~/x.zip src /a", &["!!~/x.zip", "/a"]),
            ("unzip ~/x.zip -d /srv", &["!/srv", "~/x.zip"]),
            ("sqlite3 ~/x.db .tables", &["!~/x.db"]),
            ("make -C ~/x all", &["!~/x"]),
            ("echo /a", &[]),
            ("cargo new ~/x", &["!!~/x"]),
            ("gzip -c ~/x", &["~/x"]),
            ("jq . ~/x", &["~/x"]),
            ("ln -s ../shared/x y", &["!!y"]),
        ];
        for (command, expected) in table {
            assert_eq!(check(command), *expected, "{command}");
        }
    }
}
