//! The command line: commands, options and their help.

mod examples;
mod gateway;
mod talk;

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use prowess_config::LocationFlags;
use prowess_host::{Context, Failure, Flags, Ground};

use crate::completion;
use crate::suggest::nearest;

pub(crate) use gateway::{
    DashboardArgs, Decision, Devices, Gateway, GatewayOptions, LogArgs, Node, NodeArgs, ServeArgs, ServiceArgs, TlsArgs,
};
pub(crate) use talk::{Format, MessageArgs, ModelsArgs, PromptArgs, Sessions, TalkArgs, WhichSession, fresh_session};

/// The skill runtime for agents: talk to a model that uses skills, and run the commands they lead to in a sandbox
#[derive(Debug, Parser)]
#[command(name = "prowess", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The whole command line, with examples.
pub(crate) fn command() -> clap::Command {
    examples::with_examples(Cli::command())
}

/// What this process was asked for; a wrong command line ends it with an explanation.
pub(crate) fn parse() -> Cli {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(std::env::args_os()).unwrap_or_else(|error| {
        with_suggestion(error, &command).exit();
    });
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// The same error with a similar command to try. The parser's own measure finds none for names of two or three letters.
fn with_suggestion(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let has_one = error.get(ContextKind::SuggestedSubcommand).is_some();
    if error.kind() != ErrorKind::InvalidSubcommand || has_one {
        return error;
    }
    if let Some(ContextValue::String(wanted)) = error.get(ContextKind::InvalidSubcommand) {
        let near = nearest(wanted, command.get_subcommands().map(clap::Command::get_name));
        if let Some(near) = near.first() {
            let suggestion = ContextValue::Strings(vec![(*near).to_owned()]);
            error.insert(ContextKind::SuggestedSubcommand, suggestion);
        }
    }
    error
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Use this agent's workspace and skill list
    #[arg(long, global = true, value_name = "ID", add = ArgValueCompleter::new(completion::agents))]
    pub(crate) agent: Option<String>,
    /// Use this workspace instead of the agent's
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Use this configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Use a profile with its own state, configuration and workspace
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Use the profile `dev`
    #[arg(long, global = true)]
    pub(crate) dev: bool,
    #[command(flatten)]
    pub(crate) remote: GatewayOptions,
}

impl Globals {
    /// What is known when the program starts. A configuration file that was named must exist.
    pub(crate) fn ground(&self) -> Result<Ground, Failure> {
        let ground = self.ground_to_edit()?;
        if self.config.is_some() {
            let file = ground.locations()?.config_path;
            if !file.exists() {
                return Err(Failure::input(format!("the configuration file {} does not exist", file.display()))
                    .hint("check the path after --config, or leave the option out")
                    .hint("prowess config set --config FILE KEY VALUE creates it"));
            }
        }
        Ok(ground)
    }

    /// The same for commands that may create the configuration file.
    pub(crate) fn ground_to_edit(&self) -> Result<Ground, Failure> {
        let locations = LocationFlags { profile: self.profile.clone(), dev: self.dev, config: self.config.clone() };
        Ground::of_process(Flags { agent: self.agent.clone(), workspace: self.workspace.clone(), locations })
    }

    /// What the operator asked for.
    pub(crate) fn context(&self) -> Result<Context, Failure> {
        Context::load(&self.ground()?)
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send one message and print the answer
    Run(MessageArgs),
    /// Start an interactive conversation
    Chat(TalkArgs),
    /// List, show and export sessions
    Sessions {
        #[command(subcommand)]
        command: Sessions,
    },
    /// List the configured models and test them
    Models(ModelsArgs),
    /// Print the system prompt, or what its parts cost
    Prompt(PromptArgs),
    /// List, check and explain skills
    Skills {
        #[command(subcommand)]
        command: Option<Skills>,
        #[command(flatten)]
        options: SkillOptions,
    },
    /// Read and change the configuration
    Config {
        #[command(subcommand)]
        command: Config,
    },
    /// Check whether a command may run, or run it in a sandbox
    Exec {
        #[command(subcommand)]
        command: Exec,
    },
    /// Manage which commands may run without asking
    Approvals {
        #[command(subcommand)]
        command: Approvals,
    },
    /// Manage what commands may use beyond the sandbox: hosts, directories, sockets and keys
    Leases {
        #[command(subcommand)]
        command: Leases,
    },
    /// See which hosts commands reached
    Egress {
        #[command(subcommand)]
        command: Egress,
    },
    /// Run and query the gateway server
    Gateway {
        #[command(subcommand)]
        command: Gateway,
    },
    /// Open the gateway's page in a browser, signed in
    Dashboard(DashboardArgs),
    /// Approve and remove the devices that connect to a gateway
    Devices {
        #[command(subcommand)]
        command: Devices,
    },
    /// Let a gateway run commands on this machine, and manage its machines
    Node {
        #[command(subcommand)]
        command: Node,
    },
    /// Check the model, configuration, skills, network, sandbox and gateway; exits with 1 if something needed is broken
    Doctor,
    /// Create a workspace with its starting files
    #[command(visible_alias = "onboard")]
    Setup,
    /// Print a shell completion script
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Options of the skills commands.
#[derive(Debug, Clone, Args)]
pub(crate) struct SkillOptions {
    /// Apply the skill list of this channel, such as telegram.groups.42
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) channel: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Skills {
    /// List skills and whether they are ready
    List {
        /// Only skills whose name, description or source contains all of these words
        text: Vec<String>,
        /// Only skills that are ready
        #[arg(long)]
        eligible: bool,
        /// Show full descriptions and what is missing
        #[arg(short, long)]
        verbose: bool,
    },
    /// Show one skill
    Info {
        /// The skill's name or key
        #[arg(add = ArgValueCompleter::new(completion::skills))]
        name: String,
    },
    /// Check all skills and settings; exits with 1 if something is broken
    Check {
        /// List every skill and problem instead of grouping them
        #[arg(long)]
        all: bool,
    },
    /// Explain how one skill got into the prompt or why it did not; without a name, explain every folder
    Explain {
        /// The skill's name, key or folder
        #[arg(add = ArgValueCompleter::new(completion::skills))]
        name: Option<String>,
    },
    /// Give a skill the keys and grants under `skills.entries` that were set up for another one of its name
    Bind {
        /// The skill's name or key
        #[arg(add = ArgValueCompleter::new(completion::skills))]
        name: String,
    },
    /// Print exactly what the model is told about skills
    Prompt {
        /// Which variant of the system prompt
        #[arg(long, value_enum, default_value_t = Mode::Full)]
        mode: Mode,
        /// Limit the skill list to this many characters, or tokens with a `t` at the end
        #[arg(long, value_name = "N[t]", value_parser = parse_budget)]
        budget: Option<BudgetFlag>,
        /// The name of the tool that reads files
        #[arg(long, value_name = "NAME", default_value = "read")]
        read_tool: String,
    },
    /// List the slash commands
    Commands {
        /// Show which command this message would run instead
        #[arg(long, value_name = "MESSAGE", allow_hyphen_values = true)]
        resolve: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    Full,
    Minimal,
    None,
}

impl From<Mode> for prowess_skills::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Full => Self::Full,
            Mode::Minimal => Self::Minimal,
            Mode::None => Self::None,
        }
    }
}

/// A budget as given on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BudgetFlag {
    Chars(usize),
    Tokens(usize),
}

