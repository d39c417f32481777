//! `system.run.prepare`: what exactly would run, and what would a person have to know about it?

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use prowess_exec::Setting;
use prowess_exec::lookup::Disk;
use prowess_policy::lookup::Lookup;
use prowess_policy::system_run::render;
use prowess_policy::{Judgment, quote};
use serde_json::{Value, json};

use super::approved::seal;
use super::bench::{Bench, Failed, request};
use super::link::Link;
use super::order::Order;
use crate::aside::blocking;

impl Bench {
    /// The plan of a run: its arguments with the program by its path, its folder without links, and the seal of both.
    pub(super) async fn prepare(self: &Arc<Self>, given: &Value, link: &Link) -> Result<Value, Failed> {
        let order = Order::parse(given).map_err(Failed::invalid)?;
        let setting = self.setting(&order, link).await?;
        let (bench, env) = (Arc::clone(self), given["env"].clone());
        blocking(move || bench.plan(&order, &env, &setting)).await?
    }

    /// The same, with all that was found out. Looks at the disk.
    fn plan(&self, order: &Order, env: &Value, setting: &Setting) -> Result<Value, Failed> {
        let shown = order.run.display.clone();
        let cwd = match &order.cwd {
            None => None,
            Some(cwd) => {
                let real = setting.workspace.join(cwd).canonicalize().ok().filter(|path| path.is_dir());
                let needed = || Failed::invalid("SYSTEM_RUN_DENIED: approval requires an existing canonical cwd");
                Some(real.ok_or_else(needed)?.to_string_lossy().into_owned())
            }
        };
        let mut argv = order.run.argv.clone();
        let mut raw = shown.clone();
        if order.run.shell_text.is_none() {
            let path = setting.host_env.iter().find(|(name, _)| name == "PATH");
            let path = path.map_or(OsStr::new(""), |(_, path)| path.as_os_str());
            let disk = Disk::new(path, cwd.as_deref().map_or(&*setting.workspace, Path::new));
            let program = argv.first().and_then(|name| disk.program(name));
            let stable = || Failed::invalid("SYSTEM_RUN_DENIED: approval requires a stable executable path");
            argv[0] = program.ok_or_else(stable)?.path.to_string_lossy().into_owned();
            // The text has to be that of the arguments, or the approved run would be refused for the difference.
            raw = render(&argv);
        }
        let planned =
            json!({"command": argv, "cwd": cwd, "env": env, "agentId": order.agent, "sessionKey": order.session});
        let planned = Order::parse(&planned).map_err(Failed::invalid)?;
        let case = self.exec.judge(&planned.call(), setting).map_err(|answer| Failed::invalid(answer.text()))?;
        let seal = seal(&case.judgment);
        self.prepared.note(&request(&planned), &seal);
        Ok(json!({
            "cmdText": shown,
            "plan": {
                "argv": argv,
                "cwd": cwd,
                "rawCommand": raw,
                "agentId": order.agent,
                "sessionKey": order.session,
                "seal": seal,
            },
            "judgment": told(&case.judgment),
        }))
    }
}

/// What people should know before they decide.
fn told(judgment: &Judgment) -> Value {
    let mut objections: Vec<String> = Vec::new();
    for objection in judgment.all_objections().map(ToString::to_string) {
        if !objections.contains(&objection) {
            objections.push(objection);
        }
    }
    let grants = judgment.grants();
    let always = grants.as_deref().unwrap_or_default().iter().map(|grant| {
        let argv = grant.argv.iter().map(|arg| quote(arg)).collect::<Vec<_>>().join(" ");
        format!("{} as `{argv}` in {}", grant.program.display(), grant.cwd.display())
    });
    let mut told =
        json!({"verdict": judgment.verdict(), "objections": objections, "always": always.collect::<Vec<_>>()});
    if let Err(why) = &grants {
        told["onceOnly"] = why.to_string().into();
    }
    told
}
