//! Is Markdown shown as what it means, and as nothing else?

use serde_json::{Value, json};

use crate::demo;
use crate::page::talk::enter;

/// What a model writes on an ordinary day.
const ANSWER: &str = "# Result\n\nThe **build** is *green*, see [the log](https://ci.example/log) or https://ci.example/all.\nSecond line.\n\n\
    1. one\n   - nested\n2. two\n\n- [x] done\n- [ ] open\n\n| Step | Time |\n|:--|--:|\n| `test` | 12 s |\n\n> quoted\n\n---\n\n\
    ```rust\nfn main() { println!(\"hi\"); } // done\n```\n\n![chart](https://img.example/chart.png)\n";

#[tokio::test(flavor = "multi_thread")]
async fn markdown_becomes_elements_and_can_be_copied() {
    let (stage, browser) = enter("chat").await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    stage.tell("chat", &demo::answer("final", ANSWER));
    browser.until("document.querySelector('.said:last-of-type .code-block')").await;
    let count = |css: &str| format!("document.querySelectorAll('.said:last-of-type .md {css}').length");
    let expected = [
        ("h3", 1),
        ("strong", 1),
        ("em", 1),
        ("br", 1),
        ("ol > li", 2),
        ("li li", 1),
        ("input[type=checkbox]", 2),
        ("input:checked", 1),
        ("th", 2),
        ("td.to-right", 1),
        ("td code", 1),
        ("blockquote p", 1),
        ("hr", 1),
        ("pre .hl-word", 1),
        ("pre .hl-comment", 1),
        ("img", 0),
    ];
    for (css, number) in expected {
        assert_eq!(browser.ask(&count(css)).await, number, "{css}");
    }
    // A link opens elsewhere, tells nobody where it was, and says where it leads. An image of others is only a link.
    let links = "[...document.querySelectorAll('.said:last-of-type .md a')].map((one) => [one.textContent, one.href, one.rel, one.target, one.nextElementSibling?.className ?? ''])";
    let safe = "noopener noreferrer";
    assert_eq!(
        browser.ask(links).await,
        json!([
            ["the log", "https://ci.example/log", safe, "_blank", "goal theirs"],
            ["https://ci.example/all", "https://ci.example/all", safe, "_blank", ""],
            ["Image: chart", "https://img.example/chart.png", safe, "_blank", "goal theirs"],
        ])
    );
    browser.reads(".said:last-of-type .goal", "ci.example").await;
    browser.reads(".said:last-of-type .code-head", "rust").await;
    let clipboard = "void Object.defineProperty(navigator, 'clipboard', {value: {writeText: async (text) => { window.__copied = text; }}})";
    browser.ask(clipboard).await;
    browser.click(".said:last-of-type .code-head button").await;
    browser.until("window.__copied === 'fn main() { println!(\"hi\"); } // done'").await;
    browser.click(".said:last-of-type .under [aria-label='Copy message']").await;
    browser.until("window.__copied?.startsWith('# Result')").await;
    assert_eq!(browser.ask("window.__copied").await, ANSWER);
    browser.is_unharmed().await;
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_growing_answer_only_makes_its_last_block_again() {
    let (stage, browser) = enter("chat").await;
    browser.reads("#panel-chat .log", "umbrella at home").await;
    let piece = |delta: &str| demo::turn("assistant", &json!({"reply": 0, "delta": delta}));
    stage.tell("agent", &piece("# First\n\nSecond **par"));
    browser.reads("[aria-busy=true] .md", "Second").await;
    browser.ask("(() => { window.__first = document.querySelector('[aria-busy=true] h3'); })()").await;
    // Pieces of a run that is known do not name their session.
    let mut rest = piece("agraph**\n\nThird");
    rest.as_object_mut().expect("an object").remove("sessionKey");
    stage.tell("agent", &rest);
    browser.reads("[aria-busy=true] .md", "Third").await;
    assert_eq!(browser.ask("document.querySelector('[aria-busy=true] strong').textContent").await, "paragraph");
    assert_eq!(browser.ask("window.__first === document.querySelector('[aria-busy=true] h3')").await, true);
    // An attempt that is thrown away is not shown.
    stage.tell("agent", &demo::turn("lifecycle", &json!({"phase": "retry", "attempt": 1})));
    stage.tell("agent", &piece("Again"));
    browser.reads("[aria-busy=true] .md", "Again").await;
    assert_eq!(browser.ask("document.querySelector('#panel-chat .log').innerText.includes('Third')").await, false);
    let mut end = demo::answer("final", "");
    end.as_object_mut().expect("an object").remove("message");
    stage.tell("chat", &end);
    browser.until("!document.querySelector('[aria-busy=true]')").await;
    browser.reads("#panel-chat .said:last-of-type .md", "Again").await;
    browser.is_unharmed().await;
    browser.close().await;
}

/// Makes texts of everything that has a meaning in Markdown or HTML, and lists what was made of them that may not be.
const FUZZ: &str = r##"(async () => {
    const { Markdown } = await import("/assets/markdown.js");
    const parts = ["*", "**", "_", "~~", "`", "```", "[", "](", ")", "![", "<", ">", "javascript:", "data:text/html,", "https://a.b/", "|", "\n", "\n\n", "- ", "1. ",
        "> ", "# ", "---", "|-|", "    ", "\\", "&#x6a;", "&lt;", "<script>window.__canary=1</script>", "<img src=x onerror=window.__canary=1>", "a", " ", "\u202e", "\t", "[x] ", "\"", "onload="];
    let seed = 4711;
    const next = (most) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % most;
    const known = "P,H3,H4,H5,H6,UL,OL,LI,BLOCKQUOTE,HR,BR,PRE,CODE,SPAN,A,EM,STRONG,DEL,TABLE,THEAD,TBODY,TR,TH,TD,DIV,BUTTON,INPUT".split(",");
    const names = "class,href,target,rel,title,tabindex,role,aria-label,type,disabled,checked,start,scope".split(",");
    const found = [];
    const check = (text) => {
        const node = document.createElement("div");
        document.body.append(node);
        new Markdown(node).update(text);
        for (const one of node.querySelectorAll("*")) {
            const odd = !known.includes(one.tagName) || [...one.attributes].some(({ name }) => !names.includes(name))
                || (one.href !== undefined && !/^(https?|mailto):/.test(one.href)) || (one.tagName === "INPUT" && one.type !== "checkbox");
            if (odd && found.length < 5) found.push([text, one.outerHTML]);
        }
        node.remove();
    };
    for (let round = 0; round < 1500; round += 1) check(Array.from({ length: 1 + next(40) }, () => parts[next(parts.length)]).join(""));
    // Texts that would take for ever if time grew with the square of their length.
    for (const part of ["*a ", "[](a", "![", "`a``b", "> ", "- ", "**", "_a_*", "\\", "#", "&#x", "<a@", "a|b\n", "](", "[](<", "https://)"]) check(part.repeat(20000 / part.length));
    check(`# ${" ".repeat(50000)}x`);
    check("```" + " ".repeat(50000) + "`");
    return found;
})()"##;

#[tokio::test(flavor = "multi_thread")]
async fn no_text_makes_anything_that_is_not_markdown() {
    let (_stage, browser) = enter("chat").await;
    assert_eq!(browser.ask(FUZZ).await, Value::Array(Vec::new()));
    browser.is_unharmed().await;
    browser.close().await;
}
