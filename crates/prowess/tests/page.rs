//! The page in a real browser, with the whole program behind it.

#![cfg(target_os = "linux")]

use crate::browser;
use crate::flow::home;
use std::process::{Command, Stdio};

use browser::Browser;
use prowess_testkit::{ModelServer, Prowess, Served, Turn, eventually};
use serde_json::json;

const TOKEN: &str = "a-token-for-tests";

/// A gateway in that home, whose own program is another.
fn serve(home: &Prowess) -> Served {
    let world = home.command();
    let mut command = Command::new(env!("CARGO_BIN_EXE_prowess"));
    command.env_clear().current_dir(world.get_current_dir().expect("a folder"));
    command.envs(world.get_envs().filter_map(|(name, value)| value.map(|value| (name, value))));
    command.env("OPENCLAW_GATEWAY_TOKEN", TOKEN).args(["gateway", "run", "--port", "0"]).stdin(Stdio::null());
    Served::listening(command, &home.path("gateway.log"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_when_somebody_clicks() {
    let call = Turn::call("c1", "exec", json!({"command": "touch made-by-a-click"}));
    let server = ModelServer::script([call, Turn::text("It is done.")]);
    let mut config = home::config(&server.base_url(), "openai-completions");
    config["tools"] = json!({"exec": {"security": "allowlist"}});
    let home = home::with_skill().config(&config.to_string());
    let made = home.path(".openclaw/workspace/made-by-a-click");
    let gateway = serve(&home);
    let browser = Browser::open().await;
    browser.visit(&format!("http://{}/#token={TOKEN}", gateway.address())).await;
    browser.reads("#state", "connected").await;
    browser.click("#tab-chat").await;
    browser.until("document.getElementById('chat-session').value").await;
    browser.find("#chat-input").await.send_keys("make it\u{e007}").await.expect("typed");
    browser.reads("#panel-chat .question .command", "touch made-by-a-click").await;
    assert!(!made.exists(), "nothing runs before the click");
    browser.click("#panel-chat [data-decision=allow-once]").await;
    eventually("the command runs", || made.exists());
    browser.reads("#panel-chat .log", "It is done.").await;
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_what_the_program_knows() {
    let home = home::with_skill();
    let gateway = serve(&home);
    let browser = Browser::open().await;
    browser.visit(&format!("http://{}/#token={TOKEN}&at=/skills", gateway.address())).await;
    browser.reads("[data-skill=weather]", "ready").await;
    browser.keys("gp").await;
    browser.reads("#panel-prompt details[open] pre", "<name>weather</name>").await;
    browser.is_unharmed().await;
    browser.close().await;
}
