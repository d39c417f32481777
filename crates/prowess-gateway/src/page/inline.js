// The inside of a line of Markdown: emphasis, code, links and breaks, as elements.

import { el, words } from "./dom.js";

/** How deep emphasis may nest, and how long an address may be. */
const DEEPEST = 32;
const LONGEST_ADDRESS = 2000;

const PLAIN = /[^\\`<![\]*_~&\nhH]+/y;
const ADDRESS = /https?:\/\/[^\s<>"`[\]]+/iy;
const MARKED_ADDRESS = /<(https?:\/\/[^\s<>]+|mailto:[^\s<>]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)>/iy;
const BREAK = /<br[ \t]*\/?>/iy;
const ENTITY = /&(#\d{1,7}|#x[0-9a-f]{1,6}|[a-z]{2,8});/iy;
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: "\"", apos: "'", nbsp: "\u00a0", hellip: "…", ndash: "–", mdash: "—", copy: "©", rarr: "→", larr: "←", times: "×", deg: "°" };
const PUNCTUATION = /[\p{P}\p{S}]/u;

/** The nodes of a text. */
export function parse(text) {
  return draw(new Reader(text).read());
}

class Reader {
  #text;
  #at = 0;
  #items = [];
  // Where brackets are open: their places among the items.
  #open = [];
  // Where runs of backticks are, by their length.
  #ticks;

  constructor(text) {
    this.#text = text;
  }

  read() {
    const text = this.#text;
    while (this.#at < text.length) {
      const plain = this.#match(PLAIN);
      if (plain) this.#say(plain[0]);
      else this.#special(text[this.#at]);
    }
    return emphasis(this.#items);
  }

  #match(pattern) {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found) this.#at = pattern.lastIndex;
    return found;
  }

