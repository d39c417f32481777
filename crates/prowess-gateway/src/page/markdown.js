// Markdown: how does a model's text become elements? Every element is made here by name, every text is a text node, and
// nothing is loaded: there is no way from a text to markup, to a program or to another machine.

import { copyButton } from "./copy.js";
import { el, words } from "./dom.js";
import { highlight } from "./highlight.js";
import { parse as inline } from "./inline.js";

/** The longest text that is formatted, in characters, and how deep lists and quotes may nest. The rest is plain text. */
const LONGEST = 200000;
const DEEPEST = 10;
const MOST_COLUMNS = 64;

// None of these takes longer than its line is long: no two parts of one can match the same characters.

const FENCE = /^ {0,3}(`{3,}|~{3,})([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*))?$/;
const RULE = /^ {0,3}(?:(?:-[ \t]*){3,}|(?:\*[ \t]*){3,}|(?:_[ \t]*){3,})$/;
const QUOTE = /^ {0,3}>[ \t]?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|[ \t]*)$/;
const COLUMNS = /^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/;
const TASK = /^\[([ xX])\][ \t]+/;

/** A text that grows: only the blocks that changed are made again. */
export class Markdown {
  #node;
  #blocks = [];
  text = "";

  constructor(node) {
    this.#node = node;
    node.classList.add("md");
  }

  /** Shows `text` in place of what was shown. */
  update(text) {
    this.text = text;
    const blocks = text.length > LONGEST ? [{ kind: "plain", raw: text }] : outline(parse(text));
    let same = 0;
    while (same < blocks.length && same < this.#blocks.length && key(blocks[same]) === key(this.#blocks[same])) same += 1;
    while (this.#node.childNodes.length > same) this.#node.lastChild.remove();
    for (const block of blocks.slice(same)) this.#node.append(draw(block));
    this.#blocks = blocks;
  }
}

const key = ({ kind, raw, level, closed }) => `${kind} ${level} ${closed} ${raw}`;

/** The blocks of a text. Each knows the lines that it is made of. */
export function parse(text) {
  return blocks(text.replace(/\r\n?/g, "\n").split("\n"), 0);
}

function blocks(lines, depth) {
  const found = [];
  for (let at = 0; at < lines.length;) {
    if (!lines[at].trim()) {
      at += 1;
      continue;
    }
    const block = KINDS.reduce((made, kind) => made ?? kind(lines, at, depth), undefined) ?? paragraph(lines, at, depth);
    found.push({ ...block, raw: lines.slice(at, block.end).join("\n") });
    at = block.end;
  }
  return found;
}

// In this order: what begins like two of them is the first.
const KINDS = [fence, heading, rule, quote, list, table, indented];

function fence(lines, start) {
  const open = FENCE.exec(lines[start]);
  if (!open) return undefined;
  const [, mark, info] = open;
  const indent = lines[start].search(/\S/);
  const close = new RegExp(`^ {0,3}${mark[0]}{${mark.length},}[ \\t]*$`);
  let end = start + 1;
  while (end < lines.length && !close.test(lines[end])) end += 1;
  const code = lines.slice(start + 1, end).map((line) => dedent(line, indent)).join("\n");
  const closed = end < lines.length;
  return { kind: "code", code, language: info.trim().split(/\s+/)[0], closed, end: closed ? end + 1 : end };
}

function heading(lines, at) {
  const found = HEADING.exec(lines[at]);
  return found && { kind: "heading", depth: found[1].length, text: (found[2] ?? "").trim().replace(/(^|[ \t])#+$/, "").trim(), end: at + 1 };
}

function rule(lines, at) {
  return RULE.test(lines[at]) ? { kind: "rule", end: at + 1 } : undefined;
}

function quote(lines, start, depth) {
  if (!QUOTE.test(lines[start]) || depth >= DEEPEST) return undefined;
  let end = start;
  const inside = [];
  for (; end < lines.length; end += 1) {
    const lazy = end > start && lines[end].trim() && !begins(lines, end) && inside.at(-1)?.trim();
    if (!QUOTE.test(lines[end]) && !lazy) break;
    inside.push(lines[end].replace(QUOTE, ""));
  }
  return { kind: "quote", inside: blocks(inside, depth + 1), end };
}

function list(lines, start, depth) {
  const first = ITEM.exec(lines[start]);
  if (!first || depth >= DEEPEST) return undefined;
  const ordered = /\d/.test(first[2]);
  const sort = first[2].at(-1);
  const items = [];
  let [at, loose] = [start, false];
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || item[2].at(-1) !== sort || RULE.test(lines[at])) break;
    const [inside, end] = itemLines(lines, at, item);
    const blank = inside.length > 1 && !inside.at(-1).trim();
    while (inside.length && !inside.at(-1).trim()) inside.pop();
    const task = TASK.exec(inside[0] ?? "");
    if (task) inside[0] = inside[0].slice(task[0].length);
    const parts = blocks(inside, depth + 1);
    loose ||= (blank && ITEM.exec(lines[end] ?? "")?.[2].at(-1) === sort) || parts.filter(({ kind }) => kind === "paragraph").length > 1;
    items.push({ parts, task: task && task[1] !== " ", isTask: Boolean(task) });
    at = end;
  }
  return { kind: "list", ordered, from: ordered ? Number.parseInt(first[2], 10) : 1, items, loose, end: at };
}

/** The lines of an item without its mark, and where the next thing begins. */
function itemLines(lines, start, [, indent, mark, text = ""]) {
  const margin = indent.length + mark.length + 1;
  // Two spaces are enough to belong to an item, as models write them.
  const enough = Math.min(margin, indent.length + 2);
  const inside = [text];
  let end = start + 1;
  for (; end < lines.length; end += 1) {
    const line = lines[end];
    if (!line.trim()) {
      const next = lines.slice(end + 1, end + 3).find((one) => one.trim());
      if (next === undefined || (width(next) < enough && !ITEM.test(next))) break;
      inside.push("");
    } else if (width(line) >= enough) {
      inside.push(dedent(line, margin));
    } else if (!ITEM.test(line) && !begins(lines, end) && inside.at(-1).trim()) {
      inside.push(line.trimStart());
    } else {
      break;
    }
  }
  return [inside, end];
}

function table(lines, start) {
  const line = (lines[start + 1] ?? "").trim();
  if (!lines[start].includes("|") || !COLUMNS.test(line)) return undefined;
  const [head, columns] = [cells(lines[start]), cells(line)];
  if (head.length !== columns.length || head.length > MOST_COLUMNS) return undefined;
  const align = columns.map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : undefined));
  let end = start + 2;
  while (end < lines.length && lines[end].trim() && !begins(lines, end)) end += 1;
  const rows = lines.slice(start + 2, end).map((row) => cells(row).slice(0, head.length));
  return { kind: "table", head, align, rows, end };
}

function cells(line) {
  const inner = line.trim().replace(/^\|/, "").replace(/(^|[^\\])\|$/, "$1");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function indented(lines, start) {
  if (width(lines[start]) < 4) return undefined;
  let end = start;
  while (end < lines.length && (width(lines[end]) >= 4 || (!lines[end].trim() && width(lines[end + 1] ?? "") >= 4))) end += 1;
  return { kind: "code", code: lines.slice(start, end).map((line) => dedent(line, 4)).join("\n"), language: "", closed: true, end };
}

function paragraph(lines, start) {
  let end = start + 1;
  while (end < lines.length && lines[end].trim() && !begins(lines, end)) {
    const line = /^ {0,3}(=+|-+)[ \t]*$/.exec(lines[end]);
    if (line) return { kind: "heading", depth: line[1][0] === "=" ? 1 : 2, text: lines.slice(start, end).join("\n").trim(), end: end + 1 };
    end += 1;
  }
  return { kind: "paragraph", text: lines.slice(start, end).map((line) => line.trimStart()).join("\n"), end };
}

/** Whether a line begins something that a paragraph does not go on over. */
function begins(lines, at) {
  const line = lines[at];
  const item = ITEM.exec(line);
  return FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || (RULE.test(line) && !/^ {0,3}-+[ \t]*$/.test(line))
    || Boolean(item?.[3] && (!/\d/.test(item[2]) || Number.parseInt(item[2], 10) === 1 || ITEM.test(lines[at - 1] ?? "")))
    || Boolean(table(lines, at));
}

const width = (line) => (line.trim() ? /^[ \t]*/.exec(line)[0].replace(/\t/g, "    ").length : 0);
const dedent = (line, most) => {
  const blank = /^[ \t]*/.exec(line)[0];
  const spaces = blank.replace(/\t/g, "    ");
  return spaces.slice(Math.min(most, spaces.length)) + line.slice(blank.length);
};

/** Headings follow one another without gaps: below the name of who said it. */
function outline(list) {
  let last = 2;
  const depths = [...new Set(list.filter(({ kind }) => kind === "heading").map(({ depth }) => depth))].sort();
  for (const block of list.filter(({ kind }) => kind === "heading")) {
    block.level = Math.min(depths.indexOf(block.depth) + 3, last + 1, 6);
    last = block.level;
  }
  return list;
}

function draw(block) {
  switch (block.kind) {
    case "code": return code(block);
    case "heading": return el(`h${block.level ?? 6}`, { class: `theirs md-h${block.depth}` }, inline(block.text));
    case "rule": return el("hr");
    case "quote": return el("blockquote", {}, block.inside.map(draw));
    case "list": return drawList(block);
    case "table": return drawTable(block);
    case "plain": return el("p", { class: "theirs plain-text" }, words(block.raw));
    default: return el("p", { class: "theirs" }, inline(block.text));
  }
}

function code({ code: text, language }) {
  const name = language.slice(0, 30);
  return el("div", { class: "code-block" },
    el("div", { class: "code-head" }, el("span", { class: "soft theirs" }, words(name || "text")), copyButton(() => text, "Copy code")),
    el("pre", { class: "theirs", tabindex: 0, role: "group", "aria-label": name ? `Code, ${words(name).textContent}` : "Code" }, el("code", {}, highlight(text, name))));
}

function drawList({ ordered, from, items, loose }) {
  const nodes = items.map(({ parts, task, isTask }) => el("li", { class: isTask && "task" },
    isTask && el("input", { type: "checkbox", disabled: true, checked: task, "aria-label": task ? "Done" : "Not done" }),
    parts.map((part) => (part.kind === "paragraph" && !loose ? el("span", { class: "theirs" }, inline(part.text)) : draw(part)))));
  return el(ordered ? "ol" : "ul", { start: ordered && from !== 1 && from }, nodes);
}

function drawTable({ head, align, rows }) {
  const cell = (tag, text, at) => el(tag, { class: ["theirs", align[at] && `to-${align[at]}`].filter(Boolean).join(" "), scope: tag === "th" && "col" }, inline(text));
  return el("div", { class: "table-box", tabindex: 0, role: "group", "aria-label": "Table" }, el("table", {},
    el("thead", {}, el("tr", {}, head.map((text, at) => cell("th", text, at)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, row.map((text, at) => cell("td", text, at)))))));
}
