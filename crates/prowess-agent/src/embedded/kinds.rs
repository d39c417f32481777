//! Kinds of commands: is it one at all, is it for this system, and can it be run in parts?

use prowess_policy::script::{Joint, Script, Segment, Word};

/// What the names of scripts end with.
const SCRIPTS: [&str; 8] = [".bash", ".js", ".mjs", ".pl", ".py", ".rb", ".sh", ".ts"];

/// What a loop or another command of many commands begins with.
const COMPOUNDS: [&str; 7] = ["case", "for", "function", "if", "select", "until", "while"];

/// What changes the shell itself, so that what comes after needs it.
const OF_THE_SHELL: [&str; 14] =
    [".", "alias", "cd", "eval", "exec", "export", "popd", "pushd", "set", "shopt", "source", "trap", "umask", "unset"];

/// Programs that only one system has.
const APPLE: &[&str] = &[
    "brew",
    "caffeinate",
    "csrutil",
    "defaults",
    "diskutil",
    "dscl",
    "fdesetup",
    "hdiutil",
    "launchctl",
    "mdfind",
    "networksetup",
    "osascript",
    "pbcopy",
    "pbpaste",
    "pmset",
    "scutil",
    "softwareupdate",
    "spctl",
    "sw_vers",
    "system_profiler",
    "systemsetup",
    "tmutil",
    "xcodebuild",
    "xcrun",
];
const LINUX: &[&str] = &[
    "apk",
    "apt",
    "apt-get",
    "checkupdates",
    "dnf",
    "dpkg",
    "firewall-cmd",
    "hostnamectl",
    "journalctl",
    "loginctl",
    "lsblk",
    "nft",
    "pacman",
    "rpm",
    "ss",
    "systemctl",
    "timedatectl",
    "ufw",
    "xclip",
    "xdg-open",
    "yum",
    "zypper",
];
const WINDOWS: &[&str] = &["choco", "powershell", "pwsh", "scoop", "winget"];

/// How many words of a command are looked at for its program: `sudo -n` may stand before it.
const PROGRAM_WORDS: usize = 3;

/// Whether it does something: a path, a comment or a setting alone does not.
pub(crate) fn is_command(text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() || text.lines().all(|line| line.trim_start().starts_with('#')) {
        return false;
    }
    !is_bare_path(text) && !only_sets(text)
}

/// Whether it is one path and nothing else, unless that is a script or a program.
pub(crate) fn is_bare_path(text: &str) -> bool {
    let text = text.trim();
    let is_path = ["/", "~/", "./", "../", "{baseDir}/", "$HOME/"].iter().any(|start| text.starts_with(start));
    let is_program =
        SCRIPTS.iter().any(|end| text.ends_with(end)) || text.contains("/bin/") || text.contains("/scripts/");
    is_path && !text.contains(char::is_whitespace) && (!is_program || text.ends_with('/'))
}

/// Whether a command only sets variables, which another command needs.
pub(crate) fn only_sets(text: &str) -> bool {
    // Parsing is the dear part, and most commands begin with a program.
    if !text.split_whitespace().next().is_some_and(|first| first.contains('=')) {
        return false;
    }
    let script = Script::parse(text);
    !script.segments.is_empty()
        && script.segments.iter().all(|segment| segment.words.is_empty() && segment.redirects.is_empty())
}

/// Whether it is a loop or the like: seldom what a request asks for.
pub(crate) fn is_compound(text: &str) -> bool {
    text.split_whitespace().next().is_some_and(|first| COMPOUNDS.contains(&first))
}

/// How much of a command only another system has, from 0 to 1.
pub(crate) fn foreign(text: &str) -> f64 {
    let here = std::env::consts::OS;
    let others = [("macos", APPLE), ("linux", LINUX), ("windows", WINDOWS)].into_iter().filter(|(os, _)| *os != here);
    let others: Vec<&str> = others.flat_map(|(_, programs)| programs).copied().collect();
    let script = Script::parse(text);
    let is_foreign = |segment: &&Segment| {
        let words = segment.words.iter().take(PROGRAM_WORDS).filter_map(Word::literal);
        words.into_iter().any(|word| others.contains(&word.rsplit('/').next().unwrap_or(word)))
    };
    let count = |number: usize| u32::try_from(number).map_or(f64::from(u32::MAX), f64::from);
    count(script.segments.iter().filter(is_foreign).count()) / count(script.segments.len().max(1))
}

