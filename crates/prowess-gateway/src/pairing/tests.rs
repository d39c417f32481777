use serde_json::json;

use super::*;

const NOW: u64 = 1_794_709_298_373;

struct Desk {
    pairing: Pairing,
    dir: tempfile::TempDir,
}

impl Desk {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        Self { pairing: Pairing::new(dir.path()), dir }
    }

    fn file(&self, name: &str) -> Value {
        let text = std::fs::read_to_string(self.dir.path().join("devices").join(name)).expect("the file");
        serde_json::from_str(&text).expect("JSON")
    }

    fn silent(&self, wish: &Wish) -> Admission {
        self.pairing.admit(wish, NOW).expect("an answer")
    }

    fn asked(&self, wish: &Wish, now: u64) -> (Pending, Reason, bool) {
        let wish = Wish { approval: Approval::Asked, ..wish.clone() };
        match self.pairing.admit(&wish, now).expect("an answer") {
            Admission::Asked { pending, reason, is_new } => (*pending, reason, is_new),
            other => panic!("nobody was asked: {other:?}"),
        }
    }
}

/// What a device wants that is nobody's in particular.
pub(crate) fn wish(role: Role, scopes: &[&str]) -> Wish {
    Wish {
        device: "d1".into(),
        public_key: "k1".into(),
        role,
        scopes: scopes.iter().map(|&scope| scope.to_owned()).collect(),
        display_name: Some("box".into()),
        platform: "linux".into(),
        family: None,
        client: "cli".into(),
        mode: "cli".into(),
        remote_ip: None,
        approval: Approval::Silent,
    }
}

fn operator(scopes: &[&str]) -> Wish {
    wish(Role::Operator, scopes)
}

fn anything(_: &str) -> bool {
    true
}

#[test]
fn a_local_device_is_approved_at_once_and_known_from_then_on() {
    let desk = Desk::new();
    let Admission::Approved { token, .. } = desk.silent(&operator(&["operator.read"])) else { panic!("not approved") };
    assert_eq!((token.role.as_str(), token.scopes.as_slice()), ("operator", ["operator.read".to_owned()].as_slice()));
    let Admission::Known(again) = desk.silent(&operator(&["operator.read"])) else { panic!("not known") };
    assert_eq!(again.token, token.token);
    let stored = desk.file("paired.json");
    let keys: Vec<&str> = stored["d1"].as_object().expect("a record").keys().map(String::as_str).collect();
    let known = [
        "deviceId",
        "publicKey",
        "displayName",
        "platform",
        "clientId",
        "clientMode",
        "role",
        "roles",
        "scopes",
        "approvedScopes",
        "tokens",
        "createdAtMs",
        "approvedAtMs",
    ];
    assert_eq!(keys, known);
    assert!(desk.pairing.list(NOW).expect("a list").0.is_empty());
}

#[test]
fn a_device_from_elsewhere_waits_for_a_person_and_asks_once() {
    let desk = Desk::new();
    let (first, reason, is_new) = desk.asked(&operator(&["operator.read"]), NOW);
    assert_eq!((reason, is_new), (Reason::NotPaired, true));
    let (again, _, is_new) = desk.asked(&operator(&["operator.read"]), NOW + 1);
    assert_eq!((again.request_id.as_str(), is_new), (first.request_id.as_str(), false));
    let silent = desk.silent(&operator(&["operator.read"]));
    assert!(matches!(silent, Admission::Asked { .. }), "what a person was asked about, a person decides");
    let paired = desk.pairing.approve(&first.request_id, anything, NOW).expect("approved");
    assert_eq!(paired.shown()["tokens"][0]["role"], "operator");
    assert!(!paired.shown().to_string().contains(&paired.tokens["operator"].token));
    assert!(matches!(desk.silent(&operator(&["operator.read"])), Admission::Known(_)));
}

#[test]
fn who_asks_for_more_asks_anew() {
    let wider = [operator(&["operator.read", "operator.admin"]), operator(&["operator.admin"]), wish(Role::Node, &[])];
    for wider in wider {
        let desk = Desk::new();
        let (first, ..) = desk.asked(&operator(&["operator.read"]), NOW);
        let (second, _, is_new) = desk.asked(&wider, NOW + 1);
        assert!(is_new && second.request_id != first.request_id, "{wider:?}");
        assert!(second.scopes.contains(&"operator.read".to_owned()), "what was asked before is still asked");
        assert_eq!(desk.pairing.list(NOW + 1).expect("a list").0.len(), 1);
        let seen_before = desk.pairing.approve(&first.request_id, anything, NOW + 1);
        assert!(matches!(seen_before, Err(PairingError::UnknownRequest)), "nobody approves what they have not seen");
        let (third, _, is_new) = desk.asked(&operator(&["operator.read"]), NOW + 2);
        assert!(!is_new && third.request_id == second.request_id, "less is no news");
        desk.pairing.approve(&third.request_id, anything, NOW + 2).expect("approved");
    }
}

