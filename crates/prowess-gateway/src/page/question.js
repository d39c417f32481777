// Questions: which commands wait for a person, how long still, and how is each shown?
//
// One store per connection. The approvals view shows all of them, the chat those of its session; both show the same card.

import { button, clock, command, el, words } from "./dom.js";

const DECISIONS = [["allow-once", "Allow once", "main"], ["allow-session", "Allow for this session", ""], ["allow-always", "Always allow", ""], ["deny", "Deny", "deny"]];
const VERDICTS = { "allow-once": ["Allowed once", "good"], "allow-session": ["Allowed for the session", "good"], "allow-always": ["Always allowed", "good"], deny: ["Denied", "bad"] };
/** The longest question that can be shown, in characters. What cannot be shown whole can only be denied. */
const LONGEST = 500000;

/** What is asked about a call of a tool that changes no file. */
const asks = { network: "Allow this connection?", exec: "Allow this command?" };

const stores = new WeakMap();

/** The questions of the page's connection. */
export function questionsOf(app) {
  if (!stores.has(app.link)) stores.set(app.link, new Questions(app));
  return stores.get(app.link);
}

/** Calls a method because the person wants it; if they lack the right for it, they are asked. */
export function act({ link }, method, params) {
  return link.act ? link.act(method, params) : link.call(method, params);
}

/** What became of a question, as a word and its kind. */
export const verdict = (decision) => VERDICTS[decision] ?? ["Not answered in time", "dim"];

class Questions {
  #app;
  #open = new Map();
  #heard = [];
  #timer;

