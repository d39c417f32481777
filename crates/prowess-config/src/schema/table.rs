//! The settings we know. One row each, so a reader finds a setting by its name.

use super::Key;
use super::Kind::{
    self, Anything, Choice, ChoiceOrAddress, Count, Free, List, Open, Secret, Section, Switch, SwitchOr, Text,
    TextList, TextListOrFalse, TextOrSection,
};

const fn key(path: &'static str, kind: Kind, meaning: &'static str) -> Key {
    Key { path, kind, default: None, meaning, instead: None }
}

const fn with_default(path: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key { default: Some(default), ..key(path, kind, meaning) }
}

/// A setting of OpenClaw's that is accepted and kept, but has no effect here, and what to do instead.
const fn unused(path: &'static str, kind: Kind, meaning: &'static str, instead: &'static str) -> Key {
    Key { instead: Some(instead), ..key(path, kind, meaning) }
}

/// A whole number that is at least `min`.
const fn from(min: u64) -> Kind {
    Count { min, max: u64::MAX }
}

const AUTO: Kind = SwitchOr(&["auto"]);
const HOSTS: Kind = Choice(&["sandbox", "gateway", "node", "auto"]);
const LEVELS: Kind = Choice(&["silent", "fatal", "error", "warn", "info", "debug", "trace"]);
const SECURITY: Kind = Choice(&["deny", "allowlist", "contained", "full"]);
const ASK: Kind = Choice(&["off", "on-miss", "always"]);
const SANDBOXES: Kind = Choice(&["auto", "landlock", "bubblewrap", "docker", "podman", "off"]);
const THINKING: Kind = Choice(&["off", "minimal", "low", "medium", "high", "xhigh", "adaptive"]);
const VERBOSE: Kind = Choice(&["off", "on", "full"]);
const PORT: Kind = Count { min: 0, max: 65_535 };
const BIND: Kind = ChoiceOrAddress(&["loopback", "lan", "auto", "custom"]);
const AUTH_MODES: Kind = Choice(&["token", "password", "trusted-proxy", "none"]);
const NODE_MANAGERS: Kind = Choice(&["npm", "pnpm", "yarn", "bun"]);

/// The same without the default: for the settings of one agent, which go by those of all agents.
const fn without_default(path: &'static str, kind: Kind, _default: &'static str, meaning: &'static str) -> Key {
    key(path, kind, meaning)
}

/// What can be said about one agent, except about its tools.
macro_rules! agent_rows {
    ($at:literal) => {
        &[
            key($at, Open, "one agent"),
            key(concat!($at, ".default"), Switch, "whether it is the default agent"),
            key(concat!($at, ".name"), Text, "its display name"),
            key(concat!($at, ".identity"), Section, "how it is shown"),
            key(concat!($at, ".identity.name"), Text, "its name on the page and for clients"),
            key(concat!($at, ".identity.theme"), Text, "its theme"),
            key(concat!($at, ".identity.emoji"), Text, "its emoji"),
            key(concat!($at, ".identity.avatar"), Text, "its picture"),
            key(concat!($at, ".identity.avatarUrl"), Text, "the URL of its picture"),
            key(concat!($at, ".verboseDefault"), VERBOSE, "how much of its tools' output clients get"),
            key(concat!($at, ".subagents"), Open, "the agents it may start"),
            key(concat!($at, ".subagents.allowAgents"), TextList, "the other agents it may start; `*` for all"),
            key(concat!($at, ".workspace"), Text, "the directory it works in"),
            key(
                concat!($at, ".model"),
                TextOrSection,
                "the model it uses, as provider/model, or { primary, fallbacks }",
            ),
            key(concat!($at, ".model.primary"), Text, "the model to use, as provider/model"),
            key(concat!($at, ".model.fallbacks"), TextList, "the models to ask if it does not answer"),
            key(concat!($at, ".thinkingDefault"), THINKING, "how much its model thinks before it answers"),
            key(concat!($at, ".skills"), TextList, "the skills it may use; absent allows all, empty none"),
            unused(
                concat!($at, ".sandbox"),
                Free,
                "OpenClaw's containers for commands",
                "set tools.exec.sandbox: prowess runs every command in a sandbox",
            ),
            key(concat!($at, ".skillsLimits"), Section, "its own limits for skills"),
            key(
                concat!($at, ".skillsLimits.maxSkillsPromptChars"),
                from(0),
                "how long its list of skills may be, in characters",
            ),
            key(concat!($at, ".tools"), Open, "its own tool settings"),
        ]
    };
}

