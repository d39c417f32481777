// Sessions: which conversations are there, and what was said in them?

import { ago, button, count, el, loading, many, nothing, put, soon, words } from "./dom.js";
import { List } from "./list.js";
import { href } from "./route.js";
import { Talk } from "./talk.js";

/** How many messages of a session are shown. */
const PAST = 200;
/** How many sessions one answer has, and how many are looked at again when something was said. */
const PAGE = 5000;
const RECENT = 50;
const narrow = matchMedia("(max-width: 60rem)");

export function make(app, panel) {
  const self = { stale: true, chosen: undefined, list: undefined };
  const summary = el("p", { class: "soft", role: "status", "aria-live": "polite" });
  const search = el("input", {
    type: "search", placeholder: "Search sessions", "aria-label": "Search sessions", "data-search": true, spellcheck: "false",
    on: { input: () => (draw(), noted()), keydown: (event) => event.key === "ArrowDown" && (event.preventDefault(), list.focus()) },
  });
  const frame = el("div", { class: "rows", hidden: true, data: { scroll: "list" } });
  const empty = el("div", { class: "none" }, loading("Loading sessions"));
  const title = el("h2", { class: "theirs", tabindex: -1 });
  const tools = el("div", { class: "line" });
  const log = el("div", { class: "log", tabindex: 0, role: "group", "aria-label": "Messages", data: { scroll: "log" } });
  const back = el("a", { class: "back", href: href("sessions") }, "‹ All sessions");
  const detail = el("article", { class: "detail", hidden: true, "aria-label": "The chosen session" }, back, el("div", { class: "line between" }, title, tools), log);
  const split = el("div", { class: "split" }, el("div", { class: "column" }, frame, empty), detail);
  const talk = new Talk(log);
  put(panel, el("div", { class: "head" }, el("h1", {}, "Sessions"), summary), el("div", { class: "bar" }, search), split);
  const list = new List(frame, { key: (one) => one.key, row, label: "Sessions", before: search });

  const name = (one) => one.label ?? one.derivedTitle ?? one.displayName ?? one.key;
  const reload = soon(() => load(RECENT), 400);

  /** Loads all sessions, or looks again at the most recent ones. */
  async function load(recent) {
    if (panel.hidden) return void (self.stale = true);
    try {
      const fresh = await fetchAll(self.list && recent);
      const known = new Set(fresh.map((one) => one.key));
      self.list = recent && self.list ? [...fresh, ...self.list.filter((one) => !known.has(one.key))] : fresh;
      self.stale = false;
      draw();
    } catch (error) {
      if (!self.list) put(empty, nothing("The sessions could not be loaded", error.message), button("Try again", () => load()));
      else app.failed(error);
    }
  }

  async function fetchAll(recent) {
    if (!app.link.knows("sessions.list")) return [];
    const found = [];
    let cursor;
    do {
      const params = { limit: recent ?? PAGE, includeDerivedTitles: true, ...(app.agent && { agentId: app.agent }), ...(cursor && { cursor }) };
      const part = await app.link.call("sessions.list", params);
      found.push(...(part.sessions ?? []));
      cursor = recent ? undefined : part.cursor ?? part.nextCursor;
    } while (cursor);
    for (const one of found) one.text = `${name(one)}\n${one.key}\n${one.model ?? ""}`.toLowerCase();
    return found;
  }

  function draw() {
    if (!self.list) return;
    const wanted = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const found = wanted.length ? self.list.filter((one) => wanted.every((word) => one.text.includes(word))) : self.list;
    summary.textContent = wanted.length ? `${count(found.length)} of ${many(self.list.length, "session")}` : many(self.list.length, "session");
    list.set(found);
    empty.hidden = found.length > 0;
    if (!found.length) put(empty, self.list.length ? nothing("No session matches", "Try another search.") : nothing("There are no sessions yet", "Start one in Chat, or with prowess run."));
  }

  function row(one) {
    return el("a", { class: "row", href: href("sessions", one.key, { q: search.value.trim() }), data: { session: one.key } },
      el("span", { class: "what" }, el("span", { class: "name theirs" }, words(name(one))), el("span", { class: "about theirs" }, words(one.key))),
      el("span", { class: "soft end" }, el("span", {}, ago(one.updatedAt)), one.totalTokens ? el("span", {}, `${count(one.totalTokens)} tokens`) : el("span", { class: "theirs" }, words(one.model ?? ""))));
  }

  const noted = () => app.here("sessions", { target: self.chosen, query: { q: search.value.trim() } });

  /** Shows the session with that key, or none. */
  async function show(key) {
    self.chosen = key;
    list.choose(key);
    split.classList.toggle("picked", Boolean(key));
    detail.hidden = !key;
    if (!key) return;
    const one = self.list?.find((session) => session.key === key);
    put(title, words(one ? name(one) : key));
    if (!one) {
      put(tools);
      return void put(log, nothing("Session not found", "It may have been deleted, or belong to another agent."));
    }
    put(tools,
      el("a", { class: "button main", href: href("chat", key) }, "Continue"),
      app.link.knows("sessions.reset") && button("Start over", () => reset(one)));
    put(log, loading("Loading the messages"));
    try {
      const past = await app.link.call("chat.history", { sessionKey: key, limit: PAST });
      if (self.chosen === key) talk.history(past.messages ?? []);
    } catch (error) {
      if (self.chosen === key) put(log, nothing("The messages could not be loaded", error.message));
    }
  }

  async function reset(one) {
    try {
      await app.act("sessions.reset", { key: one.key });
      app.say("The session was started over. Earlier messages stay in its transcript.", "good");
      await load();
      await show(one.key);
    } catch (error) {
      app.failed(error);
    }
  }

  app.link.on("chat", ({ state }) => state !== "delta" && reload());
  return {
    async enter({ target, query, moved }) {
      if (target || query.q !== undefined) search.value = query.q ?? (moved ? "" : search.value);
      if (self.stale) await load();
      else draw();
      if (target) list.reveal(target);
      const key = target ?? (narrow.matches ? undefined : self.chosen);
      if (key !== self.chosen || !moved || key !== undefined && log.childElementCount === 0) await show(key);
      else split.classList.toggle("picked", Boolean(key));
      if (!target && key) noted();
      if (target && narrow.matches && moved) title.focus({ preventScroll: true });
    },
    fresh: () => (self.stale = true),
  };
}
