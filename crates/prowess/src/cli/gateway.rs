//! The command line of what stays up: the gateway, nodes, and whoever asks them.

use clap::{Args, Subcommand, ValueEnum};
use prowess_gateway::Fingerprint;
use prowess_gateway::log::parse_level;
use tracing::level_filters::LevelFilter;

#[derive(Debug, Subcommand)]
pub(crate) enum Gateway {
    /// Serve until it is told to stop
    Run(ServeArgs),
    /// Say whether a gateway is up and who is connected; exits with 1 when it is not
    Status,
    /// Call a method of the gateway and print its answer
    Call {
        /// The method, for example health
        method: String,
        /// What it is given, as a JSON object
        #[arg(default_value = "{}")]
        params: String,
        /// Wait for the last answer of a method that first says it has begun
        #[arg(long)]
        expect_final: bool,
        /// Wait this many milliseconds for an answer
        #[arg(long, value_name = "MS", default_value_t = 10_000)]
        timeout: u64,
    },
    /// Let this machine start the gateway by itself when you log in
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
    /// Let a turn wait so long for an approval before it goes on without it
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) wait: u64,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// Whether connections are encrypted.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct TlsArgs {
    /// Serve HTTPS with gateway.tls.certPath, or with a self-signed certificate that is made once
    #[arg(long)]
    tls: bool,
    /// Serve plain HTTP although other machines can connect
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
    /// Do not start a gateway when none is running
    #[arg(long)]
    pub(crate) no_start: bool,
    /// Sign in to look at everything and change nothing
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Print the address for a phone as a QR code; needs a gateway with --bind lan
    #[arg(long)]
    pub(crate) qr: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Devices {
    /// List the devices that may connect, and those that ask to
    List,
    /// Let a device in that asks for it
    Approve {
        /// The id of its request, or the beginning of it; not needed when only one device asks
        id: Option<String>,
    },
    /// Refuse a device that asks to be let in
    Reject {
        /// The id of its request, or the beginning of it
        id: String,
    },
    /// Take back that a device was let in, and end its connection
    Remove {
        /// Its id, the beginning of it, or its name
        id: String,
    },
}

/// What is logged.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct LogArgs {
    /// What is worth a line in the log: silent, error, warn, info, debug or trace
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
    /// Only print what would be written
    #[arg(long)]
    pub(crate) print: bool,
    /// Replace a service that is there and different
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
    /// Let a gateway run commands on this machine, as this machine's own rules allow
    Run(NodeArgs),
    /// List the machines that a gateway knows
    List,
    /// Let a machine in that asked for it
    Approve {
        /// The id of its request, or the beginning of it
        id: String,
    },
    /// Take back that a machine was let in, and end its connection
    Remove {
        /// Its id, the beginning of it, or its name
        id: String,
    },
}

/// How this machine serves as a node.
#[derive(Debug, Clone, Args)]
pub(crate) struct NodeArgs {
    /// What people call this machine
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Let commands go on when the connection is lost, instead of ending them
    #[arg(long)]
    pub(crate) keep_running: bool,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// An answer to a question about a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Decision {
    /// Yes, this time
    AllowOnce,
    /// Yes, from now on
    AllowAlways,
    /// No
    Deny,
}

impl Decision {
    /// As it is written on the wire.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow-once",
            Self::AllowAlways => "allow-always",
            Self::Deny => "deny",
        }
    }
}

/// Which gateway, where one is asked.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GatewayOptions {
    /// Use the gateway at this address, as in `ws://127.0.0.1:18789` or `wss://192.168.1.5:18789`
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) gateway: Option<String>,
    /// Accept only the certificate with this SHA-256 fingerprint from a `wss://` gateway
    #[arg(long, global = true, value_name = "SHA256", value_parser = fingerprint)]
    pub(crate) tls_fingerprint: Option<Fingerprint>,
    /// The token of the gateway; better kept in `OPENCLAW_GATEWAY_TOKEN`
    #[arg(long, global = true, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
}
