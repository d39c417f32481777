//! The command line: what can be asked for?

mod gateway;
mod talk;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use prowess_config::LocationFlags;
use prowess_host::{Context, Failure, Flags, Ground};

pub(crate) use gateway::{Decision, Gateway, GatewayOptions, LogArgs, Node, NodeArgs, ServeArgs, ServiceArgs};
pub(crate) use talk::{Format, MessageArgs, ModelsArgs, PromptArgs, Sessions, TalkArgs};

/// Talk to a model that has skills; find, gate and show them; run what they lead to.
#[derive(Debug, Parser)]
#[command(name = "prowess", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) globals: Globals,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Use this agent's workspace and skill list
    #[arg(long, global = true, value_name = "ID")]
    pub(crate) agent: Option<String>,
    /// Use this workspace instead of the agent's
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Read this configuration file
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Use a separate set of state, configuration and workspace
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) profile: Option<String>,
    /// Use the profile `dev`
    #[arg(long, global = true)]
    pub(crate) dev: bool,
    #[command(flatten)]
    pub(crate) remote: GatewayOptions,
}

impl Globals {
    /// What is known when the program starts.
    pub(crate) fn ground(&self) -> Result<Ground, Failure> {
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
    /// Say something, and see it answered: which skill is read, what is run, and what comes of it
    Run(MessageArgs),
    /// Hold a conversation at the terminal
    Chat(TalkArgs),
    /// See and keep conversations
    Sessions {
        #[command(subcommand)]
        command: Sessions,
    },
    /// See which models are configured, and which of them answer
    Models(ModelsArgs),
    /// Print the whole system prompt, or what its parts cost
    Prompt(PromptArgs),
    /// See which skills there are, what the model is told of them, and why not the others
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
    /// Judge a command, or judge it and run it
    Exec {
        #[command(subcommand)]
        command: Exec,
    },
    /// See and change what may run without asking
    Approvals {
        #[command(subcommand)]
        command: Approvals,
    },
    /// Run what stays up: it serves agents, people, nodes and a web page
    Gateway {
        #[command(subcommand)]
        command: Gateway,
    },
    /// Lend this machine to a gateway, and see which machines it has
    Node {
        #[command(subcommand)]
        command: Node,
    },
    /// Say what works on this machine, what does not, and why; exits with 1 when commands could not run
    Doctor,
    /// Prepare a workspace: the folder and its starting files
    Setup,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Options of the skills commands.
#[derive(Debug, Clone, Args)]
pub(crate) struct SkillOptions {
    /// Apply the skill list of this channel, for example telegram.groups.42
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) channel: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Skills {
    /// List skills and whether they are ready
    List {
        /// Only those that are ready
        #[arg(long)]
        eligible: bool,
        /// Show whole descriptions and what is missing
        #[arg(short, long)]
        verbose: bool,
    },
    /// Show one skill
    Info {
        /// The skill's name or key
        name: String,
    },
    /// Check everything; exits with 1 when something is broken
    Check,
    /// Tell the whole story of one skill, or account for every folder that could be one
    Explain {
        /// The skill's name, key or folder
        name: Option<String>,
    },
    /// Print exactly what a model is told
    Prompt {
        /// How much of a system prompt the run gets
        #[arg(long, value_enum, default_value_t = Mode::Full)]
        mode: Mode,
        /// At most this many characters for the list of skills, or tokens when followed by `t`
        #[arg(long, value_name = "N[t]", value_parser = parse_budget)]
        budget: Option<BudgetFlag>,
        /// The name of the tool that reads files
        #[arg(long, value_name = "NAME", default_value = "read")]
        read_tool: String,
    },
    /// List the slash commands
    Commands {
        /// Show what this message would call, instead
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
    let number = digits.parse().map_err(|_| "give a number of characters, or of tokens as in 4000t".to_owned())?;
    Ok(if in_tokens { BudgetFlag::Tokens(number) } else { BudgetFlag::Chars(number) })
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Show a value and where it comes from, or everything
    Get {
        /// A path such as skills.limits.maxSkillsInPrompt
        path: Option<String>,
        /// Show secrets instead of hiding them
        #[arg(long)]
        show_secrets: bool,
    },
    /// Set a value in the configuration file
    Set {
        /// A path such as skills.entries.github.enabled
        path: String,
        /// JSON, or else plain text
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a value from the configuration file
    Unset {
        /// A path such as skills.entries.github.enabled
        path: String,
    },
    /// List every key there is, with its type, default and meaning
    Keys,
    /// Print the path of the configuration file
    Path,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Exec {
    /// Say whether a command may run, and why; nothing is started
    Check {
        #[command(flatten)]
        command: CommandArgs,
        /// Exit with 1 when a person would be asked, and with 2 when it may not run
        #[arg(long)]
        exit_code: bool,
    },
    /// Judge a command, ask if need be, and run it in a sandbox, without input; all it says comes out on stdout
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
    /// Run it here instead of in the current directory
    #[arg(long, value_name = "DIR")]
    pub(crate) workdir: Option<PathBuf>,
    /// Give it the variables and programs of this skill
    #[arg(long, value_name = "NAME")]
    pub(crate) skill: Vec<String>,
    /// Give it this variable
    #[arg(long, value_name = "NAME=VALUE", value_parser = parse_variable)]
    pub(crate) env: Vec<(String, String)>,
    /// The conversation it belongs to
    #[arg(long, value_name = "KEY", default_value = "cli")]
    pub(crate) session: String,
    /// One text for the shell (`-` reads it from stdin), or a program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) words: Vec<String>,
}

/// How a command is run.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// Stop it after this many seconds; 0 never
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
    /// Let it read this
    #[arg(long, value_name = "PATH")]
    pub(crate) read: Vec<PathBuf>,
    /// Let it change this
    #[arg(long, value_name = "PATH")]
    pub(crate) write: Vec<PathBuf>,
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Approvals {
    /// List what may run without asking
    List,
    /// Let a program run without asking; what its arguments start or delete is asked about all the same
    Allow {
        /// A program's name or path, or a pattern such as ~/bin/*
        pattern: String,
        /// For every agent
        #[arg(long)]
        all_agents: bool,
    },
    /// Take an entry back
    Revoke {
        /// Its id, the beginning of its id, or its pattern
        entry: String,
        /// From the entries for every agent
        #[arg(long)]
        all_agents: bool,
    },
    /// Print the path of the approvals file
    Path,
    /// Show what a gateway's agents want to run, as it comes, and answer it here
    Watch,
    /// Answer one question of a gateway's agents
    Resolve {
        /// The id of the question, or the beginning of it
        id: String,
        /// The answer
        #[arg(value_enum)]
        decision: Decision,
    },
}
