// Overview: is everything well, and what should be done next?

import { ago, badge, copyable, count, el, many, nothing, words } from "./dom.js";
import { facts, heading, loaded, section } from "./parts.js";
import { href } from "./route.js";

export function make(app, panel) {
  const summary = el("p", { class: "soft", role: "status", "aria-live": "polite" });
  const optional = (method, params) => (app.link.knows(method) ? app.link.call(method, params).catch(() => undefined) : undefined);
  const agent = () => (app.agent ? { agentId: app.agent } : {});

  async function load() {
    const [status, skills, models, sessions, config, approvals, devices] = await Promise.all([
      app.link.call("status"),
      optional("skills.status", { ...agent(), fields: "summary" }),
      optional("models.list"),
      optional("sessions.list", { ...agent(), limit: 5, includeDerivedTitles: true }),
      optional("config.get"),
      app.can("operator.approvals") ? optional("exec.approval.list") : undefined,
      app.can("operator.pairing") ? optional("device.pair.list") : undefined,
    ]);
    return { status, skills, models, sessions, config, approvals, devices };
  }

  function draw(data) {
    const found = warnings(data);
    summary.textContent = found.length ? `${many(found.length, "thing")} to look at` : "No problems found";
    return [
      found.length > 0 && section("To look at", el("ul", { class: "todo" }, found.map(({ kind, text, command, link }) => el("li", {},
        badge(kind === "bad" ? "problem" : "hint", kind), el("div", {}, el("p", { class: "theirs" }, text), command && copyable(command), link && el("p", {}, el("a", { href: link[1] }, link[0]))))))),
      el("div", { class: "tiles" }, tiles(data)),
      el("div", { class: "grid two" }, recent(data), about(data)),
    ];
  }

  return loaded(app, panel, {
    what: "the overview", top: heading("Overview", summary), load, draw, later: 600,
    events: ["skills.changed", "exec.approval.requested", "exec.approval.resolved", "device.pair.requested", "device.pair.resolved", "presence", "health", "rights"],
  });
}

const ready = (skills) => skills.filter((skill) => skill.eligible && !skill.disabled && !skill.blockedByAgentFilter && !skill.cut).length;
const needing = (skills) => skills.filter((skill) => !skill.eligible && !skill.disabled && !skill.blockedByAllowlist && !skill.blockedByAgentFilter).length;
const waits = (approvals) => (approvals?.approvals ?? []).filter((one) => !one.decision && !one.resolvedAtMs).length;

/** What is wrong or could be better, the worst first, each with what to do. */
function warnings({ status, skills, models, config, approvals, devices }) {
  const found = [];
  const add = (kind, text, more) => found.push({ kind, text, ...more });
  const { gateway = {} } = status;
  if (models && !models.models?.length) add("bad", "No model is available yet: there is no key for any provider.", { command: "prowess doctor", link: ["Add a key in Configuration", href("config", undefined, { q: "models" })] });
  if (gateway.sandbox && !gateway.sandbox.works) add(gateway.sandbox.off ? "warn" : "bad", words(gateway.sandbox.what), { command: gateway.sandbox.off ? "prowess config set tools.exec.sandbox.kind auto" : "prowess doctor" });
  if (config?.valid === false) add("bad", "The configuration file cannot be read, so the gateway keeps using the previous version.", { command: "prowess doctor", link: ["See why", href("config")] });
  const ignored = config?.warnings?.length ?? 0;
  if (ignored) add("warn", `${many(ignored, "setting")} in the configuration ${ignored === 1 ? "has" : "have"} no effect or an invalid value.`, { link: ["See which", href("config")] });
  const waiting = waits(approvals);
  if (waiting) add("warn", `${many(waiting, "command")} ${waiting === 1 ? "is" : "are"} waiting for an answer.`, { link: ["Review", href("approvals")] });
  const pending = devices?.pending?.length ?? 0;
  if (pending) add("warn", `${many(pending, "device")} ${pending === 1 ? "requests" : "request"} access.`, { link: ["Review", href("nodes")] });
  const { counts = {} } = skills ?? {};
  if (counts.leftOut) add("warn", `${many(counts.leftOut, "skill folder")} ${counts.leftOut === 1 ? "was" : "were"} skipped because of a limit.`, { link: ["See which", href("skills", undefined, { show: "problems" })] });
  if (counts.broken) add("warn", `${many(counts.broken, "skill folder")} could not be read.`, { link: ["See why", href("skills", undefined, { show: "problems" })] });
  return found;
}

function tile(label, value, note, link, kind = "") {
  return el("a", { class: `tile card ${kind}`, href: link }, el("span", { class: "soft" }, label), el("span", { class: (value.textContent ?? value).length > 12 ? "value long theirs" : "value theirs" }, value), note && el("span", { class: "soft theirs" }, note));
}

function tiles({ status, skills, models, approvals }) {
  const list = skills?.skills;
  const model = status.sessions?.defaults?.model ?? (models?.models?.[0] && `${models.models[0].provider}/${models.models[0].id}`);
  const waiting = waits(approvals);
  const { gateway = {} } = status;
  return [
    list && tile("Skills ready", `${count(ready(list))} of ${count(list.length)}`, needing(list) ? `${count(needing(list))} need setup` : "all set up", href("skills")),
    approvals && tile("Pending approvals", count(waiting), waiting ? "answer them now" : "none waiting", href("approvals"), waiting ? "attention" : ""),
    tile("Sessions", count(status.sessions?.count), undefined, href("sessions")),
    tile("Model", words(model ?? (models?.models?.length ? "chosen per agent" : "none")), models && `${many(models.models?.length ?? 0, "model")} usable`, href("agents")),
    gateway.connections && tile("Nodes connected", count(gateway.connections.node), `${many(gateway.connections.operator ?? 0, "client")} connected`, href("nodes")),
  ];
}

function recent({ sessions }) {
  const list = sessions?.sessions ?? [];
  return section("Recent sessions", list.length
    ? el("ul", { class: "bare" }, list.map((one) => el("li", { class: "line between" },
      el("a", { class: "theirs", href: href("sessions", one.key) }, words(one.label ?? one.derivedTitle ?? one.displayName ?? one.key)),
      el("span", { class: "soft" }, ago(one.updatedAt)))))
    : nothing("No sessions yet", "Start one in Chat."));
}

function about({ status }) {
  const { gateway = {} } = status;
  return section("Gateway", facts([
    ["Version", gateway.version],
    ["Running for", gateway.uptimeMs && ago(Date.now() - gateway.uptimeMs).replace(" ago", "")],
    ["Sandbox", gateway.sandbox && [badge(gateway.sandbox.works ? "on" : "off", gateway.sandbox.works ? "good" : "warn"), " ", words(gateway.sandbox.what)]],
    ["Process", gateway.pid && `pid ${gateway.pid}`],
    ["Default agent", words(status.heartbeat?.defaultAgentId ?? "")],
  ]));
}
