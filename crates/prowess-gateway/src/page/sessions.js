// Sessions: which conversations are there, and what was said in them?

import { ago, button, count, el, many, nothing, put, soon, words } from "./dom.js";
import { Talk } from "./talk.js";

const MOST = 200;

export function make(app, panel) {
  const self = { stale: true, chosen: undefined, list: [] };
  const summary = el("p", { class: "soft", role: "status", "aria-live": "polite" });
  const search = el("input", { type: "search", placeholder: "Search sessions", "aria-label": "Search sessions", "data-search": true, on: { input: () => draw() } });
  const rows = el("ul", { class: "rows", "aria-label": "Sessions" });
  const title = el("h2", { class: "theirs" });
  const tools = el("div", { class: "line" });
  const log = el("div", { class: "log", tabindex: 0, "aria-label": "What was said" });
  const detail = el("article", { class: "detail", hidden: true, "aria-label": "The chosen session" }, el("div", { class: "line between" }, title, tools), log);
  const talk = new Talk(log);
  put(panel, el("div", { class: "head" }, el("h1", {}, "Sessions"), summary), el("div", { class: "bar" }, search), el("div", { class: "split" }, rows, detail));

  const reload = soon(load, 400);
  async function load() {
    if (panel.hidden) return void (self.stale = true);
    try {
      const params = { limit: MOST, includeDerivedTitles: true, ...(app.agent && { agentId: app.agent }) };
      self.list = app.link.knows("sessions.list") ? (await app.link.call("sessions.list", params)).sessions ?? [] : [];
      self.stale = false;
      draw();
    } catch (error) {
      app.failed(error);
    }
  }

  const name = (one) => one.label ?? one.derivedTitle ?? one.displayName ?? one.key;

  function draw() {
    const wanted = search.value.trim().toLowerCase();
    const found = self.list.filter((one) => `${name(one)}\n${one.key}`.toLowerCase().includes(wanted));
    summary.textContent = many(self.list.length, "session");
    put(rows, found.length ? found.map(row) : el("li", {}, nothing("No session", "A conversation begins in Chat, or with prowess chat.")));
  }

  function row(one) {
    const node = button([
      el("span", { class: "what" }, el("span", { class: "name theirs" }, words(name(one))), el("span", { class: "about theirs" }, words(one.key))),
      el("span", { class: "soft end" }, el("span", {}, ago(one.updatedAt)), one.totalTokens ? el("span", {}, `${count(one.totalTokens)} tokens`) : el("span", { class: "theirs" }, words(one.model ?? ""))),
    ], () => show(one), { class: "row", "aria-current": String(one.key === self.chosen) });
    return el("li", {}, node);
  }

  async function show(one) {
    self.chosen = one.key;
    draw();
    detail.hidden = false;
    put(title, words(name(one)));
    put(tools, button("Go on", () => app.go("chat", { session: one.key }), { class: "main" }), app.link.knows("sessions.reset") && button("Begin anew", () => reset(one)));
    try {
      const past = await app.link.call("chat.history", { sessionKey: one.key, limit: MOST });
      if (self.chosen === one.key) talk.history(past.messages ?? []);
    } catch (error) {
      app.failed(error);
    }
  }

  async function reset(one) {
    try {
      await app.link.act("sessions.reset", { key: one.key }, "Resetting a session discards its conversation.");
      app.say("It begins anew; what was said before is kept aside", "good");
      await load();
      await show(one);
    } catch (error) {
      app.failed(error);
    }
  }

  app.link.on("chat", ({ state }) => state !== "delta" && reload());
  return { enter: () => self.stale && load(), fresh: () => (self.stale = true) };
}
