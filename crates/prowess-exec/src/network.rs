//! Did a command fail because it did not use the proxy of its sandbox, and what can be done about it?

use prowess_policy::script::{Joint, Script, Segment, Word};
use prowess_policy::{SandboxChoice, quote};

use crate::exec_tool::ExecCall;
use crate::setting::Setting;
use crate::tool::{Content, ToolResult};

/// What programs say when a name cannot be resolved or nothing can be reached, in lower case.
const SIGNS: &[&str] = &[
    "could not resolve",
    "couldn't resolve",
    "cannot resolve",
    "unable to resolve",
    "failed to resolve",
    "failed to lookup address",
    "error resolving",
    "name resolution",
    "name or service not known",
    "nodename nor servname",
    "no such host",
    "unknown host",
    "dns error",
    "getaddrinfo",
    "eai_again",
    "enotfound",
    "gaierror",
    "bad address '",
    "network is unreachable",
    "network unreachable",
    "enetunreach",
    "no route to host",
    "connection refused",
    "connection timed out",
    "no servers could be reached",
    "communications error to",
    "could not connect to server",
    "couldn't connect to server",
    "failed to establish a new connection",
    "econnrefused",
    "etimedout",
    "socket: operation not permitted",
    "connect: operation not permitted",
    "socket: permission denied",
    "connect: permission denied",
];

/// Programs that never use a proxy. Some of them fail without a word.
const DIRECT: &[&str] = &[
    "dig",
    "drill",
    "ftp",
    "host",
    "mtr",
    "nc",
    "ncat",
    "netcat",
    "nslookup",
    "ping",
    "ping6",
    "socat",
    "telnet",
    "tracepath",
    "traceroute",
    "whois",
];

/// The exit codes of curl for a host that cannot be resolved or reached, or that does not answer. It may be silent.
const CURL_CODES: &[i64] = &[5, 6, 7, 28, 35, 52, 56];

/// A command that is over.
#[derive(Debug, Clone, Copy)]
pub struct Ran<'a> {
    /// Its text.
    pub command: &'a str,
    /// Its exit code, if it has one.
    pub code: Option<i64>,
    /// What it said.
    pub output: &'a str,
}

/// `result` of `command`, which ran with `setting`: with a line about the network if it failed for want of it.
#[must_use]
pub fn explain(command: &str, mut result: ToolResult, setting: &Setting) -> ToolResult {
    // A command that did not run or goes on has no such field.
    let Some(code) = result.details.get("exitCode") else { return result };
    let output = result.text();
    let Some(line) = hint(Ran { command, code: code.as_i64(), output: &output }, setting) else { return result };
    match result.content.last_mut() {
        Some(Content::Text { text }) => *text = format!("{text}\n\n{line}"),
        Some(Content::Image { .. }) | None => result.content.push(Content::Text { text: line }),
    }
    result
}

/// Programs that see or reach nothing of the machine from inside a sandbox.
struct Blind {
    programs: &'static [&'static str],
    /// What is the matter, after the program's name.
    why: &'static str,
}

const BLIND: &[Blind] = &[
    Blind {
        programs: &["arp", "firewall-cmd", "ifconfig", "ip", "ip6tables", "iptables", "netstat", "nft", "ss", "ufw"],
        why: "sees the sandbox's own network, not this machine's",
    },
    Blind {
        programs: &["find-sessions.sh", "screen", "tmux"],
        why: "has a /tmp of its own in the sandbox, without your sessions",
    },
    Blind {
        programs: &["hostnamectl", "loginctl", "systemctl", "timedatectl"],
        why: "cannot reach the system's services from the sandbox",
    },
    Blind { programs: &["blkid", "lsblk"], why: "sees no disks from the sandbox" },
    Blind { programs: &["openclaw", "prowess"], why: "cannot see your settings and skills from the sandbox" },
    Blind { programs: &["doas", "su", "sudo"], why: "cannot become root in the sandbox" },
];

/// Why `command` would not see what it is asked about, if all of it runs in the sandbox: `ss` sees …
#[must_use]
pub fn blind(command: &str, setting: &Setting) -> Option<String> {
    if !is_cut_off(setting) {
        return None;
    }
    let script = Script::parse(command);
    let first: Vec<&Segment> =
        script.segments.iter().filter(|one| !matches!(one.joint, Joint::Pipe | Joint::PipeBoth)).collect();
    let found: Option<Vec<(&str, &Blind)>> = first.into_iter().map(blindness).collect();
    let (program, blind) = found?.into_iter().next()?;
    Some(format!("`{program}` {}", blind.why))
}

