// The page: which view is shown, and what do all of them share?

import * as agentsView from "./agents.js";
import * as approvals from "./approvals.js";
import * as audit from "./audit.js";
import * as chat from "./chat.js";
import * as config from "./config.js";
import { button, el, nothing, put, soon } from "./dom.js";
import * as door from "./door.js";
import { Link } from "./link.js";
import * as logs from "./logs.js";
import * as nav from "./nav.js";
import * as network from "./network.js";
import * as nodes from "./nodes.js";
import * as overview from "./overview.js";
import * as prompt from "./prompt.js";
import { href, parse, scrolled, scrollTo } from "./route.js";
import * as rules from "./rules.js";
import * as sessions from "./sessions.js";
import * as skills from "./skills.js";
import * as usage from "./usage.js";

const VIEWS = [
  { id: "overview", title: "Overview", key: "o", group: "Work", make: overview.make },
  { id: "chat", title: "Chat", key: "c", group: "Work", make: chat.make },
  { id: "approvals", title: "Approvals", key: "a", group: "Work", make: approvals.make },
  { id: "sessions", title: "Sessions", key: "e", group: "Work", make: sessions.make },
  { id: "skills", title: "Skills", key: "s", group: "Skills", make: skills.make },
  { id: "prompt", title: "Prompt", key: "p", group: "Skills", make: prompt.make },
  { id: "usage", title: "Usage", key: "u", group: "Skills", make: usage.make },
  { id: "nodes", title: "Nodes", key: "n", group: "Trust", make: nodes.make },
  { id: "rules", title: "Rules & devices", key: "r", group: "Trust", make: rules.make },
  { id: "audit", title: "Audit", key: "d", group: "Trust", make: audit.make },
  { id: "network", title: "Network", key: "w", group: "Trust", make: network.make },
  { id: "agents", title: "Agents", key: "t", group: "Gateway", make: agentsView.make },
  { id: "config", title: "Configuration", key: "f", group: "Gateway", make: config.make },
  { id: "logs", title: "Logs", key: "l", group: "Gateway", make: logs.make },
];
const GROUPS = [...new Set(VIEWS.map((view) => view.group))];
/** The views that a phone always shows. */
const FIRST = ["chat", "approvals", "skills", "sessions"];
const HOME = "overview";
const THEMES = ["auto", "light", "dark"];

const by = (id) => document.getElementById(id);
// `kept` is what the chat does not lose when the person has to come in again.
const app = { link: undefined, agent: undefined, kept: nobody(), say, go, here, act, can, chooseAgent, asking, badge: nav.badge, failed };
let views;
let shown;
let waiting = 0;

function nobody() {
  return { draft: "", session: undefined };
}

/** Tells the person something in passing. */
function say(text, kind = "calm") {
  const node = by("say");
  put(node, el("p", { class: `card ${kind}` }, text));
  clearTimeout(say.timer);
  say.timer = setTimeout(() => put(node), 6000);
}

/** Calls a method because the person wants it; where they lack the right for it, they are asked. */
function act(method, params) {
  return app.link.act(method, params);
}

/** Whether the person may do what takes `scope`. */
function can(scope) {
  return app.link.can(scope);
}

/** Tells the person what went wrong. */
function failed(error) {
  say(error.message ?? String(error), "bad");
}

/** Tells the person that commands wait for an answer. */
function asking(number) {
  const node = by("asking");
  waiting = number;
  nav.badge("approvals", number);
  title();
  node.hidden = !number || shown?.id === "approvals";
  if (node.hidden) return;
  const text = number === 1 ? "A command is waiting for your answer." : `${number} commands are waiting for your answer.`;
  put(node, el("span", {}, text), button("Review", () => go("approvals"), { class: "main small" }));
}

function title() {
  document.title = `${waiting ? `(${waiting}) ` : ""}${shown?.title ? `${shown.title} · ` : ""}prowess`;
}

/** Goes to a place; the way back leads to the one before. `focus` is "panel" or "none". */
function go(view, { target, query, focus = "panel", replace = false } = {}) {
  keepScroll.now();
  note.now();
  const address = href(view, target, query);
  if (location.hash !== address) history[replace || !shown ? "replaceState" : "pushState"](null, "", address);
  return show(focus);
}

/** What the view in sight wants its address to be, and the last address that was shown. */
let place;
let last = "";
const note = debounced(() => {
  // A link that was followed a moment ago is not taken back: its view is shown as soon as the browser says so.
  if (!place || place.view !== shown?.id || location.hash !== last) return;
  const address = href(place.view, place.target, place.query);
  place = undefined;
  if (location.hash !== address) history.replaceState(history.state, "", address);
  last = location.hash;
}, 200);

/** Notes in the address where in `view` the person is. Says nothing of a view that is not in sight. */
function here(view, { target, query } = {}) {
  if (view !== shown?.id) return;
  place = { view, target, query };
  note();
}

const keepScroll = debounced(() => {
  if (shown?.panel) history.replaceState({ scroll: scrolled(shown.panel) }, "", location.href);
}, 150);

