// Configuration: what is set, what does it mean, and how is it changed? Nothing is saved before it was shown.

import { badge, button, count, el, loading, many, nothing, put, soon, words } from "./dom.js";
import { failure, heading, locked } from "./parts.js";
import { href } from "./route.js";
import { MASKED, at, origin, patch, settings, shown, typed } from "./settings.js";

/** How many settings of a search, and how many warnings about the file, are shown. */
const MOST = 60;
const MOST_WARNINGS = 20;

export function make(app, panel) {
  const self = { stale: true, file: undefined, all: [], section: undefined, changes: new Map(), issues: new Map() };
  const summary = el("p", { class: "soft", role: "status", "aria-live": "polite" });
  const search = el("input", { type: "search", placeholder: "Search settings", "aria-label": "Search settings", "data-search": true, spellcheck: "false", on: { input: soon(() => (draw(), noted()), 60) } });
  const sections = el("nav", { class: "chips", "aria-label": "Sections" });
  const why = el("div", { class: "stack tight" });
  const form = el("form", { class: "settings", on: { submit: (event) => (event.preventDefault(), review()) } });
  const save = el("div", { class: "savebar card", hidden: true });
  const dialog = el("dialog", { class: "review", "aria-labelledby": "review-title" });
  put(panel, heading("Configuration", summary), el("div", { class: "bar" }, search, sections), why, form, save, dialog);

  async function load() {
    if (panel.hidden) return void (self.stale = true);
    if (!self.file) put(form, loading("Loading the configuration"));
    try {
      const mayChange = app.can("operator.admin");
      const [file, schema] = await Promise.all([app.link.call("config.get"), mayChange ? app.link.call("config.schema") : undefined]);
      self.file = file;
      self.all = schema ? settings(schema.schema, file.config, schema.uiHints) : plain(file.config);
      self.readOnly = !schema;
      self.stale = false;
      summary.textContent = `${file.path ?? ""}${file.valid === false ? ", which cannot be read" : ""}`;
      put(why, locked(app, "operator.admin", "change settings"), [...(file.issues ?? []), ...(file.warnings ?? [])].slice(0, MOST_WARNINGS).map((issue) => el("p", { class: "warned theirs" }, issue.path && [el("code", {}, words(issue.path)), " "], words(issue.message ?? ""))));
      draw();
    } catch (error) {
      if (self.file) app.failed(error);
      else put(form, failure("The configuration", error, load));
    }
  }

  const name = (one) => one.path[0];
  const names = () => [...new Set(self.all.map(name))].sort();

  function draw() {
    if (!self.file) return;
    const wanted = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    self.section ??= names()[0];
    put(sections, names().map((one) => el("a", { class: "chip", href: href("config", one), "aria-current": !wanted.length && one === self.section ? "page" : undefined }, words(one))));
    const found = self.all.filter((one) => (wanted.length ? wanted.every((word) => one.text.includes(word)) : name(one) === self.section));
    put(form, found.length ? found.slice(0, MOST).map(field) : nothing(wanted.length ? "No setting matches" : `There is no section named “${self.section}”`, "Try another search, or choose a section above."),
      found.length > MOST && el("p", { class: "soft" }, `${count(found.length - MOST)} more match. Search for something narrower.`));
    bar();
  }

  function field(one) {
    const id = `set-${one.name}`;
    const changed = self.changes.get(one.name);
    const now = changed ? changed.value : at(self.file.config, one.path);
    const [issue, help] = [self.issues.get(one.name), `${id}-help`];
    const input = control(one, { id, "aria-describedby": help, "aria-invalid": issue ? "true" : undefined, disabled: self.readOnly, data: { act: id } }, now);
    input.addEventListener("change", () => change(one, input.validity.badInput ? "not a number" : input.value));
    return el("div", { class: changed ? "setting changed" : "setting", data: { setting: one.name } },
      el("label", { for: id, class: "theirs" }, words(one.name)),
      el("div", { class: "line" }, input, !self.readOnly && (changed || origin(one.path, self.file) === "set in the file") && button(changed ? "Undo" : "Use the default", () => (changed ? undo(one) : change(one, undefined)), { class: "small", "aria-label": `${changed ? "Undo the change of" : "Use the default for"} ${one.name}` })),
      el("p", { class: "soft", id: help }, one.help && [words(one.help), " "], badge(changed ? "changed" : origin(one.path, self.file), changed ? "warn" : "dim"), one.fallback !== undefined && [" Default: ", el("code", {}, words(JSON.stringify(one.fallback)))]),
      issue && el("p", { class: "issue", role: "alert" }, words(issue)));
  }

  function change(one, text) {
    try {
      const before = at(self.file.config, one.path);
      const value = text === undefined || (text === "" && one.kind !== "text") ? undefined : typed(one, text);
      self.issues.delete(one.name);
      if (JSON.stringify(value) === JSON.stringify(before)) self.changes.delete(one.name);
      else self.changes.set(one.name, { path: one.path, value, before });
    } catch (error) {
      self.issues.set(one.name, error.message);
      self.changes.set(one.name, { path: one.path, value: text, before: undefined, wrong: true });
    }
    redraw(one);
  }

  function undo(one) {
    self.changes.delete(one.name);
    self.issues.delete(one.name);
    redraw(one);
  }

  /** Draws one setting again, and gives the keyboard back to it. */
  function redraw(one) {
    const old = [...form.querySelectorAll("[data-setting]")].find((node) => node.dataset.setting === one.name);
    const held = old?.contains(document.activeElement);
    const fresh = field(one);
    old?.replaceWith(fresh);
    if (held) fresh.querySelector("input, select, textarea").focus();
    bar();
  }

  function bar() {
    save.hidden = !self.changes.size;
    const wrong = [...self.changes.values()].some((one) => one.wrong);
    put(save, el("span", { role: "status" }, wrong ? "Correct what is marked before you save." : `${many(self.changes.size, "change")} not saved`),
      el("span", { class: "line" }, button("Discard", () => (self.changes.clear(), self.issues.clear(), draw())), button("Review and save", review, { class: "main", disabled: wrong })));
  }

  /** Shows what would change; only then it can be saved. */
  function review() {
    if (!self.changes.size || [...self.changes.values()].some((one) => one.wrong)) return;
    const rows = [...self.changes].map(([key, { value, before }]) => {
      const secret = self.all.find((one) => one.name === key)?.kind === "secret";
      return el("li", {}, el("code", { class: "theirs strong" }, words(key)),
        el("pre", { class: "removed theirs" }, "− ", words(before === undefined ? "not set" : secret ? "a secret" : JSON.stringify(before))),
        el("pre", { class: "added theirs" }, "+ ", words(value === undefined ? "not set" : secret ? "another secret" : JSON.stringify(value))));
    });
    put(dialog, el("h2", { id: "review-title" }, "Save these changes?"), el("ul", { class: "diff" }, rows),
      el("div", { class: "line" }, button("Save", store, { class: "main", id: "config-save" }), button("Cancel", () => dialog.close())));
    dialog.showModal();
  }

  async function store() {
    dialog.close();
    try {
      const answer = await app.act("config.patch", { raw: JSON.stringify(patch(self.changes.values())), baseHash: self.file.hash });
      const waiting = answer.restart?.waiting ?? [];
      self.changes.clear();
      self.issues.clear();
      app.say(waiting.length ? words(`Saved. ${waiting.join(", ")} takes effect when you restart the gateway.`) : "Saved", "good");
      await load();
    } catch (error) {
      for (const issue of error.details?.issues ?? []) self.issues.set(issue.path, issue.message);
      draw();
      app.failed(error);
    }
  }

  const noted = () => app.here("config", { target: self.section, query: { q: search.value.trim() } });
  app.link.on("rights", () => load());
  return {
    async enter({ target, query }) {
      if (target) self.section = target;
      if (query.q !== undefined || target) search.value = query.q ?? "";
      if (self.stale) await load();
      else draw();
    },
    fresh: () => (self.stale = true),
  };
}

