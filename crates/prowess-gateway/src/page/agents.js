// Agents: who is there to talk with, and how is each of them set up?

import { badge, button, count, el, many, nothing, words } from "./dom.js";
import { facts, heading, loaded } from "./parts.js";
import { href } from "./route.js";

export function make(app, panel) {
  const summary = el("p", { class: "soft", role: "status", "aria-live": "polite" });
  const optional = (method, params) => (app.link.knows(method) ? app.link.call(method, params).catch(() => undefined) : undefined);

  async function load() {
    const [list, status, models] = await Promise.all([app.link.call("agents.list"), optional("status"), optional("models.list")]);
    const skills = await Promise.all(list.agents.slice(0, 20).map(({ id }) => optional("skills.status", { agentId: id, fields: "summary", limit: 1 })));
    return { list, status, models, skills };
  }

  function draw({ list, status, models, skills }, { target }) {
    summary.textContent = many(list.agents.length, "agent");
    const byAgent = new Map((status?.sessions?.byAgent ?? []).map((one) => [one.agentId, one]));
    const missing = target && !list.agents.some(({ id }) => id === target);
    return [
      missing && nothing(`There is no agent named “${target}”`, "It may have been removed from the configuration."),
      el("div", { class: "grid" }, list.agents.map((agent, place) => card(agent, {
        isDefault: agent.id === list.defaultId, sessions: byAgent.get(agent.id)?.count, skills: skills[place]?.counts?.skills, isCurrent: agent.id === app.agent, isTarget: agent.id === target,
      }))),
      models && el("section", { class: "card" }, el("h2", {}, "Available models"), models.models.length
        ? el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Models" }, table(models.models))
        : nothing("No model is available yet", "Add a provider's key to the configuration, or run prowess doctor.")),
    ];
  }

  function card(agent, { isDefault, sessions, skills, isCurrent, isTarget }) {
    const name = agent.identity?.name ?? agent.name ?? agent.id;
    return el("article", { class: isTarget ? "card target" : "card", data: { agent: agent.id } },
      el("div", { class: "line between" },
        el("h2", { class: "theirs" }, agent.identity?.emoji && [words(agent.identity.emoji), " "], el("a", { class: "quiet-link", href: href("agents", agent.id) }, words(name))),
        el("span", { class: "line" }, isDefault && badge("default"), isCurrent && badge("selected", "good"))),
      facts([["Id", el("code", {}, words(agent.id))], ["Theme", agent.identity?.theme && words(agent.identity.theme)], ["Model", agent.model && words(agent.model)], ["Workspace", agent.workspace && el("code", {}, words(agent.workspace))], ["Skills", skills !== undefined && count(skills)], ["Sessions", sessions !== undefined && count(sessions)]]),
      el("div", { class: "line" }, !isCurrent && button("Select", () => app.chooseAgent(agent.id), { data: { act: `select-${agent.id}` } }),
        el("a", { class: "button", href: href("config", undefined, { q: "agents" }) }, "Settings")));
  }

  return loaded(app, panel, { what: "the agents", top: heading("Agents", summary), load, draw });
}

function table(models) {
  return el("table", {}, el("caption", { class: "quiet" }, "Available models"),
    el("thead", {}, el("tr", {}, ["Model", "Provider", "Context", "Thinks"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, models.map((model) => el("tr", {},
      el("th", { scope: "row", class: "theirs" }, words(model.name ?? model.id)), el("td", { class: "theirs" }, words(model.provider)),
      el("td", {}, model.contextWindow ? count(model.contextWindow) : "unknown"), el("td", {}, model.reasoning ? "yes" : "no")))));
}
