//! A gateway as an operator runs it: the real program, in a home of its own.

use crate::desk;
use std::net::TcpListener;

use desk::{Desk, ENTER};
use prowess_testkit::{Heard, ModelServer, Prowess, Running, Turn, eventually, terminate};
use serde_json::{Value, json};

fn prowess() -> Prowess {
    Prowess::new(env!("CARGO_BIN_EXE_prowess"))
}

/// A gateway that runs, and what it said when it began.
struct Served<'a> {
    running: Running<'a>,
    said: Value,
}

impl<'a> Served<'a> {
    #[track_caller]
    fn start(home: &'a Prowess, more: &str) -> Self {
        let running = home.start(&format!("gateway run --port 0 --json {more}"));
        eventually("the gateway says where it is", || running.stdout().contains('\n'));
        let said = serde_json::from_str(running.stdout().trim()).expect("a line of JSON");
        Self { running, said }
    }

    fn url(&self) -> &str {
        self.said["url"].as_str().expect("an address")
    }

    /// Ends it as a service manager would.
    #[track_caller]
    fn end(self) -> prowess_testkit::Output {
        terminate(self.running.id());
        self.running.wait()
    }
}

fn token(home: &Prowess) -> String {
    let shown = home.run("config get gateway.auth.token --show-secrets").ok();
    shown.stdout().trim().to_owned()
}

#[test]
fn it_is_up_until_it_is_told_to_end() {
    let home = prowess();
    let served = Served::start(&home, "");
    let url = served.url().to_owned();
    let status = home.run(&format!("gateway status --json --gateway {url}")).ok().json();
    assert_eq!((&status["ok"], &status["url"]), (&Value::Bool(true), &Value::from(url.as_str())), "{status}");
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(status["clients"][0]["role"], "operator", "{status}");
    let people = home.run(&format!("gateway status --gateway {url}")).ok();
    people.out_has(&format!("the gateway at {url} is up")).out_has("connected  1");
    let health = home.run(&format!("gateway call health --gateway {url}")).ok().json();
    assert_eq!(health["ok"], true, "{health}");
    served.end().ok();
    home.run(&format!("gateway status --gateway {url}")).code(1).out_has("no gateway at");
}

#[test]
fn a25_who_talks_to_it_is_asked_about_tools_and_sees_what_they_would_write() {
    let write = json!({"path": "~/outside.txt", "content": "first\nlast\u{1b}[2J"});
    let model = ModelServer::script([Turn::call("c1", "write", write), Turn::text("It is written.")]);
    let home = prowess();
    let config = json!({
        "models": {"providers": {"loop": {
            "baseUrl": model.base_url(), "api": "openai-completions", "apiKey": "k", "models": [{"id": "test-model"}],
        }}},
        "agents": {"defaults": {"model": "loop/test-model"}},
    });
    let home = home.config(&config.to_string());
    let served = Served::start(&home, "");
    let mut desk = Desk::sit(&home, &["run", "--gateway", served.url(), "write it"]);
    desk.see("The agent wants to:").see("outside.txt").see("+ first").see("+ last\\u{1b}[2J").see("because");
    assert!(!home.path("outside.txt").exists(), "nothing is written before the answer");
    desk.see("Allow it? [y]es, once / [n]o / [w]hy: ").type_in(&["y", ENTER]).see("It is written.");
    desk.leave().well();
    assert_eq!(std::fs::read_to_string(home.path("outside.txt")).expect("written"), "first\nlast\u{1b}[2J");
    served.end().ok();
}

#[test]
fn a_token_is_made_once_and_found_again() {
    let home = prowess();
    let served = Served::start(&home, "");
    assert_eq!(served.said["tokenMade"], true, "{}", served.said);
    let made = token(&home);
    assert_eq!(made.len(), 43, "{made}");
    let url = served.url().to_owned();
    home.run(&format!("gateway status --gateway {url}")).ok().lacks(&made);
    let wrong = home.run(&format!("gateway status --gateway {url} --token wrong")).code(1);
    wrong
        .out_has("refused the connection")
        .out_has("OPENCLAW_GATEWAY_TOKEN")
        .out_has("gateway.auth.token")
        .lacks("remote.");
    served.end().ok();
    let again = Served::start(&home, "");
    assert_eq!(again.said["tokenMade"], false, "{}", again.said);
    assert_eq!(token(&home), made);
    again.end().ok();
}

