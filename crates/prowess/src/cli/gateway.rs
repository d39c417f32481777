//! The command line of what stays up: the gateway, nodes, and whoever asks them.

use clap::{Args, Subcommand, ValueEnum};
use prowess_gateway::Fingerprint;
use prowess_gateway::log::parse_level;
use tracing::level_filters::LevelFilter;

#[derive(Debug, Subcommand)]
pub(crate) enum Gateway {
    /// Run the gateway server until it is stopped
    Run(ServeArgs),
    /// Show whether a gateway is running and which clients are connected; exits with 1 if it is not
    Status,
    /// Call a gateway method and print the response
    Call {
        /// The method, such as health
        method: String,
        /// Its parameters, as a JSON object
        #[arg(default_value = "{}")]
        params: String,
        /// Wait for the final response of a method that first responds that it has started
        #[arg(long)]
        expect_final: bool,
        /// How many milliseconds to wait for a response
        #[arg(long, value_name = "MS", default_value_t = 10_000)]
        timeout: u64,
    },
    /// Install a service that starts the gateway when you log in
    InstallService(ServiceArgs),
}

/// How a gateway serves.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    /// Listen on this port
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Where to listen: loopback (this machine only), lan (other devices too, with TLS), or an address
    #[arg(long, value_name = "WHERE")]
    pub(crate) bind: Option<String>,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
    /// How many seconds a turn waits for an approval before it continues without it
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) wait: u64,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// Whether connections are encrypted.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct TlsArgs {
    /// Use TLS, with gateway.tls.certPath or a generated self-signed certificate
    #[arg(long)]
    tls: bool,
    /// Use plain HTTP even if other machines can connect
    #[arg(long, conflicts_with = "tls")]
    no_tls: bool,
}

impl TlsArgs {
    /// What was asked for, if anything was.
    pub(crate) fn wanted(self) -> Option<bool> {
        (self.tls || self.no_tls).then_some(self.tls)
    }
}

/// How the page is opened.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct DashboardArgs {
    /// Only print the address
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Do not start a gateway if none is running
    #[arg(long)]
    pub(crate) no_start: bool,
    /// Sign in without the right to change anything
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Print the address for a phone as a QR code; needs a gateway with --bind lan
    #[arg(long)]
    pub(crate) qr: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Devices {
    /// List approved devices and access requests
    List,
    /// Approve a device's access request
    Approve {
        /// The id of the request, or the start of it; not needed if there is only one request
        id: Option<String>,
    },
    /// Reject a device's access request
    Reject {
        /// The id of the request, or the start of it
        id: String,
    },
    /// Revoke a device's access and disconnect it
    Remove {
        /// Its id, the start of its id, or its name
        id: String,
    },
}

/// What is logged.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LogArgs {
    /// The log level: silent, error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(crate) log_level: Option<LevelFilter>,
}

fn fingerprint(text: &str) -> Result<Fingerprint, String> {
    Fingerprint::parse(text).ok_or_else(|| "write 64 hexadecimal digits, as `gateway run` prints them".to_owned())
}

fn level(name: &str) -> Result<LevelFilter, String> {
    parse_level(name).ok_or_else(|| "use silent, error, warn, info, debug or trace".to_owned())
}

/// How a service is set up.
#[derive(Debug, Clone, Args)]
pub(crate) struct ServiceArgs {
    /// Only print the service file
    #[arg(long)]
    pub(crate) print: bool,
    /// Replace an existing service file
    #[arg(long)]
    pub(crate) force: bool,
    /// Listen on this port
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Where to listen: loopback (this machine only), lan (other devices too, with TLS), or an address
    #[arg(long, value_name = "WHERE")]
    pub(crate) bind: Option<String>,
    #[command(flatten)]
    pub(crate) tls: TlsArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Node {
    /// Let a gateway run commands on this machine, within this machine's own rules
    Run(NodeArgs),
    /// List a gateway's nodes
    List,
    /// Approve a node's access request
    Approve {
        /// The id of the request, or the start of it
        id: String,
    },
    /// Revoke a node's access and disconnect it
    Remove {
        /// Its id, the start of its id, or its name
        id: String,
    },
}

/// How this machine serves as a node.
#[derive(Debug, Clone, Args)]
pub(crate) struct NodeArgs {
    /// A name for this machine
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Keep commands running if the connection is lost
    #[arg(long)]
    pub(crate) keep_running: bool,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// An answer to a question about a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Decision {
    /// Run it this time
    AllowOnce,
    /// Run it, and allow what it reaches for the rest of the session
    AllowSession,
    /// Run it now and without asking from now on
    AllowAlways,
    /// Do not run it
    Deny,
}

impl Decision {
    /// As it is written on the wire.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow-once",
            Self::AllowSession => "allow-session",
            Self::AllowAlways => "allow-always",
            Self::Deny => "deny",
        }
    }
}

/// Which gateway, where one is asked.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GatewayOptions {
    /// Use the gateway at this URL, such as `ws://127.0.0.1:18789` or `wss://192.168.1.5:18789`
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) gateway: Option<String>,
    /// Accept only the certificate with this SHA-256 fingerprint from a `wss://` gateway
    #[arg(long, global = true, value_name = "SHA256", value_parser = fingerprint)]
    pub(crate) tls_fingerprint: Option<Fingerprint>,
    /// The gateway's token; prefer `OPENCLAW_GATEWAY_TOKEN`, which other users cannot see
    #[arg(long, global = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
}
