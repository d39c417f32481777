//! Loading: what does a configuration with thousands of entries cost, compared with only parsing its text?

use std::fmt::Write as _;

use prowess_config::{Config, Env};
use prowess_testkit::bench::ratio;
use serde_json::Value;

fn main() {
    let (some, many) = (entries(500), entries(5_000));
    ratio("5,000 skill entries loaded / parsed as JSON", 30, || serde_json::from_str::<Value>(&many), || load(&many));
    ratio("5,000 skill entries / 500 (linear is 10)", 30, || load(&some), || load(&many));
}

fn load(text: &str) -> Option<Value> {
    let config = Config::parse(text, &Env::new()).expect("a configuration");
    config.get("skills.load.watch").map(|found| found.value)
}

/// A configuration with `count` entries of skills.
fn entries(count: usize) -> String {
    let mut text = r#"{"skills": {"entries": {"#.to_owned();
    for index in 0..count {
        let comma = if index == 0 { "" } else { "," };
        let entry = r#"{"enabled": true, "apiKey": "secret", "env": {"CITY": "Rome", "UNITS": "metric"}}"#;
        write!(text, r#"{comma}"skill-{index}": {entry}"#).expect("writing to a string does not fail");
    }
    text + "}}}"
}