#[test]
fn who_has_to_know_a_password_is_told_of_a_password() {
    let home = prowess().config("{ gateway: { auth: { mode: 'password', password: 'right' } } }");
    let served = Served::start(&home, "");
    let url = served.url().to_owned();
    home.run(&format!("gateway status --gateway {url}")).ok();
    let elsewhere = prowess().env("OPENCLAW_GATEWAY_PASSWORD", "wrong");
    let wrong = elsewhere.run(&format!("gateway status --gateway {url}")).code(1);
    wrong.out_has("OPENCLAW_GATEWAY_PASSWORD").out_has("gateway.auth.password").lacks("token");
    served.end().ok();
}

#[test]
fn a_node_says_that_it_is_connected_and_can_be_removed() {
    let home = prowess();
    let served = Served::start(&home, "");
    let url = served.url().to_owned();
    let machine = prowess().env("OPENCLAW_GATEWAY_TOKEN", &token(&home));
    let node = machine.start(&format!("node run --json --name build-box --gateway {url}"));
    eventually("it is connected", || node.stdout().contains('\n'));
    let said: Value = serde_json::from_str(node.stdout().lines().next().expect("a line")).expect("a line of JSON");
    assert_eq!((&said["event"], &said["url"]), (&json!("connected"), &json!(url)), "{said}");
    let list = format!("node list --json --gateway {url}");
    let listed = home.run(&list).ok().json();
    let listed = &listed["nodes"][0];
    assert_eq!((&said["nodeId"], &said["displayName"]), (&listed["nodeId"], &listed["displayName"]), "{listed}");
    terminate(node.id());
    node.wait().ok();
    eventually("it is away", || home.run(&list).ok().json()["nodes"][0]["connected"] == false);
    home.run(&format!("node remove build-box --gateway {url}")).ok().out_has("build-box (");
    home.run(&format!("node remove build-box --gateway {url}")).code(1).err_has("prowess node list");
    served.end().ok();
}

#[test]
fn a_token_that_is_given_is_not_kept() {
    let home = prowess();
    let served = Served::start(&home, "--token given-for-now");
    let url = served.url().to_owned();
    home.run(&format!("gateway status --gateway {url} --token given-for-now")).ok();
    home.run(&format!("gateway status --gateway {url}")).code(1);
    served.end().ok();
    home.run("config get gateway.auth.token").code(1);
}

#[test]
fn people_are_told_where_it_is_and_no_secret() {
    let home = prowess();
    let running = home.start("gateway run --port 0");
    let log = home.path(".openclaw/logs/gateway.log");
    eventually("it listens", || std::fs::read_to_string(&log).is_ok_and(|log| log.contains("has started")));
    // A wish that it ends is heard from before, and heeded after it has said all of this.
    terminate(running.id());
    let told = running.wait().ok();
    let made = token(&home);
    let told = told.err_has("listening on ws://127.0.0.1:").err_has("the page is at http://127.0.0.1:");
    let told = told.err_has("saved a new token in ~/.openclaw/openclaw.json as gateway.auth.token");
    let _ = told.lacks(&made);
    let log = std::fs::read_to_string(&log).expect("a log");
    assert!(!log.contains(&made), "{log}");
    let line: Value = serde_json::from_str(log.lines().next().expect("a line")).expect("JSON");
    assert_eq!(line["level"], "info", "{line}");
}

#[test]
fn the_log_level_is_heeded() {
    let home = prowess();
    let served = Served::start(&home, "--log-level silent");
    let end = served.end().ok();
    assert_eq!(end.stderr(), "");
    let log = std::fs::read_to_string(home.path(".openclaw/logs/gateway.log")).expect("a log");
    assert_eq!(log, "");
    home.run("gateway run --log-level loud").code(2).err_has("debug");
}

/// A port that nobody listens on at this moment.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

