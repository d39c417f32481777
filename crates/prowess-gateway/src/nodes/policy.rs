//! The policy: which commands may be sent to which kind of machine?

use serde_json::Value;

use crate::hub::About;

const CANVAS: [&str; 8] = [
    "canvas.present",
    "canvas.hide",
    "canvas.navigate",
    "canvas.eval",
    "canvas.snapshot",
    "canvas.a2ui.push",
    "canvas.a2ui.pushJSONL",
    "canvas.a2ui.reset",
];
const PLACE: [&str; 2] = ["camera.list", "location.get"];
const DEVICE: [&str; 2] = ["device.info", "device.status"];
const PERSONAL: [&str; 6] =
    ["contacts.search", "calendar.events", "reminders.list", "photos.latest", "motion.activity", "motion.pedometer"];
const HOST: [&str; 5] = ["system.run.prepare", "system.run", "system.which", "system.notify", "browser.proxy"];
const NOTIFY: [&str; 1] = ["system.notify"];

/// A kind of machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Ios,
    Android,
    Mac,
    Windows,
    Linux,
    /// Another Unix, which can run commands like the others.
    Unix,
    Unknown,
}

impl Kind {
    /// From what a machine says about itself.
    pub(crate) fn of(about: &About) -> Self {
        let platform = about.platform.trim().to_lowercase();
        let family = about.device_family.as_deref().unwrap_or_default().trim().to_lowercase();
        let is = |names: &[&str]| names.iter().any(|name| platform.starts_with(name));
        match () {
            () if is(&["ios", "iphone", "ipad"]) => Self::Ios,
            () if is(&["android"]) => Self::Android,
            () if is(&["mac", "darwin"]) => Self::Mac,
            () if is(&["win"]) => Self::Windows,
            () if is(&["linux"]) => Self::Linux,
            () if is(&["freebsd", "openbsd", "netbsd", "dragonfly", "sunos", "illumos", "solaris", "aix"]) => {
                Self::Unix
            }
            () if family.contains("iphone") || family.contains("ipad") || family.contains("ios") => Self::Ios,
            () if family.contains("android") => Self::Android,
            () if family.contains("mac") => Self::Mac,
            () if family.contains("windows") => Self::Windows,
            () if family.contains("linux") => Self::Linux,
            () => Self::Unknown,
        }
    }

    /// What skills call the system.
    pub(crate) fn os(self, about: &About) -> String {
        match self {
            Self::Mac => "darwin".to_owned(),
            Self::Windows => "win32".to_owned(),
            Self::Linux => "linux".to_owned(),
            Self::Ios | Self::Android | Self::Unix | Self::Unknown => {
                about.platform.split_whitespace().next().unwrap_or("unknown").to_lowercase()
            }
        }
    }

    /// For people.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ios => "iOS",
            Self::Android => "Android",
            Self::Mac => "macOS",
            Self::Windows => "Windows",
            Self::Linux => "Linux",
            Self::Unix => "Unix",
            Self::Unknown => "unknown system",
        }
    }

    fn commands(self) -> Vec<&'static str> {
        let of = |parts: &[&[&'static str]]| parts.concat();
        match self {
            Self::Ios => of(&[&CANVAS, &PLACE, &DEVICE, &PERSONAL, &NOTIFY]),
            Self::Android => of(&[
                &CANVAS,
                &PLACE,
                &["notifications.list", "notifications.actions"],
                &NOTIFY,
                &DEVICE,
                &["device.permissions", "device.health"],
                &PERSONAL,
            ]),
            Self::Mac => of(&[&CANVAS, &PLACE, &DEVICE, &PERSONAL, &HOST]),
            Self::Windows | Self::Linux => HOST.to_vec(),
            Self::Unix => of(&[&CANVAS, &PLACE, &HOST]),
            Self::Unknown => of(&[&CANVAS, &PLACE, &NOTIFY]),
        }
    }
}

/// The commands that may be sent to such a machine; `section` is `gateway.nodes`.
pub(crate) fn allowed_commands(section: &Value, about: &About) -> Vec<String> {
    let listed = |name: &str| {
        let items = section[name].as_array().into_iter().flatten().filter_map(Value::as_str);
        items.map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect::<Vec<_>>()
    };
    let mut commands: Vec<String> = Vec::new();
    let usual = Kind::of(about).commands().into_iter().map(str::to_owned);
    for command in usual.chain(listed("allowCommands")) {
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    let denied = listed("denyCommands");
    commands.retain(|command| !denied.contains(command));
    commands
}

/// Why a command is not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denial {
    /// None was named.
    NoCommand,
    /// Such machines do not get it.
    NotAllowed,
    /// The node says that it can do nothing.
    NothingDeclared,
    /// The node does not know it.
    NotDeclared,
}

impl Denial {
    /// One word for programs.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::NoCommand => "command required",
            Self::NotAllowed => "command not allowlisted",
            Self::NothingDeclared => "node did not declare commands",
            Self::NotDeclared => "command not declared by node",
        }
    }

    /// For people.
    pub(crate) fn message(self, command: &str, platform: &str) -> String {
        let platform = if platform.is_empty() { "unknown" } else { platform };
        let why = match self {
            Self::NoCommand => "command required".to_owned(),
            Self::NotAllowed => format!("\"{command}\" is not in the allowlist for platform \"{platform}\""),
            Self::NothingDeclared => "the node did not declare any supported commands".to_owned(),
            Self::NotDeclared => format!("the node (platform: {platform}) does not support \"{command}\""),
        };
        format!("node command not allowed: {why}")
    }
}

/// Whether `command` may be sent to a machine that declared `declared`.
pub(crate) fn check_command(command: &str, declared: &[String], allowed: &[String]) -> Result<(), Denial> {
    let has = |list: &[String]| list.iter().any(|one| one == command);
    match () {
        () if command.trim().is_empty() => Err(Denial::NoCommand),
        () if !has(allowed) => Err(Denial::NotAllowed),
        () if declared.is_empty() => Err(Denial::NothingDeclared),
        () if !has(declared) => Err(Denial::NotDeclared),
        () => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use prowess_testkit::{cases, check_all_but};
    use serde_json::{Value, json};

    use super::*;

    fn about(case: &Value) -> About {
        About {
            platform: case["platform"].as_str().unwrap_or_default().to_owned(),
            device_family: case["deviceFamily"].as_str().map(str::to_owned),
            ..About::default()
        }
    }

    fn texts(value: &Value) -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    }

    #[test]
    fn every_kind_of_machine_gets_what_openclaw_sends_it() {
        let golden = cases(include_str!("../../tests/golden/node-policy.json"));
        let deviations = [("freebsd", "it runs commands like any other Unix")];
        check_all_but(&deviations, golden, |case| {
            let found = match &case["command"] {
                Value::String(command) => {
                    let about = about(case);
                    let allowed = allowed_commands(&json!({}), &about);
                    match check_command(command, &texts(&case["declared"]), &allowed) {
                        Ok(()) => json!({"ok": true}),
                        Err(denial) => json!({"ok": false, "reason": denial.reason()}),
                    }
                }
                _ => json!(allowed_commands(&case["section"], &about(case))),
            };
            if found == case["output"] { Ok(()) } else { Err(format!("found {found}")) }
        });
    }
}
