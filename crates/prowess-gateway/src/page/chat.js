// Chat: what is said, while it is said.

import { button, el, many, put, soon, unique, words } from "./dom.js";
import { UNSURE } from "./link.js";
import { Talk } from "./talk.js";

/** How many messages are shown of what was said before. */
const PAST = 200;
const MOST_COMMANDS = 8;

export function make(app, panel) {
  // Not looked up later: what belongs to one who has left is not given to the next.
  const { kept } = app;
  const self = { stale: true, session: kept.session, run: undefined, over: undefined, commands: [], at: 0, found: [] };
  const pick = el("select", { id: "chat-session", on: { change: () => open(pick.value) } });
  const log = el("div", { class: "log", role: "log", "aria-live": "polite", "aria-label": "The conversation", tabindex: 0 });
  const talk = new Talk(log);
  const menu = el("ul", { class: "menu card", role: "listbox", id: "chat-menu", "aria-label": "Commands", hidden: true });
  const input = el("textarea", {
    id: "chat-input", rows: 1, "data-search": true, placeholder: "Message, or / for commands",
    "aria-label": "Message", "aria-haspopup": "listbox", "aria-controls": "chat-menu", "aria-autocomplete": "list",
    on: { input: typed, keydown: pressed },
  });
  input.value = kept.draft;
  const offer = el("p", { class: "quiet", id: "chat-offer", role: "status" });
  const unsent = el("div", { class: "unsent", role: "alert", hidden: true });
  const send = el("button", { class: "main", type: "submit" }, "Send");
  const working = el("p", { class: "working soft", role: "status" });
  const stop = button("Stop", abort, { hidden: true, class: "stop" });
  put(panel,
    el("div", { class: "head" }, el("h1", {}, "Chat"),
      el("label", { class: "pick", for: "chat-session" }, el("span", {}, "Session"), pick),
      button("New", () => open(`agent:${agent()}:page-${unique().slice(0, 8)}`), { class: "small" })),
    log,
    working,
    unsent,
    el("form", { class: "composer", on: { submit } }, menu, offer, input, stop, send));
  fit();

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
    kept.session = session;
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

  /** Whoever comes in the middle of a turn hears no start of it: all that is told of a run says that it goes on. */
  function alive(run) {
    if (run && run !== self.run && run !== self.over) running(run);
  }

  function write(text) {
    input.value = text;
    written();
  }

  function written() {
    kept.draft = input.value;
    fit();
  }

  async function submit(event) {
    event?.preventDefault();
    const message = input.value.trim();
    if (!message) return;
    write("");
    close();
    unsent.hidden = true;
    const unsay = talk.person(message);
    try {
      const { runId } = await app.link.act("chat.send", { sessionKey: self.session, message, idempotencyKey: unique() });
      alive(runId);
    } catch (error) {
      unsay();
      giveBack(message, error);
    }
  }

  /** What could not be sent is written again, and what the person wrote since then is left alone. */
  function giveBack(message, error) {
    const said = el("p", { class: "theirs soft" }, words(message));
    const again = button("Write it again", () => {
      write([message, input.value].filter(Boolean).join("\n"));
      said.remove();
      again.remove();
      input.focus();
    }, { class: "small" });
    const why = error.code === UNSURE ? "It is not known whether your message arrived" : "Your message was not sent";
    const free = !input.value.trim();
    if (free) write(message);
    put(unsent, el("p", { class: "theirs" }, `${why}: `, words(error.message)), !free && [said, again]);
    unsent.hidden = false;
  }

  async function abort() {
    try {
      await app.link.act("chat.abort", { sessionKey: self.session, ...(self.run && { runId: self.run }) });
    } catch (error) {
      app.failed(error);
    }
  }

  function typed() {
    written();
    const start = /^\/(\S*)$/.exec(input.value);
    self.found = start ? self.commands.filter((one) => one.name.startsWith(start[1].toLowerCase())).slice(0, MOST_COMMANDS) : [];
    self.at = 0;
    list();
  }

  function list() {
    menu.hidden = !self.found.length;
    offer.textContent = menu.hidden ? "" : `${many(self.found.length, "command")}, arrows choose, Tab takes /${self.found[self.at].name}`;
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
    write(`/${one.name} `);
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
    const ends = event.stream === "lifecycle" && ["end", "error"].includes(event.data?.phase);
    if (!ends) alive(event.runId);
    talk.agent(event);
  });
  app.link.on("chat", (event) => {
    if (event.sessionKey !== self.session) return;
    if (!talk.chat(event)) return alive(event.runId);
    self.over = event.runId;
    running(undefined);
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
