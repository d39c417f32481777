//! Examples for `--help`: what does a user type?
//!
//! One table, so that a test can see that no command is without one and that each of them is understood.

use std::fmt::Write as _;

use clap::Command;

/// What can be typed, and what it does.
type Example = (&'static str, &'static str);

/// The examples of each command, by its path.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "",
        &[
            ("prowess run \"check the weather in Shanghai\"", "works without a key or any setup"),
            ("prowess chat", "a conversation at the terminal"),
            ("prowess skills list", "which skills are ready?"),
            ("prowess doctor", "what works here, and what does not?"),
        ],
    ),
    (
        "run",
        &[
            ("prowess run \"check the weather in Shanghai\"", "one message in a new session"),
            ("prowess run --act \"check the weather in Lisbon\"", "let the planner run the command"),
            ("prowess run --continue \"and tomorrow?\"", "continue the last session"),
            ("prowess run --session trip \"book a table\"", "a named session"),
            ("git diff | prowess run -", "the message from stdin"),
            ("prowess run --json '$weather Lisbon'", "the result as JSON"),
        ],
    ),
    (
        "chat",
        &[
            ("prowess chat", "start a new session"),
            ("prowess chat --continue", "continue the last one"),
            ("prowess chat --model ollama/qwen3:8b", "choose the model"),
        ],
    ),
    ("sessions", &[("prowess sessions list", ""), ("prowess sessions show", "the last session")]),
    ("sessions list", &[("prowess sessions list", ""), ("prowess sessions list --json", "")]),
    (
        "sessions show",
        &[
            ("prowess sessions show", "the last session"),
            ("prowess sessions show main", "by key"),
            ("prowess sessions show 3f2a91c0", "by the start of its id"),
        ],
    ),
    ("sessions replay", &[("prowess sessions replay", "the last session"), ("prowess sessions replay -v main", "")]),
    (
        "sessions export",
        &[
            ("prowess sessions export main -o talk.md", ""),
            ("prowess sessions export --format jsonl", "the last session, one message per line"),
        ],
    ),
    ("sessions reset", &[("prowess sessions reset main", "")]),
    ("models", &[("prowess models", "which are configured?"), ("prowess models --probe", "which of them answer?")]),
    ("prompt", &[("prowess prompt", "the whole system prompt"), ("prowess prompt --cost", "what its parts cost")]),
    ("skills", &[("prowess skills list weather", ""), ("prowess skills explain github", "")]),
    (
        "skills list",
        &[
            ("prowess skills list", ""),
            ("prowess skills list pdf", "only skills that mention pdf"),
            ("prowess skills list --eligible --json", "ready ones, as JSON"),
        ],
    ),
    ("skills info", &[("prowess skills info weather", "")]),
    ("skills check", &[("prowess skills check", ""), ("prowess skills check --all", "nothing grouped")]),
    (
        "skills explain",
        &[
            ("prowess skills explain github", "why is it not ready?"),
            ("prowess skills explain", "what happened to each folder?"),
        ],
    ),
    ("skills bind", &[("prowess skills bind github", "it gets what skills.entries.github gives")]),
    ("skills prompt", &[("prowess skills prompt", ""), ("prowess skills prompt --budget 4000t", "in 4,000 tokens")]),
    (
        "skills commands",
        &[
            ("prowess skills commands", ""),
            ("prowess skills commands --resolve \"/weather Lisbon\"", "what would this run?"),
        ],
    ),
    (
        "config",
        &[("prowess config get", "all settings"), ("prowess config set skills.entries.github.enabled false", "")],
    ),
    ("config get", &[("prowess config get skills.load.watch", ""), ("prowess config get --json agents", "")]),
    (
        "config set",
        &[
            ("prowess config set skills.entries.github.enabled false", ""),
            ("prowess config set skills.allowBundled '[\"weather\", \"tmux\"]'", "JSON5"),
            ("prowess config set models.providers.openai.apiKey", "prompts for it without showing it"),
            ("pass openai | prowess config set models.providers.openai.apiKey --stdin", "from another program"),
        ],
    ),
    ("config unset", &[("prowess config unset skills.entries.github", "")]),
    ("config keys", &[("prowess config keys", ""), ("prowess config keys sandbox", "only keys about the sandbox")]),
    ("config path", &[("prowess config path", "")]),
    ("exec", &[("prowess exec check -- 'curl -s wttr.in | head -n 3'", ""), ("prowess exec run -- ls -l", "")]),
    (
        "exec check",
        &[
            ("prowess exec check -- 'curl -s wttr.in | head -n 3'", "may it run, and why?"),
            ("prowess exec check --exit-code -- git status", "exits with 1 if it needs approval, 2 if refused"),
        ],
    ),
    (
        "exec run",
        &[
            ("prowess exec run -- ls -l", "without network, in this directory"),
            ("prowess exec run --network -- curl -s wttr.in", "with network"),
            ("prowess exec run --skill weather -- 'curl -s wttr.in/Lisbon'", "with a skill's variables"),
        ],
    ),
    ("approvals", &[("prowess approvals list", ""), ("prowess approvals allow curl", "")]),
    ("approvals list", &[("prowess approvals list", "")]),
    (
        "approvals allow",
        &[
            ("prowess approvals allow curl", "any arguments"),
            ("prowess approvals allow '~/bin/*'", "every program in a directory"),
        ],
    ),
    ("approvals revoke", &[("prowess approvals revoke curl", "")]),
    ("approvals log", &[("prowess approvals log", "who allowed what on a gateway, and when")]),
    ("leases", &[("prowess leases list", ""), ("prowess leases allow --skill weather --host wttr.in", "")]),
    ("leases list", &[("prowess leases list", "")]),
    (
        "leases allow",
        &[
            ("prowess leases allow --skill weather --host wttr.in", "for this skill's own commands"),
            ("prowess leases allow --host github.com --host pypi.org", "for commands of no skill"),
            ("prowess leases allow --write ~/src/app", "work in another directory"),
        ],
    ),
    ("leases revoke", &[("prowess leases revoke wttr.in", "")]),
    ("leases path", &[("prowess leases path", "")]),
    ("approvals path", &[("prowess approvals path", "")]),
    ("approvals watch", &[("prowess approvals watch", "approve a gateway's commands here")]),
    ("approvals resolve", &[("prowess approvals resolve 3f2a91c0 allow-once", "")]),
    ("egress", &[("prowess egress log", "")]),
    (
        "egress log",
        &[
            ("prowess egress log", "which hosts commands reached"),
            ("prowess egress log --refused --skill weather", "what the proxy refused to one skill"),
        ],
    ),
    ("gateway", &[("prowess gateway run", ""), ("prowess gateway status", "")]),
    (
        "gateway run",
        &[
            ("prowess gateway run", "on http://127.0.0.1:18789/"),
            ("prowess gateway run --port 8080 --log-level debug", ""),
        ],
    ),
    ("gateway status", &[("prowess gateway status", "")]),
    (
        "gateway call",
        &[("prowess gateway call health", ""), ("prowess gateway call sessions.list '{\"limit\": 5}'", "")],
    ),
    (
        "gateway install-service",
        &[
            ("prowess gateway install-service", ""),
            ("prowess gateway install-service --print", "only print the service file"),
        ],
    ),
    (
        "dashboard",
        &[
            ("prowess dashboard", "open the page; starts a gateway if none runs"),
            ("prowess dashboard --no-open", "only print the address"),
            ("prowess dashboard --qr", "for a phone; needs gateway run --bind lan"),
        ],
    ),
    ("devices", &[("prowess devices list", ""), ("prowess devices approve", "if there is only one request")]),
    ("devices list", &[("prowess devices list", "")]),
    ("devices approve", &[("prowess devices approve 3f2a91c0", "")]),
    ("devices reject", &[("prowess devices reject 3f2a91c0", "")]),
    ("devices remove", &[("prowess devices remove \"Chrome on Android\"", "")]),
    ("node", &[("prowess node run --gateway ws://127.0.0.1:18789", ""), ("prowess node list", "")]),
    ("node run", &[("prowess node run --gateway ws://127.0.0.1:18789 --name build-box", "")]),
    ("node list", &[("prowess node list", "")]),
    ("node approve", &[("prowess node approve 3f2a91c0", "")]),
    ("node remove", &[("prowess node remove build-box", "")]),
    ("doctor", &[("prowess doctor", ""), ("prowess doctor --json", "")]),
    ("setup", &[("prowess setup", ""), ("prowess setup --workspace ~/work", "")]),
    (
        "completions",
        &[
            ("prowess completions bash >> ~/.bashrc", ""),
            ("prowess completions zsh > ~/.zfunc/_prowess", "with ~/.zfunc in your fpath"),
            ("prowess completions fish > ~/.config/fish/completions/prowess.fish", ""),
        ],
    ),
];

