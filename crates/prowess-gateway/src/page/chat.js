// Chat: a conversation while it happens, with its images, its questions, and a field to write in.

import { button, el, many, put, soon, svg, unique, words } from "./dom.js";
import { Images } from "./images.js";
import { UNSURE } from "./link.js";
import { act, questionsOf } from "./question.js";
import { Talk } from "./talk.js";

/** How many messages are shown of what was said before. */
const PAST = 200;
const MOST_COMMANDS = 8;
/** The longest answer that is read aloud by itself. */
const LONGEST_ANNOUNCED = 1500;

export function make(app, panel) {
  // Kept from now on: a draft of a person who signed out is not given to the next one.
  const { kept } = app;
  const self = {
    stale: true, session: kept.session, followed: undefined, run: undefined, over: undefined, own: new Set(), lost: undefined, past: [],
    commands: [], at: 0, found: [],
  };
  const store = questionsOf(app);
  const pick = el("select", { id: "chat-session", on: { change: () => open(pick.value) } });
  const log = el("div", { class: "log", role: "log", "aria-live": "off", "aria-label": "Conversation", tabindex: 0, on: { scroll: placed } });
  const spoken = el("p", { class: "quiet", role: "status" });
  const talk = new Talk(log, { retry: ({ text, images }) => say(text, images), announce: (text) => (spoken.textContent = text.slice(0, LONGEST_ANNOUNCED)) });
  const latest = button("Latest messages", () => log.scrollTo({ top: log.scrollHeight, behavior: "smooth" }), { class: "latest small", hidden: true });
  const menu = el("ul", { class: "menu card", role: "listbox", id: "chat-menu", "aria-label": "Commands", hidden: true });
  const input = el("textarea", {
    id: "chat-input", rows: 1, "data-search": true, placeholder: "Message, or / for commands",
    "aria-label": "Message", "aria-haspopup": "listbox", "aria-controls": "chat-menu", "aria-autocomplete": "list",
    on: { input: typed, keydown: pressed },
  });
  input.value = kept.draft;
  const images = new Images({ failed: app.failed, changed: () => (kept.images = images.list) });
  const offer = el("p", { class: "quiet", id: "chat-offer", role: "status" });
  const unsent = el("div", { class: "unsent", role: "alert", hidden: true });
  const attach = button([clip(), el("span", { class: "quiet" }, "Add images")], () => images.input.click(), { class: "plain attach", title: "Add images" });
  const send = el("button", { class: "main", type: "submit" }, "Send");
  const working = el("p", { class: "working soft", role: "status" });
  const stop = button("Stop", abort, { hidden: true, class: "stop" });
  put(panel,
    el("div", { class: "head" }, el("h1", {}, "Chat"),
      el("label", { class: "pick", for: "chat-session" }, el("span", {}, "Session"), pick),
      button("New", () => open(`agent:${agent()}:page-${unique().slice(0, 8)}`), { class: "small", "aria-label": "New session" })),
    el("div", { class: "stage" }, log, latest),
    spoken, working, unsent,
    el("form", { class: "composer", on: { submit } }, menu, offer, images.node, input,
      el("div", { class: "controls" }, attach, images.input, el("span", { class: "hint soft" }, "Enter sends, Shift+Enter starts a new line"), stop, send)));
  images.listen(input, panel);
  images.set(kept.images ?? []);
  fit();

  const agent = () => app.agent ?? app.link.hello?.snapshot?.sessionDefaults?.defaultAgentId ?? "main";
  const main = () => (app.agent ? `agent:${app.agent}:main` : app.link.hello?.snapshot?.sessionDefaults?.mainSessionKey ?? "agent:main:main");

  async function sessions() {
    const known = app.link.knows("sessions.list") ? (await app.link.call("sessions.list", { limit: 100, agentId: agent(), includeDerivedTitles: true })).sessions ?? [] : [];
    const keys = [...new Set([main(), self.session, ...known.map((one) => one.key)].filter(Boolean))];
    const title = (key) => known.find((one) => one.key === key)?.derivedTitle ?? known.find((one) => one.key === key)?.displayName;
    put(pick, keys.map((key) => el("option", { value: key, selected: key === self.session }, words(title(key) ? `${title(key)} (${key})` : key).textContent)));
  }

  async function open(session) {
    if (session !== self.session) {
      talk.forget();
      self.lost = undefined;
    }
    self.session = session;
    kept.session = session;
    app.here?.("chat", { target: session });
    self.stale = false;
    running(undefined);
    try {
      await follow(session);
      await Promise.all([sessions(), load(session)]);
      // What the turn under way has said so far was shown before the past took its place, so it is asked for again.
      if (self.run && self.session === session && self.followed) await app.link.call("sessions.subscribe", { keys: [session] });
    } catch (error) {
      talk.history([]);
      app.failed(error);
    }
  }

  /** Asks the gateway for the events of this session only, where it can choose. */
  async function follow(session) {
    if (!app.link.knows("sessions.subscribe")) return;
    const before = self.followed;
    self.followed = session;
    if (before && before !== session) app.link.call("sessions.unsubscribe", { keys: [before] }).catch(() => {});
    await app.link.call("sessions.subscribe", { keys: [session] });
  }

  /** Shows what was said, and what of it was cut off. */
  async function load(session) {
    const past = app.link.knows("chat.history") ? await app.link.call("chat.history", { sessionKey: session, limit: PAST, images: true }) : {};
    if (self.session !== session) return;
    const over = Array.isArray(past.runIds) && past.runIds.length === 0;
    if (past.runIds?.length) alive(past.runIds[0]);
    self.past = past.messages ?? [];
    talk.history(self.past, { over, earlier: past.nextCursor && (() => earlier(session, past.nextCursor)) });
    for (const entry of store.list()) asked(entry);
    restore(self.lost);
    self.lost = undefined;
  }

  /** Puts older messages before those that are shown, and keeps what the person looks at in its place. */
  async function earlier(session, cursor) {
    try {
      const older = await app.link.call("chat.history", { sessionKey: session, limit: PAST, images: true, cursor });
      if (self.session !== session) return;
      if (self.run) return app.say("Wait for the answer, then try again.");
      const below = log.scrollHeight - log.scrollTop;
      self.past = [...(older.messages ?? []), ...self.past];
      talk.history(self.past, { over: true, earlier: older.nextCursor && (() => earlier(session, older.nextCursor)) });
      for (const entry of store.list()) asked(entry);
      log.scrollTop = log.scrollHeight - below;
      log.focus();
    } catch (error) {
      app.failed(error);
    }
  }

  /** Shows what this page knows of a turn that was cut off, as far as the gateway has not stored it. */
  function restore(lost) {
    if (!lost || self.run) return;
    if (lost.said && talk.last?.text !== lost.said.text) talk.person(lost.said.text, lost.said.images);
    if (talk.unanswered) talk.remember(lost.text);
  }

  /** The gateway is gone: nothing of this turn can be relied on until it is back. */
  function away() {
    if (self.run) self.lost = { said: talk.last, text: talk.interrupt() };
    self.followed = undefined;
    running(undefined);
  }

  const commands = soon(async () => {
    try {
      const method = app.link.knows("skills.commands") ? "skills.commands" : "skills.status";
      self.commands = (await app.link.call(method, app.agent ? { agentId: app.agent } : {})).commands ?? [];
    } catch {
      self.commands = [];
    }
  });

  function running(run) {
    self.run = run;
    stop.hidden = !run;
    status();
  }

  function status() {
    const waits = store.list().some((entry) => !entry.away && entry.request.sessionKey === self.session);
    working.textContent = waits ? "Waiting for your approval" : self.run ? "Working" : "";
  }

  /** A page that is opened during a turn hears no start of it: any event of a run says that it goes on. */
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

  function submit(event) {
    event?.preventDefault();
    const [message, pictures] = [input.value.trim(), images.list];
    if (!message && !pictures.length) return;
    write("");
    images.set([]);
    close();
    say(message, pictures);
  }

  /** Sends a message, now or once more. */
  async function say(message, pictures = []) {
    unsent.hidden = true;
    const unsay = talk.person(message, pictures);
    const attachments = pictures.filter(({ data }) => data).map(({ mimeType, fileName, data }) => ({ type: "image", mimeType, fileName, content: data }));
    const id = unique();
    self.own.add(id);
    try {
      const { runId } = await act(app, "chat.send", { sessionKey: self.session, message, idempotencyKey: id, ...(attachments.length && { attachments }) });
      if (runId) self.own.add(runId);
      alive(runId);
    } catch (error) {
      unsay();
      giveBack(message, pictures, error);
    }
  }

  /** What could not be sent is written again, and what the person wrote since then is left alone. */
  function giveBack(message, pictures, error) {
    const said = el("p", { class: "theirs soft" }, words(message));
    const again = button("Put it back", () => {
      write([message, input.value].filter(Boolean).join("\n"));
      images.set([...pictures, ...images.list]);
      said.remove();
      again.remove();
      input.focus();
    }, { class: "small" });
    const why = error.code === UNSURE ? "Your message may not have arrived" : "Your message was not sent";
    const free = !input.value.trim() && !images.list.length;
    if (free) {
      write(message);
      images.set(pictures);
    }
    put(unsent, el("p", { class: "theirs" }, `${why}: `, words(error.message)), !free && [said, again]);
    unsent.hidden = false;
  }

  async function abort() {
    try {
      await act(app, "chat.abort", { sessionKey: self.session, ...(self.run && { runId: self.run }) });
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
    offer.textContent = menu.hidden ? "" : `${many(self.found.length, "command")}, use the arrow keys to choose, Tab takes /${self.found[self.at].name}`;
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

  /** The field is as high as its text. */
  function fit() {
    input.rows = Math.min(8, Math.max(1, input.value.split("\n").length));
  }

  function placed() {
    latest.hidden = log.scrollHeight - log.scrollTop - log.clientHeight < 400;
  }

  function asked(entry) {
    if (entry.request.sessionKey === self.session) talk.ask(entry);
  }

  /** Whether an event is about this session. A piece of text only names its run. */
  const ours = ({ sessionKey, runId }) => (sessionKey ? sessionKey === self.session : runId === self.run || self.own.has(runId));

  // What a turn leaves behind is more than its events say: the output of commands, and what others wrote.
  const merge = soon(async () => {
    if (self.stale || self.run || !app.link.knows("chat.history")) return;
    try {
      const { session } = self;
      const past = await app.link.call("chat.history", { sessionKey: session, limit: PAST });
      if (self.session === session && !self.run && talk.merge(past.messages ?? [])) await load(session);
    } catch {
      // The next turn, or a refresh, tries it again.
    }
  }, 150);

  app.link.on("agent", (event) => {
    if (!ours(event)) return;
    const ends = event.stream === "lifecycle" && ["end", "error"].includes(event.data?.phase);
    if (!ends && !event.data?.late) alive(event.runId);
    talk.agent(event);
  });
  app.link.on("chat", (event) => {
    if (!ours(event)) return;
    if (!talk.chat(event)) return alive(event.runId);
    self.over = event.runId;
    running(undefined);
    merge();
  });
  store.on((entry, how) => {
    if (how === "open") asked(entry);
    else if (how === "closed") talk.answered(entry);
    else talk.tick();
    status();
  });
  app.link.on("skills.changed", commands);

  return {
    async enter({ target, session, moved } = {}) {
      commands();
      const chosen = target ?? session;
      if ((chosen && chosen !== self.session) || self.stale) await open(chosen ?? self.session ?? main());
      else app.here?.("chat", { target: self.session });
      if (chosen && moved !== false) input.focus();
    },
    fresh() {
      self.stale = true;
      if (app.agent && !self.session?.startsWith(`agent:${app.agent}:`)) self.session = undefined;
    },
    away,
  };
}

function clip() {
  return svg("svg", { viewBox: "0 0 24 24", width: 20, height: 20, "aria-hidden": "true" },
    svg("path", { d: "M20 11l-8.500 8.500a5 5 0 0 1-7-7L13 4a3.300 3.300 0 0 1 4.700 4.700l-8.500 8.500a1.700 1.700 0 0 1-2.400-2.400L14.500 7", fill: "none", stroke: "currentColor", "stroke-width": 1.7, "stroke-linecap": "round", "stroke-linejoin": "round" }));
}
