//! The claims about settings.

use std::path::Path;

use prowess_skills::{Limits, ProblemKind, SkillsConfig};
use serde_json::json;

use crate::conformance::{kinds, settings};

// M-CONF-02, M-CONF-03, M-CONF-06, M-CONF-07, M-CONF-08
#[test]
fn m_conf_02_03_06_07_08_the_section_is_read() {
    let config = settings(&json!({
        "allowBundled": ["a", "b"],
        "load": {"extraDirs": ["~/x", "y"]},
        "install": {"preferBrew": false, "nodeManager": "bun"},
        "limits": {
            "maxCandidatesPerRoot": 1, "maxSkillsLoadedPerSource": 2, "maxSkillsInPrompt": 3,
            "maxSkillsPromptChars": 4, "maxSkillFileBytes": 5,
        },
    }));
    assert_eq!(config.allow_bundled, prowess_skills::AllowBundled::Only(["a", "b"].map(str::to_owned).into()));
    assert_eq!(config.extra_dirs, ["~/x", "y"]);
    assert_eq!((config.install.prefer_brew, config.install.node_manager.as_str()), (false, "bun"));
    let Limits { candidates_per_root, skills_per_root, prompt_skills, prompt_chars, file_bytes, .. } = config.limits;
    assert_eq!((candidates_per_root, skills_per_root, prompt_skills, prompt_chars, file_bytes), (1, 2, 3, 4, 5));
    for manager in ["npm", "pnpm", "yarn", "bun"] {
        assert_eq!(settings(&json!({"install": {"nodeManager": manager}})).install.node_manager, manager);
    }
    let (_, problems) = SkillsConfig::read(&json!({"install": {"nodeManager": "cargo"}}), Path::new("openclaw.json"));
    assert_eq!(kinds(&problems), [ProblemKind::Setting]);
}
