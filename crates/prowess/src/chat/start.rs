//! The glue of `prowess chat`: from the command line to a conversation that is held.

use std::io::IsTerminal;

use prowess_host::Failure;

use super::Chat;
use super::complete::Words;
use super::line::Lines;
use crate::cli::{Globals, TalkArgs};
use crate::output::{DIM, Report, paint, safe};
use crate::partner::Partner;
use crate::show::{Detail, Printer};
use crate::talk::{Talk, settle_index};

pub(crate) fn run(args: &TalkArgs, globals: &Globals) -> Result<Report, Failure> {
    if globals.json {
        return Err(Failure::usage("chat has no --json").hint("for programs: prowess run --json"));
    }
    let context = globals.context()?;
    let detail = if args.verbose { Detail::Verbose } else { Detail::Normal };
    let printer = Printer::new(detail, context.user_home());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(Failure::ours)?;
    let code = runtime.block_on(async {
        let mut talk = Talk::open(globals, args, &printer)?;
        let is_person = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let lines = if is_person {
            super::tell(&paint(DIM, &format!("{} answers; type /help for help", safe(&talk.model()))));
            Lines::person(&context.locations.state_dir, Words::of(&talk.skills()))?
        } else {
            Lines::Pipe
        };
        Chat { lines, printer: &printer, above: None }.hold(&mut talk).await
    });
    // A thread may still wait for a line that nobody will type.
    runtime.shutdown_background();
    settle_index(globals);
    code.map(|code| Report::text("").code(code))
}
