// Skills: which are there, and how does each of them stand?

import { badge, brief, button, copyable, count, el, loading, many, nothing, put, soon, words } from "./dom.js";
import { List } from "./list.js";
import { href } from "./route.js";
import { card } from "./skill.js";

/** How a skill stands, in a word and a colour. */
export function standing(skill) {
  if (skill.disabled) return ["off", "dim", "off"];
  if (skill.cut) return ["does not fit", "warn", "needs"];
  if (skill.eligible && !skill.blockedByAgentFilter) return ["ready", "good", "ready"];
  if (skill.blockedByAllowlist || skill.blockedByAgentFilter) return ["not listed", "dim", "off"];
  return ["needs setup", "warn", "needs"];
}

const FILTERS = [["all", "All"], ["ready", "Ready"], ["needs", "Needs setup"], ["off", "Off"], ["problems", "Problems"]];
/** How many skills one answer has; more come in further answers. */
const PAGE = 5000;
const narrow = matchMedia("(max-width: 60rem)");

export function make(app, panel) {
  const self = { skills: undefined, byName: new Map(), counts: {}, chosen: undefined, filter: "all", stale: true, changed: 0, detail: undefined };
  const search = el("input", {
    type: "search", placeholder: "Search skills", "aria-label": "Search skills", "data-search": true, spellcheck: "false",
    on: { input: () => narrowed(), keydown: (event) => event.key === "ArrowDown" && down(event) },
  });
  const chips = el("div", { class: "chips", role: "group", "aria-label": "Filter" });
  const summary = el("p", { class: "soft", role: "status", "aria-live": "polite" });
  const frame = el("div", { class: "rows", data: { scroll: "list" } });
  const empty = el("div", { class: "none" }, loading("Loading skills"));
  const troubles = el("ul", { class: "rows plain-rows", "aria-label": "Problems", hidden: true, data: { scroll: "problems" } });
  const detail = el("article", { class: "detail", tabindex: -1, "aria-label": "The chosen skill", data: { scroll: "detail" } });
  const split = el("div", { class: "split" }, el("div", { class: "column" }, frame, empty, troubles), detail);
  put(panel, el("div", { class: "head" }, el("h1", {}, "Skills"), summary), el("div", { class: "bar" }, search, chips), split);
  const list = new List(frame, { key: (skill) => skill.name, row, label: "Skills", before: search });
  frame.hidden = true;

  const agent = () => (app.agent ? { agentId: app.agent } : {});
  const reload = soon(load);
  const soonFill = soon(() => fill(), 150);

  async function load() {
    if (panel.hidden) return void (self.stale = true);
    try {
      const before = self.skills;
      await fetchAll();
      if (before && before.agent === self.skills.agent) tell(before, self.skills);
      draw();
    } catch (error) {
      if (!self.skills) put(empty, nothing("The skills could not be loaded", error.message), button("Try again", load));
      else app.failed(error);
    }
  }

  /** Fetches the short rows of all skills. What is in the list is replaced when the last answer is there. */
  async function fetchAll() {
    const skills = [];
    let cursor;
    do {
      const part = await app.link.call("skills.status", { ...agent(), fields: "summary", limit: PAGE, ...(cursor && { cursor }) });
      skills.push(...part.skills);
      ({ cursor } = part);
      self.counts = part.counts ?? {};
      skills.agent = part.agentId;
    } while (cursor);
    for (const skill of skills) {
      skill.text = `${skill.name}\n${skill.description}\n${skill.tier}`.toLowerCase();
      skill.group = standing(skill)[2];
    }
    self.stale = false;
    self.byName = new Map(skills.map((skill) => [skill.name, skill]));
    self.skills = skills;
  }

  /** Says what somebody else changed; what the person did here was said already. */
  function tell(before, now) {
    if (Date.now() - self.changed < 3000) return;
    const mark = ({ name, description, emoji, group, tier, cut }) => [name, [description, emoji, group, tier, cut].join("\n")];
    const [old, fresh] = [before, now].map((skills) => new Map(skills.map(mark)));
    const names = [
      ["New", [...fresh.keys()].filter((name) => !old.has(name))],
      ["Removed", [...old.keys()].filter((name) => !fresh.has(name))],
      ["Changed", [...fresh.keys()].filter((name) => old.has(name) && old.get(name) !== fresh.get(name))],
    ].filter(([, list]) => list.length);
    const some = (list) => (list.length > 3 ? many(list.length, "skill") : list.join(", "));
    if (names.length) app.say(words(names.map(([word, list]) => `${word}: ${some(list)}`).join(". ")));
  }

  function draw() {
    const { skills, counts } = self;
    const sizes = { all: skills.length, problems: counts.problems ?? 0 };
    for (const skill of skills) sizes[skill.group] = (sizes[skill.group] ?? 0) + 1;
    put(chips, FILTERS.map(([id, label]) => button([label, el("span", { class: "number" }, count(sizes[id] ?? 0))], () => {
      self.filter = id;
      draw();
      noted();
      chips.querySelector(`[data-id="${id}"]`)?.focus();
    }, { class: "chip", data: { id }, "aria-pressed": String(self.filter === id) })));
    const more = [["broken", "broken"], ["leftOut", "skipped because of a limit"]].filter(([id]) => counts[id]).map(([id, word]) => `, ${many(counts[id], "folder")} ${word}`);
    summary.textContent = `${count(sizes.ready ?? 0)} of ${many(skills.length, "skill")} ready${more.join("")}`;
    show();
  }

  /** The search or the filter changed. */
  function narrowed() {
    if (!self.skills) return;
    if (self.filter === "problems") self.filter = "all";
    show(soonFill);
    noted();
  }

  const noted = () => app.here("skills", { target: self.chosen, query: { q: search.value.trim(), show: self.filter === "all" ? "" : self.filter } });

  /** Shows what matches; `how` fetches the skill beside the list, at once unless the person is typing. */
  function show(how = fill) {
    const wrong = self.filter === "problems";
    troubles.hidden = !wrong;
    split.classList.toggle("wide", wrong);
    if (wrong) {
      [frame.hidden, empty.hidden, detail.hidden] = [true, true, true];
      return void problems();
    }
    const wanted = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const matches = (skill) => (self.filter === "all" || skill.group === self.filter) && wanted.every((word) => skill.text.includes(word));
    const found = self.skills.filter(matches);
    list.set(found);
    empty.hidden = found.length > 0;
    if (!found.length) put(empty, self.skills.length ? nothing("No skill matches", "Try another search, or show all skills.") : nothing("There are no skills yet", "Put a folder with a SKILL.md into the workspace's skills folder, or run prowess skills install."));
    // With room for both, something is always shown beside the list.
    const chosen = self.byName.get(self.chosen);
    if (!narrow.matches && found.length && !self.named && !(chosen && matches(chosen))) choose(found[0].name, how);
    else choose(self.chosen, how);
  }

  function choose(name, how = fill) {
    const same = self.chosen === name && detail.dataset.skill === name;
    self.chosen = name;
    list.choose(name);
    split.classList.toggle("picked", Boolean(name));
    detail.hidden = !name;
    if (how === fill || !same) return how();
  }

  function row(skill) {
    const [word, kind] = standing(skill);
    return el("a", {
      class: "row", href: href("skills", skill.name), data: { skill: skill.name },
      on: { click: (event) => !event.metaKey && !event.ctrlKey && (event.preventDefault(), pick(skill.name)) },
    },
      el("span", { class: "emoji", "aria-hidden": "true" }, words(Array.from(skill.emoji ?? "◆").slice(0, 4).join(""))),
      el("span", { class: "what" },
        el("span", { class: "name theirs" }, words(skill.name)),
        el("span", { class: "about theirs" }, words(skill.description))),
      badge(word, kind));
  }

  /** The person chose a skill: it gets an address of its own, and the way back leads to the one before. */
  function pick(name) {
    app.go("skills", { target: name, query: { q: search.value.trim(), show: self.filter === "all" ? "" : self.filter }, focus: "none" });
  }

  function down(event) {
    event.preventDefault();
    list.focus();
  }

  /** Fetches and shows everything about the chosen skill. */
  async function fill() {
    const name = self.chosen;
    detail.hidden = !name;
    if (!name) return;
    if (detail.dataset.skill !== name) {
      put(detail, back(), loading("Loading the skill"));
      detail.dataset.skill = name;
      detail.scrollTop = 0;
    }
    try {
      const report = await app.link.call("skills.status", { ...agent(), skill: name });
      if (self.chosen === name) drawn(name, report);
    } catch (error) {
      if (self.chosen === name) put(detail, back(), nothing("The skill could not be loaded", error.message));
    }
  }

  function drawn(name, report) {
    const skill = report.skills[0];
    if (!skill) return void put(detail, back(), nothing(`There is no skill named “${name}”`, "It may have been removed or renamed."));
    // Somebody who is typing a key must not lose it to a refresh.
    if (detail.querySelector("input[type=password]")?.value) return;
    const place = detail.contains(document.activeElement) ? document.activeElement.dataset.act : undefined;
    put(detail, back(), card(skill, report, change, app));
    if (place) detail.querySelector(`[data-act="${place}"]`)?.focus();
  }

  const back = () => el("a", { class: "back", href: href("skills", undefined, { q: search.value.trim(), show: self.filter === "all" ? "" : self.filter }) }, "‹ All skills");

  async function change(skill, what, said) {
    self.changed = Date.now();
    try {
      await app.act("skills.update", { skillKey: skill.skillKey, ...what });
      app.say(said, "good");
      await load();
    } catch (error) {
      app.failed(error);
    }
  }

  /** What is wrong with files, whatever skill they belong to. */
  async function problems() {
    try {
      const report = await app.link.call("skills.status", { ...agent(), fields: "problems" });
      if (self.filter === "problems") listed(report);
    } catch (error) {
      put(troubles, el("li", {}, nothing("The problems could not be loaded", error.message)));
    }
  }

  function listed({ broken = [], leftOut = [], problems: all, userHome }) {
    const order = { error: 0, warning: 1, note: 2 };
    const sorted = [...all].sort((a, b) => order[a.severity] - order[b.severity]);
    const fixes = new Map([...broken, ...leftOut].map((one) => [one.problem.path, one.fixes?.[0]]));
    put(troubles, sorted.length ? sorted.map((problem) => {
      const fix = fixes.get(problem.path);
      const kind = { error: "bad", warning: "warn" }[problem.severity] ?? "dim";
      return el("li", { class: "problem card" },
        el("div", { class: "line" }, badge(problem.severity, kind), el("code", { class: "theirs" }, words(place(problem, userHome)))),
        el("p", { class: "theirs" }, words(problem.reason)),
        el("p", { class: "soft theirs" }, "To fix it: ", words(problem.fix)),
        fix && copyable(fix.command));
    }) : el("li", {}, nothing("No problems", "Every skill folder was read.")));
  }

  app.link.on("skills.changed", reload);
  return {
    async enter({ target, query, moved }) {
      if (query.q !== undefined || target) search.value = query.q ?? (moved ? "" : search.value);
      if (query.show !== undefined || target) self.filter = FILTERS.some(([id]) => id === query.show) ? query.show : target ? "all" : self.filter;
      self.named = Boolean(target);
      if (target || narrow.matches) self.chosen = target;
      if (self.stale) await load();
      else draw();
      self.named = false;
      if (target) list.reveal(target);
      if (self.chosen && !target) noted();
      if (target && narrow.matches && moved) detail.focus({ preventScroll: true });
    },
    fresh: () => (self.stale = true),
  };
}

const place = ({ path, line, column }, home) => (line ? `${brief(path, home)}:${line}:${column}` : brief(path, home));