/// What the exit codes mean, below the help of the whole program.
const EXIT_CODES: &str = "Exit codes: 0 done; 1 refused, failed, or wrong input; 2 wrong usage; 3 a fault\n\
    in prowess or the system. `exec run` ends with the exit code of its command.";

/// `command` and everything below it, with their examples.
pub(super) fn with_examples(command: Command) -> Command {
    let command = below(command, "");
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    command.after_help(format!("{examples}\n\n{EXIT_CODES}"))
}

fn below(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().to_owned()).collect();
    let command = names.into_iter().fold(command, |command, name| {
        let path = format!("{path} {name}").trim_start().to_owned();
        command.mut_subcommand(name, |sub| below(sub, &path))
    });
    match EXAMPLES.iter().find(|(known, _)| *known == path) {
        Some((_, examples)) => command.after_help(text(examples)),
        None => command,
    }
}

fn text(examples: &[Example]) -> String {
    let explained = || examples.iter().filter(|(_, about)| !about.is_empty());
    let width = explained().map(|(line, _)| line.len()).max().unwrap_or(0);
    let longest = explained().map(|(_, about)| about.len()).max().unwrap_or(0);
    let is_aligned = "  ".len() + width + "  # ".len() + longest <= MAX_COLUMNS;
    let mut text = "Examples:".to_owned();
    for (line, about) in examples {
        let _ = match *about {
            "" => write!(text, "\n  {line}"),
            about if is_aligned => write!(text, "\n  {line:width$}  # {about}"),
            about => write!(text, "\n  # {about}\n  {line}"),
        };
    }
    text
}

