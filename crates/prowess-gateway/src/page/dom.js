// How is something shown? Everything is made of elements and text nodes. There is no way from a text to markup here.

const SVG = "http://www.w3.org/2000/svg";

/** Makes an element. `props` are attributes, besides `on` (listeners) and `data` (data attributes). */
export function el(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children);
}

/** Makes an element of a picture. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "on") {
      for (const [event, heard] of Object.entries(value)) node.addEventListener(event, heard);
    } else if (name === "data") {
      for (const [key, part] of Object.entries(value)) node.dataset[key] = part;
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  // One by one: a call cannot have as many arguments as a long text has parts.
  for (const child of children.flat(Infinity)) if (child !== undefined && child !== null && child !== false) node.append(child);
  return node;
}

/** Puts `children` in place of what was in `node`. */
export function put(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return node;
}

// What a reader cannot see, or what would turn the order of what they see.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;
// In a command, everything that is not plain counts: joiners, variants, other spaces, letters of other alphabets.
// So do those that the gateway has written as numbers; an end of a line and a space are nothing odd.
const ODD = /[^\u0020-\u007e\n]|\\u\{(?!(?:a|20)\})[0-9a-f]{1,6}\}/gu;

/** A text that somebody else wrote, with what is hidden in it made visible. */
export function words(text) {
  return marked(String(text ?? ""), HIDDEN, code);
}

/** The text of a command: nothing in it looks like something else. */
export function command(text) {
  return marked(String(text ?? ""), ODD, (found) => {
    if (found.startsWith("\\u{")) return [found, "hidden-char", number(found.slice(3, -1))];
    return seen(found) ? [found, "foreign"] : code(found);
  });
}

function code(char) {
  return [number(char.codePointAt(0).toString(16)), "hidden-char"];
}

function number(hex) {
  return `U+${hex.toUpperCase().padStart(4, "0")}`;
}

function seen(char) {
  return /[\p{L}\p{N}\p{P}\p{S}]/u.test(char) && char.search(HIDDEN) < 0 && !/[\ufe00-\ufe0f\u200d]/u.test(char);
}

function marked(text, pattern, name) {
  const out = document.createDocumentFragment();
  let last = 0;
  for (const found of text.matchAll(pattern)) {
    if (found.index > last) out.append(text.slice(last, found.index));
    const [shown, kind, title = code(found[0])[0]] = name(found[0]);
    out.append(el("span", { class: kind, title }, shown));
    last = found.index + found[0].length;
  }
  out.append(text.slice(last));
  return out;
}

/** A link to a page of somebody else; what is none is only text. */
export function away(address) {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!url || !["http:", "https:"].includes(url.protocol)) return el("span", { class: "theirs" }, words(address));
  return el("a", { href: url.href, target: "_blank", rel: "noopener noreferrer", class: "theirs" }, words(address));
}

/** A button. */
export function button(label, pressed, props = {}) {
  return el("button", { type: "button", ...props, on: { click: pressed } }, label);
}

/** A button that has to be pressed twice: the first time it says what the second does. */
export function twice(label, sure, pressed, props = {}) {
  const node = button(label, () => {
    if (node.dataset.sure) return pressed();
    node.dataset.sure = "yes";
    node.textContent = sure;
  }, props);
  return node;
}

/** A text to be copied, with a button that does it. */
export function copyable(text) {
  // Browsers only have a clipboard for pages that came over a safe way.
  const copy = navigator.clipboard && button("Copy", async () => {
    await navigator.clipboard.writeText(text);
    copy.textContent = "Copied";
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  }, { class: "small", "aria-label": `Copy: ${text}` });
  return el("div", { class: "copyable" }, el("code", { class: "theirs" }, command(text)), copy);
}

/** A small word in a box. */
export function badge(word, kind = "calm") {
  return el("span", { class: `badge ${kind}` }, word);
}

