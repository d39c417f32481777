//! A gateway that is asked for the wrong thing: is it said, and is nothing changed?

use prowess_testkit::Prowess;

fn prowess() -> Prowess {
    Prowess::new(env!("CARGO_BIN_EXE_prowess"))
}

#[test]
fn rules_of_this_machine_are_not_changed_in_the_name_of_another() {
    let home = prowess();
    for line in ["approvals allow /bin/ls", "approvals list", "approvals path", "approvals revoke /bin/ls"] {
        home.run(&format!("{line} --gateway ws://127.0.0.1:1")).code(2).err_has("leave --gateway out");
    }
    home.run("approvals list").ok().lacks("/bin/ls");
}

#[test]
fn a_token_in_a_variable_that_is_not_set_stays_as_it_is_written() {
    let config = "{ gateway: { auth: { token: '${NO_SUCH_TOKEN}' } } }";
    let home = prowess().config(config);
    home.run("gateway run --port 0").code(1).err_has("NO_SUCH_TOKEN");
    let text = std::fs::read_to_string(home.path(".openclaw/openclaw.json")).expect("a configuration");
    assert_eq!(text, config);
}

#[test]
fn a_service_that_would_not_start_is_not_written() {
    let home = prowess();
    home.run("gateway install-service --bind nonsense").code(1).err_has("gateway.bind is `nonsense`");
    assert!(!home.path(".config/systemd").exists() && !home.path("Library").exists());
}

#[test]
fn a_slip_in_the_section_of_the_gateway_is_told() {
    let home = prowess().config("{ gateway: { atuh: { token: 'x' } } }");
    home.run("skills check").ok().out_has("gateway.atuh").out_has("did you mean `auth`");
}

#[test]
fn what_a_gateway_cannot_be_asked_for_is_not_left_out_in_silence() {
    let lines = [
        ("models --probe", "--probe"),
        ("skills prompt --budget 100", "--budget"),
        ("skills prompt --read-tool cat", "--read-tool"),
        ("skills list --channel telegram", "--channel"),
        ("config get gateway.auth.token --show-secrets", "--show-secrets"),
        ("run --yes-read-only hi", "--yes-read-only"),
        ("chat --yes-read-only", "--yes-read-only"),
    ];
    let home = prowess();
    for (line, flag) in lines {
        let refused = home.run(&format!("{line} --gateway ws://127.0.0.1:1")).code(2);
        refused.err_has(&format!("{flag} is not available over a gateway"));
    }
}

#[test]
fn a_network_that_is_trusted_is_used_without_encryption() {
    // No machine has this address without the name of a network, so it is refused at once.
    let far = "gateway status --gateway ws://[fe80::1]:1";
    prowess().run(far).code(2).err_has("unencrypted");
    let told = prowess().env("OPENCLAW_ALLOW_INSECURE_PRIVATE_WS", "1").run(far).code(1);
    told.out_has("no gateway at").lacks("without encryption");
}
