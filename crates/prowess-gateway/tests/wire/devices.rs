//! Devices: how do they become known, and how are they forgotten?

use prowess_gateway::Identity;
use prowess_gateway::client::{CallError, Client, Introduction, Node};
use prowess_testkit::Tree;
use serde_json::{Value, json};

use crate::room::{Room, TOKEN};
use crate::wire::line::Line;

/// A node that was let in because it is on this machine.
pub(crate) async fn node(room: &Room) -> Client {
    let identity = Identity::generate().expect("an identity");
    let node = Introduction::node(identity, Node { commands: vec!["system.run".into()], ..Node::default() });
    Client::connect(&room.url(), &node.with_token(TOKEN)).await.expect("let in")
}

fn operator(identity: &Identity) -> Introduction {
    Introduction::operator(TOKEN).with_identity(identity.clone())
}

/// Connects as somebody behind a proxy that nobody knows, so as if from elsewhere.
async fn from_elsewhere(room: &Room, introduction: &Introduction) -> Value {
    from_elsewhere_line(room, introduction).await.1
}

/// The same, with the connection.
pub(crate) async fn from_elsewhere_line(room: &Room, introduction: &Introduction) -> (Line, Value) {
    let mut line = Line::open_from(room, &[("x-forwarded-for", "203.0.113.9")]).await;
    let nonce = line.nonce().await;
    let answer = line.ask("connect", introduction.answer_to(&nonce)).await;
    (line, answer)
}

#[tokio::test]
async fn a_device_on_this_machine_is_paired_silently_and_comes_back_with_its_token_alone() {
    let room = Room::open(Tree::new()).await;
    let identity = Identity::generate().expect("an identity");
    let first = Client::connect(&room.url(), &operator(&identity)).await.expect("let in");
    let auth = &first.hello()["auth"];
    assert_eq!(auth["role"], "operator");
    assert!(auth["issuedAtMs"].is_u64());
    let token = auth["deviceToken"].as_str().expect("a token");
    let alone = Introduction::operator("").with_device_token(token).with_identity(identity.clone());
    let again = Client::connect(&room.url(), &alone).await.expect("its own token is enough");
    assert_eq!(again.hello()["auth"]["deviceToken"], token);
    let stranger = Identity::generate().expect("an identity");
    let stolen = Introduction::operator("").with_device_token(token).with_identity(stranger);
    let refused = Client::connect(&room.url(), &stolen).await.expect_err("another device's token");
    assert_eq!(refused.details()["code"], "AUTH_DEVICE_TOKEN_MISMATCH");
    assert!(!refused.to_string().contains(token));
    room.running.end().await;
}

#[tokio::test]
async fn a_node_that_was_let_in_once_needs_no_secret_any_more() {
    let room = Room::open(Tree::new()).await;
    let home = Tree::new();
    let identity = Identity::generate().expect("an identity");
    let node = || Introduction::node(identity.clone(), Node::default()).remembering(home.root());
    let stranger = Client::connect(&room.url(), &node()).await.expect_err("it knows nothing");
    assert_eq!(stranger.details()["code"], "AUTH_TOKEN_MISSING");
    let first = Client::connect(&room.url(), &node().with_token(TOKEN)).await.expect("let in");
    let again = Client::connect(&room.url(), &node()).await.expect("it has a token of its own");
    assert_eq!(again.hello()["auth"]["deviceToken"], first.hello()["auth"]["deviceToken"]);
    let admin = room.operator().await;
    admin.call("device.token.rotate", json!({"deviceId": identity.id(), "role": "node"})).await.expect("another");
    let outdated = Client::connect(&room.url(), &node()).await.expect_err("it is worth nothing now");
    assert_eq!(outdated.details()["code"], "AUTH_DEVICE_TOKEN_MISMATCH");
    let forgotten = Client::connect(&room.url(), &node()).await.expect_err("it is not shown again");
    assert_eq!(forgotten.details()["code"], "AUTH_TOKEN_MISSING");
    room.running.end().await;
}

