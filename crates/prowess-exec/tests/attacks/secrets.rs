//! A15, A16, A17: what reaches the environment of a child, and who else gets to see it?

use std::time::Duration;

use prowess_exec::SkillShare;
use prowess_policy::SandboxChoice;
use prowess_policy::env::EnvInputs;

use crate::attacks::target;
use crate::world::{World, always, call, yes};

/// A15: names that steer a process, from a caller and from a skill, in any case of letters, and values that would be two.
#[tokio::test]
async fn hijacking_variables_never_reach_a_child() {
    let names = [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "BASH_ENV",
        "ENV",
        "PATH",
        "HOME",
        "PS4",
        "IFS",
        "SHELLOPTS",
        "BASHOPTS",
        "BASH_FUNC_ls%%",
        "PROMPT_COMMAND",
        "ZDOTDIR",
        "NODE_OPTIONS",
        "NODE_PATH",
        "PYTHONSTARTUP",
        "PYTHONPATH",
        "PYTHONHOME",
        "PERL5OPT",
        "PERL5LIB",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "GIT_SSH_COMMAND",
        "GIT_EXTERNAL_DIFF",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_KEY_0",
        "GIT_EXEC_PATH",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "LESSOPEN",
        "MANPAGER",
        "GCONV_PATH",
        "GLIBC_TUNABLES",
        "HTTPS_PROXY",
        "SSL_CERT_FILE",
        "OPENCLAW_STATE_DIR",
        "PROWESS_X",
        "NPM_CONFIG_REGISTRY",
        "CARGO_TARGET_X_RUNNER",
        "RUSTC_WRAPPER",
        "MAKEFLAGS",
        "TAR_OPTIONS",
        "ld_preload",
        "Path",
        "bash_env",
        " LD_PRELOAD",
        "LD_PRELOAD\t",
    ]; // those that a shell, a loader, a language, a version control system or a pager goes by
    for name in names {
        let mut world = target(yes());
        let mut asked = call("touch mark");
        asked.env = vec![(name.to_owned(), "x".to_owned())];
        let result = world.call(&asked).await;
        assert!(result.is_error && !world.ws("mark").exists(), "caller {name:?}: {}", result.text());
        assert_eq!(world.endings(), ["refused"], "caller {name:?}");
        world.setting.skills = vec![SkillShare { vars: vec![(name.to_owned(), "x".into())], ..SkillShare::default() }];
        let result = world.run("touch mark").await;
        assert!(result.is_error && !world.ws("mark").exists(), "skill {name:?}: {}", result.text());
    }
    for (name, value) in [
        ("A", "x\0y"),
        ("A", "x\nLD_PRELOAD=/evil.so"),
        ("A", "x\r"),
        ("", "x"),
        ("A=B", "x"),
        ("1A", "x"),
        ("A B", "x"),
        ("Ä", "x"),
        ("A\0", "x"),
        ("A\nB", "x"),
    ] {
        let mut world = target(yes());
        let mut asked = call("touch mark");
        asked.env = vec![(name.to_owned(), value.to_owned())];
        let result = world.call(&asked).await;
        assert!(result.is_error && !world.ws("mark").exists(), "{name:?}={value:?}: {}", result.text());
        assert!(!result.text().contains("evil"), "values are not shown");
        world.setting.skills =
            vec![SkillShare { vars: vec![(name.to_owned(), value.into())], ..SkillShare::default() }];
        assert!(world.run("touch mark").await.is_error && !world.ws("mark").exists(), "skill {name:?}={value:?}");
    }
    let world = target(yes());
    let mut asked = call("touch mark && env");
    asked.env = vec![("GREETING".to_owned(), "hello".to_owned())];
    assert!(world.call(&asked).await.text().contains("GREETING=hello"), "the control: an ordinary name arrives");
}

