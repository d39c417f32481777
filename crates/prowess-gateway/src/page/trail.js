// Trails: which things happened, the newest first, a page at a time?
//
// A view of a log of the gateway. It can be searched, keeps its place in the address, and takes news while it is open.

import { button, el, loading, many, nothing, put, soon } from "./dom.js";
import { failure, heading, locked } from "./parts.js";

const PAGE = 100;
/** How many entries stay on the page when news comes. */
const KEPT = 500;

/**
 * Fills `panel` with a trail. `about` says what it is of:
 *
 * - `view`, `title`, `unit`: its place in the address, its heading, what one entry is called;
 * - `method`, `right`, `wish`: what is called, and what is needed for it and why;
 * - `texts`: what is said when there is nothing to show;
 * - `told(entry)`: the text that is searched; `card(entry, isTarget)`: the element of an entry;
 * - `filter`, if it has one: its `node`, `keeps(entry)`, `query()` and `enter(query)`;
 * - `front`, if something comes before the log: `take(answer)` at the first page, `list()`, and `note()` for the summary.
 */
export function trail(app, panel, about) {
  const { texts, filter, front } = about;
  const self = { past: undefined, cursor: undefined, stale: true, target: undefined, cards: new Map() };
  const summary = el("p", { class: "soft", role: "status", "aria-live": front ? "off" : "polite" });
  const search = el("input", { type: "search", placeholder: texts.search, "aria-label": texts.searches, "data-search": true, spellcheck: "false", on: { input: soon(changed, 60) } });
  const list = el("ul", { class: "stack plain", "aria-label": texts.list });
  const more = button("Show older", () => load("more"), { hidden: true });
  put(panel, heading(about.title, summary), el("div", { class: "bar" }, search, filter?.node), list, el("p", { class: "line middle" }, more));

  async function load(how) {
    if (panel.hidden) return void (self.stale = true);
    if (!app.link.knows(about.method)) return void put(list, el("li", {}, nothing(...texts.unknown)));
    const why = locked(app, about.right, about.wish);
    if (why) return void put(list, el("li", {}, why));
    if (!self.past) put(list, el("li", {}, loading(texts.loading)));
    try {
      const cursor = how === "more" ? self.cursor : undefined;
      const answer = await app.link.call(about.method, { limit: PAGE, ...(cursor && { cursor }) });
      const entries = answer.entries ?? [];
      self.past = cursor ? [...self.past, ...entries] : entries;
      self.cursor = answer.cursor ?? answer.nextCursor;
      if (!cursor) front?.take(answer);
      self.stale = false;
      draw();
    } catch (error) {
      if (self.past) app.failed(error);
      else put(list, el("li", {}, failure(texts.failure, error, load)));
    }
  }

  /** Puts entries that just came in front of the others; whether there are any others yet. */
  function add(entries) {
    if (panel.hidden || !self.past) {
      self.stale = true;
      return false;
    }
    const known = new Set(self.past.map(({ id }) => id));
    self.past = [...entries.filter(({ id }) => !known.has(id)), ...self.past];
    if (self.past.length > KEPT) {
      self.past.length = KEPT;
      self.cursor = self.past.at(-1).id;
    }
    draw();
    return true;
  }

  function draw() {
    if (!self.past) return;
    const over = new Set(self.past.map(({ id }) => id));
    const all = [...(front?.list() ?? []).filter(({ id }) => !over.has(id)), ...self.past];
    const wanted = search.value.trim().toLowerCase();
    const found = all.filter((one) => (filter?.keeps(one) ?? true) && (!wanted || about.told(one).includes(wanted)));
    summary.textContent = `${many(found.length, about.unit)}${front?.note() ?? ""}`;
    more.hidden = !self.cursor;
    const missing = self.target && !all.some(({ id }) => id === self.target);
    const focused = list.contains(document.activeElement) && document.activeElement;
    put(list,
      missing && el("li", {}, nothing(texts.missing, self.cursor ? texts.elsewhere : texts.gone)),
      found.map(item),
      !found.length && el("li", {}, nothing(...(all.length ? [texts.unmatched, "Try another search."] : texts.empty))));
    if (focused && list.contains(focused)) focused.focus({ preventScroll: true });
    const kept = new Set(all.map(({ id }) => id));
    for (const id of self.cards.keys()) if (!kept.has(id)) self.cards.delete(id);
  }

  /** The element of an entry; what did not change stays as it is. */
  function item(one) {
    const isTarget = one.id === self.target;
    const look = JSON.stringify([one, isTarget]);
    const made = self.cards.get(one.id);
    if (made?.look === look) return made.node;
    const node = el("li", {}, about.card(one, isTarget));
    self.cards.set(one.id, { look, node });
    return node;
  }

  function changed() {
    draw();
    app.here(about.view, { target: self.target, query: { q: search.value.trim(), ...filter?.query() } });
  }

  app.link.on("rights", () => load());
  return {
    add,
    again: soon(load, 400),
    changed,
    view: {
      async enter({ target, query, moved }) {
        self.target = target;
        if (query.q !== undefined) search.value = query.q;
        filter?.enter(query);
        if (self.stale) await load();
        else draw();
        const node = list.querySelector(".target");
        node?.scrollIntoView({ block: "nearest" });
        if (moved) node?.focus({ preventScroll: true });
      },
      fresh: () => (self.stale = true),
    },
  };
}
