// Logs: what does the gateway write down, as it happens?

import { button, count, el, loading, many, nothing, put, soon, words } from "./dom.js";
import { failure, heading } from "./parts.js";

const LEVELS = ["error", "warn", "info", "debug", "trace"];
/** How many lines are kept on the page, how many of them are shown, and how often new ones are looked for. */
const KEPT = 5000;
const SHOWN = 500;
const EVERY = 2000;

export function make(app, panel) {
  const self = { lines: [], cursor: undefined, file: "", following: true, timer: undefined, started: false };
  const summary = el("p", { class: "soft" });
  const search = el("input", { type: "search", placeholder: "Search the log", "aria-label": "Search the log", "data-search": true, spellcheck: "false", on: { input: soon(() => (draw(), noted()), 60) } });
  const level = el("select", { id: "logs-level", on: { change: () => (draw(), noted()) } }, LEVELS.map((name) => el("option", { value: name, selected: name === "trace" }, name === "trace" ? "everything" : `${name} and above`)));
  const follow = button("Pause", () => following(!self.following), { "aria-pressed": "false" });
  const view = el("div", { class: "tail", role: "log", "aria-live": "off", "aria-label": "Lines of the log", tabindex: 0, data: { scroll: "log" } });
  put(panel, heading("Logs", summary),
    el("div", { class: "bar" }, search, el("label", { class: "pick", for: "logs-level" }, el("span", {}, "Show"), level), follow), view);

  function following(on) {
    self.following = on;
    follow.textContent = on ? "Pause" : "Resume";
    follow.setAttribute("aria-pressed", String(!on));
    if (on) tick();
  }

  async function tick() {
    clearTimeout(self.timer);
    if (panel.hidden || !self.following) return;
    try {
      const answer = await app.link.call("logs.tail", { limit: 2000, ...(self.cursor !== undefined && { cursor: self.cursor }) });
      if (answer.reset || self.cursor === undefined) self.lines = [];
      self.lines.push(...answer.lines.filter(Boolean).map(parsed));
      self.lines.splice(0, Math.max(0, self.lines.length - KEPT));
      [self.cursor, self.file] = [answer.cursor, answer.file];
      if (answer.lines.length || !self.started) draw();
      self.started = true;
    } catch (error) {
      if (!self.started) put(view, failure("The log", error, tick));
    }
    if (!panel.hidden) self.timer = setTimeout(tick, EVERY);
  }

  function draw() {
    const wanted = search.value.trim().toLowerCase();
    const most = LEVELS.indexOf(level.value);
    const found = self.lines.filter((line) => line.rank <= most && (!wanted || line.low.includes(wanted)));
    const shown = found.slice(-SHOWN);
    const near = view.scrollHeight - view.scrollTop - view.clientHeight < 80;
    summary.textContent = `${many(found.length, "line")}${found.length > shown.length ? `, the last ${count(shown.length)} shown` : ""}, ${self.file}`;
    put(view, shown.length ? shown.map((line) => el("p", { class: `entry ${line.level}` },
      el("time", {}, line.time), el("span", { class: "level" }, line.level), el("span", { class: "theirs" }, words(line.text)))) : nothing("No line matches", self.lines.length ? "Try another search or level." : "The log is empty."));
    if (near) view.scrollTop = view.scrollHeight;
  }

  const noted = () => app.here("logs", { query: { q: search.value.trim(), level: level.value === "trace" ? "" : level.value } });

  return {
    async enter({ query }) {
      if (query.q !== undefined) search.value = query.q;
      if (LEVELS.includes(query.level)) level.value = query.level;
      if (!self.started) put(view, loading("Loading the log"));
      else draw();
      await tick();
    },
    leave: () => clearTimeout(self.timer),
    fresh: () => (self.cursor = undefined),
  };
}

/** One line: JSON as the gateway writes it, or a plain text. */
function parsed(text) {
  let entry;
  try {
    entry = JSON.parse(text);
  } catch {
    entry = undefined;
  }
  const plain = /^(\S+T\S+Z?)\s+(ERROR|WARN|INFO|DEBUG|TRACE)\s+(.*)$/s.exec(text);
  const told = entry && typeof entry === "object" ? entry : { message: plain?.[3] ?? text, level: plain?.[2], time: plain?.[1] };
  const level = String(told.level ?? told._meta?.logLevelName ?? "info").toLowerCase();
  const when = new Date(told.time ?? told.timestamp ?? told.ts ?? "");
  const fields = told.fields ?? {};
  const message = told.message ?? told.msg ?? fields.message ?? "";
  const rest = Object.entries({ ...told, ...fields }).filter(([name]) => !["message", "msg", "level", "time", "timestamp", "ts", "fields", "target", "_meta"].includes(name));
  const line = [message, ...rest.map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)].join(" ");
  return {
    level, rank: Math.max(0, LEVELS.indexOf(level)), text: line, low: `${level} ${line}`.toLowerCase(),
    time: Number.isNaN(when.getTime()) ? "" : when.toLocaleTimeString("en-GB"),
  };
}
