//! Settings: is there watching, by which means, and how long must it be quiet?

use std::time::Duration;

use prowess_config::{Config, Env};

/// How long it must be quiet before skills are read again, when nobody says otherwise.
const QUIET: Duration = Duration::from_millis(250);
/// The longest quiet that can be asked for.
const MAX_QUIET: Duration = Duration::from_secs(600);
/// How often the disk is asked where watches cannot be had.
const INTERVAL: Duration = Duration::from_secs(2);
/// The shortest and the longest such interval that can be asked for.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(3_600));

/// By which means changes are noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Means {
    /// The system tells.
    Events,
    /// The disk is asked now and then.
    Polling,
}

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Whether changes are noticed at all.
    pub(crate) is_on: bool,
    /// How long it must be quiet.
    pub(crate) quiet: Duration,
    /// What may be used.
    pub(crate) means: Means,
    /// How often the disk is asked, where it has to be.
    pub(crate) interval: Duration,
}

impl Settings {
    /// From `skills.load`, and from the variables by which OpenClaw's watcher is told to poll.
    pub(crate) fn read(config: &Config, env: &Env) -> Self {
        let section = &config.tree()["skills"]["load"];
        let quiet = section["watchDebounceMs"].as_u64().map_or(QUIET, Duration::from_millis);
        let polls = env.get("CHOKIDAR_USEPOLLING").map(str::trim).map(str::to_lowercase);
        let polls = polls.is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
        let interval = env.get("CHOKIDAR_INTERVAL").and_then(|value| value.trim().parse().ok());
        Self {
            is_on: section["watch"] != false,
            quiet: quiet.min(MAX_QUIET),
            means: if polls { Means::Polling } else { Means::Events },
            interval: interval.map_or(INTERVAL, Duration::from_millis).clamp(INTERVALS.0, INTERVALS.1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, env: &[(&str, &str)]) -> (bool, u128, Means, u128) {
        let env: Env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let settings = Settings::read(&Config::parse(text, &env).expect("a configuration"), &env);
        (settings.is_on, settings.quiet.as_millis(), settings.means, settings.interval.as_millis())
    }

    #[test]
    fn watching_is_on_unless_it_is_switched_off() {
        assert_eq!(check("{}", &[]), (true, 250, Means::Events, 2_000));
        assert!(!check("{skills: {load: {watch: false}}}", &[]).0);
    }

    #[test]
    fn the_debounce_has_two_names_and_a_bound() {
        assert_eq!(check("{skills: {load: {watchDebounceMs: 0}}}", &[]).1, 0);
        assert_eq!(check("{skills: {load: {debounceMs: 7}}}", &[]).1, 7);
        assert_eq!(check("{skills: {load: {watchDebounceMs: -1}}}", &[]).1, 250);
        assert_eq!(check("{skills: {load: {watchDebounceMs: 18446744073709551615}}}", &[]).1, 600_000);
    }

    #[test]
    fn polling_is_asked_for_as_in_openclaw() {
        for (value, means) in [("1", Means::Polling), ("yes", Means::Polling), ("0", Means::Events)] {
            assert_eq!(check("{}", &[("CHOKIDAR_USEPOLLING", value)]).2, means);
        }
        for value in ["", " False "] {
            assert_eq!(check("{}", &[("CHOKIDAR_USEPOLLING", value)]).2, Means::Events);
        }
        for (value, interval) in [("100", 100), ("0", 10), ("soon", 2_000)] {
            assert_eq!(check("{}", &[("CHOKIDAR_INTERVAL", value)]).3, interval);
        }
    }
}
