// Parts that several views are made of: a heading, facts, cards, and the states of something that is loaded.

import { button, el, loading, nothing, put } from "./dom.js";

/** The top of a view: its name, what it says in one line, and what belongs to the right. */
export function heading(title, summary, ...more) {
  return el("div", { class: "head" }, el("h1", {}, title), summary, more);
}

/** Names and values, without those that have no value. */
export function facts(rows) {
  const given = rows.filter((row) => row && row[1] !== undefined && row[1] !== null && row[1] !== "" && row[1] !== false && row[1] !== 0 && row[1].textContent !== "");
  return el("dl", { class: "facts" }, given.map(([name, value]) => [el("dt", {}, name), el("dd", { class: "theirs" }, value)]));
}

/** A part of a view with a name. */
export function section(title, ...children) {
  return el("section", { class: "card" }, el("h2", {}, title), children);
}

/** What is shown where something could not be loaded. */
export function failure(what, error, again) {
  return el("div", { class: "failure" }, nothing(`${what} could not be loaded`, error.message), el("p", { class: "line middle" }, button("Try again", again)));
}

/** Why something cannot be done by this person, if it cannot. */
export function locked(app, scope, what) {
  if (app.can(scope)) return undefined;
  return el("p", { class: "locked soft" }, `You do not have the right to ${what}. `,
    button("Request it", () => app.link.need(scope), { class: "small" }));
}

/**
 * A view that shows what it loads. `load()` gets it, `draw(data, route)` makes the elements. Loads again when one of
 * `events` is heard; what is on the page stays until the new is there.
 */
export function loaded(app, panel, { what, top, events = [], load, draw, later }) {
  const self = { stale: true, data: undefined, route: undefined };
  const body = el("div", { class: "stack" });
  put(panel, top, body);
  async function refresh() {
    if (panel.hidden) return void (self.stale = true);
    if (!self.data) put(body, loading(`Loading ${what}`));
    try {
      self.data = await load();
      self.stale = false;
      show();
    } catch (error) {
      if (self.data) app.failed(error);
      else put(body, failure(what[0].toUpperCase() + what.slice(1), error, refresh));
    }
  }
  function show() {
    const place = body.contains(document.activeElement) ? document.activeElement.dataset.act : undefined;
    put(body, draw(self.data, self.route ?? { query: {} }));
    if (place) [...body.querySelectorAll("[data-act]")].find((node) => node.dataset.act === place)?.focus();
  }
  let timer;
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(refresh, later ?? 200);
  };
  for (const event of events) app.link.on(event, soon);
  return {
    refresh,
    show,
    enter(route) {
      self.route = route;
      if (self.stale) return refresh();
      if (self.data) show();
    },
    fresh: () => (self.stale = true),
  };
}
