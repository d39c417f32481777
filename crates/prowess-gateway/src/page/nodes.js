// Nodes: which other machines are there, and what can they do?

import { ago, badge, button, el, many, nothing, put, soon, words } from "./dom.js";

export function make(app, panel) {
  const self = { stale: true };
  const summary = el("p", { class: "soft", role: "status", "aria-live": "polite" });
  const pairs = el("div", { class: "stack" });
  const list = el("div", { class: "grid" });
  put(panel, el("div", { class: "head" }, el("h1", {}, "Nodes"), summary), pairs, list);

  const reload = soon(load);
  async function load() {
    if (panel.hidden) return void (self.stale = true);
    try {
      const nodes = app.link.knows("node.list") ? (await app.link.call("node.list")).nodes ?? [] : [];
      const pending = app.link.knows("device.pair.list") ? (await app.link.call("device.pair.list")).pending ?? [] : [];
      self.stale = false;
      draw(nodes, pending);
    } catch (error) {
      app.failed(error);
    }
  }

  function draw(nodes, pending) {
    const here = nodes.filter((node) => node.connected).length;
    summary.textContent = nodes.length ? `${here} of ${many(nodes.length, "machine")} connected` : "";
    app.badge("nodes", pending.length);
    put(pairs, pending.map(request));
    put(list, nodes.length ? nodes.map(card) : nothing("No other machine is known", "Run prowess node on one, and it asks to be let in here."));
  }

  function request(one) {
    const decide = async (word) => {
      try {
        await app.link.call(`device.pair.${word}`, { requestId: one.requestId });
        await load();
      } catch (error) {
        app.failed(error);
      }
    };
    const name = one.displayName ?? one.deviceId;
    const roles = [...new Set([...(one.roles ?? []), one.role].filter(Boolean))];
    const scopes = one.scopes ?? [];
    return el("article", { class: "card question" },
      el("h2", {}, "A device wants to be let in"),
      el("p", { class: "theirs" }, el("span", { class: "strong" }, words(name)), " as ", words(roles.join(" and ")), one.platform && [", ", words(one.platform)], one.remoteIp && [", from ", words(one.remoteIp)]),
      scopes.length > 0 && el("p", { class: "theirs scopes" }, "It wants to be allowed: ", scopes.map((scope, at) => [at > 0 && ", ", el("code", {}, words(scope))])),
      one.isRepair && el("p", { class: "soft" }, "It is known here, and asks again or for more."),
      el("p", { class: "soft theirs" }, el("code", {}, words(one.deviceId))),
      el("div", { class: "line" }, button("Let in", () => decide("approve"), { class: "main" }), button("Refuse", () => decide("reject"), { class: "deny" })));
  }

  for (const event of ["presence", "node.pair.requested", "node.pair.resolved", "device.pair.requested", "device.pair.resolved"]) app.link.on(event, reload);
  return { enter: () => self.stale && load(), fresh: () => (self.stale = true) };
}

function card(node) {
  const facts = [
    ["System", [node.platform, node.deviceFamily, node.modelIdentifier].filter(Boolean).join(", ")],
    ["Version", node.version ?? node.coreVersion],
    ["Address", node.remoteIp],
    ["Connected", node.connectedAtMs && ago(node.connectedAtMs)],
    ["Abilities", (node.caps ?? []).join(", ")],
    ["Commands", (node.commands ?? []).join(", ")],
    ["Search path", node.pathEnv],
  ].filter(([, value]) => value);
  return el("article", { class: "card" },
    el("div", { class: "line between" }, el("h2", { class: "theirs" }, words(node.displayName ?? node.nodeId)), node.connected ? badge("connected", "good") : badge("away", "dim")),
    el("p", { class: "soft" }, el("code", { class: "theirs" }, words(node.nodeId))),
    el("dl", { class: "facts" }, facts.map(([name, value]) => [el("dt", {}, name), el("dd", { class: "theirs" }, words(value))])));
}
