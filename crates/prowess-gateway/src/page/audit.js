// Audit: who allowed or denied which command, from which device, and when?

import { badge, clock, command, el, words } from "./dom.js";
import { facts } from "./parts.js";
import { href } from "./route.js";
import { trail } from "./trail.js";

const SAID = { "allow-once": ["allowed once", "good"], "allow-session": ["allowed for the session", "good"], "allow-always": ["always allowed", "good"], deny: ["denied", "bad"] };

export function make(app, panel) {
  const decisions = trail(app, panel, {
    view: "audit", title: "Audit", unit: "decision",
    method: "exec.approval.log", right: "operator.approvals", wish: "see who approved what",
    texts: {
      search: "Search commands, people and devices", searches: "Search the audit trail", list: "Decisions",
      unknown: ["This gateway keeps no record of approvals", "Update it to see who approved what."],
      loading: "Loading the audit trail", failure: "The audit trail",
      missing: "This decision is not loaded", elsewhere: "Show older ones, or search for the command.", gone: "It may be older than the audit trail.",
      unmatched: "No decision matches", empty: ["No decisions yet", "Every answer to an approval is recorded here."],
    },
    told: (entry) => JSON.stringify(entry).toLowerCase(),
    card,
  });
  app.link.on("exec.approval.resolved", () => decisions.again());
  return decisions.view;
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
