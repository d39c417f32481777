//! The glue of `prowess prompt`: the system prompt that a conversation would begin with.

use std::io::IsTerminal;

use prowess_host::Failure;
use prowess_host::cost::{measure, shape};

use super::cost::page;
use crate::cli::{Globals, PromptArgs};
use crate::output::{Report, cleaned};
use crate::talk::system_prompt;

pub(crate) fn run(args: PromptArgs, globals: &Globals) -> Result<Report, Failure> {
    let prompt = system_prompt(globals, args.mode.into())?;
    let measured = measure(prompt.parts.iter().map(|part| (part.name, part.text.as_str())));
    match (args.cost, globals.json) {
        (true, false) => Ok(Report::text(page(&measured))),
        (false, false) => {
            let text = format!("{}\n", prompt.text().trim_end());
            // A file gets all of it as a model would; a terminal would obey what is in the workspace's files.
            Ok(Report::text(if std::io::stdout().is_terminal() { cleaned(&text) } else { text }))
        }
        (true, true) => Report::json(&shape(&measured)),
        (false, true) => {
            let mut json = shape(&measured);
            json["prompt"] = prompt.text().into();
            for (shape, part) in json["parts"].as_array_mut().into_iter().flatten().zip(&prompt.parts) {
                shape["text"] = part.text.as_str().into();
            }
            Report::json(&json)
        }
    }
}