#[test]
fn who_was_removed_comes_back_only_with_a_persons_word() {
    let desk = Desk::new();
    desk.silent(&operator(&["operator.read"]));
    desk.pairing.remove("d1", NOW).expect("removed");
    let Admission::Asked { pending, reason, .. } = desk.silent(&operator(&["operator.read"])) else { panic!("let in") };
    assert_eq!(reason, Reason::NotPaired);
    desk.pairing.approve(&pending.request_id, anything, NOW).expect("approved");
    assert!(matches!(desk.silent(&operator(&["operator.read"])), Admission::Known(_)));
    assert!(matches!(desk.silent(&operator(&["operator.admin"])), Admission::Approved { .. }), "it is like any other");
}

#[test]
fn a_request_is_forgotten_after_five_minutes() {
    let desk = Desk::new();
    let (first, ..) = desk.asked(&operator(&[]), NOW);
    assert_eq!(desk.pairing.list(NOW + PENDING_TTL).expect("a list").0.len(), 1);
    assert_eq!(desk.pairing.list(NOW + PENDING_TTL + 1).expect("a list").0.len(), 0);
    let late = desk.pairing.approve(&first.request_id, anything, NOW + PENDING_TTL + 1);
    assert!(matches!(late, Err(PairingError::UnknownRequest)));
}

#[test]
fn another_role_or_another_kind_of_machine_needs_a_person_even_here() {
    let desk = Desk::new();
    desk.silent(&operator(&["operator.read"]));
    let Admission::Asked { reason, pending, .. } = desk.silent(&wish(Role::Node, &[])) else { panic!("let in") };
    assert_eq!((reason, pending.is_repair), (Reason::RoleUpgrade, Some(true)));
    desk.pairing.reject(&pending.request_id, NOW).expect("rejected");
    let other = Wish { platform: "darwin".into(), ..operator(&["operator.read"]) };
    let Admission::Asked { reason, .. } = desk.silent(&other) else { panic!("let in") };
    assert_eq!(reason, Reason::MetadataUpgrade);
    let same = Wish { platform: " Linux".into(), family: Some("Any".into()), ..operator(&["operator.read"]) };
    assert!(matches!(desk.silent(&same), Admission::Known(_)));
}

#[test]
fn more_scopes_are_given_silently_here_and_asked_for_elsewhere() {
    let desk = Desk::new();
    desk.silent(&operator(&["operator.write"]));
    assert!(matches!(desk.silent(&operator(&["operator.read"])), Admission::Known(_)), "write covers read");
    assert_eq!(desk.asked(&operator(&["operator.admin"]), NOW).1, Reason::ScopeUpgrade);
    let desk = Desk::new();
    desk.silent(&operator(&["operator.read"]));
    let Admission::Approved { token, .. } = desk.silent(&operator(&["operator.admin"])) else { panic!("not approved") };
    assert_eq!(token.scopes, ["operator.admin"]);
}

#[test]
fn nobody_gives_more_than_they_have() {
    let desk = Desk::new();
    let (pending, ..) = desk.asked(&operator(&["operator.read", "operator.admin"]), NOW);
    let own = |scope: &str| scope != "operator.admin";
    let refused = desk.pairing.approve(&pending.request_id, own, NOW).expect_err("too much");
    assert_eq!(refused.to_string(), "missing scope: operator.admin");
    desk.pairing.approve(&pending.request_id, anything, NOW).expect("approved");
    let rotated = desk.pairing.rotate("d1", "operator", Some(vec!["operator.admin".into()]), own, NOW);
    assert!(matches!(rotated, Err(PairingError::BeyondOwn(_))));
    let rotated = desk.pairing.rotate("d1", "operator", Some(vec!["operator.read".into()]), own, NOW);
    assert_eq!(rotated.expect("a token").scopes, ["operator.read"]);
    let beyond = desk.pairing.rotate("d1", "operator", Some(vec!["operator.x".into(), "y".into()]), anything, NOW);
    assert!(matches!(beyond, Err(PairingError::UnknownRole)), "no more than was approved once");
}

