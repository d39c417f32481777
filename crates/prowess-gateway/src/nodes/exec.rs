//! `exec host=node`: how does a command of a turn run on another machine?
//!
//! The node judges for itself. If it says that a person has to approve, the people who are connected here are asked,
//! about exactly what the node was asked to prepare, and the run is sent again with their answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prowess_agent::session::SessionKey;
use prowess_exec::approver::{Approver, RemoteAnswer, RemoteQuestion, unanswered};
use prowess_exec::exec_tool::{Background, Defaults, ExecCall, NAME, Plan};
use prowess_exec::remote::Remote;
use prowess_exec::{Setting, ToolResult};
use prowess_policy::env::{EnvSource, refusal};
use prowess_policy::posture::{Ask, Security};
use prowess_policy::{Denied, shown};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::invoke::{Invocation, InvokeError, LONGEST, Reply};
use super::policy::Kind;
use super::registry::{Node, Nodes};
use super::runs::Run;
use crate::approvals::{Board, Decision, MAX_COMMAND, Requester, forward, node_request};

/// A node that takes the variables of skills apart from those of the caller.
pub(crate) const SKILL_ENV: &str = "skill-env";

/// How long a node may take to prepare a run.
const PREPARE: Duration = Duration::from_secs(15);

/// How much longer than the run itself its answer is waited for.
const GRACE: Duration = Duration::from_secs(10);

/// How many pieces of output may wait to be told.
const PIECES: usize = 16;

/// The shortest value that is treated as a secret.
const MIN_SECRET: usize = 8;

/// Runs commands of turns on nodes.
pub(crate) struct NodeExec {
    pub(crate) nodes: Arc<Nodes>,
    pub(crate) board: Arc<Board>,
}

/// One command on its way.
struct Order<'a> {
    call: &'a ExecCall,
    setting: &'a Setting,
    node: Arc<Node>,
    plan: Plan,
    /// Its parameters, without those that come with an approval.
    params: Value,
}

/// Knows the run as long as somebody waits for it. Who stops waiting has called it off, and is told nothing more of it.
struct Attended<'a> {
    nodes: &'a Nodes,
    id: String,
    /// Whether its end may still be told: the node did not tell it.
    is_open: bool,
}

impl Drop for Attended<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.nodes.unattended(&self.id);
        } else {
            self.nodes.done(&self.id);
        }
    }
}

impl Remote for NodeExec {
    fn run<'a>(
        &'a self,
        call: &'a ExecCall,
        setting: &'a Setting,
        approver: &'a dyn Approver,
        progress: &'a (dyn Fn(String) + Send + Sync),
    ) -> Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>> {
        Box::pin(async move {
            match self.order(call, setting) {
                Ok(order) => self.carry_out(&order, approver, progress).await.unwrap_or_else(|why| refuse(&why)),
                Err(why) => refuse(&why),
            }
        })
    }
}

impl NodeExec {
    fn order<'a>(&self, call: &'a ExecCall, setting: &'a Setting) -> Result<Order<'a>, String> {
        if security(call, setting) == Security::Deny {
            return Err("exec denied: host=node security=deny".to_owned());
        }
        if call.command.len() > MAX_COMMAND {
            return Err(format!(
                "The command was not run: it is longer than {MAX_COMMAND} bytes; put it into a script."
            ));
        }
        if let Some(refused) = call.env.iter().find_map(|(name, value)| refusal(name, value, EnvSource::Caller)) {
            return Err(refused.to_string());
        }
        let node = self.nodes.target(setting.settings.node.as_deref(), call.node.as_deref())?;
        let defaults = Defaults {
            background: Background::NotAllowed,
            timeout_seconds: setting.settings.timeout.map(|timeout| timeout.as_secs_f64()),
            ..Defaults::default()
        };
        // It is waited for in any case; how long until it goes on by itself does not matter.
        let mut plan = ExecCall { yield_ms: None, ..call.clone() }.plan(&defaults);
        if !setting.settings.path_prepend.is_empty() {
            plan.warnings.push(
                "Warning: tools.exec.pathPrepend is ignored for host=node. Configure PATH on the node host/service instead."
                    .to_owned(),
            );
        }
        let params = params(call, setting, &node, &plan);
        Ok(Order { call, setting, node, plan, params })
    }

