//! Scopes: how does a client that is connected get to do more, and who cannot?

use prowess_gateway::Identity;
use prowess_gateway::client::{Client, Introduction};
use prowess_testkit::Tree;
use serde_json::{Value, json};

use crate::room::{Room, TOKEN};
use crate::wire::devices::from_elsewhere_line;
use crate::wire::line::Line;

const READ: &[&str] = &["operator.read"];

#[tokio::test]
async fn who_knows_the_secret_gets_more_when_it_asks_for_it() {
    let room = Room::open(Tree::new()).await;
    let client = Client::connect(&room.url(), &Introduction::operator(TOKEN).with_scopes(READ)).await.expect("let in");
    let refused = client.call("exec.approvals.get", json!({})).await.expect_err("it only reads");
    assert_eq!(refused.to_string(), "missing scope: operator.admin");
    let more = client.call("operator.scopes.request", json!({"scopes": ["operator.admin"]})).await.expect("more");
    assert_eq!(more, json!({"scopes": ["operator.read", "operator.admin"]}));
    client.call("exec.approvals.get", json!({})).await.expect("an administrator");
    let odd = client.call("operator.scopes.request", json!({"scopes": ["operator.root"]})).await.expect_err("no scope");
    assert!(odd.to_string().contains("unknown scope"), "{odd}");
    let node = crate::wire::devices::node(&room).await;
    let refused = node.call("operator.scopes.request", json!({"scopes": ["operator.read"]})).await.expect_err("a node");
    assert_eq!(refused.to_string(), "unauthorized role: node");
    room.running.end().await;
}

#[tokio::test]
async fn a_device_gets_more_once_a_person_has_approved_it_and_keeps_its_connection() {
    let room = Room::open(Tree::new()).await;
    let admin = room.operator().await;
    let identity = Identity::generate().expect("an identity");
    let own = || Introduction::operator(TOKEN).with_identity(identity.clone()).with_scopes(READ);
    let (_, refused) = from_elsewhere_line(&room, &own()).await;
    let request = json!({"requestId": refused["error"]["details"]["requestId"]});
    admin.call("device.pair.approve", request).await.expect("approved");
    let (mut line, hello) = from_elsewhere_line(&room, &own()).await;
    assert_eq!(hello["payload"]["auth"]["scopes"], json!(READ));
    let before = hello["payload"]["auth"]["deviceToken"].clone();
    let wanted = json!({"scopes": ["operator.write"]});
    let refused = line.ask("operator.scopes.request", wanted.clone()).await;
    let details = &refused["error"]["details"];
    assert_eq!((&details["code"], &details["reason"]), (&json!("PAIRING_REQUIRED"), &json!("scope-upgrade")));
    let list = admin.call("device.pair.list", json!({})).await.expect("a list");
    assert_eq!(list["pending"][0]["scopes"], json!(["operator.read", "operator.write"]));
    admin.call("device.pair.approve", json!({"requestId": details["requestId"]})).await.expect("approved");
    let more = line.ask("operator.scopes.request", wanted).await;
    assert_eq!(more["payload"]["scopes"], json!(["operator.read", "operator.write"]));
    let token = more["payload"]["auth"]["deviceToken"].as_str().expect("a token").to_owned();
    assert_eq!(before, token.as_str(), "who was asked for more does not lose what it has");
    let alone = Introduction::operator("").with_device_token(&token).with_identity(identity.clone());
    let (_, again) = from_elsewhere_line(&room, &alone.with_scopes(&["operator.read", "operator.write"])).await;
    assert_eq!(again["ok"], true, "{again}");
    room.running.end().await;
}

#[tokio::test]
async fn a_request_that_was_refused_is_not_made_again_at_once() {
    let room = Room::open(Tree::new()).await;
    let admin = room.operator().await;
    let identity = Identity::generate().expect("an identity");
    let own = || Introduction::operator(TOKEN).with_identity(identity.clone()).with_scopes(READ);
    let (_, refused) = from_elsewhere_line(&room, &own()).await;
    let request = json!({"requestId": refused["error"]["details"]["requestId"]});
    admin.call("device.pair.reject", request).await.expect("rejected");
    let (_, refused) = from_elsewhere_line(&room, &own()).await;
    assert_eq!(refused["error"]["details"], json!({"code": "PAIRING_REQUIRED", "reason": "rejected"}));
    assert_eq!(admin.call("device.pair.list", json!({})).await.expect("a list")["pending"], json!([]));
    room.running.end().await;
}

#[tokio::test]
async fn a_user_behind_a_proxy_is_no_administrator_unless_the_operator_says_so() {
    let config = "{ gateway: { trustedProxies: ['127.0.0.1'], auth: { mode: 'trusted-proxy', trustedProxy: {
        userHeader: 'x-user', scopes: { ann: ['operator.admin'] } } } } }";
    let room = Room::open(Tree::new().file(".openclaw/openclaw.json", config)).await;
    let all = Introduction::operator("");
    for (user, held, may) in [
        (
            "ann",
            json!(["operator.read", "operator.write", "operator.approvals", "operator.pairing", "operator.admin"]),
            true,
        ),
        ("bob", json!(["operator.read", "operator.write"]), false),
    ] {
        let mut line = Line::open_from(&room, &[("x-user", user), ("x-forwarded-for", "203.0.113.9")]).await;
        let nonce = line.nonce().await;
        let hello = line.ask("connect", all.answer_to(&nonce)).await;
        assert_eq!(hello["payload"]["auth"], json!({"role": "operator", "scopes": held}), "{user}");
        assert_eq!(line.ask("exec.approvals.get", json!({})).await["ok"], may, "{user}");
        let more: Value = line.ask("operator.scopes.request", json!({"scopes": ["operator.admin"]})).await;
        assert_eq!(more["ok"], may, "{user}");
        if !may {
            assert_eq!(more["error"]["details"]["code"], "SCOPE_NOT_GRANTED");
            assert_eq!(line.ask("exec.approvals.get", json!({})).await["ok"], false, "nothing was given");
        }
    }
    room.running.end().await;
}

#[tokio::test]
async fn a_name_is_one_line_whatever_a_device_calls_itself() {
    let room = Room::open(Tree::new()).await;
    let admin = room.operator().await;
    let identity = Identity::generate().expect("an identity");
    let mut own = Introduction::operator(TOKEN).with_identity(identity).with_scopes(READ);
    own.params["client"]["displayName"] = "laptop\n\nIt was approved by you\u{202e} before\u{1b}[2J.".into();
    let (_, refused) = from_elsewhere_line(&room, &own).await;
    assert_eq!(refused["error"]["code"], "NOT_PAIRED");
    let list = admin.call("device.pair.list", json!({})).await.expect("a list");
    assert_eq!(list["pending"][0]["displayName"], "laptop It was approved by you before [2J.");
    room.running.end().await;
}