/// What can be said about the tools of all agents, or of one.
macro_rules! tool_rows {
    ($at:literal, $with_default:ident) => {
        &[
            key(concat!($at, ".profile"), Anything, "a ready-made list of tools: minimal, coding, messaging or full"),
            key(concat!($at, ".allow"), Anything, "the tools that may be used; absent or empty allows all"),
            key(concat!($at, ".alsoAllow"), Anything, "tools in addition to the profile and the list"),
            key(concat!($at, ".deny"), Anything, "the tools that may not be used"),
            key(concat!($at, ".fs"), Open, "how tools use files"),
            key(
                concat!($at, ".fs.workspaceOnly"),
                Anything,
                "true: tools refuse files outside the workspace instead of asking",
            ),
            key(concat!($at, ".exec"), Open, "how commands are run"),
            key(concat!($at, ".exec.host"), HOSTS, "where commands run; a call may not choose another"),
            $with_default(
                concat!($at, ".exec.security"),
                SECURITY,
                "\"contained\"",
                "which commands may run: none, those that rules cover, all that stay in the sandbox, or all",
            ),
            $with_default(
                concat!($at, ".exec.ask"),
                ASK,
                "\"on-miss\"",
                "when a command needs approval: never, if no rule covers it, or always",
            ),
            key(concat!($at, ".exec.notifyOnExit"), Switch, "whether the agent is told when a background command ends"),
            key(concat!($at, ".exec.node"), Text, "the node that runs commands with host=node"),
            $with_default(concat!($at, ".exec.pathPrepend"), TextList, "[]", "directories that come first on PATH"),
            $with_default(
                concat!($at, ".exec.safeBins"),
                TextList,
                r#"["cut", "uniq", "head", "tail", "tr", "wc"]"#,
                "programs that need no approval as long as they only filter their input",
            ),
            $with_default(
                concat!($at, ".exec.safeBinTrustedDirs"),
                TextList,
                "[]",
                "more directories that safeBins may be in",
            ),
            key(concat!($at, ".exec.safeBinProfiles"), Anything, "argument rules for safeBins, by program"),
            $with_default(
                concat!($at, ".exec.backgroundMs"),
                from(0),
                "10000",
                "how long to wait before a command continues in the background, in milliseconds",
            ),
            $with_default(concat!($at, ".exec.timeoutSec"), from(0), "1800", "how long a command may run, in seconds"),
            $with_default(
                concat!($at, ".exec.cleanupMs"),
                from(0),
                "1800000",
                "how long finished background commands are remembered, in milliseconds",
            ),
            key(concat!($at, ".exec.sandbox"), Section, "the sandbox that commands run in"),
            $with_default(
                concat!($at, ".exec.sandbox.kind"),
                SANDBOXES,
                "\"auto\"",
                "which sandbox; if it does not work, commands are refused; \"off\" runs them without one",
            ),
            key(concat!($at, ".exec.sandbox.container"), Text, "the running container, for docker and podman"),
            $with_default(
                concat!($at, ".exec.sandbox.read"),
                TextList,
                "[]",
                "more files and directories that commands may read",
            ),
            $with_default(
                concat!($at, ".exec.sandbox.write"),
                TextList,
                "[]",
                "more files and directories that commands may change",
            ),
            $with_default(
                concat!($at, ".exec.sandbox.network"),
                Switch,
                "false",
                "whether commands may use the network",
            ),
            $with_default(
                concat!($at, ".exec.sandbox.unixSockets"),
                Switch,
                "false",
                "whether commands may connect to local sockets",
            ),
            key(
                concat!($at, ".exec.protected"),
                Section,
                "files of the workspace that commands cannot change and the file tools ask about",
            ),
            $with_default(
                concat!($at, ".exec.protected.add"),
                TextList,
                "[]",
                "more names, or paths from the workspace, that are protected",
            ),
            $with_default(
                concat!($at, ".exec.protected.remove"),
                TextList,
                "[]",
                "names that are not protected, such as .vscode, or .git for Git directories",
            ),
        ]
    };
}

