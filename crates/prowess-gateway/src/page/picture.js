// Pictures: how much is it, compared with the rest? Each has a text beside it that says the same.

import { count, el, short, svg, words } from "./dom.js";

/** One bar, cut into parts by their size: `{name, value}`. */
export function bar(title, parts, whole) {
  const sum = Math.max(whole ?? 0, parts.reduce((all, part) => all + part.value, 0), 1);
  let at = 0;
  const rects = parts.map((part, place) => {
    const [start, width] = [at, (part.value / sum) * 1000];
    at += width;
    const rect = svg("rect", { x: start.toFixed(2), y: 0, width: Math.max(width - 2, 1).toFixed(2), height: 36, rx: 3, class: `part p${place % 8}` });
    rect.append(svg("title", {}, words(`${part.name}: ${count(part.value)}`)));
    return rect;
  });
  return svg("svg", { class: "picture", viewBox: "0 0 1000 36", preserveAspectRatio: "none", role: "img", "aria-label": title },
    svg("rect", { x: 0, y: 0, width: 1000, height: 36, rx: 3, class: "ground" }), rects);
}

/** What the colours of a bar mean. */
export function legend(parts, unit) {
  const sum = Math.max(parts.reduce((all, part) => all + part.value, 0), 1);
  return el("ul", { class: "legend" }, parts.map((part, place) => el("li", {},
    svg("svg", { viewBox: "0 0 12 12", width: 12, height: 12, "aria-hidden": "true" }, svg("rect", { width: 12, height: 12, rx: 3, class: `part p${place % 8}` })),
    el("span", { class: "theirs" }, words(part.name)),
    el("span", { class: "soft" }, `${count(part.value)} ${unit}, ${((part.value / sum) * 100).toFixed(1)} %`))));
}

/** How much of what is allowed is used. */
export function gauge(title, used, most) {
  const share = most ? Math.min(used / most, 1) : 0;
  const kind = share > 0.95 ? "bad" : share > 0.8 ? "warn" : "good";
  return el("div", { class: "gauge" },
    el("div", { class: "line between" }, el("span", {}, title), el("span", { class: "strong" }, most ? `${count(used)} of ${count(most)}` : count(used))),
    most && svg("svg", { class: "picture thin", viewBox: "0 0 1000 12", preserveAspectRatio: "none", role: "img", "aria-label": `${title}: ${count(used)}${most ? ` of ${count(most)}` : ""}` },
      svg("rect", { width: 1000, height: 12, rx: 6, class: "ground" }),
      svg("rect", { width: (share * 1000).toFixed(2), height: 12, rx: 6, class: `fill ${kind}` })));
}

/** Rows of bars with the same scale: `{name, values: [..], note}`. */
export function chart(title, rows, kinds) {
  const most = Math.max(1, ...rows.map((row) => row.values.reduce((all, value) => all + value, 0)));
  const [left, wide, high] = [190, 560, 30];
  const lines = rows.map((row, place) => {
    const y = place * high;
    let x = left;
    const rects = row.values.map((value, kind) => {
      const width = (value / most) * wide;
      const rect = svg("rect", { x: x.toFixed(2), y: y + 6, width: width.toFixed(2), height: 18, rx: 3, class: `part p${kind}` });
      rect.append(svg("title", {}, words(`${row.name}, ${kinds[kind]}: ${count(value)}`)));
      x += width;
      return rect;
    });
    const name = Array.from(row.name);
    const label = name.length > 24 ? `${name.slice(0, 23).join("")}…` : row.name;
    return [
      svg("text", { x: left - 10, y: y + 20, "text-anchor": "end", class: "theirs" }, words(label).textContent),
      rects,
      svg("text", { x: x + 8, y: y + 20, class: "amount" }, `${short(row.values.reduce((all, value) => all + value, 0))}${row.note ? ` · ${row.note}` : ""}`),
    ];
  });
  return svg("svg", { class: "picture chart", viewBox: `0 0 900 ${Math.max(rows.length, 1) * high}`, role: "img", "aria-label": title }, lines.flat(2));
}

/** One column for each of `{name, value}`, from the left to the right. */
export function columns(title, days) {
  const most = Math.max(1, ...days.map((day) => day.value));
  const wide = 900 / Math.max(days.length, 7);
  const rects = days.map((day, place) => {
    const height = day.value && Math.max((day.value / most) * 100, 1);
    const rect = svg("rect", { x: (place * wide + 1).toFixed(2), y: (110 - height).toFixed(2), width: Math.max(wide - 3, 1).toFixed(2), height: height.toFixed(2), rx: 2, class: "part p0" });
    rect.append(svg("title", {}, `${day.name}: ${count(day.value)}`));
    return rect;
  });
  return svg("svg", { class: "picture days", viewBox: "0 0 900 112", preserveAspectRatio: "none", role: "img", "aria-label": title }, rects, svg("line", { x1: 0, y1: 111, x2: 900, y2: 111, class: "axis" }));
}
