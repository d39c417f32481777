// Prompt: what exactly is the model told, and what does it cost?

import { badge, button, count, el, many, put, soon, words } from "./dom.js";
import { bar, gauge, legend } from "./picture.js";

const MODES = [["full", "Full"], ["minimal", "Minimal, for sub-agents"], ["none", "None"]];

export function make(app, panel) {
  const self = { stale: true };
  const mode = el("select", { id: "prompt-mode", on: { change: () => load() } }, MODES.map(([value, label]) => el("option", { value }, label)));
  const summary = el("p", { class: "soft", role: "status", "aria-live": "polite" });
  const body = el("div", { class: "stack" });
  put(panel,
    el("div", { class: "head" }, el("h1", {}, "Prompt"), summary, el("label", { class: "pick", for: "prompt-mode" }, el("span", {}, "Mode"), mode)),
    body);

  const reload = soon(load);
  async function load() {
    if (panel.hidden) return void (self.stale = true);
    try {
      const params = { mode: mode.value, ...(app.agent && { agentId: app.agent }) };
      draw(await app.link.call("prompt.preview", params));
      self.stale = false;
    } catch (error) {
      app.failed(error);
    }
  }

  function draw(prompt) {
    summary.textContent = `${count(prompt.chars)} characters, about ${count(prompt.tokens)} tokens`;
    const parts = prompt.parts.map((part) => ({ name: part.name, value: part.tokens }));
    put(body,
      el("section", { class: "card" }, el("h2", {}, "Parts"), bar(`The parts of the prompt, ${count(prompt.tokens)} tokens`, parts), legend(parts, "tokens")),
      budget(prompt.skills),
      prompt.warnings.length > 0 && el("section", { class: "card" }, el("h2", {}, "Warnings"), el("ul", {}, prompt.warnings.map((one) => el("li", { class: "theirs" }, words(one))))),
      el("section", { class: "card" },
        el("div", { class: "line between" }, el("h2", {}, "Full text"), navigator.clipboard && button("Copy all", () => copy(prompt.prompt))),
        prompt.parts.map(text)));
  }

  async function copy(all) {
    await navigator.clipboard.writeText(all);
    app.say("Prompt copied", "good");
  }

  app.link.on("skills.changed", reload);
  return { enter: () => self.stale && load(), fresh: () => (self.stale = true) };
}

function text(part) {
  return el("details", { class: "part-text", open: part.name === "skills" },
    el("summary", {}, el("span", { class: "strong" }, part.name), el("span", { class: "soft" }, ` ${count(part.chars)} characters, ${count(part.tokens)} tokens`)),
    el("pre", { class: "theirs", tabindex: 0, "aria-label": `The text of ${part.name}` }, words(part.text)));
}

/** The room that skills have, and what did not fit. */
function budget(skills) {
  const entries = skills.entries.map((entry) => ({ name: entry.name, value: entry.chars }));
  const rest = Math.max(skills.chars - entries.reduce((all, entry) => all + entry.value, 0), 0);
  const shown = [...entries, { name: "around them", value: rest }];
  const cuts = [["Not shown", skills.dropped, "bad"], ["Name only", skills.nameOnly, "warn"], ["Shortened", skills.shortened, "warn"]].filter(([, names]) => names.length);
  return el("section", { class: "card" },
    el("h2", {}, "Skill budget"),
    bar(`${many(entries.length, "skill")} in ${count(skills.chars)} characters of ${count(skills.maxChars)}`, shown, skills.maxChars),
    el("p", { class: "soft" }, "Each segment is one skill; the empty part is free."),
    el("div", { class: "gauges" },
      gauge("Characters", skills.chars, skills.maxChars),
      gauge("Tokens, about", skills.tokens, skills.maxTokens),
      gauge("Skills", skills.included, skills.maxSkills)),
    cuts.length
      ? el("div", { class: "cuts" }, cuts.map(([label, names, kind]) => el("div", {}, el("h3", {}, label, " ", badge(String(names.length), kind)), el("p", { class: "theirs" }, words(names.join(", "))))))
      : el("p", { class: "fits" }, "Everything fits; nothing was cut."));
}