/// Why a person would see nothing of what `command` starts in the sandbox, if that is so.
#[must_use]
pub fn out_of_sight(command: &str, setting: &Setting) -> Option<String> {
    let starts = programs(command).into_iter().find(|name| name == "tmux").filter(|_| is_cut_off(setting));
    starts.map(|name| format!("`{name}` would start in the sandbox, where you cannot attach to it"))
}

/// The program of a segment that sees nothing, and why: the one that `sudo` starts before `sudo` itself.
fn blindness(segment: &Segment) -> Option<(&str, &'static Blind)> {
    // A tmux server that was named is one that an agent made for itself.
    let is_own = segment.words.iter().filter_map(Word::literal).any(|word| word.starts_with("-L") || word == "-S");
    programs_of(segment).into_iter().rev().find_map(|name| {
        let found = BLIND.iter().find(|blind| blind.programs.contains(&name))?;
        (!found.programs.contains(&"tmux") || !is_own).then_some((name, found))
    })
}

/// What to do about a command that failed because it did not use the proxy of its sandbox. What the proxy refused, or
/// could not reach, is in the output already.
#[must_use]
pub fn hint(ran: Ran<'_>, setting: &Setting) -> Option<String> {
    if let Some(why) = blind(ran.command, setting) {
        return Some(format!("Note: {why}. Run it in your own terminal instead."));
    }
    let is_explained = ran.output.contains(crate::egress::REFUSED) || ran.output.contains(crate::egress::FAILED);
    if ran.code == Some(0) || is_explained || !is_cut_off(setting) {
        return None;
    }
    if !is_curl(ran) && !is_direct(ran.command) && !tells_of_it(ran.output) {
        return None;
    }
    let call = ExecCall { command: ran.command.to_owned(), ..ExecCall::default() };
    let setting = setting.for_command(&call);
    let (allow, key) = match setting.owner() {
        Some(skill) => (
            format!("prowess leases allow --skill {} --host NAME:PORT", quote(&skill.name)),
            format!("skills.entries.{}.sandbox.network", skill.key),
        ),
        None => ("prowess leases allow --host NAME:PORT".to_owned(), "tools.exec.sandbox.network".to_owned()),
    };
    Some(format!(
        "The sandbox has no direct network: hosts are reached through the proxy in HTTP_PROXY and ALL_PROXY, which curl, \
         git, pip and npm use.\nFor a program that does not use it, allow its host and port: {allow}\nOr give it the whole \
         network: prowess config set {} true",
        quote(&key)
    ))
}

/// Whether curl says by its exit code that it reached nobody.
fn is_curl(ran: Ran<'_>) -> bool {
    ran.code.is_some_and(|code| CURL_CODES.contains(&code)) && programs(ran.command).iter().any(|name| name == "curl")
}

/// Whether a program in it never uses a proxy.
fn is_direct(command: &str) -> bool {
    programs(command).iter().any(|name| DIRECT.contains(&name.as_str()))
}

/// Programs that start another one, which stands behind their options.
const STARTERS: &[&str] = &["doas", "env", "nice", "nohup", "stdbuf", "sudo", "time", "timeout"];

/// The name of each program in it.
fn programs(command: &str) -> Vec<String> {
    let script = Script::parse(command);
    script.segments.iter().filter_map(|segment| programs_of(segment).pop().map(str::to_owned)).collect()
}

/// The program of a segment, after those that start it: `sudo` and `ss` of `sudo -n ss -t`.
fn programs_of(segment: &Segment) -> Vec<&str> {
    let mut found = Vec::new();
    for word in segment.words.iter().map_while(Word::literal) {
        // Options, `NAME=value` and the time of `timeout` stand between them.
        if word.starts_with('-') || word.contains('=') || word.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let name = word.rsplit('/').next().unwrap_or(word);
        found.push(name);
        if !STARTERS.contains(&name) {
            break;
        }
    }
    found
}