#[test]
fn the_page_is_opened_with_one_command() {
    let home = prowess();
    let served = Served::start(&home, "");
    let (url, made) = (served.url().to_owned(), token(&home));
    let page = url.replace("ws://", "http://");
    let shown = home.run(&format!("dashboard --no-open --gateway {url}")).ok();
    assert_eq!(shown.stdout(), format!("{page}/#token={made}\n"));
    let told = home.run(&format!("dashboard --json --read-only --gateway {url}")).ok().json();
    let link = format!("{page}/#token={made}&access=read");
    assert_eq!(told, json!({"url": format!("{page}/"), "link": link, "elsewhere": []}));
    home.run(&format!("dashboard --qr --gateway {url}")).code(1).err_has("prowess gateway run --bind lan");
    served.end().ok();
}

#[test]
fn without_a_gateway_the_page_starts_one_unless_it_may_not() {
    let home = prowess().config(&format!("{{gateway: {{port: {}}}}}", free_port()));
    home.run("dashboard --no-open --no-start").code(1).err_has("prowess gateway run");
    home.run("dashboard --json").code(1);
    let running = home.start("dashboard --no-open");
    let log = home.path(".openclaw/logs/gateway.log");
    eventually("it listens", || std::fs::read_to_string(&log).is_ok_and(|log| log.contains("has started")));
    let shown = home.run("dashboard --no-open").ok();
    terminate(running.id());
    let told = running.wait().ok();
    let _ = told.err_has(shown.stdout().trim()).err_has("until you press Ctrl-C");
}

#[test]
fn an_encrypted_gateway_is_recognised_by_its_fingerprint() {
    let home = prowess();
    let served = Served::start(&home, "--tls");
    let url = served.url().to_owned();
    let print = served.said["tlsFingerprint"].as_str().expect("a fingerprint").to_owned();
    assert!(url.starts_with("wss://127.0.0.1:"), "{url}");
    let here = home.run(&format!("gateway status --gateway {url}")).ok();
    let _ = here.out_has(&format!("SHA-256 {print}"));
    let plain = url.replace("wss://", "ws://");
    home.run(&format!("gateway status --gateway {plain}")).ok();
    let page = url.replace("wss://", "https://");
    home.run(&format!("dashboard --no-open --gateway {plain}")).ok().out_has(&format!("{page}/#token="));
    let (elsewhere, made) = (prowess(), token(&home));
    let unknown = elsewhere.run(&format!("gateway status --gateway {url} --token {made}")).code(1);
    let _ = unknown.out_has(&print).out_has("--tls-fingerprint");
    let pinned = format!("gateway status --gateway {url} --token {made} --tls-fingerprint");
    elsewhere.run(&format!("{pinned} {print}")).ok();
    elsewhere.run(&format!("{pinned} {}", "ab".repeat(32))).code(1).out_has("another fingerprint");
    elsewhere.run(&format!("{pinned} 12")).code(2).err_has("64 hexadecimal digits");
    served.end().ok();
}

#[test]
fn a_port_that_is_taken_is_named_with_how_to_find_who_has_it() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let home = prowess();
    let refused = home.run(&format!("gateway run --port {port}")).code(1);
    let refused = refused.err_has(&format!("port {port} is in use")).err_has("prowess gateway status");
    let _ = refused.err_has(&format!(":{port}")).err_has("--port");
}