/// Every setting we know, in the order in which they are listed.
pub static KEYS: &[Key] = &join::<{ count(PARTS) }>(PARTS);

#[rustfmt::skip]
const PARTS: &[&[Key]] = &[
    FIRST,
    agent_rows!("agents.list.<n>"),
    &[key("agents.list.<n>.id", Text, "its id")],
    tool_rows!("agents.list.<n>.tools", without_default),
    &[key("agents.entries", Section, "the agents by name, another way to write agents.list")],
    agent_rows!("agents.entries.<id>"),
    tool_rows!("agents.entries.<id>.tools", without_default),
    OTHERS,
    &[key("tools", Open, "the tools and who may use them")],
    tool_rows!("tools", with_default),
    LAST,
];

const fn count(parts: &[&[Key]]) -> usize {
    let (mut count, mut at) = (0, 0);
    while at < parts.len() {
        count += parts[at].len();
        at += 1;
    }
    count
}

const fn join<const N: usize>(parts: &[&[Key]]) -> [Key; N] {
    let mut keys = [key("", Text, ""); N];
    let (mut next, mut part) = (0, 0);
    while part < parts.len() {
        let mut at = 0;
        while at < parts[part].len() {
            keys[next] = parts[part][at];
            next += 1;
            at += 1;
        }
        part += 1;
    }
    keys
}