  constructor(app) {
    this.#app = app;
    app.link.on("exec.approval.requested", (question) => this.#add(question));
    app.link.on("exec.approval.resolved", ({ id, decision, resolvedBy, by, ts }) => this.#close(id, { decision, by: by ?? { name: resolvedBy }, ts }));
    app.link.on("rights", () => this.load());
  }

  /** Calls `heard(entry, how)` when a question is `open` or `closed`. */
  on(heard) {
    this.#heard.push(heard);
  }

  /** All that wait, the oldest first. */
  list() {
    return [...this.#open.values()];
  }

  /** Asks the gateway what waits. */
  async load() {
    const { link } = this.#app;
    if (!link.knows("exec.approval.list") || !(link.can?.("approvals") ?? true)) return;
    const known = await link.call("exec.approval.list");
    const list = Array.isArray(known) ? known : known.approvals ?? known.pending ?? known.items ?? [];
    const waits = list.filter((one) => !one.decision && !one.resolvedAtMs);
    // What the gateway no longer knows was answered or given up in the meantime.
    for (const id of this.#open.keys()) if (!waits.some((one) => one.id === id)) this.#close(id, { gone: true });
    for (const question of waits) this.#add(question);
  }

  /** Nobody can answer while the gateway is away; what still waits is known when it is back. */
  away() {
    for (const entry of this.#open.values()) entry.away = true;
    this.#app.asking(0);
    this.#tell(undefined, "away");
  }

  async answer(id, decision) {
    await act(this.#app, "exec.approval.resolve", { id, decision });
    this.#close(id, { decision, by: { name: "you" } });
  }

  /** How many seconds an entry has left. */
  left(entry) {
    return Math.ceil((entry.until - performance.now()) / 1000);
  }

  #add(question) {
    const before = this.#open.get(question.id);
    const left = remaining(question);
    if (left <= 0) return;
    // Counted from now on, on a clock that nobody sets.
    const entry = Object.assign(before ?? { app: this.#app, id: question.id, request: question.request ?? {} }, { until: performance.now() + left, whole: left, away: false });
    this.#open.set(entry.id, entry);
    this.#timer ??= setInterval(() => this.#tick(), 1000);
    this.#count();
    this.#tell(entry, before ? "back" : "open");
  }

  #close(id, end) {
    const entry = this.#open.get(id);
    if (!entry) return;
    this.#open.delete(id);
    entry.end = { ts: Date.now(), ...end };
    if (!this.#open.size) this.#timer = clearInterval(this.#timer);
    this.#count();
    this.#tell(entry, "closed");
  }

  #tick() {
    for (const entry of this.#open.values()) {
      if (this.left(entry) <= 0) this.#close(entry.id, {});
    }
    this.#tell(undefined, "tick");
  }

  #count() {
    this.#app.asking(this.list().filter((entry) => !entry.away).length);
  }

  #tell(entry, how) {
    for (const heard of this.#heard) heard(entry, how);
  }
}

/** The milliseconds that a question has left. The browser's clock has no part in it: it may be wrong. */
function remaining({ expiresInMs, createdAtMs, expiresAtMs }) {
  // An older gateway only sends two dates of its own.
  return typeof expiresInMs === "number" ? expiresInMs : Math.max(expiresAtMs - createdAtMs, 0);
}

/** A question as a card. It answers, shows the time that is left, and says so when it could not answer. */
export class Card {
  #store;
  #left = el("span", { class: "left", role: "timer", "aria-live": "off" });
  #bar;
  #buttons;
  #held;

  constructor(entry, heading = "h2", prefix = "ask") {
    const { app, request, whole } = entry;
    this.#store = questionsOf(app);
    this.entry = entry;
    const seconds = Math.max(1, Math.round(whole / 1000));
    const shows = JSON.stringify(request).length <= LONGEST;
    const offered = shows ? request.decisions ?? ["allow-once", "allow-always", "deny"] : ["deny"];
    const name = `${prefix}-${entry.id}`;
    this.#bar = el("progress", { max: seconds, value: seconds, "aria-label": "Time left" });
    this.#buttons = DECISIONS.filter(([decision]) => offered.includes(decision)).map(([decision, label, kind]) => button(label, () => this.#answer(decision), { class: kind, data: { decision } }));
    this.node = el("article", { class: "question card", tabindex: -1, "aria-labelledby": name, data: { id: entry.id } },
      el("div", { class: "line between" }, el(heading, { id: name, class: "ask" }, asks[request.tool] ?? (request.tool ? "Allow this change?" : "Allow this command?")), el("span", { class: "soft" }, "expires in ", this.#left)),
      shows ? details(request, offered) : el("p", { class: "warned" }, "This is too long to show in full, so you can only deny it."),
      el("div", { class: "answers" }, this.#buttons, this.#bar));
    this.tick();
  }

  tick() {
    const left = Math.max(this.#store.left(this.entry), 0);
    this.#left.textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
    this.#bar.value = left;
    this.node.classList.toggle("paused", this.entry.away);
    for (const one of this.#buttons) one.disabled = this.entry.away || Boolean(this.sending);
  }

  /** Whether the keyboard is at this question, or would be if it had not been answered. */
  get hasFocus() {
    return this.node.contains(document.activeElement) || (Boolean(this.#held) && [document.body, null].includes(document.activeElement));
  }

  async #answer(decision) {
    // A button that is disabled loses the focus, which belongs here nevertheless.
    this.#held = this.node.contains(document.activeElement) ? document.activeElement : undefined;
    this.sending = true;
    this.tick();
    try {
      await this.#store.answer(this.entry.id, decision);
    } catch (error) {
      this.entry.app.failed(error);
      const back = this.hasFocus && this.#held;
      this.sending = false;
      this.tick();
      if (back) back.focus();
      this.#held = undefined;
    }
  }
}

/** One line that says how a question ended; `known` where its command is shown above. */
export function ending({ request, end }, known) {
  const [said, kind] = end.gone ? ["No longer waiting", "dim"] : verdict(end.decision);
  return el("p", { class: "used verdict" }, el("span", { class: `badge ${kind}` }, said),
    !known && el("code", { class: "brief theirs" }, command(String(request.command ?? "").split("\n")[0])),
    el("span", { class: "soft theirs" }, end.decision && by(end.by), clock(end.ts)));
}

/** Who answered, on which device. */
export function by(who) {
  const name = who?.user ?? who?.name;
  const device = who?.deviceName && who.deviceName !== name ? who.deviceName : undefined;
  return name && ["by ", words(name), device && [" on ", words(device)], who.deviceId && el("code", { class: "device", title: "Device id" }, " ", words(String(who.deviceId).slice(0, 8))), ", "];
}

/** All that an answer is about. */
function details(request, offered) {
  const argv = request.commandArgv ?? request.systemRunPlan?.argv;
  // Some gateways only send the names of variables.
  const variables = request.variables?.length ? request.variables : request.envKeys;
  const facts = [
    ["Where", request.nodeId ? ["node ", request.nodeName && [words(request.nodeName), " "], code(request.nodeId)] : words(request.host ?? "this machine")],
    ["Folder", request.cwd && code(request.cwd)],
    ["Program", request.resolvedPath && code(request.resolvedPath)],
    ["Arguments", argv && el("span", { class: "argv" }, argv.map((word) => code(plain(word))))],
    ["Variables", lines(variables, plain)],
    ["Skill keys", request.skillVariables?.length && ["the node receives the skills' values of ", request.skillVariables.map((name, at) => [at > 0 && ", ", code(plain(name))])]],
    ["Reason", lines(request.objections, plain)],
    ["Always allow would cover", offered.includes("allow-always") && lines(request.always, grant)],
    ["Agent", request.agentId && words(request.agentId)],
    ["Session", request.sessionKey && code(request.sessionKey)],
    ["Rules", words([request.security, request.ask && `ask ${request.ask}`].filter(Boolean).join(", "))],
  ].filter(([, value]) => value && value.textContent !== "" && value.length !== 0);
  const texts = [
    el("pre", { class: "command theirs", tabindex: 0, role: "group", "aria-label": "The command" }, command(wanted(request))),
    request.text && el("pre", { class: "command theirs text", tabindex: 0, role: "group", "aria-label": "What it would change" }, command(request.text)),
  ].filter(Boolean);
  const about = el("dl", { class: "facts" }, facts.map(([name, value]) => [el("dt", {}, name), el("dd", { class: "theirs" }, value)]));
  const odd = texts.some((text) => text.querySelector(".hidden-char, .foreign")) || about.querySelector(".hidden-char");
  return [
    texts,
    odd && el("p", { class: "warned" }, "It contains invisible or look-alike characters. They are marked."),
    about,
  ];
}

/** What a question is about; clients that know nothing of tools see which one it is in front of it. */
function wanted({ tool, command: text = "" }) {
  return tool && text.startsWith(`${tool}: `) ? text.slice(tool.length + 2) : text;
}

const code = (text) => el("code", { class: "theirs" }, command(text));
const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const lines = (list, text) => list?.length && el("ul", { class: "lines" }, list.map((one) => el("li", {}, code(text(one)))));

/** What a lasting rule would allow: a gateway sends its parts, a node its own words. */
function grant(rule) {
  const { program, command: text, cwd } = rule ?? {};
  return program && text && cwd ? `${program} as \`${text}\` in ${cwd}` : plain(rule);
}
