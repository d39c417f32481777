// Nodes: which other machines are there, and what can they do?

import { ago, badge, button, el, many, nothing, put, soon, twice, words } from "./dom.js";
import { href } from "./route.js";

const ADMIN = "operator.admin";

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
      const pending = app.link.can("pairing") ? (await app.link.call("device.pair.list")).pending ?? [] : [];
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
    put(pairs, app.link.can("pairing") ? pending.map(request) : ask);
    const names = nodes.map(({ displayName }) => displayName);
    const isTwin = ({ displayName }) => names.indexOf(displayName) !== names.lastIndexOf(displayName);
    put(list, nodes.length ? nodes.map((node) => card(node, { isTwin: isTwin(node), remove: () => remove(node) })) : nothing("No nodes yet", "Run prowess node on another machine, then approve it here."));
  }

  const ask = el("p", { class: "soft" }, "You need the right to approve devices to see their requests. ", button("Show them", () => app.link.need("pairing"), { class: "small" }));

  async function remove(node) {
    try {
      await app.link.act("device.pair.remove", { deviceId: node.nodeId });
      await load();
    } catch (error) {
      app.failed(error);
    }
  }

  function request(one) {
    const decide = async (word) => {
      try {
        await app.link.act(`device.pair.${word}`, { requestId: one.requestId });
        await load();
      } catch (error) {
        app.failed(error);
      }
    };
    const name = one.displayName ?? one.deviceId;
    const roles = [...new Set([...(one.roles ?? []), one.role].filter(Boolean))];
    const scopes = one.scopes ?? [];
    const isAdmin = scopes.includes(ADMIN);
    // Whoever lets an administrator in gives everything away, so one click is not enough.
    const approve = isAdmin
      ? twice("Approve as administrator…", "Yes, give it full control", () => decide("approve"), { class: "deny", data: { act: "approve" } })
      : button("Approve", () => decide("approve"), { class: "main", data: { act: "approve" } });
    const facts = [
      ["Name", words(name)],
      ["As", words(roles.join(" and "))],
      ["System", one.platform && words(one.platform)],
      ["Address", one.remoteIp && words(one.remoteIp)],
      ["Asks for", scopes.length > 0 && el("span", { class: "scopes" }, scopes.map((scope, at) => [at > 0 && ", ", el("code", {}, words(scope))]))],
      ["Device", el("code", {}, words(one.deviceId))],
    ].filter(([, value]) => value);
    return el("article", { class: isAdmin ? "card question admin" : "card question" },
      el("h2", {}, isAdmin ? "A device requests full control of this gateway" : "A device requests access"),
      isAdmin && el("p", { class: "warned", role: "alert" }, "As an administrator it can change the configuration, approve commands and approve other devices. Only approve a device that you have just connected yourself."),
      el("dl", { class: "facts" }, facts.map(([term, value]) => [el("dt", {}, term), el("dd", { class: "theirs" }, value)])),
      one.isRepair && el("p", { class: "soft" }, "This device was approved before and requests access again, or more rights."),
      el("div", { class: "line" }, approve, button("Refuse", () => decide("reject"), { class: "deny", data: { act: "reject" } })));
  }

  for (const event of ["presence", "node.pair.requested", "node.pair.resolved", "device.pair.requested", "device.pair.resolved", "rights"]) app.link.on(event, reload);
  return {
    async enter({ target, moved }) {
      if (self.stale) await load();
      if (target) point(target, moved);
    },
    fresh: () => (self.stale = true),
  };

  /** Brings the node that the address names into sight, or says that it is not there. */
  function point(id, moved) {
    const node = [...list.querySelectorAll("[data-node]")].find((one) => one.dataset.node === id);
    if (!node) return void app.say(words(`There is no node with the id ${id}.`), "bad");
    node.scrollIntoView({ block: "nearest" });
    if (moved) node.focus({ preventScroll: true });
  }
}

function card(node, { isTwin, remove }) {
  const facts = [
    ["System", [node.platform, node.deviceFamily, node.modelIdentifier].filter(Boolean).join(", ")],
    ["Version", node.version ?? node.coreVersion],
    ["Address", node.remoteIp],
    ["Connected", node.connectedAtMs && ago(node.connectedAtMs)],
    ["Abilities", (node.caps ?? []).join(", ")],
    ["Commands", (node.commands ?? []).join(", ")],
    ["Search path", node.pathEnv],
  ].filter(([, value]) => value);
  return el("article", { class: "card", tabindex: -1, data: { node: node.nodeId } },
    el("div", { class: "line between" }, el("h2", { class: "theirs" }, el("a", { class: "quiet-link", href: href("nodes", node.nodeId) }, words(node.displayName ?? node.nodeId)), isTwin && [" ", el("code", {}, node.nodeId.slice(0, 8))]), node.connected ? badge("connected", "good") : badge("away", "dim")),
    el("p", { class: "soft" }, el("code", { class: "theirs" }, words(node.nodeId))),
    el("dl", { class: "facts" }, facts.map(([name, value]) => [el("dt", {}, name), el("dd", { class: "theirs" }, words(value))])),
    el("div", { class: "line" }, twice("Remove", "Disconnect and remove it", remove, { class: "small deny", data: { act: "remove" } })));
}