fn parse_budget(text: &str) -> Result<BudgetFlag, String> {
    let (digits, in_tokens) = match text.strip_suffix('t') {
        Some(digits) => (digits, true),
        None => (text, false),
    };
    let number = digits.parse().map_err(|_| "write a number of characters, or tokens as in 4000t".to_owned())?;
    Ok(if in_tokens { BudgetFlag::Tokens(number) } else { BudgetFlag::Chars(number) })
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show a value and where it comes from, or the whole configuration
    Get {
        /// A key such as skills.limits.maxSkillsInPrompt
        #[arg(value_name = "KEY", add = ArgValueCompleter::new(completion::config_keys))]
        path: Option<String>,
        /// Show secrets instead of hiding them
        #[arg(long)]
        show_secrets: bool,
    },
    /// Set a value in the configuration file
    Set {
        /// A key such as skills.entries.github.enabled
        #[arg(value_name = "KEY", add = ArgValueCompleter::new(completion::config_keys))]
        path: String,
        /// The value, as JSON5 or plain text; `-` reads it from stdin. If it is left out, you are asked for it
        #[arg(allow_hyphen_values = true)]
        value: Option<String>,
        /// Read the value from stdin
        #[arg(long, conflicts_with = "value")]
        stdin: bool,
        /// Write a key that prowess does not know
        #[arg(long)]
        force: bool,
    },
    /// Remove a value from the configuration file
    Unset {
        /// A key such as skills.entries.github.enabled
        #[arg(value_name = "KEY", add = ArgValueCompleter::new(completion::config_keys))]
        path: String,
    },
    /// List the known keys with their types, defaults and meanings
    Keys {
        /// Only keys whose name or meaning contains this text
        text: Option<String>,
    },
    /// Print the path of the configuration file
    Path,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Exec {
    /// Show whether a command may run, and why; nothing is started
    Check {
        #[command(flatten)]
        command: CommandArgs,
        /// Exit with 1 if it needs approval, and with 2 if it is refused
        #[arg(long)]
        exit_code: bool,
    },
    /// Run a command in a sandbox, after your approval if no rule covers it. It gets no input; all its output goes to stdout
    Run {
        #[command(flatten)]
        command: CommandArgs,
        #[command(flatten)]
        options: RunArgs,
    },
}

/// A command, and what it is given.
#[derive(Debug, Clone, Args)]
pub(crate) struct CommandArgs {
    /// Run it in this directory instead of the current one
    #[arg(long, value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,
    /// Give it this skill's variables and programs
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(completion::skills))]
    pub(crate) skill: Vec<String>,
    /// Set this variable for it
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub(crate) env: Vec<(String, String)>,
    /// The session it belongs to
    #[arg(long, value_name = "KEY", default_value = "cli")]
    pub(crate) session: String,
    /// A shell command in one argument (`-` reads it from stdin), or a program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) words: Vec<String>,
}

