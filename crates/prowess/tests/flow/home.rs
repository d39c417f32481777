//! A home with a weather skill, a `curl` that needs no network, and a model on this machine.

use prowess_testkit::{ModelServer, Output, Prowess, Running};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_prowess");

/// The wire formats.
pub(crate) const APIS: [&str; 3] = ["anthropic-messages", "openai-completions", "openai-responses"];

/// The key of the model.
pub(crate) const KEY: &str = "sk-loop-canary";

/// What only the stub says.
pub(crate) const FORECAST: &str = "light rain, 21 degrees, umbrella-4711";

const WEATHER: &str = r"---
name: weather
description: Get current weather and forecasts for any place.
metadata: { openclaw: { requires: { bins: [curl] }, primaryEnv: WEATHER_API_KEY } }
---
# Weather

Names of places are in {baseDir}/places.txt.

```bash
curl -s wttr.in/London
```
";

/// A home without a terminal, a key or a configuration, in which `curl` is a stub that says where it went and what the
/// weather is there.
pub(crate) fn bare() -> Prowess {
    Prowess::new("/usr/bin/setsid")
        .env("PATH", "$HOME/tools:/usr/bin:/bin")
        .program("tools/curl", format!("#!/bin/sh\nfor it; do :; done\necho \"$it: {FORECAST}\"\n"))
        .cwd("somewhere")
}

/// The same with a weather skill of its own and no other.
pub(crate) fn with_skill() -> Prowess {
    bare()
        .tree("no-skills/")
        .env("OPENCLAW_BUNDLED_SKILLS_DIR", "$HOME/no-skills")
        .file(".openclaw/workspace/skills/weather/SKILL.md", WEATHER)
}

/// The configuration of a model on this machine.
pub(crate) fn config(address: &str, api: &str) -> Value {
    json!({
        "models": {"providers": {"loop": {
            "baseUrl": address, "api": api, "apiKey": KEY, "models": [{"id": "test-model"}],
        }}},
        "agents": {"defaults": {"model": "loop/test-model"}},
    })
}

/// The home whose agent talks to `server`.
pub(crate) fn talking_to(server: &ModelServer, api: &str) -> Prowess {
    with_skill().config(&config(&server.base_url(), api).to_string())
}

pub(crate) trait Line {
    fn go(&self, line: &str) -> Output;
    fn begin(&self, line: &str) -> Running<'_>;
}

impl Line for Prowess {
    #[track_caller]
    fn go(&self, line: &str) -> Output {
        self.begin(line).wait()
    }

    /// Leads a group of its own, as a command at a prompt does.
    #[track_caller]
    fn begin(&self, line: &str) -> Running<'_> {
        self.start(&format!("-w {PROGRAM} {line}"))
    }
}
