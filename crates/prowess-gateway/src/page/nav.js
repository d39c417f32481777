// Navigation: how does a person get from one view to another, with a mouse, a thumb or a keyboard?

import { button, el, icon, put } from "./dom.js";
import { href } from "./route.js";

const by = (id) => document.getElementById(id);

/** Builds the links to all views. On a phone, those of `first` stay in sight and the rest is behind "More". */
export function build(views, groups, first) {
  put(by("tabs"), groups.map((group, place) => el("li", { class: "group" },
    el("span", { class: "group-name", id: `group-${place}` }, group),
    el("ul", { "aria-labelledby": `group-${place}` }, views.filter((view) => view.group === group).map((view) =>
      el("li", { class: first.includes(view.id) ? "first" : "rest" }, link(view, `tab-${view.id}`)))))));
  by("more").onclick = () => more(views.filter((view) => !first.includes(view.id)));
}

function link({ id, title, key }, name) {
  return el("a", { id: name, href: href(id), "aria-keyshortcuts": `g ${key}` },
    icon(id), el("span", {}, title), el("span", { class: "number" }));
}

/** Marks the view that is shown. */
export function mark(id) {
  for (const tab of by("tabs").querySelectorAll("a")) {
    if (tab.id === `tab-${id}`) tab.setAttribute("aria-current", "page");
    else tab.removeAttribute("aria-current");
  }
  const tab = by(`tab-${id}`);
  by("more").classList.toggle("current", Boolean(tab?.closest(".rest")));
  tab?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** Shows a number beside the name of a view. */
export function badge(id, number) {
  const node = by(`tab-${id}`)?.querySelector(".number");
  if (!node) return;
  node.textContent = number ? String(number) : "";
  const hidden = [...by("tabs").querySelectorAll(".rest .number")].some((one) => one.textContent);
  by("more").querySelector(".number").textContent = hidden ? "•" : "";
}

/** The views that a phone has no room for. */
function more(views) {
  const sheet = by("sheet");
  put(sheet, el("h2", { id: "sheet-title", class: "quiet" }, "More views"),
    el("ul", {}, views.map((view) => {
      const node = link(view, undefined);
      node.querySelector(".number").textContent = by(`tab-${view.id}`).querySelector(".number").textContent;
      if (by(`tab-${view.id}`).hasAttribute("aria-current")) node.setAttribute("aria-current", "page");
      node.addEventListener("click", (event) => {
        // A link in a dialog that is closed meanwhile leads nowhere.
        event.preventDefault();
        sheet.close();
        location.hash = node.hash;
      });
      return el("li", {}, node);
    })),
    button("Close", () => sheet.close(), { class: "plain" }));
  sheet.onclick = (event) => event.target === sheet && sheet.close();
  sheet.showModal();
}

/** Calls `go` with a view when its keys are pressed, and shows the keys when they are asked for. */
export function shortcuts(views, shown, go) {
  // Whether the last key was the one before the letter of a view.
  let leader = false;
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || by("house").hidden) return;
    const view = leader && views.find((one) => one.key === event.key);
    leader = event.key === "g";
    if (view) go(view.id);
    else if (event.key === "/") shown()?.querySelector("[data-search]")?.focus();
    else if (event.key === "?") help(views);
    else return;
    event.preventDefault();
  });
  by("keys").addEventListener("click", () => help(views));
}

function help(views) {
  const rows = [...views.map(({ title, key }) => [`g ${key}`, title]), ["/", "Search, or write a message"], ["?", "Show these keys"]];
  const dialog = by("help");
  put(dialog,
    el("h2", { id: "help-title" }, "Keyboard shortcuts"),
    el("dl", { class: "keys" }, rows.map(([keys, what]) => [el("dt", {}, keys.split(" ").map((one) => el("kbd", {}, one))), el("dd", {}, what)])),
    el("form", { method: "dialog" }, el("button", { class: "main" }, "Close")));
  dialog.showModal();
}