/// How a command is run.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// Stop it after this many seconds; 0 means never
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u64>,
    /// Give it a terminal
    #[arg(long)]
    pub(crate) pty: bool,
    /// The sandbox: auto, landlock, bubblewrap or off
    #[arg(long, value_name = "KIND")]
    pub(crate) sandbox: Option<String>,
    /// Let it use the network
    #[arg(long)]
    pub(crate) network: bool,
    /// Let it read this file or directory
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<PathBuf>,
    /// Let it change this file or directory
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<PathBuf>,
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Leases {
    /// List the leases
    List,
    /// Let commands use something beyond the sandbox without asking
    Allow(LeaseArgs),
    /// Revoke leases
    Revoke {
        /// An id, the start of an id, a skill, or something that is allowed, such as a host
        wanted: String,
    },
    /// Print the path of the file with the leases
    Path,
}

#[derive(Debug, Args)]
pub(crate) struct LeaseArgs {
    /// Only for this skill's own commands; without it, for commands that belong to no skill
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(completion::skills))]
    pub(crate) skill: Option<String>,
    /// A host to reach, with or without a port: wttr.in, api.github.com:443, *.example.com
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Vec<String>,
    /// A file or directory to read
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<PathBuf>,
    /// A file or directory to change
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<PathBuf>,
    /// A Unix socket to connect to
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Vec<PathBuf>,
    /// A variable whose value is a secret
    #[arg(long, value_name = "NAME")]
    pub(crate) key: Vec<String>,
    /// Whether processes may go on after their command has ended
    #[arg(long)]
    pub(crate) keeps_running: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Egress {
    /// Show the connections of commands: when, which skill and host, how many bytes, and what was refused. The newest is last
    Log(EgressLog),
}

#[derive(Debug, Args)]
pub(crate) struct EgressLog {
    /// How many of the newest connections to show
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
    /// Only this host and its subdomains
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,
    /// Only commands of this skill
    #[arg(long, value_name = "NAME")]
    pub(crate) skill: Option<String>,
    /// Only connections that were refused
    #[arg(long)]
    pub(crate) refused: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List the rules
    List,
    /// Let a program run without asking. Arguments that start other programs or delete files still need approval
    Allow {
        /// A program's name or path, or a pattern such as ~/bin/*
        pattern: String,
        /// For every agent
        #[arg(long)]
        all_agents: bool,
    },
    /// Remove a rule
    Revoke {
        /// Its id, the start of its id, or its pattern
        entry: String,
        /// Remove it from the rules for every agent
        #[arg(long)]
        all_agents: bool,
    },
    /// Print the path of the approvals file
    Path,
    /// Watch for commands of a gateway's agents that need approval, and answer here
    Watch,
    /// Show who approved which command, from which device, and when
    Log {
        /// How many of the newest answers to show
        #[arg(long, default_value_t = 50)]
        limit: usize,
        /// Only answers whose command, session or person contains this text
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
    },
    /// Approve or deny one command of a gateway's agents
    Resolve {
        /// The id of the approval request, or the start of it
        id: String,
        /// The answer
        #[arg(value_enum)]
        decision: Decision,
    },
}
