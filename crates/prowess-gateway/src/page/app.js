// The page: which view is shown, and what do all of them share?

import * as approvals from "./approvals.js";
import * as chat from "./chat.js";
import { button, el, icon, put } from "./dom.js";
import * as door from "./door.js";
import { Link } from "./link.js";
import * as nodes from "./nodes.js";
import * as prompt from "./prompt.js";
import * as sessions from "./sessions.js";
import * as skills from "./skills.js";
import * as usage from "./usage.js";

const VIEWS = [
  { id: "skills", title: "Skills", key: "s", make: skills.make },
  { id: "prompt", title: "Prompt", key: "p", make: prompt.make },
  { id: "chat", title: "Chat", key: "c", make: chat.make },
  { id: "approvals", title: "Approvals", key: "a", make: approvals.make },
  { id: "nodes", title: "Nodes", key: "n", make: nodes.make },
  { id: "sessions", title: "Sessions", key: "e", make: sessions.make },
  { id: "usage", title: "Usage", key: "u", make: usage.make },
];
const THEMES = ["auto", "light", "dark"];

const by = (id) => document.getElementById(id);
// `kept` is what the chat does not lose when the person has to come in again.
const app = { link: undefined, agent: undefined, kept: nobody(), say, go, asking, badge, failed };
let views;
let shown;

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

/** Tells the person what went wrong. */
function failed(error) {
  say(error.message ?? String(error), "bad");
}

/** Tells the person that somebody waits for them. */
function asking(number) {
  const node = by("asking");
  badge("approvals", number);
  document.title = number ? `(${number}) prowess` : "prowess";
  node.hidden = !number || shown?.id === "approvals";
  if (node.hidden) return;
  const text = number === 1 ? "A command waits for your answer." : `${number} commands wait for your answer.`;
  put(node, el("span", {}, text), button("Look", () => go("approvals"), { class: "main small" }));
}

/** Shows a number beside the name of a view. */
function badge(id, number) {
  const node = by(`tab-${id}`)?.querySelector(".number");
  if (node) node.textContent = number ? String(number) : "";
}

/** Shows a view; `focus` moves the keyboard there, too. The way back leads to the view before. */
function go(id, { focus = "panel", ...more } = {}) {
  const view = views.get(id) ?? views.get("skills");
  for (const other of views.values()) {
    other.tab.setAttribute("aria-selected", String(other === view));
    other.tab.tabIndex = other === view ? 0 : -1;
    other.panel.hidden = other !== view;
  }
  const [from, address] = [shown, `#${view.id}`];
  shown = view;
  view.tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  if (!from) history.replaceState(null, "", address);
  else if (location.hash !== address) history.pushState(null, "", address);
  if (focus === "panel") view.panel.focus({ preventScroll: true });
  if (focus === "tab") view.tab.focus();
  if (view.id === "approvals") by("asking").hidden = true;
  view.handle.enter?.(more);
}

function build() {
  views = new Map();
  const [tabs, main] = [by("tabs"), by("main")];
  put(tabs);
  put(main);
  for (const { id, title, key, make } of VIEWS) {
    const tab = el("button", {
      type: "button", role: "tab", id: `tab-${id}`, "aria-controls": `panel-${id}`, "aria-keyshortcuts": `g ${key}`,
      on: { click: () => go(id, { focus: "tab" }) },
    }, icon(id), el("span", {}, title), el("span", { class: "number" }));
    const panel = el("section", { role: "tabpanel", id: `panel-${id}`, "aria-labelledby": `tab-${id}`, tabindex: -1, class: `view view-${id}` });
    tabs.append(tab);
    main.append(panel);
    const view = { id, tab, panel };
    views.set(id, view);
    view.handle = make(app, panel);
  }
}

function arrow(event) {
  const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
  const at = VIEWS.findIndex((view) => view.id === shown.id);
  const to = event.key === "Home" ? 0 : event.key === "End" ? VIEWS.length - 1 : step && (at + step + VIEWS.length) % VIEWS.length;
  if (to === undefined) return;
  event.preventDefault();
  go(VIEWS[to].id, { focus: "tab" });
}

// Whether the last key was the one before the letter of a view.
let leader = false;
function shortcut(event) {
  const typing = event.target.closest?.("input, textarea, select, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || by("house").hidden) return;
  const view = leader && VIEWS.find((one) => one.key === event.key);
  leader = event.key === "g";
  if (view) go(view.id);
  else if (event.key === "/") shown.panel.querySelector("[data-search]")?.focus();
  else if (event.key === "?") help();
  else return;
  event.preventDefault();
}

function help() {
  const rows = [...VIEWS.map(({ title, key }) => [`g ${key}`, title]), ["/", "Search, or write a message"], ["?", "These keys"], ["↑ ↓", "Next view, when a view's name has the focus"]];
  const dialog = by("help");
  put(dialog,
    el("h2", { id: "help-title" }, "Keys"),
    el("dl", { class: "keys" }, rows.map(([keys, what]) => [el("dt", {}, keys.split(" ").map((one) => el("kbd", {}, one))), el("dd", {}, what)])),
    el("form", { method: "dialog" }, el("button", { class: "main" }, "Close")));
  dialog.showModal();
}

function theme(next) {
  const chosen = next ?? localStorage.getItem("prowess.theme") ?? "auto";
  document.documentElement.dataset.theme = chosen;
  localStorage.setItem("prowess.theme", chosen);
  by("theme").textContent = `Theme: ${chosen}`;
}

/** Who can be spoken with; only one needs no choice. */
async function agents() {
  if (!app.link.knows("agents.list")) return;
  const { agents: list = [], defaultId } = await app.link.call("agents.list");
  app.agent ??= defaultId;
  const options = list.map(({ id, name }) => el("option", { value: id, selected: id === app.agent }, name ? `${name} (${id})` : id));
  put(by("agent"), options);
  by("agent-pick").hidden = list.length < 2;
}

function state(word, kind) {
  const node = by("state");
  node.textContent = word;
  node.className = `state ${kind}`;
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
    for (const view of views.values()) view.handle.fresh?.();
    go(shown?.id ?? location.hash.slice(1), { focus: shown ? "none" : "panel" });
  }, { access: door.access(), confirm: (scope, why) => door.rights(link, scope, why) });
  app.link = link;
  shown = undefined;
  build();
  link.open();
}

by("tabs").addEventListener("keydown", arrow);
document.addEventListener("keydown", shortcut);
by("keys").addEventListener("click", help);
by("theme").addEventListener("click", () => theme(THEMES[(THEMES.indexOf(document.documentElement.dataset.theme) + 1) % THEMES.length]));
by("leave").addEventListener("click", () => {
  app.link.end();
  app.kept = nobody();
  door.leave();
  door.ask(undefined, enter);
});
by("agent").addEventListener("change", () => {
  app.agent = by("agent").value;
  for (const view of views.values()) view.handle.fresh?.();
  go(shown.id, { focus: "none" });
});
addEventListener("hashchange", () => {
  const id = location.hash.slice(1);
  if (id.startsWith("token=")) {
    const [secret, view] = [door.known(), shown?.id];
    if (view) history.replaceState(null, "", `#${view}`);
    enter(secret);
  } else if (shown && views.has(id) && shown.id !== id) {
    go(id);
  }
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  (shown?.panel ?? by("main")).focus();
});

theme();
door.start(enter);