#[rustfmt::skip]
const FIRST: &[Key] = &[
    key("$schema", Text, "where an editor finds the schema of this file"),

    key("skills", Section, "skills: where they are, which may be used, and their settings"),
    key("skills.allowBundled", TextListOrFalse, "the bundled skills that may be used; absent or empty allows all, false none"),
    with_default("skills.envPrecedence", Choice(&["skill", "host"]), "\"skill\"", "whether a skill's variables win over those already set"),
    key("skills.load", Section, "where to look for skills, and when to look again"),
    with_default("skills.load.extraDirs", TextList, "[]", "more directories with skills, lowest in precedence"),
    with_default("skills.load.allowSymlinkTargets", TextList, "[]", "directories that symlinks in skill directories may point to"),
    with_default("skills.load.watch", Switch, "true", "whether to pick up changed skills while running"),
    with_default("skills.load.watchDebounceMs", from(0), "250", "how long files must be quiet before skills are read again, in milliseconds"),
    key("skills.load.debounceMs", from(0), "another name for watchDebounceMs"),
    key("skills.install", Section, "how programs that skills need are installed"),
    with_default("skills.install.preferBrew", Switch, "true", "whether to prefer Homebrew if it is installed"),
    with_default("skills.install.nodeManager", NODE_MANAGERS, "\"npm\"", "the package manager for Node programs"),
    unused("skills.install.allowUploadedArchives", Switch, "whether a client may upload a skill as an archive", "unpack the archive into the workspace's skills folder"),
    key("skills.limits", Section, "how much is read and shown to a model"),
    with_default("skills.limits.maxCandidatesPerRoot", from(1), "20000", "how many directories one root may have before it is reported"),
    with_default("skills.limits.maxSkillsLoadedPerSource", from(1), "20000", "how many skills one root may contribute"),
    with_default("skills.limits.maxSkillsInPrompt", from(0), "150", "how many skills the prompt lists"),
    with_default("skills.limits.maxSkillsPromptChars", from(0), "30000", "how long the list of skills in a prompt may be, in characters"),
    key("skills.limits.maxSkillsPromptTokens", from(0), "how long the list of skills in a prompt may be, in tokens"),
    with_default("skills.limits.maxSkillFileBytes", from(0), "256000", "how large a SKILL.md may be, in bytes"),
    key("skills.entries", Section, "settings of single skills"),
    key("skills.entries.<key>", Section, "settings of one skill, by its key"),
    key("skills.entries.<key>.enabled", Switch, "false disables the skill"),
    key("skills.entries.<key>.apiKey", Secret, "the value of the skill's main variable"),
    key("skills.entries.<key>.env", Section, "variables for the skill's programs"),
    key("skills.entries.<key>.env.<NAME>", Text, "one variable for the skill's programs"),
    key("skills.entries.<key>.sandbox", Section, "what the skill's commands may reach beyond the workspace"),
    key("skills.entries.<key>.sandbox.read", TextList, "more files and directories they may read"),
    key("skills.entries.<key>.sandbox.write", TextList, "more files and directories they may change"),
    key("skills.entries.<key>.sandbox.network", Switch, "whether they may use the network"),
    key("skills.entries.<key>.sandbox.unixSockets", Switch, "whether they may connect to local sockets"),
    key("skills.entries.<key>.capabilities", Free, "what its commands may use beyond the sandbox: network, filesystem, env, sockets, keepsRunning"),
    key("skills.entries.<key>.config", Free, "settings the skill itself understands"),
    unused("skills.workshop", Section, "skills that agents write themselves", "ask the agent to use the skill-creator skill; you approve what it writes like any other file"),
    key("skills.workshop.autonomous", Section, "writing skills without being asked"),
    key("skills.workshop.autonomous.mode", Choice(&["off", "propose", "auto"]), "whether agents write skills on their own"),
    key("skills.workshop.approvalPolicy", Choice(&["pending", "auto"]), "whether a written skill needs approval"),
    key("skills.workshop.maxPending", Count { min: 1, max: 200 }, "how many written skills may wait"),
    key("skills.workshop.maxSkillBytes", Count { min: 1024, max: 200_000 }, "how large a written skill may be, in bytes"),

    key("agents", Section, "the agents and what they share"),
    key("agents.defaults", Open, "defaults for all agents"),
    key("agents.defaults.workspace", Text, "the directory the default agent works in"),
    key("agents.defaults.skills", TextList, "the skills an agent without its own list may use"),
    key("agents.defaults.model", TextOrSection, "the model to use, as provider/model, or { primary, fallbacks }"),
    key("agents.defaults.model.primary", Text, "the model to use, as provider/model"),
    key("agents.defaults.model.fallbacks", TextList, "the models to ask if it does not answer"),
    key("agents.defaults.models", Open, "settings of models, by provider/model"),
    key("agents.defaults.models.<model>", Open, "one model"),
    key("agents.defaults.models.<model>.alias", Text, "a short name for it"),
    unused("agents.defaults.sandbox", Free, "OpenClaw's containers for commands", "set tools.exec.sandbox: prowess runs every command in a sandbox"),
    unused("agents.defaults.heartbeat", Anything, "turns that start on a timer", "run prowess from cron or a systemd timer: prowess run \"…\""),
    unused("agents.defaults.memorySearch", Free, "search in earlier conversations", "use the session-logs skill"),
    key("agents.defaults.maxConcurrent", from(1), "how many sessions may work at the same time"),
    key("agents.defaults.verboseDefault", VERBOSE, "how much of tools' output clients get"),
    key("agents.defaults.subagents", Open, "agents that agents start"),
    key("agents.defaults.subagents.maxSpawnDepth", from(1), "how many levels deep they may start others"),
    key("agents.defaults.subagents.maxChildrenPerAgent", from(1), "how many one agent may have at the same time"),
    key("agents.defaults.thinkingDefault", THINKING, "how much a model thinks before it answers"),
    with_default("agents.defaults.timeoutSeconds", from(0), "600", "how long one message may take, in seconds; 0 means no limit"),
    with_default("agents.defaults.bootstrapMaxChars", from(1), "20000", "how much of one workspace file goes into the prompt, in characters"),
    with_default("agents.defaults.bootstrapTotalMaxChars", from(1), "150000", "how much of all workspace files goes into the prompt, in characters"),
    key("agents.list", List, "the agents, one section each"),
];

