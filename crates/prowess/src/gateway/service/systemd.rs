//! A unit for the systemd of a user.

use std::path::Path;

use prowess_config::Env;

use super::{Service, Written, lines};

/// How long systemd waits for turns to end before it ends them itself, in seconds.
const STOP: u32 = 90;

pub(super) fn write(service: &Service, home: &Path, env: &Env) -> Written {
    let config = env.text("XDG_CONFIG_HOME").map_or_else(|| home.join(".config"), Into::into);
    let unit = format!("{}.service", service.name);
    Written {
        path: config.join("systemd/user").join(&unit),
        text: text(service),
        commands: vec![
            "systemctl --user daemon-reload".to_owned(),
            format!("systemctl --user enable --now {unit}"),
            format!("journalctl --user -u {unit} -f   # follow its log"),
            "loginctl enable-linger   # keep it running after you log out".to_owned(),
        ],
    }
}

fn text(service: &Service) -> String {
    let command: Vec<String> = service.command.iter().map(|word| quoted(&word.replace('$', "$$"))).collect();
    let variable = |(name, value): &(String, String)| format!("Environment={}", quoted(&format!("{name}={value}")));
    let env = lines(service.env.iter().map(variable));
    format!(
        "[Unit]\n\
         Description=prowess gateway\n\
         After=network-online.target\n\
         Wants=network-online.target\n\
         \n\
         [Service]\n\
         ExecStart={}\n\
         WorkingDirectory={}\n\
         {env}\
         Restart=on-failure\n\
         RestartSec=5\n\
         KillMode=mixed\n\
         TimeoutStopSec={STOP}\n\
         \n\
         [Install]\n\
         WantedBy=default.target\n",
        command.join(" "),
        // A path to the end of the line: quotes would be part of it.
        service.cwd.replace('%', "%%"),
    )
}

/// One word, however it is written. systemd reads `\` and `%` everywhere, and `$` where it starts programs.
fn quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_stays_one_word() {
        let service = Service {
            name: "prowess-gateway".to_owned(),
            command: ["/opt/my tools/100%/prowess", "gateway", "run", "--bind", "a\"b\\c$HOME"]
                .map(str::to_owned)
                .into(),
            env: vec![("PATH".to_owned(), "/usr/bin:/home/me/a b".to_owned())],
            cwd: "/home/me".to_owned(),
        };
        let text = text(&service);
        assert!(
            text.contains(
                "ExecStart=\"/opt/my tools/100%%/prowess\" \"gateway\" \"run\" \"--bind\" \"a\\\"b\\\\c$$HOME\"\n"
            ),
            "{text}"
        );
        assert!(text.contains("Environment=\"PATH=/usr/bin:/home/me/a b\"\n"), "{text}");
        assert!(text.contains("WorkingDirectory=/home/me\n"), "{text}");
    }
}