/// Whether commands run in a sandbox of ours that has no network. A container has what it was started with.
fn is_cut_off(setting: &Setting) -> bool {
    let is_granted = setting.settings.grants.network || setting.skills.iter().any(|skill| skill.grants.network);
    match setting.settings.sandbox {
        SandboxChoice::Auto | SandboxChoice::Landlock | SandboxChoice::Bubblewrap => !is_granted,
        SandboxChoice::Docker(_) | SandboxChoice::Podman(_) | SandboxChoice::Off | SandboxChoice::Unknown(_) => false,
    }
}

fn tells_of_it(output: &str) -> bool {
    let output = output.to_lowercase();
    SIGNS.iter().any(|sign| output.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::{Ran, is_curl, is_direct, tells_of_it};

    #[test]
    fn a_silent_curl_tells_by_its_exit_code() {
        let table = [
            ("curl -s https://wttr.in", 7, true),
            ("curl -s x | jq .", 28, true),
            ("timeout 5 /usr/bin/curl -s x", 6, true),
            ("curl -f x", 22, false),
            ("curler x", 7, false),
            ("make", 6, false),
        ];
        for (command, code, expected) in table {
            assert_eq!(is_curl(Ran { command, code: Some(code), output: "" }), expected, "{command} {code}");
        }
    }

    #[test]
    fn programs_that_know_no_proxy_need_not_say_anything() {
        for command in ["nc -z example.org 80", "timeout 3 ping -c1 example.org", "echo x | /usr/bin/nc -w1 a 1"] {
            assert!(is_direct(command), "{command}");
        }
        for command in ["curl example.org", "grep -r ping", "echo 'nc x'", "ls; cat host.txt"] {
            assert!(!is_direct(command), "{command}");
        }
    }

    #[test]
    fn what_sees_only_the_sandbox_is_known() {
        let setting = crate::setting::tests::setting();
        let why = |command: &str| super::blind(command, &setting);
        for (command, program) in [
            ("ss -tulnH", "ss"),
            ("sudo -n ss -tulpnH || ss -tulnH", "ss"),
            ("sudo -n ufw status; sudo -n nft list ruleset | head -n 60", "ufw"),
            ("sudo -n sshd -T | grep -i port", "sudo"),
            ("tmux ls", "tmux"),
            ("systemctl --failed", "systemctl"),
        ] {
            let told = why(command).unwrap_or_default();
            assert!(told.starts_with(&format!("`{program}` ")), "{command}: {told}");
        }
        for command in ["df -h; systemctl --failed; free -h", "tmux -L agent ls", "ls; cat ip", "grep ss x", "echo ss"]
        {
            assert_eq!(why(command), None, "{command}");
        }
        assert!(super::out_of_sight("for a in b; do tmux -L agent new-session -d -s $a; done", &setting).is_some());
        assert_eq!(super::out_of_sight("ls tmux", &setting), None);
        let mut open = crate::setting::tests::setting();
        open.settings.grants.network = true;
        assert_eq!(super::blind("ss -tln", &open), None);
    }

    #[test]
    fn the_words_of_many_programs_are_known() {
        let told = [
            "curl: (6) Could not resolve host: wttr.in",
            "wget: unable to resolve host address 'example.org'",
            "wget: bad address 'example.org'",
            "ping: example.org: Temporary failure in name resolution",
            "ssh: Could not resolve hostname x: Name or service not known",
            "Error: getaddrinfo EAI_AGAIN api.example.org",
            "dial tcp: lookup example.org: no such host",
            "connect: Network is unreachable",
            "socket.gaierror: [Errno -3] Temporary failure in name resolution",
            "error sending request: dns error: failed to lookup address information",
            "bash: connect: Operation not permitted",
            "curl: (7) Failed to connect to wttr.in port 443 after 0 ms: Could not connect to server",
            "curl: (28) Connection timed out after 15001 milliseconds",
            "connect ECONNREFUSED 127.0.0.1:443",
            ";; communications error to 127.0.0.53#53: connection refused",
            ";; no servers could be reached",
        ];
        for output in told {
            assert!(tells_of_it(output), "{output}");
        }
        for output in ["", "No such file or directory", "Permission denied", "rm: operation not permitted"] {
            assert!(!tells_of_it(output), "{output}");
        }
    }
}
