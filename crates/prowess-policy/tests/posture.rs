//! Posture: is a person asked when OpenClaw asks, and does a node refuse what OpenClaw's refuses?

use prowess_policy::posture::{Approval, Ask, Coverage, NodeForm, NodeRefusal, NodeRequest, Posture, Security};
use prowess_testkit::{cases, check_all};
use serde_json::{Value, json};

fn security(value: &Value) -> Security {
    Security::parse(value.as_str().expect("a word")).expect("a known word")
}

fn ask(value: &Value) -> Ask {
    Ask::parse(value.as_str().expect("a word")).expect("a known word")
}

fn posture(case: &Value) -> Posture {
    Posture { security: security(&case["security"]), ask: ask(&case["ask"]), ..Posture::SILENT }
}

fn coverage(case: &Value) -> Coverage {
    match (case["analysisOk"] == true, case["allowlistSatisfied"] == true) {
        (true, true) => Coverage::Covered,
        (true, false) => Coverage::Missed,
        (false, _) => Coverage::Unread,
    }
}

#[test]
fn the_stricter_wins_and_a_person_is_asked_as_in_openclaw() {
    check_all(cases(include_str!("golden/posture.json")), |case| {
        let input = &case["input"];
        let output = match case["rule"].as_str() {
            Some("minSecurity") => {
                let from = Posture { security: security(&input[0]), ..Posture::SILENT };
                json!(from.tighten(Some(security(&input[1])), None).security)
            }
            Some("maxAsk") => {
                let from = Posture { ask: ask(&input[0]), ..Posture::SILENT };
                json!(from.tighten(None, Some(ask(&input[1]))).ask)
            }
            Some("requiresExecApproval") => json!(posture(input).requires_approval(coverage(input))),
            rule => return Err(format!("what is {rule:?}?")),
        };
        if output == case["output"] { Ok(()) } else { Err(format!("found {output}")) }
    });
}

#[test]
fn a_node_runs_and_refuses_as_in_openclaw() {
    check_all(cases(include_str!("golden/node-run.json")), |case| {
        let verdict = posture(case).node_run(NodeRequest {
            coverage: coverage(case),
            approval: if case["approved"] == true { Approval::Given } else { Approval::Missing },
            form: if case["shell"] == true { NodeForm::Shell } else { NodeForm::Direct },
        });
        let error = verdict.refusal.map(|refusal| refusal.to_string());
        let output = json!({
            "allowed": verdict.allowed(),
            "eventReason": verdict.refusal.map(NodeRefusal::event_reason),
            // What follows in brackets is advice, in words of our own.
            "error": error.as_deref().and_then(|error| error.split(" (").next()),
            "requiresAsk": verdict.requires_ask,
            "approvedByAsk": verdict.approved,
            "shellWrapperBlocked": verdict.shell_blocked,
        });
        if output == case["output"] { Ok(()) } else { Err(format!("found {output}")) }
    });
}
