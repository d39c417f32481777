// A long list: only the rows in sight are on the page, however many there are.
//
// Every row has the same height, so the scroll bar is right from the start and nothing jumps. Assistive technology is
// told the place of each row and how many there are. One row can be reached with Tab; arrows lead on from there.

import { el } from "./dom.js";

/** How many rows beyond the edges are ready before they are scrolled into sight. */
const SPARE = 6;
/** The height of a row in pixels, as `--row` in the style sheet. */
const HEIGHT = 60;
/** How many rows are assumed to fit before the list is measured. */
const FIRST = 14;

export class List {
  #frame;
  #rows;
  #items = [];
  #slots = new Map();
  #options;
  #chosen;
  #fits = FIRST;
  #due = false;

  /**
   * In `frame`, which scrolls. `key(item)` names an item, `row(item)` makes its link, `label` names the list, and
   * `before` gets the focus when a person goes up from the first row.
   */
  constructor(frame, { key, row, label, before }) {
    this.#frame = frame;
    this.#options = { key, row, before };
    this.#rows = el("ul", { class: "window", "aria-label": label });
    frame.replaceChildren(this.#rows);
    frame.addEventListener("scroll", () => this.#later(), { passive: true });
    frame.addEventListener("keydown", (event) => this.#step(event));
    new ResizeObserver(() => this.#measure()).observe(frame);
  }

  /** Shows `items`, in this order. What has the focus keeps it. */
  set(items) {
    const focused = this.#focused();
    this.#items = items;
    this.#rows.style.height = `${items.length * HEIGHT}px`;
    this.#frame.hidden = !items.length;
    this.#draw();
    if (focused !== undefined && this.#focused() !== focused) this.focus(focused);
  }

  /** The place of an item in the list, or -1. */
  #place(name) {
    return name === undefined ? -1 : this.#items.findIndex((item) => this.#options.key(item) === name);
  }

  get size() {
    return this.#items.length;
  }

  /** Marks the item that is shown elsewhere on the page. */
  choose(name) {
    this.#chosen = name;
    for (const slot of this.#slots.values()) this.#mark(slot);
    this.#stop();
  }

  /** Scrolls to an item, if it is in the list. */
  reveal(name) {
    const place = this.#place(name);
    if (place < 0) return;
    const [top, height] = [place * HEIGHT, this.#frame.clientHeight];
    const { scrollTop } = this.#frame;
    if (top < scrollTop) this.#frame.scrollTop = top;
    else if (height && top + HEIGHT > scrollTop + height) this.#frame.scrollTop = top + HEIGHT - height;
    this.#draw();
  }

  /** Gives an item the keyboard, the first one where none is named. */
  focus(name = this.#items.length ? this.#options.key(this.#items[0]) : undefined) {
    this.reveal(name);
    this.#slots.get(name)?.link.focus({ preventScroll: true });
  }

  #focused() {
    const node = document.activeElement;
    return this.#rows.contains(node) ? [...this.#slots].find(([, slot]) => slot.link === node)?.[0] : undefined;
  }

  #measure() {
    const fits = Math.ceil(this.#frame.clientHeight / HEIGHT);
    if (!fits || fits === this.#fits) return;
    this.#fits = fits;
    this.#draw();
  }

  #later() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      this.#draw();
    });
  }

  /** Lets exactly the rows in sight be on the page, and the one that has the focus. */
  #draw() {
    const { key } = this.#options;
    const first = Math.max(0, Math.floor(this.#frame.scrollTop / HEIGHT) - SPARE);
    const last = Math.min(this.#items.length, first + this.#fits + 2 * SPARE);
    const wanted = new Map(this.#items.slice(first, last).map((item, place) => [key(item), first + place]));
    const focused = this.#focused();
    const held = wanted.has(focused) ? -1 : this.#place(focused);
    if (held >= 0) wanted.set(focused, held);
    for (const [name, slot] of this.#slots) {
      if (wanted.has(name) && this.#items[wanted.get(name)] === slot.item) continue;
      slot.node.remove();
      this.#slots.delete(name);
    }
    const fresh = [...wanted].filter(([name]) => !this.#slots.has(name)).map(([name, place]) => this.#slot(name, this.#items[place]));
    for (const [name, place] of wanted) this.#put(this.#slots.get(name), place);
    if (fresh.length) this.#sort(fresh.sort((a, b) => a.place - b.place));
    this.#stop();
  }

  /** Tab always finds a row: the chosen one, or the first in sight. */
  #stop() {
    const slots = [...this.#slots.values()];
    for (const slot of slots) slot.link.tabIndex = slot.name === this.#chosen ? 0 : -1;
    const first = slots.some((slot) => slot.name === this.#chosen) ? undefined : slots.sort((a, b) => a.place - b.place)[0];
    if (first) first.link.tabIndex = 0;
  }

  #slot(name, item) {
    const link = this.#options.row(item);
    const slot = { name, item, link, node: el("li", {}, link), place: -1, total: -1 };
    this.#slots.set(name, slot);
    this.#mark(slot);
    return slot;
  }

  #put(slot, place) {
    const total = this.#items.length;
    if (slot.place !== place) {
      slot.node.style.transform = `translateY(${place * HEIGHT}px)`;
      slot.node.setAttribute("aria-posinset", String(place + 1));
    }
    if (slot.total !== total) slot.node.setAttribute("aria-setsize", String(total));
    [slot.place, slot.total] = [place, total];
  }

  /** The order on the page is the order that is read aloud. A row that is there already is not moved. */
  #sort(fresh) {
    const rest = [...this.#slots.values()].filter((slot) => slot.node.parentNode).sort((a, b) => a.place - b.place);
    for (const slot of fresh) {
      const next = rest.find((other) => other.place > slot.place);
      this.#rows.insertBefore(slot.node, next?.node ?? null);
    }
  }

  #mark(slot) {
    slot.link.setAttribute("aria-current", String(slot.name === this.#chosen));
  }

  #step(event) {
    const at = this.#place(this.#focused());
    if (at < 0) return;
    const page = Math.max(1, this.#fits - 1);
    const steps = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.#items.length - 1 };
    const to = steps[event.key];
    if (to === undefined) return;
    event.preventDefault();
    if (to < 0 && event.key === "ArrowUp") return void this.#options.before?.focus();
    const place = Math.min(Math.max(to, 0), this.#items.length - 1);
    this.focus(this.#options.key(this.#items[place]));
  }
}
