//! The claims about snapshots.

use prowess_skills::{Filters, World};
use prowess_testkit::Tree;
use serde_json::Value;

use crate::conformance::{host, load, machine, names, only, take, take_for};

// M-SNAP-01, M-SNAP-02, M-SNAP-03, M-SNAP-04
#[test]
fn m_snap_01_02_03_04_what_a_snapshot_holds() {
    let needs = "metadata: {openclaw: {primaryEnv: KEY, requires: {env: [KEY, MORE]}}}";
    let hidden = format!("disable-model-invocation: true\n{needs}");
    let tree = Tree::new().dir("extra").skill("ws/skills/hidden", "H", &hidden).skill("ws/skills/shown", "S", "");
    let catalog = load(&tree.skill("ws/skills/unmet", "U", "metadata: {openclaw: {requires: {bins: [x]}}}"));
    let world = World { env: ["KEY", "MORE"].map(str::to_owned).into(), ..host(&[]) };
    let snapshot = take_for(&catalog, &world, &Value::Null, &Filters::default());
    assert!(snapshot.prompt().text.starts_with("<available_skills>"));
    assert_eq!(snapshot.fingerprint().to_string().len(), 64);
    assert_eq!(names(snapshot.skills()), ["hidden", "shown"]);
    let record = &snapshot.skills()[0].metadata;
    assert_eq!((record.primary_env.as_deref(), record.needs.env.join(" ")), (Some("KEY"), "KEY MORE".to_owned()));
    assert_eq!(names(snapshot.visible()), ["shown"]);
    assert_eq!(snapshot.filter(), None);
    let filters = Filters { agent: only(&["shown"]), ..Filters::default() };
    let filtered = take_for(&catalog, &world, &Value::Null, &filters);
    assert_eq!(filtered.filter(), Some(&["shown".to_owned()][..]));
}

// M-SNAP-08, M-SNAP-09
#[test]
fn m_snap_08_09_equal_content_has_an_equal_fingerprint() {
    let tree = Tree::new().dir("extra").skill("ws/skills/a", "One", "");
    let first = take(&load(&tree)).fingerprint();
    let tree = tree.skill("ws/skills/a", "One", ""); // written anew, with the same bytes
    assert_eq!(take(&load(&tree)).fingerprint(), first);
    let tree = tree.skill("ws/skills/a", "Two", "");
    assert_ne!(take(&load(&tree)).fingerprint(), first);
}

#[test]
fn m_snap_11_remote_machines_are_part_of_a_snapshot() {
    let tree = Tree::new().dir("extra").skill("ws/skills/a", "A", "metadata: {openclaw: {requires: {bins: [remote]}}}");
    let catalog = load(&tree);
    let alone = take(&catalog);
    let note = Some("The node `mac` can run commands.".to_owned());
    let machines = vec![machine("linux", &[]), machine("darwin", &["remote"])];
    let world = World { machines, note, ..World::default() };
    let snapshot = take_for(&catalog, &world, &Value::Null, &Filters::default());
    assert_eq!((alone.skills().len(), names(snapshot.skills())), (0, vec!["a"]));
    assert!(snapshot.prompt().text.starts_with("The node `mac` can run commands.\n<available_skills>"));
    assert_ne!(snapshot.fingerprint(), alone.fingerprint());
}
