// Chat: what is said, while it is said.

import { button, el, put, soon, unique, words } from "./dom.js";
import { Talk } from "./talk.js";

/** How many messages are shown of what was said before. */
const PAST = 200;
const MOST_COMMANDS = 8;

export function make(app, panel) {
  const self = { stale: true, session: undefined, run: undefined, commands: [], at: 0, found: [] };
  const pick = el("select", { id: "chat-session", on: { change: () => open(pick.value) } });
  const log = el("div", { class: "log", role: "log", "aria-live": "polite", "aria-label": "The conversation", tabindex: 0 });
  const talk = new Talk(log);
  const menu = el("ul", { class: "menu card", role: "listbox", id: "chat-menu", "aria-label": "Commands", hidden: true });
  const input = el("textarea", {
    id: "chat-input", rows: 1, "data-search": true, placeholder: "Message, or / for commands",
    "aria-label": "Message", role: "combobox", "aria-expanded": "false", "aria-controls": "chat-menu", "aria-autocomplete": "list",
    on: { input: typed, keydown: pressed },
  });
  const send = el("button", { class: "main", type: "submit" }, "Send");
  const working = el("p", { class: "working soft", role: "status" });
  const stop = button("Stop", abort, { hidden: true, class: "stop" });
  put(panel,
    el("div", { class: "head" }, el("h1", {}, "Chat"),
      el("label", { class: "pick", for: "chat-session" }, el("span", {}, "Session"), pick),
      button("New", () => open(`agent:${agent()}:page-${unique().slice(0, 8)}`), { class: "small" })),
    log,
    working,
    el("form", { class: "composer", on: { submit } }, menu, input, stop, send));

  const agent = () => app.agent ?? app.link.hello?.snapshot?.sessionDefaults?.defaultAgentId ?? "main";
  const main = () => (app.agent ? `agent:${app.agent}:main` : app.link.hello?.snapshot?.sessionDefaults?.mainSessionKey ?? "agent:main:main");

  async function sessions() {
    const known = app.link.knows("sessions.list") ? (await app.link.call("sessions.list", { limit: 100, agentId: agent() })).sessions ?? [] : [];
    const keys = [...new Set([main(), self.session, ...known.map((one) => one.key)].filter(Boolean))];
    const title = (key) => known.find((one) => one.key === key)?.derivedTitle ?? known.find((one) => one.key === key)?.displayName;
    put(pick, keys.map((key) => el("option", { value: key, selected: key === self.session }, words(title(key) ? `${title(key)} (${key})` : key).textContent)));
  }

  async function open(session) {
    self.session = session;
    self.stale = false;
    running(undefined);
    try {
      await sessions();
      const past = app.link.knows("chat.history") ? await app.link.call("chat.history", { sessionKey: session, limit: PAST }) : {};
      if (self.session === session) talk.history(past.messages ?? []);
    } catch (error) {
      talk.history([]);
      app.failed(error);
    }
  }

  const commands = soon(async () => {
    try {
      self.commands = (await app.link.call("skills.status", app.agent ? { agentId: app.agent } : {})).commands ?? [];
    } catch {
      self.commands = [];
    }
  });

  function running(run) {
    self.run = run;
    stop.hidden = !run;
    working.textContent = run ? "Working" : "";
  }

  async function submit(event) {
    event?.preventDefault();
    const message = input.value.trim();
    if (!message) return;
    input.value = "";
    fit();
    close();
    talk.person(message);
    try {
      const { runId } = await app.link.call("chat.send", { sessionKey: self.session, message, idempotencyKey: unique() });
      if (runId) running(runId);
    } catch (error) {
      talk.chat({ runId: "refused", state: "error", errorMessage: error.message });
    }
  }

  async function abort() {
    try {
      await app.link.call("chat.abort", { sessionKey: self.session, ...(self.run && { runId: self.run }) });
    } catch (error) {
      app.failed(error);
    }
  }

  function typed() {
    fit();
    const start = /^\/(\S*)$/.exec(input.value);
    self.found = start ? self.commands.filter((one) => one.name.startsWith(start[1].toLowerCase())).slice(0, MOST_COMMANDS) : [];
    self.at = 0;
    list();
  }

  function list() {
    menu.hidden = !self.found.length;
    input.setAttribute("aria-expanded", String(!menu.hidden));
    put(menu, self.found.map((one, place) => el("li", {
      role: "option", id: `chat-option-${place}`, "aria-selected": String(place === self.at),
      on: { mousedown: (event) => { event.preventDefault(); take(one); } },
    }, el("code", { class: "theirs" }, `/${one.name}`), el("span", { class: "soft theirs" }, words(one.description)))));
    if (menu.hidden) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", `chat-option-${self.at}`);
  }

  function close() {
    self.found = [];
    list();
  }

  function take(one) {
    input.value = `/${one.name} `;
    close();
    input.focus();
  }

  function pressed(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (self.found.length && step) {
      self.at = (self.at + step + self.found.length) % self.found.length;
      list();
    } else if (self.found.length && ["Tab", "Enter"].includes(event.key)) {
      take(self.found[self.at]);
    } else if (self.found.length && event.key === "Escape") {
      close();
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      submit();
    } else {
      return;
    }
    event.preventDefault();
  }

  /** The field is as high as what is in it. */
  function fit() {
    input.rows = Math.min(8, Math.max(1, input.value.split("\n").length));
  }

  app.link.on("agent", (event) => {
    if (event.sessionKey !== self.session) return;
    if (event.stream === "lifecycle" && event.data?.phase === "start") running(event.runId);
    talk.agent(event);
  });
  app.link.on("chat", (event) => {
    if (event.sessionKey !== self.session) return;
    if (talk.chat(event)) running(undefined);
  });
  app.link.on("skills.changed", commands);

  return {
    enter({ session } = {}) {
      commands();
      if (session || self.stale) open(session ?? self.session ?? main());
      if (session) input.focus();
    },
    fresh() {
      self.stale = true;
      if (app.agent && !self.session?.startsWith(`agent:${app.agent}:`)) self.session = undefined;
    },
  };
}
