// Rules and devices: which commands are always allowed, and which devices and tokens may come in?

import { ago, badge, button, clock, el, many, nothing, put, words } from "./dom.js";
import { facts, heading, loaded, locked, section } from "./parts.js";
import { href } from "./route.js";

export function make(app, panel) {
  const summary = el("p", { class: "soft", role: "status", "aria-live": "polite" });
  const asked = (scope, method) => (app.can(scope) && app.link.knows(method) ? app.link.call(method) : undefined);

  async function load() {
    const [rules, devices] = await Promise.all([asked("operator.admin", "exec.approvals.get"), asked("operator.pairing", "device.pair.list")]);
    return { rules, devices };
  }

  function draw({ rules, devices }) {
    const list = rules ? entries(rules.file) : [];
    const paired = devices?.paired ?? [];
    summary.textContent = [rules && many(list.length, "rule"), devices && many(paired.length, "device")].filter(Boolean).join(", ");
    return [
      section("Always allowed commands",
        rules ? [
          el("p", { class: "soft" }, posture(rules.file)),
          list.length ? el("ul", { class: "plain stack" }, list.map((one) => el("li", {}, rule(one, rules)))) : nothing("No command is always allowed", "“Always allow” in an approval adds a rule here."),
        ] : locked(app, "operator.admin", "see and change rules")),
      section("Devices",
        devices ? [
          devices.pending?.length > 0 && el("p", {}, el("a", { href: href("nodes") }, `${many(devices.pending.length, "device")} waiting for approval`)),
          paired.length ? el("ul", { class: "plain stack" }, paired.map((one) => el("li", {}, device(one, paired)))) : nothing("No devices yet", "Approved browsers, phones and nodes appear here."),
        ] : locked(app, "operator.pairing", "see and remove devices")),
    ];
  }

  const view = loaded(app, panel, { what: "rules and devices", top: heading("Rules & devices", summary), load, draw, events: ["device.pair.requested", "device.pair.resolved", "exec.approval.resolved", "rights"] });

  async function change(method, params, said) {
    try {
      await app.act(method, params);
      app.say(said, "good");
      await view.refresh();
    } catch (error) {
      app.failed(error);
    }
  }

  function rule({ agent, entry }, rules) {
    const remove = () => change("exec.approvals.set", { file: without(rules.file, agent, entry), baseHash: rules.hash }, "The rule is removed. The command is asked about again.");
    return el("div", { class: "entry-row", data: { rule: entry.id } },
      el("div", {}, el("code", { class: "theirs" }, words(entry.pattern)),
        facts([["Agent", agent === "*" ? "all" : words(agent)], ["Last used", entry.lastUsedAt && ago(entry.lastUsedAt)], ["Last command", entry.lastUsedCommand && el("code", {}, words(entry.lastUsedCommand))], ["Program", entry.lastResolvedPath && el("code", {}, words(entry.lastResolvedPath))]])),
      sure("Remove", remove, { "aria-label": `Remove the rule ${entry.pattern}`, data: { act: `rule-${entry.id}` } }));
  }

  function device(one, all) {
    const name = one.displayName ?? one.deviceId;
    const roles = [...new Set([...(one.roles ?? []), one.role].filter(Boolean))];
    // Two devices of one name are told apart by the start of their ids.
    const twin = all.filter((other) => (other.displayName ?? other.deviceId) === name).length > 1;
    const remove = () => change("device.pair.remove", { deviceId: one.deviceId }, "The device is removed and disconnected.");
    const revoke = (role) => change("device.token.revoke", { deviceId: one.deviceId, role }, "The token is revoked.");
    return el("div", { class: "entry-row", data: { device: one.deviceId } },
      el("div", {},
        el("p", { class: "strong theirs" }, words(name), twin && [" ", el("code", {}, words(one.deviceId.slice(0, 8)))]),
        facts([
          ["Device", el("code", {}, words(one.deviceId))],
          ["As", words(roles.join(" and "))],
          ["May", one.scopes?.length && words(one.scopes.map((scope) => scope.replace("operator.", "")).join(", "))],
          ["System", one.platform && words(one.platform)],
          ["Approved", one.approvedAtMs && clock(one.approvedAtMs)],
          ["Tokens", one.tokens?.length && el("ul", { class: "bare" }, one.tokens.map((token) => el("li", { class: "line" },
            words(token.role), token.revokedAtMs ? badge("revoked", "dim") : badge("active", "good"), el("span", { class: "soft" }, token.lastUsedAtMs ? `used ${ago(token.lastUsedAtMs)}` : "never used"),
            !token.revokedAtMs && sure("Revoke", () => revoke(token.role), { class: "small", "aria-label": `Revoke the ${token.role} token of ${name}`, data: { act: `revoke-${one.deviceId}-${token.role}` } }))))],
        ])),
      sure("Remove", remove, { "aria-label": `Remove the device ${name} ${one.deviceId.slice(0, 8)}`, data: { act: `device-${one.deviceId}` } }));
  }

  return view;
}

/** A button that has to be pressed twice. */
function sure(label, pressed, props) {
  const node = button(label, () => {
    if (node.dataset.sure) return pressed();
    node.dataset.sure = "yes";
    put(node, `${label}: sure?`);
    node.setAttribute("aria-label", `Press again. ${props["aria-label"]}`);
    setTimeout(() => {
      if (!node.isConnected) return;
      delete node.dataset.sure;
      put(node, label);
      node.setAttribute("aria-label", props["aria-label"]);
    }, 5000);
  }, { ...props, class: `deny ${props.class ?? ""}` });
  return node;
}

function entries(file) {
  return Object.entries(file?.agents ?? {}).flatMap(([agent, own]) => (own.allowlist ?? []).map((entry) => ({ agent, entry })));
}

/** The file without one rule. */
function without(file, agent, entry) {
  const own = file.agents[agent];
  const allowlist = own.allowlist.filter((other) => (entry.id ? other.id !== entry.id : other !== entry));
  return { ...file, agents: { ...file.agents, [agent]: { ...own, allowlist } } };
}

function posture(file) {
  const { security, ask } = file?.defaults ?? {};
  return [security && `Security: ${security}.`, ask && `Asks: ${ask}.`].filter(Boolean).join(" ") || "Commands that stay in the sandbox run; what leaves it needs approval. With the first rule, the rules decide instead.";
}
