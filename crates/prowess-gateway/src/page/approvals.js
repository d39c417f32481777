// Approvals: which commands wait for an answer, and who answered what before?

import { badge, button, clock, command, el, nothing, put, soon, words } from "./dom.js";
import { by, Card, questionsOf, verdict } from "./question.js";


export function make(app, panel) {
  const store = questionsOf(app);
  const cards = new Map();
  const self = { entries: [], recent: [], next: undefined };
  const heading = el("h1", { tabindex: -1 }, "Approvals");
  const waiting = el("div", { class: "stack", "aria-live": "polite", "aria-label": "Commands waiting for an answer", role: "group" });
  const past = el("ul", { class: "rows plain-rows", "aria-label": "Answered" });
  const more = button("Show more", () => log(self.next), { hidden: true });
  const rest = el("section", { class: "stack past", hidden: true }, el("h2", {}, "Answered"), past, more);
  put(panel, el("div", { class: "head" }, heading, el("p", { class: "soft" }, "These commands run only if you or another operator allows them. The first answer counts.")), waiting, rest);
  empty();

  function empty() {
    if (!cards.size) put(waiting, nothing("No command is waiting", "Approval requests appear here and in the chat."));
  }

  function ask(entry) {
    waiting.querySelector(".nothing")?.remove();
    const card = new Card(entry);
    cards.set(entry.id, card);
    waiting.append(card.node);
  }

  function close(entry) {
    const card = cards.get(entry.id);
    if (!card) return;
    cards.delete(entry.id);
    const held = card.hasFocus;
    card.node.remove();
    const { decision, by: who, ts, gone } = entry.end;
    self.recent.unshift({ id: entry.id, decision, by: who, at: ts, gone, command: entry.request.command });
    draw();
    empty();
    // Not a button of the next one: a key that is pressed twice must not answer two questions.
    if (held) (waiting.querySelector(".question") ?? heading).focus();
    later();
  }

  /** The gateway's own record, which also knows what was answered before this page was opened; `cursor` is for older ones. */
  async function log(cursor) {
    const { link } = app;
    if (!link.knows("exec.approval.log") || !(link.can?.("approvals") ?? true)) return;
    try {
      const page = await link.call("exec.approval.log", cursor ? { cursor } : {});
      self.entries = cursor ? [...self.entries, ...page.entries] : page.entries ?? [];
      self.next = page.nextCursor;
      more.hidden = !self.next;
      draw();
    } catch (error) {
      app.failed(error);
    }
  }
  const later = soon(() => log(), 300);

  function draw() {
    const known = new Set(self.entries.map((one) => one.id));
    const list = [...self.recent.filter((one) => !known.has(one.id)), ...self.entries];
    put(past, list.map(row));
    rest.hidden = !list.length;
  }

  /** Brings the question that the address names into sight, or says that it is not waiting any more. */
  function point(id) {
    const card = cards.get(id);
    if (!card) return app.say("This command is no longer waiting for an answer. Audit shows who decided.");
    card.node.scrollIntoView({ block: "nearest" });
    card.node.focus({ preventScroll: true });
  }

  store.on((entry, how) => {
    if (how === "open") ask(entry);
    else if (how === "closed") close(entry);
    else for (const card of cards.values()) card.tick();
  });
  return {
    enter({ target, moved }) {
      log();
      if (target && moved) point(target);
    },
    fresh() {
      store.load().catch(app.failed);
      if (!panel.hidden) log();
    },
    away: () => store.away(),
  };
}

function row({ decision, by: who, at, gone, command: text, why }) {
  const [said, kind] = gone || why === "withdrawn" ? ["No longer waiting", "dim"] : verdict(decision);
  return el("li", { class: "answered" }, badge(said, kind), el("code", { class: "theirs" }, command(text)),
    el("span", { class: "soft theirs" }, decision && by(who), clock(at)));
}