/** The field for a setting. */
function control(one, props, now) {
  if (one.kind === "switch" || one.kind === "choice") {
    const list = one.kind === "switch" ? [true, false] : one.choices;
    return el("select", props, el("option", { value: "" }, "not set"), list.map((choice) => el("option", { value: String(choice), selected: choice === now }, choice === true ? "on" : choice === false ? "off" : choice)));
  }
  if (one.kind === "secret") {
    const node = el("input", { ...props, type: "password", autocomplete: "off", placeholder: now === MASKED || typeof now === "object" ? "Set. Type to replace it" : "Not set" });
    if (typeof now === "string" && now !== MASKED) node.value = now;
    return node;
  }
  if (one.kind === "list" || one.kind === "json") {
    const node = el("textarea", { ...props, rows: Math.min(8, Math.max(2, shown(one, now).split("\n").length)), spellcheck: "false", placeholder: one.kind === "list" ? "One per line" : "JSON" });
    node.value = shown(one, now);
    return node;
  }
  const node = el("input", { ...props, type: one.kind === "number" ? "number" : "text", min: one.min, max: one.max, step: one.kind === "number" ? "any" : undefined, spellcheck: "false" });
  node.value = shown(one, now);
  return node;
}

/** What is set, for those who may not see the schema. */
function plain(config) {
  const found = [];
  const walk = (value, path) => {
    if (value && typeof value === "object" && !Array.isArray(value) && Object.keys(value).length) return Object.entries(value).forEach(([key, part]) => walk(part, [...path, key]));
    const kind = value === MASKED ? "secret" : typeof value === "object" ? "json" : "text";
    found.push({ path, name: path.join("."), kind, help: "", text: path.join(".").toLowerCase() });
  };
  walk(config ?? {}, []);
  return found.filter((one) => one.path.length);
}
