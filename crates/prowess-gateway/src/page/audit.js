// Audit: who allowed or denied which command, from which device, and when?

import { badge, button, clock, command, el, loading, many, nothing, put, soon, words } from "./dom.js";
import { facts, failure, heading, locked } from "./parts.js";
import { href } from "./route.js";

const PAGE = 100;
const SAID = { "allow-once": ["allowed once", "good"], "allow-session": ["allowed for the session", "good"], "allow-always": ["always allowed", "good"], deny: ["denied", "bad"] };

export function make(app, panel) {
  const self = { entries: undefined, cursor: undefined, stale: true, target: undefined };
  const summary = el("p", { class: "soft", role: "status", "aria-live": "polite" });
  const search = el("input", { type: "search", placeholder: "Search commands, people and devices", "aria-label": "Search the audit trail", "data-search": true, spellcheck: "false", on: { input: soon(() => (draw(), noted()), 60) } });
  const list = el("ul", { class: "stack plain", "aria-label": "Decisions" });
  const more = button("Show older", () => load("more"), { hidden: true });
  put(panel, heading("Audit", summary), el("div", { class: "bar" }, search), list, el("p", { class: "line middle" }, more));

  async function load(how) {
    if (panel.hidden) return void (self.stale = true);
    if (!app.link.knows("exec.approval.log")) return void put(list, el("li", {}, nothing("This gateway keeps no record of approvals", "Update it to see who approved what.")));
    const why = locked(app, "operator.approvals", "see who approved what");
    if (why) return void put(list, el("li", {}, why));
    if (!self.entries) put(list, el("li", {}, loading("Loading the audit trail")));
    try {
      const cursor = how === "more" ? self.cursor : undefined;
      const answer = await app.link.call("exec.approval.log", { limit: PAGE, ...(cursor && { cursor }) });
      self.entries = [...(how === "more" ? self.entries : []), ...(answer.entries ?? [])];
      self.cursor = answer.cursor ?? answer.nextCursor;
      self.stale = false;
      draw();
    } catch (error) {
      if (self.entries) app.failed(error);
      else put(list, el("li", {}, failure("The audit trail", error, load)));
    }
  }

  const told = (entry) => JSON.stringify(entry).toLowerCase();

  function draw() {
    if (!self.entries) return;
    const wanted = search.value.trim().toLowerCase();
    const found = self.entries.filter((entry) => !wanted || told(entry).includes(wanted));
    summary.textContent = many(found.length, "decision");
    more.hidden = !self.cursor;
    const missing = self.target && !self.entries.some((entry) => entry.id === self.target);
    put(list,
      missing && el("li", {}, nothing("This decision is not loaded", self.cursor ? "Show older ones, or search for the command." : "It may be older than the audit trail.")),
      found.map((entry) => el("li", {}, card(entry, entry.id === self.target))),
      !found.length && el("li", {}, nothing(self.entries.length ? "No decision matches" : "No decisions yet", self.entries.length ? "Try another search." : "Every answer to an approval is recorded here.")));
  }

  const noted = () => app.here("audit", { target: self.target, query: { q: search.value.trim() } });
  app.link.on("exec.approval.resolved", soon(load, 400));
  app.link.on("rights", () => load());
  return {
    async enter({ target, query, moved }) {
      self.target = target;
      if (query.q !== undefined) search.value = query.q;
      if (self.stale) await load();
      else draw();
      const node = list.querySelector(".target");
      node?.scrollIntoView({ block: "nearest" });
      if (moved) node?.focus({ preventScroll: true });
    },
    fresh: () => (self.stale = true),
  };
}

function card(entry, isTarget) {
  const { id, decision, at, why, by, request = {} } = entry;
  const [said, kind] = SAID[decision] ?? [decision ?? (why === "timeout" ? "timed out" : "not answered"), "dim"];
  const session = request.sessionKey ?? entry.sessionKey;
  const node = request.nodeId ?? entry.nodeId;
  return el("article", { class: isTarget ? "card target" : "card", tabindex: -1, data: { id } },
    el("div", { class: "line between" },
      el("span", { class: "line" }, badge(said, kind), el("a", { class: "quiet-link soft", href: href("audit", id) }, clock(at))),
      session && el("a", { class: "theirs", href: href("sessions", session) }, "Open the session")),
    el("pre", { class: "command theirs", tabindex: 0, "aria-label": "The command" }, command(request.command ?? entry.command)),
    facts([
      ["By", (by?.user ?? by?.name) && words(by.user ?? by.name)],
      ["On", by?.deviceName && by.deviceName !== by.name && words(by.deviceName)],
      ["With", by?.client && by.client !== by.name && words(by.client)],
      ["Device", by?.deviceId && el("code", {}, words(by.deviceId))],
      ["Address", by?.address && words(by.address)],
      ["Where", node ? ["node ", el("a", { href: href("nodes", node) }, words(entry.nodeName ?? request.nodeName ?? node))] : words(entry.host ?? request.host ?? "")],
      ["Folder", entry.cwd && el("code", {}, words(entry.cwd))],
      ["Agent", (request.agentId ?? entry.agentId) && words(request.agentId ?? entry.agentId)],
    ]));
}