#[test]
fn a_token_is_good_until_it_is_rotated_or_revoked() {
    let desk = Desk::new();
    let Admission::Approved { token, .. } = desk.silent(&operator(&["operator.write"])) else { panic!("not approved") };
    let knows = |token: &str, role: Role, scopes: &[&str]| {
        let scopes: Vec<String> = scopes.iter().map(|&scope| scope.to_owned()).collect();
        desk.pairing.knows_token("d1", role, &scopes, token, NOW).expect("an answer")
    };
    assert!(knows(&token.token, Role::Operator, &["operator.read"]));
    assert!(!knows(&token.token, Role::Operator, &["operator.admin"]));
    assert!(!knows(&token.token, Role::Node, &[]));
    assert!(!knows("", Role::Operator, &[]) && !knows("x", Role::Operator, &[]));
    assert_eq!(desk.file("paired.json")["d1"]["tokens"]["operator"]["lastUsedAtMs"], NOW);
    let rotated = desk.pairing.rotate("d1", "operator", None, anything, NOW).expect("a token");
    assert!(!knows(&token.token, Role::Operator, &[]));
    assert!(knows(&rotated.token, Role::Operator, &[]));
    desk.pairing.revoke("d1", "operator", NOW).expect("revoked");
    assert!(!knows(&rotated.token, Role::Operator, &[]));
    assert!(matches!(desk.pairing.revoke("d1", "node", NOW), Err(PairingError::UnknownRole)));
    let Admission::Known(fresh) = desk.silent(&operator(&["operator.write"])) else { panic!("not known") };
    assert_ne!(fresh.token, rotated.token, "who knows the shared secret gets a new one");
}

#[test]
fn a_removed_device_is_unknown() {
    let desk = Desk::new();
    desk.silent(&operator(&[]));
    desk.pairing.remove("d1", NOW).expect("removed");
    assert!(desk.pairing.list(NOW).expect("a list").1.is_empty());
    assert!(matches!(desk.pairing.remove("d1", NOW), Err(PairingError::UnknownDevice)));
    assert_eq!(desk.asked(&operator(&[]), NOW).1, Reason::NotPaired);
}

#[test]
fn what_others_wrote_is_kept_and_a_broken_file_lets_nobody_in() {
    let desk = Desk::new();
    desk.silent(&operator(&["operator.read"]));
    let path = desk.dir.path().join("devices/paired.json");
    let mut stored = desk.file("paired.json");
    stored["d1"]["pushToken"] = json!({"apns": "x"});
    stored["other"] = json!("odd");
    std::fs::write(&path, stored.to_string()).expect("written");
    desk.pairing.rotate("d1", "operator", None, anything, NOW).expect("a token");
    let after = desk.file("paired.json");
    assert_eq!((&after["d1"]["pushToken"], &after["other"]), (&json!({"apns": "x"}), &json!("odd")));
    std::fs::write(&path, "{").expect("written");
    assert!(matches!(desk.pairing.admit(&operator(&[]), NOW), Err(PairingError::File(_))));
    assert_eq!(std::fs::read_to_string(&path).expect("the file"), "{");
}

#[test]
fn only_so_many_wait_at_once() {
    let desk = Desk::new();
    for index in 0..MAX_PENDING {
        desk.asked(&Wish { device: index.to_string(), ..operator(&[]) }, NOW);
    }
    let more = Wish { device: "more".into(), approval: Approval::Asked, ..operator(&[]) };
    let more = desk.pairing.admit(&more, NOW);
    assert!(matches!(more, Err(PairingError::Full)));
}

#[test]
fn files_are_for_us_alone() {
    let desk = Desk::new();
    desk.silent(&operator(&[]));
    desk.asked(&Wish { device: "d2".into(), ..operator(&[]) }, NOW);
    for name in ["paired.json", "pending.json"] {
        let about = desk.dir.path().join("devices").join(name).metadata().expect("the file");
        assert_eq!(std::os::unix::fs::PermissionsExt::mode(&about.permissions()) & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_no_is_not_asked_again_at_once_unless_more_is_wanted() {
    let desk = Desk::new();
    let (first, ..) = desk.asked(&operator(&["operator.read"]), NOW);
    desk.pairing.reject(&first.request_id, NOW).expect("rejected");
    let again = Wish { approval: Approval::Asked, ..operator(&["operator.read"]) };
    assert!(matches!(desk.pairing.admit(&again, NOW + 1), Err(PairingError::Rejected)));
    assert!(desk.pairing.list(NOW + 1).expect("a list").0.is_empty(), "nobody is asked");
    desk.asked(&operator(&["operator.admin"]), NOW + 2);
    desk.asked(&operator(&["operator.read"]), NOW + REJECTED_TTL);
}
