// Skills: which are there, and how does each of them stand?

import { badge, brief, button, copyable, el, many, nothing, put, soon, words } from "./dom.js";
import { card } from "./skill.js";

/** How a skill stands, in a word and a colour. */
export function standing(skill) {
  if (skill.disabled) return ["off", "dim", "off"];
  if (skill.cut) return ["does not fit", "warn", "needs"];
  if (skill.eligible && !skill.blockedByAgentFilter) return ["ready", "good", "ready"];
  if (skill.blockedByAllowlist || skill.blockedByAgentFilter) return ["not listed", "dim", "off"];
  return ["needs something", "warn", "needs"];
}

const FILTERS = [
  ["all", "All", () => true],
  ["ready", "Ready", (skill) => standing(skill)[2] === "ready"],
  ["needs", "Needs something", (skill) => standing(skill)[2] === "needs"],
  ["off", "Off", (skill) => standing(skill)[2] === "off"],
];

export function make(app, panel) {
  const self = { report: undefined, chosen: undefined, filter: "all", stale: true, changed: 0 };
  const search = el("input", {
    type: "search", placeholder: "Search skills", "aria-label": "Search skills", "data-search": true, spellcheck: "false",
    on: { input: () => list(), keydown: (event) => event.key === "ArrowDown" && first(event) },
  });
  const chips = el("div", { class: "chips", role: "group", "aria-label": "Show" });
  const summary = el("p", { class: "soft", role: "status", "aria-live": "polite" });
  const rows = el("ul", { class: "rows", "aria-label": "Skills" });
  const detail = el("article", { class: "detail", tabindex: -1, "aria-label": "The chosen skill" });
  put(panel,
    el("div", { class: "head" }, el("h1", {}, "Skills"), summary),
    el("div", { class: "bar" }, search, chips),
    el("div", { class: "split" }, rows, detail));

  const reload = soon(load);
  async function load() {
    if (panel.hidden) return void (self.stale = true);
    try {
      const before = self.report;
      self.report = await app.link.call("skills.status", app.agent ? { agentId: app.agent } : {});
      self.stale = false;
      draw();
      if (before?.agentId === self.report.agentId) tell(before.skills, self.report.skills);
    } catch (error) {
      app.failed(error);
    }
  }

  /** Says what somebody else changed; what the person did here was said already. */
  function tell(before, now) {
    if (Date.now() - self.changed < 3000) return;
    const [old, fresh] = [before, now].map((skills) => new Map(skills.map((skill) => [skill.name, JSON.stringify(skill)])));
    const names = [
      ["New", [...fresh.keys()].filter((name) => !old.has(name))],
      ["Gone", [...old.keys()].filter((name) => !fresh.has(name))],
      ["Changed", [...fresh.keys()].filter((name) => old.has(name) && old.get(name) !== fresh.get(name))],
    ].filter(([, list]) => list.length);
    const some = (list) => (list.length > 3 ? many(list.length, "skill") : list.join(", "));
    if (names.length) app.say(words(names.map(([word, list]) => `${word}: ${some(list)}`).join(". ")));
  }

  function draw() {
    const { skills, broken = [], problems = [] } = self.report;
    const worth = problems.filter((problem) => problem.severity !== "note").length;
    const shown = [...FILTERS.map(([id, label, keep]) => [id, label, skills.filter(keep).length]), ["problems", "Problems", worth]];
    put(chips, shown.map(([id, label, number]) => button([label, el("span", { class: "number" }, String(number))], () => {
      self.filter = id;
      draw();
      chips.querySelector(`[data-id="${id}"]`)?.focus();
    }, { class: "chip", data: { id }, "aria-pressed": String(self.filter === id) })));
    const ready = skills.filter((skill) => standing(skill)[2] === "ready").length;
    summary.textContent = `${ready} of ${many(skills.length, "skill")} ready${broken.length ? `, ${many(broken.length, "folder")} broken` : ""}`;
    list();
  }

  function list() {
    if (!self.report) return;
    if (self.filter === "problems") return troubles();
    const wanted = search.value.trim().toLowerCase();
    const keep = FILTERS.find(([id]) => id === self.filter)[2];
    const hit = (skill) => !wanted || `${skill.name}\n${skill.description}\n${skill.tier}`.toLowerCase().includes(wanted);
    const found = self.report.skills.filter((skill) => keep(skill) && hit(skill));
    if (!found.some((skill) => skill.name === self.chosen) && found.length) self.chosen = found[0].name;
    const focused = rows.contains(document.activeElement) ? document.activeElement.dataset.skill : undefined;
    put(rows, found.length ? found.map(row) : el("li", {}, nothing("No skill is like that", "Search for something else, or show all.")));
    if (focused) [...rows.querySelectorAll("button")].find((node) => node.dataset.skill === focused)?.focus();
    show(self.report.skills.find((skill) => skill.name === self.chosen));
  }

  function row(skill) {
    const [word, kind] = standing(skill);
    const pressed = () => {
      self.chosen = skill.name;
      for (const other of rows.querySelectorAll("button")) other.setAttribute("aria-current", String(other === node));
      show(skill);
      // Where one is below the other, what was chosen comes into sight.
      if (matchMedia("(max-width: 60rem)").matches) panel.scrollTop += detail.getBoundingClientRect().top - panel.getBoundingClientRect().top;
    };
    const node = button([
      el("span", { class: "emoji", "aria-hidden": "true" }, words(Array.from(skill.emoji ?? "◆").slice(0, 4).join(""))),
      el("span", { class: "what" },
        el("span", { class: "name theirs" }, words(skill.name)),
        el("span", { class: "about theirs" }, words(skill.description))),
      badge(word, kind),
    ], pressed, { class: "row", data: { skill: skill.name }, "aria-current": String(skill.name === self.chosen) });
    node.addEventListener("keydown", step);
    return el("li", {}, node);
  }

  function first(event) {
    event.preventDefault();
    rows.querySelector("button")?.focus();
  }

  function step(event) {
    const to = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (!to) return;
    event.preventDefault();
    (event.currentTarget.parentElement[to]?.querySelector("button") ?? (event.key === "ArrowUp" ? search : undefined))?.focus();
  }

  function show(skill) {
    detail.hidden = !skill;
    if (!skill) return;
    // Somebody who is typing a key must not lose it to a refresh.
    const typing = detail.dataset.skill === skill.name && detail.querySelector("input[type=password]")?.value;
    if (typing) return;
    const place = detail.contains(document.activeElement) ? document.activeElement.dataset.act : undefined;
    detail.dataset.skill = skill.name;
    put(detail, card(skill, self.report, change));
    if (place) detail.querySelector(`[data-act="${place}"]`)?.focus();
  }

  async function change(skill, what, said) {
    self.changed = Date.now();
    try {
      await app.link.act("skills.update", { skillKey: skill.skillKey, ...what }, "Changing a skill changes the gateway's configuration.");
      app.say(said, "good");
      await load();
    } catch (error) {
      app.failed(error);
    }
  }

  /** What is wrong with files, whatever skill they belong to. */
  function troubles() {
    const { broken = [], problems } = self.report;
    const order = { error: 0, warning: 1, note: 2 };
    const sorted = [...problems].sort((a, b) => order[a.severity] - order[b.severity]);
    detail.hidden = true;
    put(rows, sorted.length ? sorted.map((problem) => {
      const fix = broken.find((one) => one.problem.path === problem.path)?.fixes?.[0];
      const kind = { error: "bad", warning: "warn" }[problem.severity] ?? "dim";
      return el("li", { class: "problem card" },
        el("div", { class: "line" }, badge(problem.severity, kind), el("code", { class: "theirs" }, words(place(problem, self.report.userHome)))),
        el("p", { class: "theirs" }, words(problem.reason)),
        el("p", { class: "soft theirs" }, "To fix it: ", words(problem.fix)),
        fix && copyable(fix.command));
    }) : el("li", {}, nothing("Nothing is wrong", "Every folder with a skill could be read.")));
  }

  app.link.on("skills.changed", reload);
  return { enter: () => self.stale && load(), fresh: () => (self.stale = true) };
}

const place = ({ path, line, column }, home) => (line ? `${brief(path, home)}:${line}:${column}` : brief(path, home));
