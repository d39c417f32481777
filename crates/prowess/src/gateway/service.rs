//! `gateway install-service`: how does this machine start the gateway by itself?
//!
//! A file for the service manager of the user, and nothing else: it is read before it is used, and switched on by a
//! command that the person gives. No secret is written into it; the gateway finds its token where it is kept.

mod launchd;
mod systemd;

use std::fs;
use std::path::{Path, PathBuf};

use prowess_config::Env;
use prowess_gateway::Options;
use prowess_gateway::settings::Settings;
use prowess_host::Failure;
use serde_json::json;

use crate::cli::{Globals, ServiceArgs};
use crate::output::{Report, short_path};

/// Variables that say where things are, and are passed on.
const PASSED: [&str; 6] =
    ["PATH", "OPENCLAW_HOME", "OPENCLAW_STATE_DIR", "OPENCLAW_CONFIG_PATH", "OPENCLAW_LOG_LEVEL", "LANG"];

/// What a service is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Service {
    /// Its name, without an ending.
    name: String,
    /// The program and its arguments.
    command: Vec<String>,
    env: Vec<(String, String)>,
    cwd: String,
}

/// A service as its manager wants it.
struct Written {
    path: PathBuf,
    text: String,
    /// How to switch it on, and how to see how it is.
    commands: Vec<String>,
}

pub(super) fn install(args: &ServiceArgs, globals: &Globals) -> Result<Report, Failure> {
    let ground = globals.ground()?;
    // What would not start now would be started again and again.
    let options = Options { port: args.port, bind: args.bind.clone(), tls: args.tls.wanted(), ..Options::default() };
    Settings::resolve(&globals.context()?.config, &options).map_err(Failure::input)?;
    let home = ground.locations()?.os_home;
    let service = Service::of(args, globals, &ground.env, &home)?;
    let written = if cfg!(target_os = "macos") {
        launchd::write(&service, &home)
    } else {
        systemd::write(&service, &home, &ground.env)
    };
    if args.print {
        if globals.json {
            return Report::json(&json!({"path": written.path, "text": written.text, "commands": written.commands}));
        }
        return Ok(Report::text(written.text));
    }
    let before = fs::read_to_string(&written.path).ok();
    let is_new = before.as_deref() != Some(written.text.as_str());
    if before.is_some() && is_new && !args.force {
        return Err(Failure::input(format!("{} already exists with other content", written.path.display()))
            .hint("--print shows the new content; --force replaces the file"));
    }
    if is_new {
        save(&written.path, &written.text)
            .map_err(|error| Failure::input(format!("cannot write {}: {error}", written.path.display())))?;
    }
    if globals.json {
        return Report::json(&json!({"path": written.path, "changed": is_new, "commands": written.commands}));
    }
    let done = if is_new { "wrote" } else { "unchanged:" };
    let commands = lines(written.commands.iter().map(|command| format!("  {command}")));
    Ok(Report::text(format!("{done} {}\nenable it with:\n{commands}", short_path(&written.path, &home))))
}

fn save(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text)
}

/// Each on a line of its own.
fn lines(lines: impl Iterator<Item = String>) -> String {
    lines.fold(String::new(), |text, line| text + &line + "\n")
}

impl Service {
    fn of(args: &ServiceArgs, globals: &Globals, env: &Env, home: &Path) -> Result<Self, Failure> {
        let program = std::env::current_exe()
            .map_err(|error| Failure::ours(format!("cannot find this program's path: {error}")))?;
        let profile = globals.profile.clone().or_else(|| globals.dev.then(|| "dev".to_owned()));
        let config = globals.config.as_ref().map(|path| path.to_string_lossy().into_owned());
        let option =
            |name: &str, value: Option<String>| value.map(|value| [name.to_owned(), value]).into_iter().flatten();
        let mut command = vec![program.to_string_lossy().into_owned()];
        command.extend(option("--profile", profile.clone()).chain(option("--config", config)));
        command.extend(["gateway".to_owned(), "run".to_owned()]);
        command.extend(
            option("--port", args.port.map(|port| port.to_string())).chain(option("--bind", args.bind.clone())),
        );
        command.extend(args.tls.wanted().map(|is_wanted| if is_wanted { "--tls" } else { "--no-tls" }.to_owned()));
        let env = PASSED.iter().filter_map(|name| Some(((*name).to_owned(), env.text(name)?.to_owned()))).collect();
        let name = profile.map_or_else(|| "prowess-gateway".to_owned(), |profile| format!("prowess-gateway-{profile}"));
        let service = Self { name, command, env, cwd: home.to_string_lossy().into_owned() };
        service.check()?;
        Ok(service)
    }

    /// A service file has lines, so nothing in it may break one.
    fn check(&self) -> Result<(), Failure> {
        let values = self.env.iter().map(|(_, value)| value).chain(&self.command).chain([&self.cwd, &self.name]);
        match values.into_iter().find(|text| text.chars().any(char::is_control)) {
            Some(text) => Err(Failure::input(format!("{text:?} cannot be written into a service file"))
                .hint("remove line breaks and control characters from it")),
            None => Ok(()),
        }
    }
}