    async fn carry_out(
        &self,
        order: &Order<'_>,
        approver: &dyn Approver,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<ToolResult, String> {
        let began = Instant::now();
        let ask = ask(order.call, order.setting);
        if ask != Ask::Always {
            let run = uuid::Uuid::new_v4().to_string();
            let mut params = order.params.clone();
            params["runId"] = run.clone().into();
            match self.send(order, &run, params, progress).await {
                Err(error) if needs_approval(&error) && ask != Ask::Off => {}
                Err(error) => return Err(format!("exec failed on the node: {error}")),
                Ok(reply) => return Ok(result(order, &reply, began)),
            }
        }
        let params = self.approved(order, ask, approver).await?;
        let run = params["runId"].as_str().unwrap_or_default().to_owned();
        let reply = self.send(order, &run, params, progress).await;
        Ok(result(order, &reply.map_err(|error| format!("exec failed on the node: {error}"))?, began))
    }

    /// Sends a run and waits for its end, telling what it says meanwhile.
    async fn send(
        &self,
        order: &Order<'_>,
        run: &str,
        mut params: Value,
        progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<Reply, InvokeError> {
        let (pieces, mut heard) = mpsc::channel(PIECES);
        if let Some(vars) = skill_env(order.setting, &order.node) {
            params["skillEnv"] = vars;
        }
        let secrets = order.setting.skills.iter().flat_map(|skill| &skill.vars);
        self.nodes.expect(
            run,
            Run {
                node: order.node.id.clone(),
                session: SessionKey::parse(&order.setting.session),
                progress: Some(pieces),
                is_awaited: true,
                secrets: secrets
                    .map(|(_, value)| value.to_string_lossy().into_owned())
                    .filter(|value| value.len() >= MIN_SECRET)
                    .collect(),
                since: Instant::now(),
            },
        );
        let mut attended = Attended { nodes: &self.nodes, id: run.to_owned(), is_open: false };
        let timeout = order.plan.timeout.map_or(LONGEST, |timeout| timeout + GRACE);
        let invocation = Invocation::new(&order.node.id, "system.run", params).timeout(timeout);
        let invoked = self.nodes.invoke(invocation);
        tokio::pin!(invoked);
        let reply = loop {
            tokio::select! {
                biased;
                reply = &mut invoked => break reply,
                Some(tail) = heard.recv() => progress(tail),
            }
        };
        // A node that is gone or late may still tell how it went.
        attended.is_open = matches!(reply, Err(InvokeError::TimedOut | InvokeError::Disconnected(_)));
        reply
    }

    /// Asks people, and returns what may be sent now.
    async fn approved(&self, order: &Order<'_>, ask: Ask, approver: &dyn Approver) -> Result<Value, String> {
        let prepared = self.prepare(order).await?;
        let security = security(order.call, order.setting);
        let name = self.nodes.name(&order.node);
        let (mut request, once_only) =
            node_request(&prepared, &order.params, (&order.node.id, &name), (security.word(), ask.word()))?;
        let plan = request["systemRunPlan"].clone();
        // Keys go along with the command, so whoever approves it is told which; what is in them is nobody's business.
        if let Some(Value::Object(vars)) = skill_env(order.setting, &order.node) {
            request["skillVariables"] = vars.keys().map(|name| shown(name).to_string()).collect();
        }
        let answered = approver.ask_remote(&RemoteQuestion { request, once_only }).await;
        let RemoteAnswer { id: run, answer } =
            answered.ok_or_else(|| format!("exec denied: {}.", unanswered(approver)))?;
        let decision = Decision::of(answer);
        if decision == Decision::Deny {
            return Err(format!("exec denied: {}.", Denied::ByPerson));
        }
        let mut params = order.params.clone();
        params["command"] = plan["argv"].clone();
        params["runId"] = run.into();
        params["approved"] = true.into();
        params["approvalDecision"] = decision.as_str().into();
        if let Some(params) = params.as_object_mut() {
            match &plan["cwd"] {
                Value::Null => drop(params.shift_remove("cwd")),
                cwd => drop(params.insert("cwd".to_owned(), cwd.clone())),
            }
        }
        let forwarded = forward(&self.board, &order.node.id, &Requester::Gateway, &params);
        forwarded.map_err(|refusal| format!("exec denied: {}", refusal.message))
    }

    /// What the node makes of the run before it is approved.
    async fn prepare(&self, order: &Order<'_>) -> Result<Value, String> {
        if !order.node.can("system.run.prepare") {
            return Ok(json!({}));
        }
        let mut params = order.params.clone();
        if let Some(params) = params.as_object_mut() {
            params.shift_remove("timeoutMs");
        }
        let invocation = Invocation::new(&order.node.id, "system.run.prepare", params).timeout(PREPARE);
        let reply = self.nodes.invoke(invocation).await;
        Ok(reply.map_err(|error| format!("exec denied: the node cannot prepare the run: {error}"))?.payload)
    }
}

fn params(call: &ExecCall, setting: &Setting, node: &Node, plan: &Plan) -> Value {
    let argv: Vec<&str> = if node.kind() == Kind::Windows {
        vec!["cmd.exe", "/d", "/s", "/c", &call.command]
    } else {
        vec!["/bin/sh", "-lc", &call.command]
    };
    let mut params = json!({
        "command": argv,
        "rawCommand": call.command,
        "agentId": setting.agent,
        "sessionKey": setting.session,
    });
    // The folders of this machine mean nothing on another: only one that was asked for is named.
    if let Some(workdir) = call.workdir.as_deref().map(str::trim).filter(|workdir| !workdir.is_empty()) {
        params["cwd"] = workdir.into();
    }
    if !call.env.is_empty() {
        params["env"] =
            call.env.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect::<Map<_, _>>().into();
    }
    if let Some(timeout) = plan.timeout {
        params["timeoutMs"] = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX).into();
    }
    params
}

/// The variables of the skills in use, for a node that knows what to do with them.
fn skill_env(setting: &Setting, node: &Node) -> Option<Value> {
    let vars = setting.skills.iter().flat_map(|skill| &skill.vars);
    // The wire is JSON: a value that is not UTF-8 cannot be sent, and a changed one would be a wrong one.
    let vars: Map<String, Value> =
        vars.filter_map(|(name, value)| Some((name.clone(), value.to_str()?.into()))).collect();
    let is_known = node.guest.caps.iter().any(|cap| cap == SKILL_ENV);
    (is_known && !vars.is_empty()).then_some(Value::Object(vars))
}

fn security(call: &ExecCall, setting: &Setting) -> Security {
    let set = setting.settings.security.unwrap_or(Security::Allowlist);
    call.security.map_or(set, |asked| asked.min(set))
}

fn ask(call: &ExecCall, setting: &Setting) -> Ask {
    let set = setting.settings.ask.unwrap_or(Ask::OnMiss);
    call.ask.map_or(set, |asked| asked.max(set))
}

fn needs_approval(error: &InvokeError) -> bool {
    matches!(error, InvokeError::Node { message, .. } if message.contains("approval required"))
}

/// What the model gets back for a run that came to an end.
fn result(order: &Order<'_>, reply: &Reply, began: Instant) -> ToolResult {
    let payload = &reply.payload;
    let text = |name: &str| clean(payload[name].as_str().unwrap_or_default());
    let said = [text("stdout"), text("stderr")].map(|part| part.trim().to_owned());
    let output = said.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
    let code = payload["exitCode"].as_i64();
    let why = match code {
        _ if payload["timedOut"] == true => Some("Command timed out on the node.".to_owned()),
        Some(127) => Some("Command not found".to_owned()),
        Some(126) => Some("Command not executable (permission denied)".to_owned()),
        Some(_) => None,
        None => Some(payload["error"].as_str().map_or_else(|| "Command ended without an exit code".to_owned(), clean)),
    };
    let mut details = json!({
        "status": if why.is_some() { "error" } else { "completed" },
        "exitCode": code,
        "durationMs": u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        "aggregated": output,
        "cwd": order.params["cwd"],
        "host": "node",
        "nodeId": order.node.id,
    });
    let body = match (&why, code) {
        (Some(why), _) if output.is_empty() => why.clone(),
        (Some(why), _) => format!("{output}\n\n{why}"),
        (None, Some(code)) if code != 0 => format!("{output}\n\n(Command exited with code {code})"),
        (None, _) if output.is_empty() => "(no output)".to_owned(),
        (None, _) => output,
    };
    let warnings = &order.plan.warnings;
    let shown = if warnings.is_empty() { body.clone() } else { format!("{}\n\n{body}", warnings.join("\n")) };
    if why.is_none() {
        return ToolResult::done(shown, details);
    }
    details["tool"] = NAME.into();
    details["error"] = body.into();
    ToolResult::failed(shown, details)
}

/// What a node's program said, as a model may read it.
fn clean(text: &str) -> String {
    let mut output = prowess_exec::output::Output::new(prowess_exec::output::Limits::default());
    output.push(text.as_bytes());
    output.finish();
    output.kept().text()
}

fn refuse(why: &str) -> ToolResult {
    ToolResult::error(NAME, why)
}
