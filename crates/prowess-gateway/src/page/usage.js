// Usage: what did each skill cost, and how often was it used?

import { count, el, many, nothing, put, soon, words } from "./dom.js";
import { chart, columns } from "./picture.js";

const KINDS = ["list entry", "instructions", "output"];
const SPANS = [[7, "7 days"], [30, "30 days"], [90, "90 days"], [3650, "Always"]];
const DAY = 86400000;
/** How many days are shown one by one, however little was used. */
const LONGEST = 95;
/** How many skills the picture shows; the table has all. */
const MOST = 20;

export function make(app, panel) {
  const self = { stale: true };
  const span = el("select", { id: "usage-days", on: { change: () => load() } }, SPANS.map(([days, label]) => el("option", { value: days, selected: days === 30 }, label)));
  const summary = el("p", { class: "soft", role: "status", "aria-live": "polite" });
  const body = el("div", { class: "stack" });
  put(panel, el("div", { class: "head" }, el("h1", {}, "Usage"), summary, el("label", { class: "pick", for: "usage-days" }, el("span", {}, "Time"), span)), body);

  const reload = soon(load, 600);
  async function load() {
    if (panel.hidden) return void (self.stale = true);
    try {
      draw(await app.link.call("usage.skills", { days: Number(span.value), ...(app.agent && { agentId: app.agent }) }));
      self.stale = false;
    } catch (error) {
      app.failed(error);
    }
  }

  function draw({ skills, byDay, total, sessions, skipped, since }) {
    summary.textContent = `${count(total)} tokens in ${many(sessions, "session")}${skipped ? `, ${skipped} left out` : ""}`;
    if (!skills.length) return void put(body, nothing("No usage yet", "Tokens appear here once a conversation uses a skill."));
    const days = calendar(byDay, since);
    const rows = skills.slice(0, MOST).map((one) => ({ name: one.skill, values: [one.catalog, one.body, one.output], note: one.calls ? many(one.calls, "use") : "" }));
    put(body,
      el("section", { class: "card" }, el("h2", {}, "Tokens by skill"), el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Chart" }, chart("Tokens by skill", rows, KINDS)), kinds()),
      days.length > 1 && el("section", { class: "card" }, el("h2", {}, "Tokens by day"), columns("Tokens by day", days),
        el("p", { class: "line between soft" }, el("span", {}, days[0].name), el("span", {}, `at most ${count(Math.max(...days.map((day) => day.value)))} a day`), el("span", {}, days.at(-1).name))),
      el("section", { class: "card" }, el("h2", {}, "Table"), el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Tokens and uses by skill" }, table(skills))));
  }

  app.link.on("chat", ({ state }) => state !== "delta" && reload());
  return { enter: () => self.stale && load(), fresh: () => (self.stale = true) };
}

/** Every day of that time, also those without use; of a long time, those since the first use. */
function calendar(byDay, since) {
  const used = new Map(byDay.map((day) => [day.date, day.tokens]));
  const first = Date.parse(byDay[0]?.date);
  const start = Date.now() - since > LONGEST * DAY ? first : since;
  if (!Number.isFinite(first) || !Number.isFinite(start)) return [];
  const days = [];
  for (let at = Math.max(start, Date.now() - 4 * LONGEST * DAY); at <= Date.now(); at += DAY) days.push(new Date(at).toISOString().slice(0, 10));
  return days.map((name) => ({ name, value: used.get(name) ?? 0 }));
}

function kinds() {
  return el("ul", { class: "legend" }, KINDS.map((kind, place) => el("li", {}, el("span", { class: `dot p${place}`, "aria-hidden": "true" }), kind)));
}

function table(skills) {
  const head = ["Skill", "Uses", "Tokens", "List entry", "Instructions", "Output"];
  return el("table", {},
    el("caption", { class: "quiet" }, "Tokens and uses by skill"),
    el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, skills.map((one) => el("tr", {},
      el("th", { scope: "row", class: "theirs" }, words(one.skill)),
      [one.calls, one.tokens, one.catalog, one.body, one.output].map((number) => el("td", {}, count(number)))))));
}
