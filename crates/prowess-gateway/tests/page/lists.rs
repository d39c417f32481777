//! Do long lists cost what is in sight, and not what is in them?

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::demo;
use crate::page::promised;
use crate::room::Room;
use crate::stage::Stage;

const SKILLS: usize = 10_000;
const SESSIONS: usize = 2_000;

/// What a gateway with many skills and sessions answers.
fn many(method: &str, params: &Value) -> Option<Value> {
    match method {
        "skills.status" if params["fields"] == "summary" => Some(skills(params)),
        "skills.status" => Some(json!({"agentId": "main", "userHome": "/home/x", "skills": [], "commands": []})),
        "sessions.list" => Some(sessions(params)),
        other => demo::script(other, params),
    }
}

fn skills(params: &Value) -> Value {
    let from: usize = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().expect("a number"));
    let limit = params["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(SKILLS);
    let to = SKILLS.min(from + limit);
    let row = |number: usize| {
        let kind = ["deploy", "review", "translate", "measure"][number % 4];
        json!({
            "name": format!("skill-{number:05}"), "skillKey": format!("skill-{number:05}"), "tier": "workspace",
            "description": format!("Use it to {kind} the {number}th part of a large project, step by step, with care."),
            "eligible": !number.is_multiple_of(3), "disabled": number.is_multiple_of(7), "cut": false, "emoji": null,
        })
    };
    let mut page = json!({
        "agentId": "main", "userHome": "/home/x", "fingerprint": "f", "matching": SKILLS,
        "counts": {"skills": SKILLS, "broken": 0, "leftOut": 12, "problems": 0},
        "skills": (from..to).map(row).collect::<Vec<_>>(),
    });
    if to < SKILLS {
        page["cursor"] = to.to_string().into();
    }
    page
}

fn sessions(params: &Value) -> Value {
    let limit = params["limit"].as_u64().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(SESSIONS);
    let row = |number: usize| json!({"key": format!("agent:main:s{number}"), "derivedTitle": format!("Conversation about part {number}"), "updatedAt": 1, "totalTokens": number});
    json!({"sessions": (0..SESSIONS.min(limit)).map(row).collect::<Vec<_>>()})
}

async fn enter() -> (Stage, Browser) {
    let stage = Stage::open(Room::open(demo::home()).await, many).await;
    let browser = Browser::open().await;
    browser.visit(&stage.url()).await;
    browser.reads("#panel-skills .head", "10,000 skills").await;
    browser.until("document.querySelectorAll('#panel-skills .row').length > 5").await;
    (stage, browser)
}

/// Types a text key by key. Gives the milliseconds from each key to the painted list, and the elements made for it.
fn typing(view: &str, text: &str) -> String {
    format!(
        "(async () => {{
            const panel = document.getElementById('panel-{view}');
            const input = panel.querySelector('input[type=search]');
            const [times, made] = [[], []];
            let nodes = 0;
            const watch = new MutationObserver((records) => {{
                for (const record of records) for (const node of record.addedNodes) nodes += 1 + (node.querySelectorAll?.('*').length ?? 0);
            }});
            watch.observe(panel.querySelector('.rows'), {{ childList: true, subtree: true }});
            for (let end = 1; end <= {text:?}.length; end += 1) {{
                nodes = 0;
                const start = performance.now();
                input.value = {text:?}.slice(0, end);
                input.dispatchEvent(new Event('input'));
                await new Promise((painted) => requestAnimationFrame(() => {{
                    const channel = new MessageChannel();
                    channel.port1.onmessage = painted;
                    channel.port2.postMessage(0);
                }}));
                times.push(Math.round(10 * (performance.now() - start)) / 10);
                made.push(nodes);
            }}
            watch.disconnect();
            return {{ times, made, rows: panel.querySelectorAll('.row').length }};
        }})()"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_rows_in_sight_are_made_however_many_there_are() {
    let (stage, browser) = enter().await;
    browser.reads("#panel-skills .head", "12 folders skipped because of a limit").await;
    for (view, text, size) in [("skills", "translate 999", "10000"), ("sessions", "part 19", "2000")] {
        browser.ask(&format!("location.hash = '/{view}'")).await;
        let first = format!("document.querySelector('#panel-{view} .window > li')?.ariaSetSize === '{size}'");
        browser.until(&first).await;
        let rows = browser.ask(&format!("document.querySelectorAll('#panel-{view} .row').length")).await;
        assert!(rows.as_u64().is_some_and(|rows| (8..40).contains(&rows)), "{view}: {rows}");
        let typed = promised(&browser, &typing(view, text)).await;
        println!("{view}: milliseconds from a key to the painted list: {}", typed["times"]);
        println!("{view}: elements made for each key: {}", typed["made"]);
        let most = typed["made"].as_array().expect("numbers").iter().filter_map(Value::as_u64).max();
        assert!(most.is_some_and(|most| most < 500), "{view}: {typed}");
        assert!(typed["rows"].as_u64().is_some_and(|rows| (1..40).contains(&rows)), "{typed}");
    }
    assert_eq!(stage.asked("skills.status").iter().filter(|asked| asked["fields"] == "summary").count(), 2, "in pages");
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_list_is_walked_with_the_keyboard_and_nothing_jumps() {
    let (_stage, browser) = enter().await;
    browser.ask("(window.__shift = 0, new PerformanceObserver((list) => list.getEntries().forEach((entry) => window.__shift += entry.value)).observe({ type: 'layout-shift' }))").await;
    browser.ask("document.querySelector('#panel-skills input[type=search]').focus()").await;
    browser.keys("\u{e015}").await;
    browser.until("document.activeElement.dataset.skill === 'skill-00000'").await;
    for (key, skill, place) in [
        ("\u{e015}", "skill-00001", 2),
        ("\u{e010}", "skill-09999", 10_000),
        ("\u{e013}", "skill-09998", 9_999),
        ("\u{e011}", "skill-00000", 1),
    ] {
        browser.keys(key).await;
        browser.until(&format!("document.activeElement.dataset.skill === '{skill}'")).await;
        let told = browser.ask("[document.activeElement.parentElement.ariaPosInSet, document.activeElement.parentElement.ariaSetSize].join(' of ')").await;
        assert_eq!(told, format!("{place} of 10000"));
    }
    // What has the keyboard stays, however far the list is scrolled.
    browser.ask("document.querySelector('#panel-skills .rows').scrollTop = 300000").await;
    browser.until("document.querySelector('[data-skill=skill-05000]')").await;
    assert_eq!(browser.ask("document.activeElement.dataset.skill").await, "skill-00000");
    let order = "[...document.querySelectorAll('#panel-skills .window > li')].map((row) => Number(row.ariaPosInSet)).every((place, at, all) => at === 0 || all[at - 1] < place)";
    assert_eq!(browser.ask(order).await, true, "they are read in their order");
    assert_eq!(browser.ask("window.__shift").await, 0);
    // The place in the list survives a refresh.
    browser.until("(history.state?.scroll?.list ?? 0) === 300000").await;
    browser.client.refresh().await.expect("the page again");
    browser.until("document.querySelector('#panel-skills .rows').scrollTop === 300000").await;
    browser.is_unharmed().await;
    browser.close().await;
}