#[tokio::test]
async fn a_device_from_elsewhere_waits_until_somebody_approves_it() {
    let room = Room::open(Tree::new()).await;
    let admin = room.operator().await;
    let mut events = admin.events();
    let identity = Identity::generate().expect("an identity");
    let refused = from_elsewhere(&room, &operator(&identity)).await;
    assert_eq!(refused["error"]["code"], "NOT_PAIRED");
    let details = &refused["error"]["details"];
    assert_eq!((&details["code"], &details["reason"]), (&json!("PAIRING_REQUIRED"), &json!("not-paired")));
    let asked = heard(&mut events, "device.pair.requested").await;
    assert_eq!((&asked["requestId"], &asked["deviceId"]), (&details["requestId"], &json!(identity.id())));
    let list = admin.call("device.pair.list", json!({})).await.expect("a list");
    assert_eq!(list["pending"][0]["requestId"], details["requestId"]);
    let approved =
        admin.call("device.pair.approve", json!({"requestId": details["requestId"]})).await.expect("approved");
    assert_eq!(approved["device"]["deviceId"], identity.id());
    assert!(approved["device"]["tokens"][0].get("token").is_none(), "tokens are not shown");
    assert_eq!(heard(&mut events, "device.pair.resolved").await["decision"], "approved");
    assert_eq!(from_elsewhere(&room, &operator(&identity)).await["ok"], true);
    room.running.end().await;
}

#[tokio::test]
async fn a_made_up_device_does_not_let_anybody_guess_the_secret() {
    let config = "{ gateway: { auth: { mode: 'password', password: 'right' } } }";
    let room = Room::open(Tree::new().file(".openclaw/openclaw.json", config)).await;
    let guess = async |password: &str| {
        let identity = Identity::generate().expect("an identity");
        let guess = Introduction::operator("x").with_password(password).with_identity(identity);
        from_elsewhere(&room, &guess).await["error"]["details"]["code"].clone()
    };
    for _ in 0..10 {
        assert_eq!(guess("wrong").await, "AUTH_PASSWORD_MISMATCH");
    }
    assert_eq!(guess("right").await, "AUTH_RATE_LIMITED", "not even the right one is looked at");
    room.running.end().await;
}

#[tokio::test]
async fn a_device_that_shows_its_own_token_as_the_gateways_has_guessed_nothing() {
    let room = Room::open(Tree::new()).await;
    let identity = Identity::generate().expect("an identity");
    let first = Client::connect(&room.url(), &operator(&identity)).await.expect("let in");
    let token = first.hello()["auth"]["deviceToken"].as_str().expect("a token");
    let own = Introduction::operator(token).with_device_token(token).with_identity(identity.clone());
    for _ in 0..12 {
        assert_eq!(from_elsewhere(&room, &own).await["ok"], true);
    }
    assert_eq!(from_elsewhere(&room, &operator(&identity)).await["ok"], true, "nobody is locked out");
    room.running.end().await;
}

#[tokio::test]
async fn who_waits_and_asks_for_more_is_told_of_again() {
    let room = Room::open(Tree::new()).await;
    let admin = room.operator().await;
    let mut events = admin.events();
    let identity = Identity::generate().expect("an identity");
    let mut ids = Vec::new();
    for scopes in [&["operator.read"][..], &["operator.read", "operator.admin"]] {
        let refused = from_elsewhere(&room, &operator(&identity).with_scopes(scopes)).await;
        let asked = heard(&mut events, "device.pair.requested").await;
        assert_eq!(
            (&asked["requestId"], &asked["scopes"]),
            (&refused["error"]["details"]["requestId"], &json!(scopes))
        );
        ids.push(asked["requestId"].clone());
    }
    assert_ne!(ids[0], ids[1]);
    let old = admin.call("device.pair.approve", json!({"requestId": ids[0]})).await.expect_err("it asks for more now");
    assert_eq!(old.to_string(), "unknown requestId");
    admin.call("device.pair.approve", json!({"requestId": ids[1]})).await.expect("approved");
    room.running.end().await;
}

#[tokio::test]
async fn nobody_gives_a_device_more_than_they_have() {
    let room = Room::open(Tree::new()).await;
    let identity = Identity::generate().expect("an identity");
    let refused = from_elsewhere(&room, &operator(&identity)).await;
    let request = json!({"requestId": refused["error"]["details"]["requestId"]});
    let pairing = Introduction::operator(TOKEN).with_scopes(&["operator.pairing"]);
    let pairing = Client::connect(&room.url(), &pairing).await.expect("let in");
    let error = pairing.call("device.pair.approve", request.clone()).await.expect_err("it asks for more");
    assert_eq!(error.to_string(), "missing scope: operator.admin");
    let rejected = pairing.call("device.pair.reject", request.clone()).await.expect("rejected");
    assert_eq!(rejected["deviceId"], identity.id());
    let error = room.operator().await.call("device.pair.approve", request).await.expect_err("it is gone");
    assert_eq!(error.to_string(), "unknown requestId");
    room.running.end().await;
}