#[test]
fn it_does_not_listen_for_everybody_without_a_secret() {
    let home = prowess().config(r#"{gateway: {auth: {mode: "none"}}}"#);
    home.run("gateway run --port 0 --bind lan").code(1).err_has("without authentication");
    home.run("gateway run --port 0 --bind nowhere").code(1).err_has("nowhere");
}

#[test]
fn a_method_is_called_and_its_refusal_is_told() {
    let home = prowess();
    let served = Served::start(&home, "");
    let url = served.url().to_owned();
    home.run(&format!("gateway call no.such --gateway {url}")).code(1).err_has("does not support `no.such`");
    home.run(&format!("gateway call health '{{' --gateway {url}")).code(2).err_has("not valid JSON");
    for odd in ["[1]", "null", "5"] {
        home.run(&format!("gateway call health '{odd}' --gateway {url}")).code(2).err_has("not a JSON object");
    }
    let refused = home.run(&format!("gateway call logs.tail '{{\"limit\": 0}}' --json --gateway {url}")).code(1).json();
    assert_eq!(refused["error"]["code"], "INVALID_REQUEST", "{refused}");
    served.end().ok();
}

#[test]
fn each_run_at_a_gateway_has_a_session_of_its_own_unless_it_continues_one() {
    let model = ModelServer::answering(prowess_testkit::Chunking::Whole, |request| {
        let heard = request.heard();
        Turn::text(&format!("message {}", heard.iter().filter(|one| matches!(one, Heard::Person(_))).count()))
    });
    let config = json!({
        "models": {"providers": {"loop": {"baseUrl": model.base_url(), "models": [{"id": "m"}]}}},
        "agents": {"defaults": {"model": "loop/m"}},
    });
    let home = prowess().config(&config.to_string());
    let served = Served::start(&home, "");
    let url = served.url().to_owned();
    let both = [1, 2].map(|number| home.start(&format!("run --gateway {url} 'hello {number}'")));
    for running in both {
        running.wait().ok().out_has("message 1");
    }
    home.run(&format!("run --continue --gateway {url} again")).ok().out_has("message 2");
    home.run(&format!("run --session trip --gateway {url} one")).ok().out_has("message 1");
    home.run(&format!("run --session trip --gateway {url} two")).ok().out_has("message 2");
    let listed = home.run(&format!("sessions list --json --gateway {url}")).ok().json();
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(3), "{listed}");
    home.run(&format!("sessions show --gateway {url}")).ok().out_has("> two");
    served.end().ok();
}

#[test]
fn the_configuration_of_a_gateway_is_seen_and_changed() {
    let home = prowess().config("{ // mine\n  skills: { load: { watch: true } },\n}\n");
    let served = Served::start(&home, "");
    let url = served.url().to_owned();
    home.run(&format!("config set skills.load.watch false --gateway {url}")).ok().out_has("changed skills.load.watch");
    home.run(&format!("config get skills.load.watch --gateway {url}")).ok().out_has("false");
    home.run(&format!("config get gateway.auth.token --gateway {url}")).ok().out_has("__OPENCLAW_REDACTED__");
    home.run(&format!("config set gateway.port 4711 --gateway {url}")).ok().out_has("when you restart the gateway");
    home.run(&format!("config set skills.load.watch perhaps --gateway {url}")).code(1).err_has("invalid config");
    served.end().ok();
    let text = std::fs::read_to_string(home.path(".openclaw/openclaw.json")).expect("a configuration");
    assert!(text.contains("// mine") && text.contains("watch: false"), "{text}");
}

#[test]
fn a_service_is_written_down_and_switched_on_by_the_person() {
    let home = prowess().env("OPENCLAW_GATEWAY_TOKEN", "a-secret-token");
    let shown = home.run("gateway install-service --print --port 4711").ok().lacks("a-secret-token");
    assert!(shown.stdout().contains("\"gateway\" \"run\" \"--port\" \"4711\""), "{shown}");
    assert!(!home.path(".config/systemd/user/prowess-gateway.service").exists());
    if cfg!(target_os = "linux") {
        let unit = ".config/systemd/user/prowess-gateway.service";
        let written = home.run("gateway install-service").ok();
        written.out_has("systemctl --user enable --now prowess-gateway.service").lacks("a-secret-token");
        let text = std::fs::read_to_string(home.path(unit)).expect("a unit");
        assert!(text.contains("[Service]\nExecStart=\"") && text.contains("WantedBy=default.target"), "{text}");
        home.run("gateway install-service").ok().out_has("unchanged: ");
        home.run("gateway install-service --port 1").code(1).err_has("--force");
        home.run("gateway install-service --port 1 --force").ok();
    }
}

#[test]
fn what_is_for_this_machine_says_so() {
    let home = prowess();
    home.run("doctor --gateway ws://127.0.0.1:1").code(2).err_has("does not work over a gateway");
    home.run("gateway run --gateway ws://127.0.0.1:1").code(2).err_has("leave --gateway out");
    home.run("skills list --gateway ws://gateway.example").code(2).err_has("unencrypted").err_has("ssh -N -L");
    home.run("skills list --gateway 127.0.0.1").code(2).err_has("is not a gateway URL");
    home.run("skills list --gateway ws://127.0.0.1:99999").code(2).err_has("`99999`").err_has("65535");
    home.run("skills list --gateway ws://127.0.0.1:1").code(1).err_has("prowess gateway run");
}