#[rustfmt::skip]
const OTHERS: &[Key] = &[
    key("plugins", Section, "plugins, which may contain skills"),
    with_default("plugins.enabled", Switch, "true", "whether plugins are used at all"),
    with_default("plugins.allow", TextList, "[]", "the only plugins that may be used; empty allows all"),
    with_default("plugins.deny", TextList, "[]", "plugins that may not be used"),
    key("plugins.load", Open, "where to look for plugins"),
    with_default("plugins.load.paths", TextList, "[]", "more directories with plugins"),
    key("plugins.slots", Open, "plugins of which only one can be active"),
    key("plugins.slots.memory", Text, "the memory plugin, or \"none\""),
    key("plugins.entries", Section, "settings of single plugins"),
    key("plugins.entries.<id>", Open, "settings of one plugin"),
    key("plugins.entries.<id>.enabled", Switch, "whether this plugin is used"),
    key("plugins.entries.<id>.config", Anything, "settings the plugin itself understands"),
    key("plugins.installs", Free, "what is known about installed plugins"),

    key("env", Section, "variables to set unless they are already set"),
    key("env.vars", Section, "variables by name"),
    key("env.vars.<NAME>", Text, "one variable"),
    key("env.shellEnv", Section, "variables of the login shell, which are never imported"),
    key("env.shellEnv.enabled", Switch, "has no effect; list the variables instead"),
    key("env.shellEnv.timeoutMs", from(0), "has no effect"),
    key("env.<NAME>", Text, "one variable"),

    key("commands", Open, "slash commands"),
    unused("commands.text", Switch, "whether a command may be written as text", "nothing: slash commands are always read from the text"),
    unused("commands.native", AUTO, "whether commands are registered with chat services", "write commands as text; prowess has no adapters for chat services"),
    unused("commands.nativeSkills", AUTO, "whether skills are registered with chat services as commands", "write commands as text; prowess has no adapters for chat services"),

    key("browser", Open, "the browser tool"),
    with_default("browser.enabled", Switch, "true", "whether there is a browser"),
    with_default("browser.evaluateEnabled", Switch, "true", "whether scripts may run in its pages"),

    key("channels", Open, "where messages come from"),
    unused("channels.<id>", Open, "one chat service", "use a client of the gateway: prowess has no adapters for chat services. `skills` lists in it do count, and so does its presence for skills that need it"),
    key("channels.**.skills", TextList, "the skills that may be used there; absent allows all, empty none"),

    key("acp", Open, "sessions with other agents' programs"),
    with_default("acp.enabled", Switch, "true", "whether there are such sessions"),
];

