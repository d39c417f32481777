// Network: which hosts do commands reach, and what was refused?

import { badge, bytes, clock, command, count, el, words } from "./dom.js";
import { facts } from "./parts.js";
import { href } from "./route.js";
import { trail } from "./trail.js";

const SAID = { open: ["open", "calm"], waiting: ["waiting", "warn"], served: ["served", "good"], refused: ["refused", "bad"], failed: ["failed", "warn"] };

export function make(app, panel) {
  const self = { open: [], count: 0 };
  const state = el("select", { id: "network-state", on: { change: () => connections.changed() } }, ["", ...Object.keys(SAID)].map((name) => el("option", { value: name }, name || "everything")));
  const connections = trail(app, panel, {
    view: "network", title: "Network", unit: "connection",
    method: "egress.log", right: "operator.read", wish: "see which hosts commands reach",
    texts: {
      search: "Search hosts, skills and commands", searches: "Search the connections", list: "Connections",
      unknown: ["This gateway keeps no record of connections", "Update it to see which hosts commands reach."],
      loading: "Loading the connections", failure: "The log of connections",
      missing: "This connection is not loaded", elsewhere: "Show older ones, or search for its host.", gone: "It may be older than the log.",
      unmatched: "No connection matches",
      empty: ["No connections yet", "When a command in the sandbox reaches a host, or is refused one, it is listed here."],
    },
    told: ({ host, port, skill, command, session, reason }) => [`${host}:${port}`, skill, command, session, reason].join(" ").toLowerCase(),
    card,
    filter: {
      node: el("label", { class: "pick", for: "network-state" }, el("span", {}, "Show"), state),
      keeps: ({ outcome }) => !state.value || outcome === state.value,
      query: () => ({ show: state.value }),
      enter: ({ show }) => show in SAID && (state.value = show),
    },
    front: {
      take: ({ open = [], openCount = 0 }) => Object.assign(self, { open, count: openCount }),
      list: () => self.open,
      note: () => (self.count ? `, ${count(self.count)} open` : ""),
    },
  });
  // What happened since the last time. Where too much did, the log is asked.
  app.link.on("egress.traffic", ({ open, openCount, ended, missed }) => {
    Object.assign(self, { open, count: openCount });
    if (connections.add(ended) && missed) connections.again();
  });
  return connections.view;
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
