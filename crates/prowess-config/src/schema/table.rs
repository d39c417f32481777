//! The settings we know. One row each, so a reader finds a setting by its name.

use super::Key;
use super::Kind::{
    self, Anything, Choice, Count, List, Open, Secret, Section, Switch, SwitchOr, Text, TextList, TextListOrFalse,
};

const fn key(path: &'static str, kind: Kind, meaning: &'static str) -> Key {
    Key { path, kind, default: None, meaning }
}

const fn with_default(path: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key { path, kind, default: Some(default), meaning }
}

/// A whole number that is at least `min`.
const fn from(min: u64) -> Kind {
    Count { min, max: u64::MAX }
}

const AUTO: Kind = SwitchOr(&["auto"]);
const NODE_MANAGERS: Kind = Choice(&["npm", "pnpm", "yarn", "bun"]);

/// Every setting we know.
#[rustfmt::skip]
pub static KEYS: &[Key] = &[
    key("$schema", Text, "where an editor finds the schema of this file"),

    key("skills", Section, "skills: where they are, which may be used, and their settings"),
    key("skills.allowBundled", TextListOrFalse, "the bundled skills that may be used; absent or empty allows all, false none"),
    with_default("skills.envPrecedence", Choice(&["skill", "host"]), "\"skill\"", "whether a skill's variables win over those already set"),
    key("skills.load", Section, "where skills are looked for, and when again"),
    with_default("skills.load.extraDirs", TextList, "[]", "more directories with skills, lowest in precedence"),
    with_default("skills.load.allowSymlinkTargets", TextList, "[]", "directories that links in skill directories may lead to"),
    with_default("skills.load.watch", Switch, "true", "whether changed skills are noticed while running"),
    with_default("skills.load.watchDebounceMs", from(0), "250", "how long files must be quiet before skills are read again, in milliseconds"),
    key("skills.load.debounceMs", from(0), "another name for watchDebounceMs"),
    key("skills.install", Section, "how programs that skills need are installed"),
    with_default("skills.install.preferBrew", Switch, "true", "whether Homebrew comes first where it is present"),
    with_default("skills.install.nodeManager", NODE_MANAGERS, "\"npm\"", "the package manager for Node programs"),
    with_default("skills.install.allowUploadedArchives", Switch, "false", "whether a client may upload a skill as an archive"),
    key("skills.limits", Section, "how much is read and shown to a model"),
    with_default("skills.limits.maxCandidatesPerRoot", from(1), "300", "how many directories are looked at in one place"),
    with_default("skills.limits.maxSkillsLoadedPerSource", from(1), "200", "how many skills one place may contribute"),
    with_default("skills.limits.maxSkillsInPrompt", from(0), "150", "how many skills a model is told about"),
    with_default("skills.limits.maxSkillsPromptChars", from(0), "30000", "how long the list of skills in a prompt may be, in characters"),
    key("skills.limits.maxSkillsPromptTokens", from(0), "how long the list of skills in a prompt may be, in tokens"),
    with_default("skills.limits.maxSkillFileBytes", from(0), "256000", "how large a SKILL.md may be, in bytes"),
    key("skills.entries", Section, "settings of single skills"),
    key("skills.entries.<key>", Section, "settings of one skill, by its key"),
    key("skills.entries.<key>.enabled", Switch, "false keeps the skill from being used"),
    key("skills.entries.<key>.apiKey", Secret, "the value of the skill's main variable"),
    key("skills.entries.<key>.env", Section, "variables for the skill's programs"),
    key("skills.entries.<key>.env.<NAME>", Text, "one variable for the skill's programs"),
    key("skills.entries.<key>.config", Open, "settings the skill itself understands"),
    key("skills.workshop", Section, "skills that agents write themselves"),
    key("skills.workshop.autonomous", Section, "writing skills without being asked"),
    with_default("skills.workshop.autonomous.mode", Choice(&["off", "propose", "auto"]), "\"auto\"", "whether an agent writes skills by itself"),
    with_default("skills.workshop.approvalPolicy", Choice(&["pending", "auto"]), "\"auto\"", "whether a written skill waits for a person"),
    with_default("skills.workshop.maxPending", Count { min: 1, max: 200 }, "50", "how many written skills may wait"),
    with_default("skills.workshop.maxSkillBytes", Count { min: 1024, max: 200_000 }, "40000", "how large a written skill may be, in bytes"),

    key("agents", Section, "the agents and what they share"),
    key("agents.defaults", Open, "what holds for all agents"),
    key("agents.defaults.workspace", Text, "the directory the default agent works in"),
    key("agents.defaults.skills", TextList, "the skills an agent without its own list may use"),
    with_default("agents.defaults.bootstrapMaxChars", from(1), "20000", "how much of one workspace file goes into the prompt, in characters"),
    with_default("agents.defaults.bootstrapTotalMaxChars", from(1), "150000", "how much of all workspace files goes into the prompt, in characters"),
    key("agents.list", List, "the agents, one section each"),
    key("agents.list.<n>", Open, "one agent"),
    key("agents.list.<n>.id", Text, "the name it is called by"),
    key("agents.list.<n>.default", Switch, "whether it is used when nobody says which"),
    key("agents.list.<n>.workspace", Text, "the directory it works in"),
    key("agents.list.<n>.skills", TextList, "the skills it may use; absent allows all, empty none"),
    key("agents.list.<n>.skillsLimits", Section, "its own limits for skills"),
    key("agents.list.<n>.skillsLimits.maxSkillsPromptChars", from(0), "how long its list of skills may be, in characters"),
    key("agents.entries", Section, "the agents by name, another way to write agents.list"),
    key("agents.entries.<id>", Open, "one agent"),
    key("agents.entries.<id>.default", Switch, "whether it is used when nobody says which"),
    key("agents.entries.<id>.workspace", Text, "the directory it works in"),
    key("agents.entries.<id>.skills", TextList, "the skills it may use; absent allows all, empty none"),
    key("agents.entries.<id>.skillsLimits", Section, "its own limits for skills"),
    key("agents.entries.<id>.skillsLimits.maxSkillsPromptChars", from(0), "how long its list of skills may be, in characters"),

    key("plugins", Section, "plugins, which may bring skills along"),
    with_default("plugins.enabled", Switch, "true", "whether plugins are used at all"),
    with_default("plugins.allow", TextList, "[]", "the only plugins that may be used; empty allows all"),
    with_default("plugins.deny", TextList, "[]", "plugins that may not be used"),
    key("plugins.load", Open, "where plugins are looked for"),
    with_default("plugins.load.paths", TextList, "[]", "more directories with plugins"),
    key("plugins.slots", Open, "plugins of which only one can be in use"),
    key("plugins.slots.memory", Text, "the plugin that remembers things; \"none\" for no such plugin"),
    key("plugins.entries", Section, "settings of single plugins"),
    key("plugins.entries.<id>", Open, "settings of one plugin"),
    key("plugins.entries.<id>.enabled", Switch, "whether this plugin is used"),
    key("plugins.entries.<id>.config", Anything, "settings the plugin itself understands"),
    key("plugins.installs", Open, "what is known about installed plugins"),

    key("env", Section, "variables that are set unless they already are"),
    key("env.vars", Section, "variables by name"),
    key("env.vars.<NAME>", Text, "one variable"),
    key("env.shellEnv", Section, "variables of the login shell, which are never imported"),
    key("env.shellEnv.enabled", Switch, "has no effect; list the variables instead"),
    key("env.shellEnv.timeoutMs", from(0), "has no effect"),
    key("env.<NAME>", Text, "one variable"),

    key("commands", Open, "slash commands"),
    with_default("commands.text", Switch, "true", "whether a command may be written as text"),
    with_default("commands.native", AUTO, "\"auto\"", "whether commands are registered with the channels"),
    with_default("commands.nativeSkills", AUTO, "\"auto\"", "whether skills are registered with the channels as commands"),

    key("browser", Open, "the browser tool"),
    with_default("browser.enabled", Switch, "true", "whether there is a browser"),
    with_default("browser.evaluateEnabled", Switch, "true", "whether scripts may run in its pages"),

    key("channels", Open, "where messages come from"),
    key("channels.**.skills", TextList, "the skills that may be used there; absent allows all, empty none"),

    key("acp", Open, "sessions with other agents' programs"),
    with_default("acp.enabled", Switch, "true", "whether there are such sessions"),

    key("accessGroups", Open, "belongs to OpenClaw; not used here"),
    key("approvals", Open, "belongs to OpenClaw; not used here"),
    key("audio", Open, "belongs to OpenClaw; not used here"),
    key("auth", Open, "belongs to OpenClaw; not used here"),
    key("bindings", Anything, "belongs to OpenClaw; not used here"),
    key("broadcast", Open, "belongs to OpenClaw; not used here"),
    key("canvasHost", Open, "belongs to OpenClaw; not used here"),
    key("cli", Open, "belongs to OpenClaw; not used here"),
    key("cron", Open, "belongs to OpenClaw; not used here"),
    key("diagnostics", Open, "belongs to OpenClaw; not used here"),
    key("discovery", Open, "belongs to OpenClaw; not used here"),
    key("gateway", Open, "the socket that clients connect to"),
    key("hooks", Open, "belongs to OpenClaw; not used here"),
    key("logging", Open, "belongs to OpenClaw; not used here"),
    key("mcp", Open, "belongs to OpenClaw; not used here"),
    key("media", Open, "belongs to OpenClaw; not used here"),
    key("memory", Open, "belongs to OpenClaw; not used here"),
    key("messages", Open, "belongs to OpenClaw; not used here"),
    key("meta", Open, "what wrote this file, and when"),
    key("models", Open, "the models and where they are"),
    key("nodeHost", Open, "belongs to OpenClaw; not used here"),
    key("secrets", Open, "where secrets are kept"),
    key("session", Open, "belongs to OpenClaw; not used here"),
    key("surfaces", Open, "belongs to OpenClaw; not used here"),
    key("talk", Open, "belongs to OpenClaw; not used here"),
    key("tools", Open, "the tools and who may use them"),
    key("ui", Open, "belongs to OpenClaw; not used here"),
    key("update", Open, "belongs to OpenClaw; not used here"),
    key("web", Open, "belongs to OpenClaw; not used here"),
    key("wizard", Open, "belongs to OpenClaw; not used here"),
];
