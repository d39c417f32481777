//! Keys that a skill could use, if a person agreed: who gets them, for how long, and what happens when nobody is there?

#![cfg(target_os = "linux")]

use crate::world;
use std::sync::Arc;

use prowess_exec::approver::{Approver, Nobody};
use prowess_exec::{SkillShare, WithheldKey};
use prowess_policy::Answer;
use prowess_policy::lease::Lease;
use prowess_policy::ownership::OwnCommands;
use prowess_policy::posture::{Ask, Security};
use world::{World, answering};

const REMEDY: &str = "prowess config set skills.entries.vault.capabilities.env '[\"VAULT_TOKEN\"]'";

/// A skill whose own command is `printenv`, and that declares a variable of the host.
fn skill(name: &str) -> SkillShare {
    let key = WithheldKey { name: "VAULT_TOKEN".to_owned(), value: "canary-77".into(), remedy: REMEDY.to_owned() };
    SkillShare {
        name: name.to_owned(),
        source: format!("workspace:/skills/{name}"),
        own: Some(OwnCommands { programs: vec!["printenv".to_owned()], ..OwnCommands::default() }),
        declared: Lease { keys: vec!["VAULT_TOKEN".to_owned()], ..Lease::default() },
        withheld: vec![key],
        ..SkillShare::default()
    }
}

fn world(approver: Arc<dyn Approver>, security: Security) -> World {
    let mut world = World::new(approver);
    world.setting.settings.security = Some(security);
    world.setting.skills = vec![skill("vault")];
    world.allow(&["/usr/bin/printenv", "/usr/bin/env"]);
    world
}

#[tokio::test]
async fn a_key_is_asked_about_and_given_for_as_long_as_was_said() {
    for security in [Security::Allowlist, Security::Contained] {
        let (approver, asked) = answering(&[Answer::No, Answer::Once, Answer::Once, Answer::Session, Answer::Always]);
        let mut world = world(approver, security);
        let refused = world.run("printenv VAULT_TOKEN").await.text();
        assert!(refused.contains("the user said no") && !refused.contains("canary"), "{refused}");
        assert_eq!(world.run("printenv VAULT_TOKEN").await.text(), "canary-77", "once");
        assert_eq!(world.run("printenv VAULT_TOKEN").await.text(), "canary-77", "asked again");
        assert_eq!(world.run("printenv VAULT_TOKEN").await.text(), "canary-77", "for the session");
        assert_eq!(world.run("printenv VAULT_TOKEN").await.text(), "canary-77", "held");
        assert_eq!(asked.lock().unwrap().len(), 4);
        assert!(asked.lock().unwrap().iter().all(|phrases| *phrases == ["use the key VAULT_TOKEN"]));
        world.setting.session = "another".to_owned();
        assert_eq!(world.run("printenv VAULT_TOKEN").await.text(), "canary-77", "always");
        world.setting.session = "a third".to_owned();
        assert_eq!(world.run("printenv VAULT_TOKEN").await.text(), "canary-77", "still");
        assert_eq!(asked.lock().unwrap().len(), 5);
        let stored = std::fs::read_to_string(world.exec.leases.path()).expect("a lease");
        assert!(stored.contains("VAULT_TOKEN") && !stored.contains("canary"), "{stored}");
        // Another skill of the same name, and another skill, hold nothing of it.
        world.setting.skills[0].source = "workspace:/elsewhere/vault".to_owned();
        let text = world.run("printenv VAULT_TOKEN").await.text();
        assert!(text.contains("exec denied") && !text.contains("canary"), "{text}");
        world.setting.skills = vec![skill("other")];
        let text = world.run("printenv VAULT_TOKEN").await.text();
        assert!(text.contains("exec denied") && !text.contains("canary"), "{text}");
        assert_eq!(asked.lock().unwrap().len(), 7);
    }
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_result_says_what_to_type() {
    for security in [Security::Allowlist, Security::Contained] {
        let world = world(Arc::new(Nobody), security);
        let text = world.run("printenv VAULT_TOKEN").await.text();
        let typed = "prowess leases allow --skill vault --key VAULT_TOKEN";
        assert!(text.contains("use the key VAULT_TOKEN") && text.contains(typed), "{text}");
        assert!(!text.contains("canary"), "{text}");
    }
}

#[tokio::test]
async fn where_nothing_is_asked_the_command_runs_without_the_key() {
    for (security, ask) in [(Security::Full, Ask::OnMiss), (Security::Full, Ask::Off), (Security::Allowlist, Ask::Off)]
    {
        let mut world = world(Arc::new(Nobody), security);
        world.setting.settings.ask = Some(ask);
        let text = world.run("printenv").await.text();
        assert!(text.contains("PATH=") && !text.contains("canary"), "{text}");
        assert!(text.contains("runs without VAULT_TOKEN") && text.contains(REMEDY), "{text}");
        // The control: what the settings give is there, and nobody is told anything.
        let key = world.setting.skills[0].withheld.remove(0);
        world.setting.skills[0].vars = vec![(key.name, key.value)];
        let text = world.run("printenv").await.text();
        assert!(text.contains("VAULT_TOKEN=canary-77") && !text.contains("Warning"), "{text}");
    }
}

#[tokio::test]
async fn a_command_that_is_not_the_skills_own_gets_no_key_and_no_question() {
    let (approver, asked) = answering(&[Answer::Always]);
    let world = world(approver, Security::Contained);
    assert_eq!(world.run("printenv VAULT_TOKEN").await.text(), "canary-77", "the control");
    for command in ["env", "cat /proc/self/environ", "bash -c 'printenv VAULT_TOKEN'", "env printenv VAULT_TOKEN"] {
        let text = world.run(command).await.text();
        assert!(!text.contains("canary"), "{command}: {text}");
    }
    assert_eq!(asked.lock().unwrap().len(), 1);
}
