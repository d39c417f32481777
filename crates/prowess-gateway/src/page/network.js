// Network: which hosts do commands reach, and what was refused?

import { badge, button, bytes, clock, command, count, el, loading, many, nothing, put, soon, words } from "./dom.js";
import { facts, failure, heading, locked } from "./parts.js";
import { href } from "./route.js";

const PAGE = 100;
/** How many connections stay on the page. */
const KEPT = 500;
const SAID = { open: ["open", "calm"], waiting: ["waiting", "warn"], served: ["served", "good"], refused: ["refused", "bad"], failed: ["failed", "warn"] };

export function make(app, panel) {
  const self = { past: undefined, open: [], openCount: 0, cursor: undefined, stale: true, target: undefined, cards: new Map() };
  const summary = el("p", { class: "soft", role: "status", "aria-live": "off" });
  const search = el("input", { type: "search", placeholder: "Search hosts, skills and commands", "aria-label": "Search the connections", "data-search": true, spellcheck: "false", on: { input: soon(() => (draw(), noted()), 60) } });
  const state = el("select", { id: "network-state", on: { change: () => (draw(), noted()) } }, ["", ...Object.keys(SAID)].map((name) => el("option", { value: name }, name || "everything")));
  const list = el("ul", { class: "stack plain", "aria-label": "Connections" });
  const more = button("Show older", () => load("more"), { hidden: true });
  put(panel, heading("Network", summary),
    el("div", { class: "bar" }, search, el("label", { class: "pick", for: "network-state" }, el("span", {}, "Show"), state)),
    list, el("p", { class: "line middle" }, more));

  async function load(how) {
    if (panel.hidden) return void (self.stale = true);
    if (!app.link.knows("egress.log")) return void put(list, el("li", {}, nothing("This gateway keeps no record of connections", "Update it to see which hosts commands reach.")));
    const why = locked(app, "operator.read", "see which hosts commands reach");
    if (why) return void put(list, el("li", {}, why));
    if (!self.past) put(list, el("li", {}, loading("Loading the connections")));
    try {
      const cursor = how === "more" ? self.cursor : undefined;
      const answer = await app.link.call("egress.log", { limit: PAGE, ...(cursor && { cursor }) });
      self.past = cursor ? [...self.past, ...answer.entries] : answer.entries;
      self.cursor = answer.nextCursor;
      if (!cursor) [self.open, self.openCount] = [answer.open ?? [], answer.openCount ?? 0];
      self.stale = false;
      draw();
    } catch (error) {
      if (self.past) app.failed(error);
      else put(list, el("li", {}, failure("The log of connections", error, load)));
    }
  }

  const again = soon(load, 400);

  /** What happened since the last time. Where too much did, the log is asked. */
  function heard({ open, openCount, ended, missed }) {
    if (panel.hidden || !self.past) return void (self.stale = true);
    [self.open, self.openCount] = [open, openCount];
    const known = new Set(self.past.map(({ id }) => id));
    self.past = [...ended.filter(({ id }) => !known.has(id)), ...self.past];
    if (self.past.length > KEPT) {
      self.past.length = KEPT;
      self.cursor = self.past.at(-1).id;
    }
    draw();
    if (missed) again();
  }

  function draw() {
    if (!self.past) return;
    const over = new Set(self.past.map(({ id }) => id));
    const all = [...self.open.filter(({ id }) => !over.has(id)), ...self.past];
    const wanted = search.value.trim().toLowerCase();
    const told = ({ host, port, skill, command, session, reason }) => [`${host}:${port}`, skill, command, session, reason].join(" ").toLowerCase();
    const found = all.filter((one) => (!state.value || one.outcome === state.value) && (!wanted || told(one).includes(wanted)));
    summary.textContent = `${many(found.length, "connection")}${self.openCount ? `, ${count(self.openCount)} open` : ""}`;
    more.hidden = !self.cursor;
    const missing = self.target && !all.some(({ id }) => id === self.target);
    const focused = list.contains(document.activeElement) && document.activeElement;
    put(list,
      missing && el("li", {}, nothing("This connection is not loaded", self.cursor ? "Show older ones, or search for its host." : "It may be older than the log.")),
      found.map(item),
      !found.length && el("li", {}, nothing(all.length ? "No connection matches" : "No connections yet", all.length ? "Try another search." : "When a command in the sandbox reaches a host, or is refused one, it is listed here.")));
    if (focused && list.contains(focused)) focused.focus({ preventScroll: true });
    const kept = new Set(all.map(({ id }) => id));
    for (const id of self.cards.keys()) if (!kept.has(id)) self.cards.delete(id);
  }

  /** The element of a connection; what did not change stays as it is. */
  function item(one) {
    const look = JSON.stringify([one, one.id === self.target]);
    const made = self.cards.get(one.id);
    if (made?.look === look) return made.node;
    const node = el("li", {}, card(one, one.id === self.target));
    self.cards.set(one.id, { look, node });
    return node;
  }

  const noted = () => app.here("network", { target: self.target, query: { q: search.value.trim(), show: state.value } });
  app.link.on("egress.traffic", heard);
  app.link.on("rights", () => load());
  return {
    async enter({ target, query, moved }) {
      self.target = target;
      if (query.q !== undefined) search.value = query.q;
      if (query.show in SAID) state.value = query.show;
      if (self.stale) await load();
      else draw();
      const node = list.querySelector(".target");
      node?.scrollIntoView({ block: "nearest" });
      if (moved) node?.focus({ preventScroll: true });
    },
    fresh: () => (self.stale = true),
  };
}

function card(one, isTarget) {
  const [said, kind] = SAID[one.outcome] ?? [one.outcome, "dim"];
  const host = one.host?.includes(":") ? `[${one.host}]` : one.host;
  return el("article", { class: isTarget ? "card connection target" : "card connection", tabindex: -1, data: { id: one.id } },
    el("div", { class: "line between" },
      el("span", { class: "line" }, badge(said, kind), el("strong", { class: "theirs" }, words(host ? `${host}:${one.port}` : "no host named"))),
      el("a", { class: "quiet-link soft", href: href("network", one.id) }, clock(one.at))),
    el("p", { class: "line soft" },
      el("span", { class: "theirs" }, one.skill ? ["skill ", el("a", { href: href("skills", one.skill) }, words(one.skill))] : "no skill"),
      el("span", {}, `${bytes(one.up)} up, ${bytes(one.down)} down`),
      one.session && el("a", { href: href("sessions", one.session) }, "Open the session")),
    one.reason && el("p", { class: "theirs" }, words(one.reason)),
    el("pre", { class: "command theirs", tabindex: 0, "aria-label": "The command" }, command(one.command)),
    isTarget && facts([["Protocol", one.protocol && words(one.protocol)], ["Address", one.address && el("code", {}, words(one.address))], ["Lasted", one.ms !== undefined && `${count(one.ms)} ms`]]));
}
