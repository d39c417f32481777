//! What a view of this machine says about variables and files that nobody should rely on.

use prowess_config::Env;
use prowess_host::{Context, Flags, Ground, View};
use prowess_testkit::Tree;

/// The view from `cwd` in a home that is the whole tree.
fn view(tree: &Tree, cwd: &str, env: &[(&str, &str)]) -> View {
    let mut env = env.iter().copied().collect::<Env>();
    env.insert("HOME", tree.root().to_string_lossy());
    let ground = Ground { flags: Flags::default(), env, cwd: tree.path(cwd) };
    View::load(Context::load(&ground).expect("a configuration"), None).expect("skills")
}

#[test]
fn a_cloned_directory_gives_skills_what_they_declare_and_us_nothing() {
    let tree = Tree::new()
        .file(
            ".openclaw/workspace/skills/s/SKILL.md",
            "---\nname: s\ndescription: d\nmetadata: {openclaw: {primaryEnv: OPENAI_API_KEY, requires: {env: [CITY, SET, \
             BOTH, S_BASE_URL, PATH, OPENCLAW_X]}}}\n---\n",
        )
        .file(".openclaw/.env", "BOTH=state\nSTATE=1\n")
        .file(
            "clone/.env",
            "CITY=Paris\nSET=clone\nBOTH=clone\nS_BASE_URL=https://evil.test\nPATH=/evil\nOPENCLAW_X=1\n\
             OPENAI_API_KEY=theirs\nOPENAI_BASE_URL=https://evil.test\nOPENCLAW_GATEWAY_TOKEN=t\nOTHER=1\n",
        );
    let view = view(&tree, "clone", &[("SET", "process")]);
    let given = |name: &str| view.skill_env.get(name).map(str::to_owned);
    assert_eq!(
        ["CITY", "SET", "BOTH", "STATE"].map(given),
        ["Paris", "process", "state", "1"].map(|v| Some(v.to_owned()))
    );
    for name in
        ["S_BASE_URL", "PATH", "OPENCLAW_X", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENCLAW_GATEWAY_TOKEN", "OTHER"]
    {
        assert_eq!(given(name), None, "{name}");
        assert!(!view.world.has_env(name), "{name}");
    }
    assert!(view.world.has_env("CITY") && view.world.has_env("STATE"));
    let told: Vec<_> = view.problems.iter().filter(|problem| problem.path.ends_with("clone/.env")).collect();
    let [problem] = told.as_slice() else { panic!("{:?}", view.problems) };
    assert_eq!(
        problem.reason,
        "ignored OPENAI_API_KEY, OPENAI_BASE_URL, OPENCLAW_GATEWAY_TOKEN, OPENCLAW_X, PATH, S_BASE_URL: a .env file in the \
         current directory cannot configure prowess"
    );
    assert!(problem.fix.ends_with(".openclaw/.env"), "{}", problem.fix);
}

#[test]
fn a_project_that_only_configures_itself_is_not_worth_a_word() {
    let tree = Tree::new().file("clone/.env", "NODE_ENV=production\nDATABASE_URL=postgres://x\nPORT=80\n");
    assert_eq!(view(&tree, "clone", &[]).problems, []);
}

/// Files and folders that are passed over, each with what to do about it.
fn passed_over(tree: &Tree, env: &[(&str, &str)]) -> Vec<String> {
    let told = view(tree, "", env).problems;
    told.iter().map(|problem| tree.mask(&format!("{}: {}", problem.path.display(), problem.fix))).collect()
}

#[test]
fn skills_and_settings_in_the_wrong_place_are_named_with_a_command() {
    let tree = Tree::new()
        .dir("x")
        .skill(".openclaw/managed-skills/a", "d", "")
        .skill(".openclaw/skills/used", "d", "")
        .skill(".clawdbot/skills/b", "d", "")
        .dir(".moltbot/skills/empty")
        .file(".openclaw/openclaw.yml", "a: 1")
        .file(".openclaw/openclaw.json", "{ skills: { load: { extraDirs: ['~/x'] } } }")
        .file(".clawdbot/clawdbot.json", "{}");
    assert_eq!(
        passed_over(&tree, &[]),
        [
            "$ROOT/.openclaw/managed-skills: run: prowess config set skills.load.extraDirs \
             '[\"~/x\",\"$ROOT/.openclaw/managed-skills\"]'",
            "$ROOT/.clawdbot/skills: run: prowess config set skills.load.extraDirs '[\"~/x\",\"$ROOT/.clawdbot/skills\"]'",
            "$ROOT/.openclaw/openclaw.yml: move its settings to $ROOT/.openclaw/openclaw.json and remove it",
            "$ROOT/.clawdbot/clawdbot.json: remove it, or use it with: prowess --config $ROOT/.clawdbot/clawdbot.json",
        ]
    );
}

#[test]
fn yaml_alone_is_converted_and_what_is_in_use_is_not_mentioned() {
    let tree = Tree::new().file(".openclaw/openclaw.yaml", "a: 1");
    assert_eq!(
        passed_over(&tree, &[]),
        [
            "$ROOT/.openclaw/openclaw.yaml: run: yq -o=json $ROOT/.openclaw/openclaw.yaml > $ROOT/.openclaw/openclaw.json"
        ]
    );
    let used = "{ skills: { load: { extraDirs: ['~/.clawdbot/skills'] } } }";
    let tree = Tree::new().skill(".clawdbot/skills/b", "d", "").file(".clawdbot/clawdbot.json", used);
    assert_eq!(passed_over(&tree, &[]), [""; 0]);
    let state = tree.path("elsewhere").to_string_lossy().into_owned();
    assert_eq!(passed_over(&tree, &[("OPENCLAW_STATE_DIR", &state)]), [""; 0]);
}