#[rustfmt::skip]
const LAST: &[Key] = &[
    key("tools.sessions", Open, "what agents see of other sessions"),
    with_default("tools.sessions.visibility", Choice(&["self", "tree", "agent", "all"]), "\"tree\"", "which sessions an agent may see: only its own, also those it started, those of the same agent, or all"),
    key("tools.agentToAgent", Section, "messages between agents"),
    with_default("tools.agentToAgent.enabled", Switch, "false", "whether agents may send each other messages"),
    key("tools.agentToAgent.allow", TextList, "the agents that may; absent allows all"),
    key("tools.subagents", Open, "agents that agents start"),
    key("tools.subagents.tools", Open, "their tools"),
    key("tools.subagents.tools.allow", Anything, "the tools they may use"),
    key("tools.subagents.tools.alsoAllow", Anything, "tools in addition to those"),
    key("tools.subagents.tools.deny", Anything, "the tools they may not use"),

    unused("accessGroups", Free, "groups of users that may use a channel", "prowess has no access groups; pair devices and give them scopes (prowess node approve)"),
    unused("approvals", Free, "where OpenClaw forwards approval requests", "answer approvals on the page, in the terminal, or with prowess approvals watch"),
    unused("audio", Free, "speech recognition", "use a skill that transcribes, such as openai-whisper"),
    key("auth", Free, "which keys of model providers are used, and in which order"),
    unused("bindings", Anything, "which agent answers which channel", "name the agent with --agent, or in the session key of a client"),
    unused("broadcast", Free, "several agents answering one message", "send the message to each agent"),
    unused("canvasHost", Free, "pages that an agent draws", "open the page of the gateway instead (prowess gateway run)"),
    unused("cli", Free, "how OpenClaw's own command line looks", "use the flags of prowess; see prowess --help"),
    unused("cron", Free, "work at fixed times", "run prowess from cron or a systemd timer: prowess run \"…\""),
    key("diagnostics", Open, "metrics and traces of the gateway"),
    with_default("diagnostics.enabled", Switch, "false", "whether to send diagnostics"),
    key("diagnostics.otel", Open, "traces for OpenTelemetry"),
    with_default("diagnostics.otel.enabled", Switch, "false", "whether to send OpenTelemetry data"),
    key("diagnostics.otel.endpoint", Text, "the collector, as in http://127.0.0.1:4318"),
    key("diagnostics.otel.headers", Section, "more headers for the collector"),
    key("diagnostics.otel.headers.<name>", Secret, "one header"),
    key("diagnostics.otel.serviceName", Text, "the service name in traces"),
    with_default("diagnostics.otel.traces", Switch, "true", "whether to send traces"),
    key("diagnostics.otel.sampleRate", Anything, "the fraction of traces to send, from 0 to 1"),
    key("diagnostics.otel.flushIntervalMs", from(0), "how long to collect spans before sending them, in milliseconds"),
    unused("discovery", Free, "how gateways are found on the network", "give clients the address with --gateway or gateway.remote.url"),
    key("gateway", Section, "the gateway server"),
    key("gateway.mode", Choice(&["local", "remote"]), "where commands look for a gateway: on this machine, or at gateway.remote.url"),
    with_default("gateway.port", PORT, "18789", "the port it listens on"),
    with_default("gateway.bind", BIND, "\"loopback\"", "who can reach it: loopback, lan, auto, custom, or an address"),
    key("gateway.customBindHost", ChoiceOrAddress(&[]), "the address for bind: custom"),
    key("gateway.auth", Section, "how clients authenticate"),
    with_default("gateway.auth.mode", AUTH_MODES, "\"token\"", "token, password, trusted-proxy or none"),
    key("gateway.auth.token", Secret, "the token that clients send; generated if it is missing"),
    key("gateway.auth.password", Secret, "the password that clients send, for mode password"),
    unused("gateway.auth.allowTailscale", Switch, "whether Tailscale's user headers are trusted", "set gateway.auth.mode to trusted-proxy and name the header"),
    key("gateway.auth.trustedProxy", Section, "a proxy that authenticates users"),
    key("gateway.auth.trustedProxy.userHeader", Text, "the header that names the user"),
    key("gateway.auth.trustedProxy.requiredHeaders", TextList, "headers that the proxy always sends; requests without them are refused"),
    key("gateway.auth.trustedProxy.allowUsers", TextList, "the only users that may connect; absent or empty allows all"),
    with_default("gateway.auth.trustedProxy.scopes", Anything, "[\"operator.read\", \"operator.write\"]", "what those users may do: one list of scopes, or a list per user with `*` for the others"),
    key("gateway.auth.rateLimit", Section, "how many wrong tokens an address may send"),
    with_default("gateway.auth.rateLimit.maxAttempts", Count { min: 1, max: 1000 }, "10", "how many wrong tokens lock an address out"),
    with_default("gateway.auth.rateLimit.windowMs", from(1), "60000", "how long attempts are counted, in milliseconds"),
    with_default("gateway.auth.rateLimit.lockoutMs", from(1), "300000", "how long an address stays locked out, in milliseconds"),
    unused("gateway.auth.rateLimit.exemptLoopback", Switch, "whether this machine is never locked out", "nothing: programs on this machine are never locked out"),
    key("gateway.trustedProxies", TextList, "proxies whose X-Forwarded headers are trusted, as addresses or networks"),
    with_default("gateway.allowRealIpFallback", Switch, "false", "whether to trust X-Real-IP of those proxies as well"),
    key("gateway.controlUi", Section, "the page"),
    with_default("gateway.controlUi.enabled", Switch, "true", "whether to serve the page"),
    key("gateway.controlUi.allowedOrigins", TextList, "other origins that may connect"),
    with_default("gateway.controlUi.dangerouslyDisableDeviceAuth", Switch, "false", "whether the page may connect without a device key"),
    unused("gateway.controlUi.basePath", Text, "a path in front of the page's URL", "let your proxy remove the path before it forwards requests"),
    unused("gateway.controlUi.root", Text, "a folder with another page", "serve your page yourself, and list its origin in gateway.controlUi.allowedOrigins"),
    unused("gateway.controlUi.allowInsecureAuth", Switch, "whether the page may connect without encryption", "prowess encrypts connections from other machines; see gateway.tls"),
    unused("gateway.controlUi.dangerouslyAllowHostHeaderOriginFallback", Switch, "whether any origin may connect", "list the origins in gateway.controlUi.allowedOrigins"),
    key("gateway.nodes", Section, "which commands the gateway may send to nodes"),
    key("gateway.nodes.allowCommands", TextList, "commands in addition to those of the node's platform"),
    key("gateway.nodes.denyCommands", TextList, "commands that are never sent"),
    unused("gateway.nodes.browser", Free, "browsers on nodes", "nothing: prowess has no browser on nodes"),
    key("gateway.tools", Section, "what /tools/invoke may call"),
    key("gateway.tools.allow", TextList, "tools that it may call although they are refused by default"),
    key("gateway.tools.deny", TextList, "tools that it may not call"),
    key("gateway.http", Section, "the HTTP endpoints"),
    key("gateway.http.endpoints", Section, "which HTTP endpoints are enabled"),
    key("gateway.http.endpoints.chatCompletions", Section, "/v1/chat/completions"),
    with_default("gateway.http.endpoints.chatCompletions.enabled", Switch, "false", "whether to serve it"),
    key("gateway.http.endpoints.responses", Open, "/v1/responses"),
    with_default("gateway.http.endpoints.responses.enabled", Switch, "false", "whether to serve it"),
    key("gateway.http.endpoints.responses.maxBodyBytes", from(1), "how large a request may be, in bytes"),
    key("gateway.http.endpoints.metrics", Section, "metrics for Prometheus"),
    with_default("gateway.http.endpoints.metrics.enabled", Switch, "true", "whether to serve /metrics"),
    with_default("gateway.http.endpoints.metrics.auth", Choice(&["token", "loopback"]), "\"token\"", "who may read /metrics: clients with the token, or also any program on this machine"),
    unused("gateway.http.securityHeaders", Free, "more headers of answers", "let your proxy add them"),
    key("gateway.tls", Section, "encrypted connections"),
    key("gateway.tls.enabled", Switch, "whether to require TLS; by default, if other machines can connect"),
    key("gateway.tls.certPath", Text, "the certificate, in PEM; a self-signed one is generated if it is missing"),
    key("gateway.tls.keyPath", Text, "its private key, in PEM"),
    unused("gateway.tls.caPath", Text, "certificates of clients", "pair devices instead: each has its own key"),
    with_default("gateway.tls.autoGenerate", Switch, "true", "whether to generate a self-signed certificate if there is none"),
    key("gateway.remote", Section, "a gateway on another machine"),
    key("gateway.remote.url", Text, "its URL, such as ws://127.0.0.1:18789"),
    key("gateway.remote.token", Secret, "its token"),
    key("gateway.remote.tlsFingerprint", Text, "the SHA-256 fingerprint of the only certificate that is accepted from it"),
    key("gateway.remote.password", Secret, "its password"),
    unused("gateway.remote.transport", Text, "how to reach it", "open an SSH tunnel yourself, and set gateway.remote.url to its end on this machine"),
    unused("gateway.remote.sshTarget", Text, "the machine for an SSH tunnel", "open the tunnel yourself, and set gateway.remote.url to its end on this machine"),
    unused("gateway.remote.sshIdentity", Text, "the key for an SSH tunnel", "open the tunnel yourself, and set gateway.remote.url to its end on this machine"),
    unused("gateway.reload", Free, "when the gateway reads a changed configuration", "nothing: it reads most settings at once; restart it for gateway, diagnostics and logging"),
    unused("gateway.tailscale", Free, "OpenClaw's connection to Tailscale", "run `tailscale serve` in front of the gateway"),
    unused("gateway.channelHealthCheckMinutes", from(0), "how often chat services are checked", "nothing: prowess has no adapters for chat services"),
    unused("gateway.push", Free, "notifications on phones", "open the page on the phone"),
    unused("hooks", Free, "scripts and web hooks that react to events", "call the gateway from your script: POST /v1/responses, or prowess gateway call"),
    key("logging", Open, "the gateway's log"),
    with_default("logging.level", LEVELS, "\"info\"", "the level of the log file"),
    key("logging.consoleLevel", LEVELS, "the level on the terminal; by default, that of the file"),
    key("logging.file", Text, "the log file, instead of logs/gateway.log in the state directory"),
    with_default("logging.maxFileBytes", from(1), "10485760", "the size at which the log file is rotated, in bytes"),
    unused("mcp", Free, "servers of the Model Context Protocol", "use a skill that calls the server's command line"),
    unused("media", Free, "how attached files are handled", "use a skill for that kind of file"),
    unused("memory", Free, "search in earlier conversations", "use the session-logs skill"),
    unused("messages", Free, "how messages of chat services are put together and answered", "use a client of the gateway; prowess has no adapters for chat services"),
    key("meta", Free, "what wrote this file, and when"),
    key("models", Open, "the models and where they are"),
    key("models.providers", Section, "who runs models, by name"),
    key("models.providers.<id>", Open, "one provider"),
    key("models.providers.<id>.baseUrl", Text, "where it is called"),
    key("models.providers.<id>.apiKey", Secret, "the key it wants"),
    key("models.providers.<id>.api", Text, "the wire format: anthropic-messages, openai-completions or openai-responses"),
    key("models.providers.<id>.authHeader", Switch, "whether the key goes into an Authorization header"),
    key("models.providers.<id>.headers", Section, "more headers for every call"),
    key("models.providers.<id>.headers.<name>", Secret, "one header"),
    key("models.providers.<id>.models", List, "its models, one section each"),
    key("models.providers.<id>.models.<n>", Open, "one model"),
    key("models.providers.<id>.models.<n>.id", Text, "its name there"),
    key("models.providers.<id>.models.<n>.name", Text, "its display name"),
    key("models.providers.<id>.models.<n>.api", Text, "its wire format, if it is not the provider's"),
    key("models.providers.<id>.models.<n>.input", TextList, "what it accepts: text, image"),
    key("models.providers.<id>.models.<n>.contextWindow", from(1), "how many tokens fit into one call"),
    key("models.providers.<id>.models.<n>.maxTokens", from(1), "how many tokens one answer may have"),
    key("models.providers.<id>.models.<n>.reasoning", Switch, "whether it can think before it answers"),
    key("models.providers.<id>.models.<n>.cost", Anything, "dollars for a million tokens: input, output, cacheRead, cacheWrite"),
    unused("nodeHost", Free, "settings of a machine that runs commands for a gateway", "use the flags of prowess node run"),
    key("secrets", Free, "where secrets are kept"),
    key("session", Open, "names of sessions"),
    with_default("session.mainKey", Text, "\"main\"", "the name of an agent's main session"),
    key("session.scope", Choice(&["per-sender", "global"]), "what clients are told about who shares a session"),
    unused("surfaces", Free, "where answers are shown", "use a client of the gateway"),
    unused("talk", Free, "spoken conversations", "use a skill that speaks, such as sag"),
    key("ui", Open, "how the assistant is shown"),
    key("ui.assistant", Section, "the assistant of the page"),
    key("ui.assistant.name", Text, "its name"),
    key("ui.assistant.avatar", Text, "its picture"),
    unused("update", Free, "how OpenClaw updates itself", "update prowess the way you installed it"),
    unused("web", Free, "OpenClaw's web client of WhatsApp", "use a client of the gateway; prowess has no adapters for chat services"),
    unused("wizard", Free, "what OpenClaw's set-up wizard did", "nothing: it is a record of OpenClaw's"),
];
