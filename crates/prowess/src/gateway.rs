//! `prowess gateway`: one process that stays up and serves everybody.

mod asked;
pub(crate) mod serve;
mod service;

use prowess_host::Failure;

use crate::cli::{self, Globals};
use crate::output::Report;

pub(crate) fn run(command: &cli::Gateway, globals: &Globals) -> Result<Report, Failure> {
    match command {
        cli::Gateway::Run(args) => serve::run(args, globals, serve::Then::Serve),
        cli::Gateway::Status => asked::status(globals),
        cli::Gateway::Call { method, params, expect_final, timeout } => {
            let wait = if *expect_final { asked::Wait::Last } else { asked::Wait::First };
            asked::call(method, params, wait, *timeout, globals)
        }
        cli::Gateway::InstallService(args) => service::install(args, globals),
    }
}