/// The columns of a terminal. Where examples with their explanations need more, these stand above them.
const MAX_COLUMNS: usize = 79;

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    /// The commands below `command` with their paths.
    fn paths(command: &Command, path: &str, all: &mut Vec<String>) {
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
            paths(sub, &path, all);
            all.push(path);
        }
    }

    /// The words of a line as a shell reads them, as far as examples go; what feeds it and what it feeds is left out.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for c in line.chars().chain([' ']) {
            match quote {
                Some(open) if c == open => quote = None,
                Some(_) => word.push(c),
                None if matches!(c, '"' | '\'') => quote = Some(c),
                None if c != ' ' => word.push(c),
                None if word == "|" => {
                    word.clear();
                    words.clear();
                }
                None if word.starts_with('>') => return words,
                None => words.push(std::mem::take(&mut word)),
            }
        }
        words
    }

    #[test]
    fn every_command_has_an_example_that_is_understood() {
        let mut all = Vec::new();
        paths(&Cli::command(), "", &mut all);
        for path in &all {
            assert!(EXAMPLES.iter().any(|(known, _)| known == path), "`prowess {path}` has no example");
        }
        for (path, examples) in EXAMPLES {
            assert!(path.is_empty() || all.iter().any(|known| known == path), "there is no command `{path}`");
            for (line, _) in *examples {
                let words = words(line);
                assert!(
                    words.join(" ").starts_with(format!("prowess {path}").trim_end()),
                    "{line} is not about {path}"
                );
                if let Err(error) = with_examples(Cli::command()).try_get_matches_from(&words) {
                    panic!("{line}\n{words:?}\n{error}");
                }
            }
        }
    }

    #[test]
    fn help_shows_examples_that_fit_a_terminal() {
        let mut command = with_examples(Cli::command());
        let help = command.render_help().to_string();
        assert!(
            help.contains("Examples:\n")
                && help.contains("  prowess run \"check")
                && help.contains("Exit codes: 0 done"),
            "{help}"
        );
        for (path, examples) in EXAMPLES {
            for line in text(examples).lines() {
                assert!(line.chars().count() <= 80, "{path}: {line}");
            }
        }
    }
}