/** What is shown where there is nothing. */
export function nothing(title, text) {
  return el("div", { class: "nothing" }, el("p", { class: "strong" }, title), text && el("p", {}, text));
}

/** What is shown while something is on its way. */
export function loading(text) {
  return el("p", { class: "loading soft", role: "status" }, text);
}

/** A path as people write it: the home is `~`. */
export function brief(path, home) {
  return home && path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path;
}

/** Calls `work` once, a moment after the last time it was asked for. */
export function soon(work, millis = 120) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, millis);
  };
}

const numbers = new Intl.NumberFormat("en");
/** 12,345 */
export const count = (number) => numbers.format(number ?? 0);

/** 12.3k */
export function short(number) {
  if (number < 1000) return String(number);
  const [size, unit] = number < 1e6 ? [number / 1e3, "k"] : [number / 1e6, "M"];
  return `${size < 10 ? size.toFixed(1) : Math.round(size)}${unit}`;
}

/** 512 B, 12.3 kB, 4.5 GB */
export function bytes(number = 0) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const unit = Math.min(units.length - 1, number < 1000 ? 0 : Math.floor(Math.log10(number) / 3));
  return `${unit ? (number / 1000 ** unit).toFixed(1) : number} ${units[unit]}`;
}

/** One skill, two skills. */
export const many = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/** How long ago it was. */
export function ago(millis) {
  if (!millis) return "never";
  const seconds = Math.max(0, Math.round((Date.now() - millis) / 1000));
  const steps = [[60, "second"], [3600, "minute"], [86400, "hour"], [Infinity, "day"]];
  const [, unit] = steps.find(([limit]) => seconds < limit);
  const size = { second: 1, minute: 60, hour: 3600, day: 86400 }[unit];
  return seconds < 10 ? "just now" : `${many(Math.floor(seconds / size), unit)} ago`;
}

/** A time of day, or a date and a time. */
export function clock(millis) {
  if (!millis) return "";
  const then = new Date(millis);
  const today = then.toDateString() === new Date().toDateString();
  return then.toLocaleString("en-GB", today ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" });
}

/** Something to tell requests apart by. */
export function unique() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const PATHS = {
  overview: "M4 11l8-7 8 7v9h-5v-6H9v6H4z",
  agents: "M12 4a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM5 20c0-4 3-6 7-6s7 2 7 6",
  config: "M4 7h10M18 7h2M4 12h3M11 12h9M4 17h9M17 17h3M14 5v4M9 10v4M15 15v4",
  logs: "M5 5h14M5 9h14M5 13h9M5 17h11",
  audit: "M6 3h9l4 4v14H6zM9 12l2 2 4-4M9 18h7",
  rules: "M14 10a4 4 0 1 0-3.5 4L13 16.5v2h2v2h4v-3.5L13.5 12",
  skills: "M4 5h7v7H4zM13 5h7v7h-7zM4 14h7v5H4zM13 14h7v5h-7z",
  prompt: "M5 4h14v16H5zM8 8h8M8 12h8M8 16h5",
  chat: "M4 5h16v11H10l-5 4v-4H4z",
  approvals: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6zM9 12l2 2 4-4",
  nodes: "M4 5h16v6H4zM4 13h16v6H4zM8 8h.01M8 16h.01",
  sessions: "M12 4a8 8 0 1 0 8 8M12 8v5l3 2M20 4v4h-4",
  network: "M12 4a8 8 0 1 1 0 16 8 8 0 0 1 0-16zM4 12h16M12 4c3 3 3 13 0 16M12 4c-3 3-3 13 0 16",
  usage: "M5 20V10M10 20V4M15 20v-7M20 20V8",
};

/** A small picture beside a word. */
export function icon(name) {
  const path = svg("path", { d: PATHS[name], fill: "none", stroke: "currentColor", "stroke-width": 1.7, "stroke-linecap": "round", "stroke-linejoin": "round" });
  return svg("svg", { viewBox: "0 0 24 24", width: 20, height: 20, "aria-hidden": "true" }, path);
}
