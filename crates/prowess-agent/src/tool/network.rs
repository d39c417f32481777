//! Did a command fail because its sandbox has no network, and what would give it one?

use prowess_exec::tool::Content;
use prowess_exec::{Setting, ToolResult};
use prowess_policy::SandboxChoice;
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
    "socket: operation not permitted",
    "connect: operation not permitted",
    "socket: permission denied",
    "connect: permission denied",
];

/// `result` of a command that ran with `setting`, for `skill` if for one: with a line about the network if it failed for
/// want of it.
pub(crate) fn explain(mut result: ToolResult, setting: &Setting, skill: Option<&Skill>) -> ToolResult {
    if !has_failed(&result) || !is_cut_off(setting) || !tells_of_it(&result.text()) {
        return result;
    }
    let key = skill.map_or_else(
        || "tools.exec.sandbox.network".to_owned(),
        |skill| format!("skills.entries.{}.sandbox.network", skill.key()),
    );
    let line = format!(
        "The sandbox gives this command no network. If it needs one, the operator can allow it: set {key} to true."
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
    use super::tells_of_it;

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
        ];
        for output in told {
            assert!(tells_of_it(output), "{output}");
        }
        for output in ["", "No such file or directory", "Permission denied", "rm: operation not permitted"] {
            assert!(!tells_of_it(output), "{output}");
        }
    }
}