/// Whether a heading names a system, and not this one.
pub(crate) fn names_other_system(title: &str) -> bool {
    let title = title.to_lowercase();
    let names = |os: &str, words: &[&str]| std::env::consts::OS != os && words.iter().any(|word| title.contains(word));
    names("macos", &["macos", "mac os", "os x"]) || names("linux", &["linux"]) || names("windows", &["windows"])
}

/// The commands of a list such as `a; b | c`, where each can be run without the others; none where there is one.
pub(crate) fn pieces(text: &str) -> Vec<&str> {
    let script = Script::parse(text);
    let is_free = |segment: &Segment| {
        let program = segment.words.first().and_then(Word::literal);
        !segment.nested
            && segment.assignments.is_empty()
            && segment.joint != Joint::Background
            && program.is_some_and(|program| !OF_THE_SHELL.contains(&program))
    };
    if !script.doubts.is_empty() || !script.segments.iter().all(is_free) {
        return Vec::new();
    }
    let starts = script.segments.iter().filter(|segment| segment.joint == Joint::Then).map(|one| one.span.start);
    let mut cuts: Vec<usize> = std::iter::once(0).chain(starts).collect();
    if cuts.len() == 1 {
        return Vec::new();
    }
    cuts.push(text.len());
    let pieces: Vec<&str> =
        cuts.windows(2).map(|cut| text[cut[0]..cut[1]].trim_matches(|c: char| c == ';' || c.is_whitespace())).collect();
    // What stood before the first word of one would now stand behind another.
    let counted: usize = pieces.iter().map(|piece| Script::parse(piece).segments.len()).sum();
    if counted == script.segments.len() { pieces } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_a_comment_or_a_setting_is_no_command() {
        for (text, is_one) in [
            ("ls", true),
            ("~/.agents/skills", false),
            ("/etc/os-release", false),
            ("./notes", false),
            ("./run.sh", true),
            ("{baseDir}/scripts/run", true),
            ("{baseDir}/scripts/", false),
            ("/usr/bin/uptime", true),
            ("./notes list", true),
            ("# a comment", false),
            ("# a\n# b", false),
            ("A=1", false),
            ("A=1 B=\"$A\"", false),
            ("A=1 ls", true),
            ("A=1; ls \"$A\"", true),
            ("", false),
            (" \n", false),
        ] {
            assert_eq!(is_command(text), is_one, "{text:?}");
        }
    }

    #[test]
    fn a_list_is_taken_apart_where_that_means_the_same() {
        for (text, want) in [
            ("df -h; free -h", vec!["df -h", "free -h"]),
            ("id; cat a 2>/dev/null || sw_vers; a | b", vec!["id", "cat a 2>/dev/null || sw_vers", "a | b"]),
            ("a\nb", vec!["a", "b"]),
            ("df -h", vec![]),
            ("a && b", vec![]),
            ("cd x; make", vec![]),
            ("A=1; ls \"$A\"", vec![]),
            ("for a in b; do c; done", vec![]),
            ("a & b; c", vec![]),
            ("a; >x b", vec![]),
            ("a; (b; c)", vec![]),
            ("echo 'a; b'", vec![]),
            ("a; b <<E\nx; y\nE\n", vec![]),
            ("", vec![]),
        ] {
            let found = pieces(text);
            assert_eq!(found, want, "{text:?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_another_system_has_is_foreign_here() {
        for (text, share) in
            [("ls", 0.0), ("sw_vers", 1.0), ("sudo -n systemsetup -x", 1.0), ("cat a || sw_vers", 0.5), ("", 0.0)]
        {
            assert!((foreign(text) - share).abs() < 0.01, "{text}");
        }
        assert!(names_other_system("macOS") && names_other_system("On Windows") && !names_other_system("Linux"));
    }
}
