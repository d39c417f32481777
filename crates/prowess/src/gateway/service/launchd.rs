//! A property list for the launchd of a user.

use std::path::Path;

use super::{Service, Written, lines};

pub(super) fn write(service: &Service, home: &Path) -> Written {
    let label = format!("dev.prowess.{}", service.name);
    let path = home.join("Library/LaunchAgents").join(format!("{label}.plist"));
    let shown = path.display().to_string().replace('\'', "'\\''");
    Written {
        text: text(service, &label),
        commands: vec![
            format!("launchctl bootstrap gui/$(id -u) '{shown}'"),
            format!("launchctl print gui/$(id -u)/{label}   # how it is"),
        ],
        path,
    }
}

fn text(service: &Service, label: &str) -> String {
    let string = |text: &str| format!("<string>{}</string>", escaped(text));
    let words = lines(service.command.iter().map(|word| format!("    {}", string(word))));
    let pair = |(name, value): &(String, String)| format!("    <key>{}</key>{}", escaped(name), string(value));
    let env = lines(service.env.iter().map(pair));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n\
         \x20 <key>Label</key>{}\n\
         \x20 <key>ProgramArguments</key>\n  <array>\n{words}  </array>\n\
         \x20 <key>EnvironmentVariables</key>\n  <dict>\n{env}  </dict>\n\
         \x20 <key>WorkingDirectory</key>{}\n\
         \x20 <key>RunAtLoad</key><true/>\n\
         \x20 <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n\
         </dict>\n</plist>\n",
        string(label),
        string(&service.cwd),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_markup_elsewhere_is_text_here() {
        let service = Service {
            name: "prowess-gateway".to_owned(),
            command: ["/opt/a & b/prowess", "gateway", "run"].map(str::to_owned).into(),
            env: vec![("PATH".to_owned(), "/a<b>".to_owned())],
            cwd: "/Users/me".to_owned(),
        };
        let written = write(&service, Path::new("/Users/me"));
        assert!(
            written.text.contains("    <string>/opt/a &amp; b/prowess</string>\n    <string>gateway</string>\n"),
            "{}",
            written.text
        );
        assert!(written.text.contains("<key>PATH</key><string>/a&lt;b&gt;</string>"), "{}", written.text);
        assert!(written.path.ends_with("Library/LaunchAgents/dev.prowess.prowess-gateway.plist"));
    }
}
