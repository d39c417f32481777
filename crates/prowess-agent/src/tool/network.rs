//! Did a command fail because it did not use the proxy of its sandbox, and what can be done about it?

use prowess_exec::exec_tool::REFUSED;
use prowess_exec::tool::Content;
use prowess_exec::{Setting, ToolResult};
use prowess_policy::{SandboxChoice, quote};
use prowess_skills::Skill;

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
    "could not connect to server",
    "couldn't connect to server",
    "failed to connect to",
    "failed to establish a new connection",
    "econnrefused",
    "etimedout",
    "socket: operation not permitted",
    "connect: operation not permitted",
    "socket: permission denied",
    "connect: permission denied",
];

/// The exit codes of curl for a host that cannot be resolved or reached, or that does not answer. It may be silent.
const CURL_CODES: &[i64] = &[5, 6, 7, 28, 35, 52, 56];

/// `result` of `command`, which ran with `setting`, for `skill` if for one: with a line about the network if it failed for
/// want of it. What the proxy refused is in the result already.
pub(crate) fn explain(command: &str, mut result: ToolResult, setting: &Setting, skill: Option<&Skill>) -> ToolResult {
    let text = result.text();
    if !has_failed(&result) || !is_cut_off(setting) || text.contains(REFUSED) {
        return result;
    }
    if !is_curl(command, &result) && !tells_of_it(&text) {
        return result;
    }
    let key = skill.map_or_else(
        || "tools.exec.sandbox.network".to_owned(),
        |skill| format!("skills.entries.{}.sandbox.network", skill.key()),
    );
    let key = quote(&key);
    let line = format!(
        "In the sandbox, programs reach other hosts only through the proxy that HTTP_PROXY, HTTPS_PROXY and ALL_PROXY \
         name; a person is asked about each new host. A program that does not use the proxy gets no network. The \
         operator can give it the whole network: prowess config set {key} true"
    );
    match result.content.last_mut() {
        Some(Content::Text { text }) => *text = format!("{text}\n\n{line}"),
        Some(Content::Image { .. }) | None => result.content.push(Content::Text { text: line }),
    }
    result
}

fn has_failed(result: &ToolResult) -> bool {
    // A command that did not run or goes on has no such field.
    result.details.get("exitCode").is_some_and(|code| code.as_i64() != Some(0))
}

/// Whether curl says by its exit code that it reached nobody.
fn is_curl(command: &str, result: &ToolResult) -> bool {
    let is_named = command.split(|c: char| c.is_whitespace() || "|;&()".contains(c)).any(|word| word == "curl");
    is_named && result.details["exitCode"].as_i64().is_some_and(|code| CURL_CODES.contains(&code))
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
    use prowess_exec::ToolResult;
    use serde_json::json;

    use super::{is_curl, tells_of_it};

    #[test]
    fn a_silent_curl_tells_by_its_exit_code() {
        let table = [
            ("curl -s https://wttr.in", 7, true),
            ("curl -s x | jq .", 28, true),
            ("curl -f x", 22, false),
            ("curler x", 7, false),
            ("make", 6, false),
        ];
        for (command, code, expected) in table {
            let result = ToolResult::done("", json!({"status": "completed", "exitCode": code}));
            assert_eq!(is_curl(command, &result), expected, "{command} {code}");
        }
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
        ];
        for output in told {
            assert!(tells_of_it(output), "{output}");
        }
        for output in ["", "No such file or directory", "Permission denied", "rm: operation not permitted"] {
            assert!(!tells_of_it(output), "{output}");
        }
    }
}