#[tokio::test]
async fn a_removed_or_revoked_device_is_sent_away_and_stays_away() {
    let room = Room::open(Tree::new()).await;
    let admin = room.operator().await;
    let identity = Identity::generate().expect("an identity");
    let guest = Client::connect(&room.url(), &operator(&identity)).await.expect("let in");
    let token = guest.hello()["auth"]["deviceToken"].as_str().expect("a token").to_owned();
    let role = json!({"deviceId": identity.id(), "role": "operator"});
    let rotated = admin.call("device.token.rotate", role.clone()).await.expect("a new token");
    assert_ne!(rotated["token"], token.as_str());
    let alone = |token: &str| Introduction::operator("").with_device_token(token).with_identity(identity.clone());
    assert!(Client::connect(&room.url(), &alone(&token)).await.is_err(), "the old token is worth nothing");
    let fresh = rotated["token"].as_str().expect("a token").to_owned();
    assert!(Client::connect(&room.url(), &alone(&fresh)).await.is_ok());
    admin.call("device.token.revoke", role).await.expect("revoked");
    assert!(guest.ended().await.contains("device token revoked"));
    assert!(Client::connect(&room.url(), &alone(&fresh)).await.is_err());
    let back = Client::connect(&room.url(), &operator(&identity)).await.expect("who knows the secret is let in");
    admin.call("device.pair.remove", json!({"deviceId": identity.id()})).await.expect("removed");
    assert!(back.ended().await.contains("device removed"));
    room.running.end().await;
}

#[tokio::test]
async fn a_proof_for_another_challenge_is_refused() {
    let room = Room::open(Tree::new()).await;
    let identity = Identity::generate().expect("an identity");
    let mut line = Line::open(&room).await;
    line.nonce().await;
    let refused = line.ask("connect", operator(&identity).answer_to("another")).await;
    let expected = json!({"code": "DEVICE_AUTH_NONCE_MISMATCH", "reason": "device-nonce-mismatch"});
    assert_eq!(refused["error"]["details"], expected);
    let mut line = Line::open(&room).await;
    let nonce = line.nonce().await;
    let mut params = operator(&identity).answer_to(&nonce);
    params["scopes"] = json!(["operator.read"]);
    let refused = line.ask("connect", params).await;
    assert_eq!(refused["error"]["details"]["code"], "DEVICE_AUTH_SIGNATURE_INVALID", "other scopes than were signed");
    room.running.end().await;
}

#[tokio::test]
async fn our_own_programs_are_not_paired() {
    let room = Room::open(Tree::new()).await;
    let identity = Identity::generate().expect("an identity");
    let backend = Introduction::backend(TOKEN).with_identity(identity);
    let backend = Client::connect(&room.url(), &backend).await.expect("let in");
    assert!(backend.hello().get("auth").is_none());
    let list = backend.call("device.pair.list", json!({})).await.expect("a list");
    assert_eq!(list, json!({"pending": [], "paired": []}));
    room.running.end().await;
}

#[tokio::test]
async fn a_device_that_was_an_operator_does_not_become_a_node_by_itself() {
    let room = Room::open(Tree::new()).await;
    let identity = Identity::generate().expect("an identity");
    Client::connect(&room.url(), &operator(&identity)).await.expect("let in");
    let node = Introduction::node(identity, Node::default()).with_token(TOKEN);
    let refused = Client::connect(&room.url(), &node).await.expect_err("another role");
    assert_eq!((refused.code(), &refused.details()["reason"]), (Some("NOT_PAIRED"), &json!("role-upgrade")));
    assert!(matches!(refused, CallError::Refused { .. }));
    room.running.end().await;
}

async fn heard(events: &mut tokio::sync::broadcast::Receiver<prowess_gateway::client::Event>, name: &str) -> Value {
    loop {
        let event =
            tokio::time::timeout(crate::wire::line::PATIENCE, events.recv()).await.expect("in time").expect("an event");
        if event.name == name {
            return event.payload;
        }
    }
}