/// A15: of the host's own variables only those on the list arrive.
#[tokio::test]
async fn what_the_host_has_in_its_environment_stays_there() {
    for sandbox in [SandboxChoice::Auto, SandboxChoice::Off] {
        let mut world = World::new(yes());
        world.setting.settings.sandbox = sandbox;
        let host = [
            "LD_PRELOAD",
            "AWS_SECRET_ACCESS_KEY",
            "OPENAI_API_KEY",
            "GITHUB_TOKEN",
            "SSH_AUTH_SOCK",
            "BASH_ENV",
            "HTTPS_PROXY",
            "DBUS_SESSION_BUS_ADDRESS",
            "RANDOM_NAME",
            "OPENCLAW_GATEWAY_TOKEN",
            "GIT_SSH_COMMAND",
            "BASH_FUNC_ls%%",
            "PS4",
            "EDITOR",
        ]; // secrets, sockets, and what would steer the child
        world.setting.host_env.extend(host.map(|name| (name.to_owned(), "canary-of-the-host".into())));
        world.setting.host_env.push(("LC_ALL".to_owned(), "C".into()));
        let result = world.run("env; tr '\\0' '\\n' < /proc/self/environ").await;
        let text = result.text();
        assert!(text.contains("OPENCLAW_SHELL=exec") && text.contains("LC_ALL=C"), "the control: {text}");
        assert!(!text.contains("canary-of-the-host"), "{text}");
        let known = ["PATH", "HOME", "LANG", "LC_ALL", "OPENCLAW_SHELL", "LESSSECURE", "TMPDIR", "PWD", "SHLVL", "_"];
        let names = text.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
        // What we say ourselves about editors, pagers and git.
        let own: Vec<String> = prowess_policy::env::quiet_variables().map(|(name, _)| name).collect();
        // And about the proxy.
        let is_proxy = |name: &str| {
            let name = name.to_lowercase();
            name.contains("proxy") || name == "java_tool_options" || name == "node_use_env_proxy"
        };
        let is_own =
            |name: &str| name.starts_with("GIT_CONFIG_") || is_proxy(name) || own.iter().any(|own| own == name);
        let strange: Vec<&str> = names.filter(|name| !known.contains(name) && !is_own(name)).collect();
        assert!(strange.is_empty(), "{strange:?}");
        assert!(!format!("{:?}", world.setting).contains("canary-of-the-host"), "nor in what is printed for debugging");
    }
}

/// A16, A17: a skill's secret is in the children of its own runs and nowhere else.
#[tokio::test]
async fn a_skills_secret_reaches_its_own_runs_only() {
    let canary = "canary-4711-of-skill-a";
    let mut world = World::new(always());
    let share = SkillShare { vars: vec![("A_API_KEY".to_owned(), canary.into())], ..SkillShare::default() };
    world.setting.skills = vec![share.clone()];
    let with = world.run("printenv").await;
    assert!(with.text().contains(canary), "the control: {}", with.text());
    // While a run with the secret is under way, another one looks into every process it can see.
    world.script("wait", "echo started > started; while [ ! -e done ]; do sleep 0.05; done");
    let mut waiting = call("./wait");
    waiting.background = true;
    world.exec.approver = yes();
    let background = world.call(&waiting).await;
    assert!(!background.is_error, "{}", background.text());
    while !world.ws("started").exists() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    world.setting.skills.clear();
    let probe = "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'; \
                 grep -rs canary-47 /tmp/prowess-* . ; echo looked";
    let without = world.run(probe).await;
    assert!(without.text().contains("looked"), "{}", without.text());
    assert!(!without.text().contains(canary), "{}", without.text());
    // The same probe outside every sandbox sees the run that is under way: it is there to be seen.
    world.setting.settings.sandbox = SandboxChoice::Off;
    let bare = world.run(probe).await;
    assert!(bare.text().contains(canary), "the control: {}", bare.text());
    world.file("done", "");
    let trail = std::fs::read_to_string(world.exec.audit.path()).expect("a trail");
    let approvals = std::fs::read_to_string(world.exec.approvals.path()).expect("approvals");
    assert!(approvals.contains("/usr/bin/printenv"), "the control: {approvals}");
    let secret_debug = {
        world.setting.skills = vec![share.clone()];
        let case = world.exec.judge(&call("env"), &world.setting).expect("it is judged");
        let vars = share.vars.clone();
        let inputs = EnvInputs { skill: &vars, ..EnvInputs::default() };
        format!("{case:?} {:?} {share:?} {inputs:?}", world.setting)
    };
    let details = background.details.to_string();
    for place in [&trail, &approvals, &secret_debug, &details] {
        assert!(!place.contains(canary), "{place}");
    }
}

/// A16: a result of a refused run names the variable, never its value.
#[tokio::test]
async fn a_refused_value_is_not_repeated() {
    let mut world = World::new(yes());
    let vars = vec![("A_API_KEY".to_owned(), "canary\nsecond".into())];
    world.setting.skills = vec![SkillShare { vars, ..SkillShare::default() }];
    let result = world.run("env").await;
    assert!(result.is_error && result.text().contains("A_API_KEY"), "{}", result.text());
    let trail = world.audit();
    assert!(!format!("{result:?}{trail:?}").contains("canary"), "{result:?} {trail:?}");
}

/// A17: arguments of other processes, which may hold a secret. Only root can keep them apart; see the survey.
#[tokio::test]
async fn the_arguments_of_others_are_not_to_be_seen_by_a_run_of_roots() {
    let mut other =
        std::process::Command::new("/usr/bin/sleep").args(["1000", "0.0000123"]).spawn().expect("a process");
    let look = format!("cat /proc/{}/cmdline", other.id());
    let mut world = World::new(yes());
    let confined = world.run(&look).await;
    world.setting.settings.sandbox = SandboxChoice::Off;
    let bare = world.run(&look).await;
    other.kill().expect("it runs");
    other.wait().expect("it ends");
    assert!(bare.text().contains("0.0000123"), "the control sees nothing: {}", bare.text());
    if rustix::process::geteuid().is_root() {
        assert!(!confined.text().contains("0.0000123"), "{}", confined.text());
    }
}