  #say(text) {
    const last = this.#items.at(-1);
    if (last?.kind === "text") last.text += text;
    else this.#items.push({ kind: "text", text });
  }

  #special(char) {
    const text = this.#text;
    const next = text[this.#at + 1] ?? "";
    if (char === "\n") this.#newLine(1);
    else if (char === "\\" && next === "\n") this.#newLine(2);
    else if (char === "\\" && /[!-/:-@[-`{-~]/.test(next)) this.#skip(2, next);
    else if (char === "`") this.#code();
    else if (char === "!" && next === "[") this.#bracket(2, true);
    else if (char === "[") this.#bracket(1, false);
    else if (char === "]") this.#close();
    else if ("*_~".includes(char)) this.#run(char);
    else if (char === "<") this.#angle();
    else if (char === "&") this.#entity();
    else if (!/\w/.test(text[this.#at - 1] ?? "") && this.#address()) return;
    else this.#skip(1, char);
  }

  #skip(length, text) {
    this.#at += length;
    this.#say(text);
  }

  #newLine(length) {
    this.#at += length;
    this.#items.push({ kind: "break" });
  }

  #code() {
    const start = this.#at;
    let end = start;
    while (this.#text[end] === "`") end += 1;
    const length = end - start;
    this.#ticks ??= backticks(this.#text);
    const runs = this.#ticks.get(length);
    while (runs?.places[runs.next] < end) runs.next += 1;
    // The rest of a run whose first backtick is escaped is in no list.
    const close = runs?.places[runs.next];
    if (close === undefined) return this.#skip(length, "`".repeat(length));
    const inside = this.#text.slice(end, close).replaceAll("\n", " ");
    const padded = inside.startsWith(" ") && inside.endsWith(" ") && inside.trim();
    this.#at = close + length;
    this.#items.push({ kind: "code", text: padded ? inside.slice(1, -1) : inside });
    return undefined;
  }

  #bracket(length, image) {
    this.#at += length;
    if (this.#open.push(this.#items.length) > DEEPEST) this.#open.shift();
    this.#items.push({ kind: "bracket", text: image ? "![" : "[", image });
  }

  #close() {
    this.#at += 1;
    const place = this.#open.pop();
    const target = place !== undefined && this.#target();
    if (!target) return this.#say("]");
    const { image } = this.#items[place];
    // A link has no links inside it: they become text, and what was open before it stays text.
    const inside = emphasis(this.#items.slice(place + 1).flatMap((item) => (item.kind === "link" ? item.inside : [item])));
    this.#items.length = place;
    this.#items.push({ kind: image ? "image" : "link", address: target, inside });
    if (!image) this.#open = this.#open.filter((one) => this.#items[one].image);
    return undefined;
  }

  /** The address of a link, after its text. */
  #target() {
    const rest = this.#text.slice(this.#at, this.#at + LONGEST_ADDRESS + 200);
    const found = /^\(\s{0,20}(?:<([^<>\n]*)>|((?:[^\s()\\]|\\.|\([^\s()]*\))*))(?:\s{1,20}(?:"[^"]{0,150}"|'[^']{0,150}'))?\s{0,20}\)/.exec(rest);
    if (!found) return undefined;
    this.#at += found[0].length;
    return (found[1] ?? found[2]).replace(/\\(?=[!-/:-@[-`{-~])/g, "") || "#";
  }

  #angle() {
    const address = this.#match(MARKED_ADDRESS);
    if (address) this.#link(address[1].includes(":") ? address[1] : `mailto:${address[1]}`, address[1]);
    else if (this.#match(BREAK)) this.#items.push({ kind: "break" });
    else this.#skip(1, "<");
  }

  #address() {
    const found = this.#match(ADDRESS);
    if (!found) return false;
    const address = trimmed(found[0]);
    this.#at -= found[0].length - address.length;
    this.#link(address, address);
    return true;
  }

  #link(address, text) {
    this.#items.push({ kind: "link", address, inside: [{ kind: "text", text }] });
  }

  #entity() {
    const found = this.#match(ENTITY);
    if (!found) return this.#skip(1, "&");
    const name = found[1].toLowerCase();
    const number = name.startsWith("#x") ? Number.parseInt(name.slice(2), 16) : Number.parseInt(name.slice(1), 10);
    const char = name.startsWith("#") ? number > 0 && number <= 0x10ffff && String.fromCodePoint(number) : ENTITIES[name];
    return this.#say(char || found[0]);
  }

  #run(char) {
    const start = this.#at;
    let end = start;
    while (this.#text[end] === char) end += 1;
    this.#at = end;
    const [before, after] = [this.#text[start - 1] ?? " ", this.#text[end] ?? " "];
    const [blankBefore, blankAfter] = [/\s/.test(before), /\s/.test(after)];
    const [markBefore, markAfter] = [PUNCTUATION.test(before), PUNCTUATION.test(after)];
    const left = !blankAfter && (!markAfter || blankBefore || markBefore);
    const right = !blankBefore && (!markBefore || blankAfter || markAfter);
    const [within, length] = [char === "_", end - start];
    if (char === "~" && length !== 2) return this.#say(char.repeat(length));
    // Bold text may end with punctuation right before a letter, as it does in languages without spaces.
    const bold = char === "*" && length > 1;
    this.#items.push({
      kind: "run", char, left: length, length,
      opens: bold ? !blankAfter : left && (!within || !right || markBefore),
      closes: bold ? !blankBefore : right && (!within || !left || markAfter),
    });
    return undefined;
  }
}

/** Where runs of backticks begin, by their length. */
function backticks(text) {
  const found = new Map();
  for (const { 0: run, index } of text.matchAll(/`+/g)) {
    if (!found.has(run.length)) found.set(run.length, { places: [], next: 0 });
    found.get(run.length).places.push(index);
  }
  return found;
}

/** An address without the punctuation of the sentence that it is in. */
function trimmed(address) {
  let end = Math.min(address.length, LONGEST_ADDRESS);
  let unpaired = 0;
  for (const char of address.slice(0, end)) unpaired += { "(": -1, ")": 1 }[char] ?? 0;
  for (;;) {
    const last = address[end - 1];
    if (last === ")" && unpaired > 0) unpaired -= 1;
    else if (!".,;:!?'*_~]".includes(last)) return address.slice(0, end);
    end -= 1;
  }
}

/** Pairs what opens emphasis with what closes it. */
function emphasis(items) {
  const frames = [{ run: undefined, inside: [] }];
  const give = (node) => {
    const { inside } = frames.at(-1);
    const isText = (one) => ["text", "bracket"].includes(one?.kind);
    if (isText(node) && isText(inside.at(-1))) inside.push({ kind: "text", text: inside.pop().text + node.text });
    else inside.push(node);
  };
  const drop = () => {
    const { run, inside } = frames.pop();
    give({ kind: "text", text: run.char.repeat(run.left) });
    for (const node of inside) give(node);
  };
  for (const item of items) {
    if (item.kind !== "run") {
      give(item);
      continue;
    }
    for (let at; item.closes && item.left > 0 && (at = opener(frames, item)) > 0;) {
      while (frames.length - 1 > at) drop();
      const { run, inside } = frames[at];
      const size = Math.min(run.left, item.left, 2);
      run.left -= size;
      item.left -= size;
      const node = { kind: item.char === "~" ? "del" : size === 2 ? "strong" : "em", inside };
      if (run.left > 0) {
        frames[at].inside = [node];
      } else {
        frames.pop();
        give(node);
      }
    }
    if (item.left > 0 && item.opens && frames.length < DEEPEST) frames.push({ run: item, inside: [] });
    else if (item.left > 0) give({ kind: "text", text: item.char.repeat(item.left) });
  }
  while (frames.length > 1) drop();
  return frames[0].inside;
}

function opener(frames, { char, opens, length }) {
  return frames.findLastIndex(({ run }) => run?.char === char
    // As in `**a*b**`: a run that could do both does not pair with one that only fits by chance.
    && !((opens || run.closes) && (run.length + length) % 3 === 0 && (run.length % 3 || length % 3)));
}

function draw(items) {
  return items.map((item) => {
    switch (item.kind) {
      case "break": return el("br");
      case "code": return el("code", { class: "theirs" }, words(item.text));
      case "link": return link(item.address, draw(item.inside), plain(item.inside));
      case "image": return picture(item);
      case "em": case "strong": case "del": return el(item.kind, {}, draw(item.inside));
      default: return words(item.text);
    }
  });
}

const plain = (items) => items.map((item) => item.text ?? plain(item.inside ?? [])).join("");

/** A link that says where it leads; what is none that we follow is only text. */
function link(address, inside, text) {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!["http:", "https:", "mailto:"].includes(url?.protocol)) {
    return el("span", { class: "theirs no-link" }, inside, address !== text && el("span", { class: "soft" }, " (", words(address), ")"));
  }
  const goal = url.host || url.pathname;
  const known = [url.href, url.href.replace(/\/$/, ""), address].includes(text) || text === goal;
  return [
    el("a", { href: url.href, target: "_blank", rel: "noopener noreferrer", class: "theirs", title: url.href }, inside),
    !known && el("span", { class: "goal theirs" }, words(goal)),
  ];
}

/** Pictures of others are not loaded: whoever has them would learn who reads this. */
function picture({ address, inside }) {
  const name = plain(inside) || "picture";
  return link(address.startsWith("data:") ? "#" : address, ["Image: ", words(name)], `Image: ${name}`);
}
