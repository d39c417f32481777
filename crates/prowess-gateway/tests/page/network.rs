//! Does the network view show what commands reach, also while they do, and say so where there is nothing?

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::demo::{self, connection};
use crate::room::Room;
use crate::stage::{Script, Stage};

async fn enter(at: &str, script: Script) -> (Stage, Browser) {
    let stage = Stage::open(Room::open(demo::home()).await, script).await;
    let browser = Browser::open().await;
    browser.visit(&stage.url().replace("/skills", at)).await;
    browser.reads("#state", "connected").await;
    (stage, browser)
}

const ROWS: &str = "document.querySelectorAll('#panel-network article').length";

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_listed_searched_and_have_addresses() {
    let (_stage, browser) = enter("/network/c2", demo::script).await;
    for text in ["refused", "tracker.example:443", "not allowed: the user said no", "npm install left-pad", "192.0.2.7"]
    {
        browser.reads("#panel-network .target", text).await;
    }
    browser.reads("#panel-network [data-id=c3]", "517 B up, 6.3 kB down").await;
    browser.reads("#panel-network .head", "3 connections").await;
    browser.find("#panel-network input[type=search]").await.send_keys("npm").await.expect("typed");
    browser.until(&format!("{ROWS} === 2")).await;
    let choose = "(document.getElementById('network-state').value = 'failed', document.getElementById('network-state').dispatchEvent(new Event('change')))";
    browser.ask(choose).await;
    browser.until(&format!("{ROWS} === 1")).await;
    browser.until("location.hash === '#/network/c2?q=npm&show=failed'").await;
    browser.client.refresh().await.expect("the page again");
    browser.until(&format!("{ROWS} === 1")).await;
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn traffic_is_shown_as_it_happens_also_on_a_phone() {
    let (stage, browser) = enter("/network", demo::script).await;
    let phone = json!({"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": true});
    browser.cdp("Emulation.setDeviceMetricsOverride", phone).await;
    browser.until(&format!("{ROWS} === 3")).await;
    let long = "a-very-long-name-of-a-host.with.many.labels.that.does-not-fit-a-phone.example";
    let mut open = connection("c4", "waiting", long, 443, "git fetch");
    let tell = |open: &[&Value], ended: &[&Value]| {
        stage.tell("egress.traffic", &json!({"open": open, "openCount": open.len(), "ended": ended, "missed": 0}));
    };
    tell(&[&open], &[]);
    browser.reads("#panel-network .head", "1 open").await;
    browser.reads("#panel-network article", "waiting").await;
    open["outcome"] = "open".into();
    open["down"] = 2_500_000.into();
    tell(&[&open], &[]);
    browser.reads("#panel-network article", "2.5 MB down").await;
    // A person who reads a row keeps their place while others come.
    browser.ask("document.querySelector('[data-id=c3] a').focus()").await;
    tell(&[], &[&connection("c4", "served", long, 443, "git fetch")]);
    browser.reads("#panel-network [data-id=c4]", "served").await;
    assert_eq!(browser.ask("document.activeElement.closest('[data-id]')?.dataset.id").await, "c3");
    browser.until(&format!("{ROWS} === 4")).await;
    let fits =
        "document.querySelector('#panel-network').scrollWidth <= document.querySelector('#panel-network').clientWidth";
    assert_eq!(browser.ask(fits).await, true, "nothing is wider than the phone");
    // After more than was told, the log is asked.
    let asked = stage.asked("egress.log").len();
    stage.tell("egress.traffic", &json!({"open": [], "openCount": 0, "ended": [], "missed": 7}));
    browser.until(&format!("{ROWS} === 3")).await;
    assert_eq!(stage.asked("egress.log").len(), asked + 1);
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_connections_it_says_so() {
    // The real gateway, in which no command ran.
    let script: Script = |method, params| if method == "egress.log" { None } else { demo::script(method, params) };
    let (stage, browser) = enter("/network", script).await;
    browser.reads("#panel-network", "No connections yet").await;
    browser.reads("#panel-network .head", "0 connections").await;
    let ended = connection("c1", "served", "wttr.in", 443, "curl wttr.in");
    stage.tell("egress.traffic", &json!({"open": [], "openCount": 0, "ended": [ended], "missed": 0}));
    browser.reads("#panel-network article", "wttr.in:443").await;
    browser.ask("location.hash = '/network/gone'").await;
    browser.reads("#panel-network", "This connection is not loaded").await;
    browser.is_unharmed().await;
    browser.close().await;
}
