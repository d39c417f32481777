//! The log of a program that stays up: set once, before it begins.

use prowess_gateway::log::{LogSettings, Recorder};
use prowess_host::Context;
use tracing_subscriber::layer::SubscriberExt;

use crate::cli::LogArgs;

/// Writes down what happens from now on, as the operator wants it.
pub(crate) fn begin(context: &Context, name: &str, args: LogArgs) {
    let settings = LogSettings::read(&context.config, &context.locations, name, args.log_level);
    let recorder = Recorder::new(&settings, Box::new(anstream::stderr()));
    // A test may have one already.
    drop(tracing::subscriber::set_global_default(tracing_subscriber::registry().with(recorder)));
}