/** Does `work` a moment after the last call; `.now()` does it at once if it is due. */
function debounced(work, millis) {
  let due = false;
  const run = () => {
    if (due) work();
    due = false;
  };
  const later = soon(run, millis);
  return Object.assign(() => {
    due = true;
    later();
  }, { now: run });
}

/** Shows what the address names. `moved` says whether the person came here just now. */
async function show(focus, moved = true) {
  place = undefined;
  last = location.hash;
  const route = { ...parse(last), moved };
  const view = views.get(route.view) ?? views.get("");
  const before = shown;
  shown = view;
  if (before && before !== view) before.handle.leave?.();
  for (const other of views.values()) other.panel.hidden = other !== view;
  nav.mark(view.id);
  title();
  if (focus === "panel") view.panel.focus({ preventScroll: true });
  by("asking").hidden = !waiting || view.id === "approvals";
  const scroll = history.state?.scroll;
  await view.handle.enter?.(route);
  if (scroll && shown === view) scrollTo(view.panel, scroll);
}

function build() {
  views = new Map();
  const main = by("main");
  put(main);
  nav.build(VIEWS, GROUPS, FIRST);
  for (const { id, title, make } of [...VIEWS, { id: "", title: "Not found", make: lost }]) {
    const panel = el("section", { id: `panel-${id || "lost"}`, "aria-label": title, tabindex: -1, hidden: true, class: `view view-${id || "lost"}` });
    main.append(panel);
    const view = { id, title, panel };
    views.set(id, view);
    view.handle = make(app, panel);
  }
}

/** The view for an address that names no view. */
function lost(app, panel) {
  return {
    enter: ({ view }) => void put(panel, el("h1", {}, "Not found"), nothing(`There is no view named “${view}”`, "The address may be mistyped, or from another version of this page."),
      el("p", { class: "line middle" }, el("a", { href: href(HOME) }, "Go to the start page"))),
  };
}

function theme(next) {
  const chosen = next ?? localStorage.getItem("prowess.theme") ?? "auto";
  document.documentElement.dataset.theme = chosen;
  localStorage.setItem("prowess.theme", chosen);
  by("theme").textContent = `Theme: ${chosen}`;
}

/** The agents to choose from; a single one needs no choice. */
async function agents() {
  if (!app.link.knows("agents.list")) return;
  const { agents: list = [], defaultId } = await app.link.call("agents.list");
  app.agent ??= defaultId;
  const options = list.map(({ id, name }) => el("option", { value: id, selected: id === app.agent }, name ? `${name} (${id})` : id));
  put(by("agent"), options);
  by("agent-pick").hidden = list.length < 2;
}

/** From now on, everything is about another agent. */
function chooseAgent(id) {
  app.agent = id;
  by("agent").value = id;
  for (const view of views.values()) view.handle.fresh?.();
  go(shown.id, { focus: "none", replace: true });
}

function state(word, kind) {
  const node = by("state");
  node.textContent = word;
  node.className = `state ${kind}`;
}

/** Everything that was loaded is stale; the place stays. */
function refresh() {
  for (const view of views.values()) view.handle.fresh?.();
  return show("none", false);
}

function enter(secret) {
  app.link?.end();
  const link = new Link(secret, async (how, error) => {
    if (link !== app.link) return;
    if (how === "away") {
      for (const view of views.values()) view.handle.away?.();
      return state("reconnecting", "warn");
    }
    if (how !== "open") return door.turned(how, error, enter, link);
    door.arrived(link);
    state("connected", "good");
    await agents().catch(failed);
    by("house").hidden = false;
    if (shown) return refresh();
    for (const view of views.values()) view.handle.fresh?.();
    if (!parse(location.hash).view) history.replaceState(history.state, "", href(HOME));
    show("panel");
  }, { access: door.access(), confirm: (scope, why) => door.rights(link, scope, why) });
  app.link = link;
  shown = undefined;
  build();
  link.open();
}

/** Does `work`, which takes the token out of the address. The place that came with it (`at`) stays there. */
function placed(work) {
  const at = new URLSearchParams(location.hash.slice(1)).get("at");
  const result = work();
  if (at?.startsWith("/")) history.replaceState(null, "", `#${at}`);
  return result;
}

nav.shortcuts(VIEWS, () => shown?.panel, (id) => go(id));
by("theme").addEventListener("click", () => theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]));
by("leave").addEventListener("click", () => {
  app.link.end();
  app.kept = nobody();
  last = "";
  history.replaceState(null, "", location.pathname);
  door.leave();
  door.ask(undefined, enter);
});
by("agent").addEventListener("change", () => chooseAgent(by("agent").value));
by("main").addEventListener("scroll", keepScroll, { capture: true, passive: true });
addEventListener("hashchange", () => {
  if (location.hash.startsWith("#token=")) {
    const secret = placed(door.known);
    if (!parse(location.hash).view) history.replaceState(null, "", last || location.pathname);
    return enter(secret);
  }
  if (!shown || by("house").hidden) return;
  show(parse(location.hash).view === shown.id ? "none" : "panel");
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  (shown?.panel ?? by("main")).focus();
});

theme();
placed(() => door.start(enter));
