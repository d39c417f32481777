// A conversation on the screen: who said what, which tools were called, what waits for approval, and what was cut off.

import { copyButton } from "./copy.js";
import { badge, button, clock, el, nothing, put, words } from "./dom.js";
import { image } from "./images.js";
import { Markdown } from "./markdown.js";
import { imagesOf, outcome, pending, read, textOf } from "./past.js";
import { Card, ending } from "./question.js";

/** The most of one result that is shown. */
const LONGEST = 20000;
/** How far from the end a reader may be and still follow what is said, in pixels. */
const NEAR = 160;

/** The states of a call: what the badge says, and its kind. */
const STATES = {
  running: ["Running", "calm"], waiting: ["Waiting for approval", "warn"], approved: ["Allowed, running", "calm"],
  completed: ["Done", "good"], failed: ["Failed", "bad"], denied: ["Denied", "bad"], expired: ["Not answered in time", "dim"],
  background: ["Running in the background", "calm"], interrupted: ["Interrupted", "warn"],
};
const OVER = ["completed", "failed", "denied", "expired", "interrupted"];
const NAMES = { user: "You", assistant: "Assistant", system: "System" };

const whole = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "");
const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}\n… ${text.length - LONGEST} more characters` : text);

export class Talk {
  #log;
  #retry;
  #announce;
  #calls = new Map();
  #runs = new Map();
  #cards = new Map();
  #open = new Set();
  #last;
  #stays = true;
  #done;

  /** `retry(said)` sends what a person said once more; `announce(text)` tells a screen reader. */
  constructor(log, { retry, announce } = {}) {
    this.#log = log;
    this.#retry = retry;
    this.#announce = announce;
    log.addEventListener("scroll", () => (this.#stays = this.#follows()), { passive: true });
    // An image that arrives moves what is below it.
    log.addEventListener("load", () => this.#stays && this.#down("now"), { capture: true });
  }

  /** What a person said last: its text and images. */
  get last() {
    return this.#last;
  }

  /** Shows what was said before in place of all that was shown. `over` says that no turn goes on. */
  history(messages, { over = false, earlier } = {}) {
    const log = this.#log;
    const [follows, top] = [this.#follows(), log.scrollTop];
    for (const [id, { node }] of this.#calls) this.#open[node.open ? "add" : "delete"](id);
    const again = log.querySelector(".said, .call") !== null;
    this.#calls.clear();
    this.#runs.clear();
    this.#last = undefined;
    put(log, earlier && button("Show earlier messages", earlier, { class: "earlier small" }));
    const parts = read(messages);
    for (const part of parts) this.#past(part);
    if (!parts.length) put(log, nothing("How can I help?", "Write a message, drop in an image, or type / for skill commands."));
    if (over) this.#over(parts);
    this.#tail();
    if (again && !follows) log.scrollTop = top;
    else this.#down("now");
  }

  /** Adds what the transcript knows more than the events told, such as the output of commands. Returns whether it has
   * messages of people that are not shown. */
  merge(messages) {
    const parts = read(messages);
    const said = parts.filter(({ kind, role }) => kind === "said" && role === "user");
    if (said.length > this.#log.querySelectorAll(".said.person").length) return true;
    for (const part of parts) {
      if (part.kind === "result" && this.#calls.has(part.id)) this.#result(part);
      else if (part.kind === "late") this.#late(part);
    }
    return false;
  }

  #past(part) {
    if (part.kind === "said") this.#said(part);
    else if (part.kind === "call") this.#call(part.id, part.name, part.args);
    else if (part.kind === "result") this.#result(part);
    else if (part.kind === "late") this.#late(part);
    else if (part.kind === "cut") this.#cutOff("Interrupted: the gateway stopped during this answer.");
    else this.#note(part.text, part.bad && "bad");
  }

  /** Marks what will not go on. */
  #over(parts) {
    for (const call of this.#calls.values()) if (call.state === "running") this.#set(call, "interrupted");
    const last = parts.filter(({ kind }) => kind !== "late").at(-1);
    if (last?.kind === "said" && last.role === "user") this.#cutOff("No answer was stored: the turn failed or was cut off.");
    else if (last?.kind === "result" && !last.waits) this.#cutOff("Interrupted: the turn ended before there was an answer.");
  }

  /** Shows what the person says, and returns what takes it away again. */
  person(text, images = []) {
    this.#begin();
    const before = this.#last;
    const { node } = this.#said({ role: "user", text, images, when: Date.now() });
    this.#tail(false);
    this.#down("now");
    return () => {
      node.remove();
      this.#last = before;
      this.#tail();
    };
  }

  #begin() {
    this.#log.querySelector(".nothing")?.remove();
  }

  #said({ role, text, images = [], when }) {
    const mine = role === "user";
    const body = el("div", { class: "text theirs" });
    const node = el("article", { class: `said ${mine ? "person" : "model"}` },
      el("h2", { class: "quiet" }, words(NAMES[role] ?? role)),
      images.length > 0 && el("div", { class: "images" }, images.map(image)), body);
    const message = { node, body, markdown: undefined, text };
    if (mine) {
      put(body, words(text));
      body.hidden = !text;
      this.#last = { text, images };
    } else {
      message.markdown = new Markdown(body);
      message.markdown.update(text);
    }
    node.append(el("div", { class: "under" },
      copyButton(() => message.markdown?.text ?? text, "Copy message"),
      el("time", { class: "soft" }, clock(when ?? Date.now()))));
    this.#log.append(node);
    return message;
  }

  #note(text, kind) {
    const node = el("p", { class: `used theirs ${kind ?? "soft"}` }, words(text));
    this.#log.append(node);
    return node;
  }

  /** Says that something was not finished, where it stopped. */
  #cutOff(text) {
    this.#log.append(el("p", { class: "used cut", role: "status" }, badge("Interrupted", "warn"), el("span", {}, text.replace(/^Interrupted: t/, "T"))));
  }

  /** Shows a call. Some models use an id again in a later turn, so a call is always a new one. */
  #call(id, name, args) {
    const result = el("pre", { class: "result theirs", hidden: true, tabindex: 0, role: "group", "aria-label": `Output of ${name}` });
    const images = el("div", { class: "images", hidden: true });
    const mark = badge("Running", "calm");
    const command = typeof args?.command === "string" ? args.command : undefined;
    const shown = command !== undefined && Object.keys(args).length === 1 ? command : whole(args ?? {});
    const node = el("details", { class: "call", open: this.#open.has(id) },
      el("summary", {}, el("span", { class: "strong theirs" }, words(name ?? "tool")), el("code", { class: "brief theirs" }, words(String(command ?? args?.path ?? "").split("\n")[0])), mark),
      el("pre", { class: "theirs", tabindex: 0, role: "group", "aria-label": `Arguments of ${name}` }, words(cut(shown))), result, images);
    this.#log.append(node);
    const call = { id, name, command, node, result, images, mark, state: "running", question: undefined };
    this.#calls.set(id, call);
    return call;
  }

  #set(call, state) {
    const [label, kind] = STATES[state];
    call.state = state;
    call.mark.textContent = label;
    call.mark.className = `badge ${kind}`;
  }

  /** A result: of a call that ended, of one that waits, or the late one of a call that waited. */
  #result({ id, name, text, images = [], isError, waits, status, late }) {
    const call = this.#calls.get(id) ?? this.#call(id, name, {});
    // Only what is known to be over looks like it.
    if (waits !== undefined && !late) {
      call.question ||= waits;
      if (!OVER.includes(call.state) && call.state !== "approved") this.#set(call, "waiting");
      return;
    }
    this.#set(call, status === "running" ? "background" : isError && call.state === "denied" ? "denied" : outcome(status, isError));
    if (text) {
      call.result.hidden = false;
      put(call.result, words(cut(text)));
    }
    if (images.length) {
      call.images.hidden = false;
      put(call.images, images.map(image));
    }
  }

  /** What came of a command that waited, as older transcripts tell it. */
  #late(part) {
    const waits = [...this.#calls.values()].filter((call) => call.question);
    const found = waits.find((call) => call.question.startsWith(part.question)) ?? waits.find((call) => call.state === "waiting" && call.command === part.command);
    const call = found ?? this.#call(`late-${part.question}`, "exec", { command: part.command });
    this.#result({ ...part, id: call.id, name: call.name, late: true });
  }

  /** Shows a question where its command was called. */
  ask(entry) {
    const { request } = entry;
    const candidates = [...this.#calls.values()].filter((call) => ["running", "waiting"].includes(call.state) && (!call.question || entry.id.startsWith(call.question)));
    const call = candidates.findLast((one) => one.question) ?? candidates.findLast((one) => one.command === request.command) ?? candidates.findLast((one) => one.name === (request.tool ?? "exec"));
    const card = this.#cards.get(entry.id)?.card ?? new Card(entry, "h3", "chat-ask");
    this.#cards.set(entry.id, { entry, card, call });
    this.#begin();
    if (call) {
      call.question = entry.id;
      this.#set(call, "waiting");
      call.node.after(card.node);
    } else {
      this.#log.append(card.node);
    }
    this.#announce?.(`Waiting for approval: ${request.command}`);
    this.#show(card.node);
  }

  /** Shows how a question ended, in its place. */
  answered(entry) {
    const found = this.#cards.get(entry.id);
    if (!found) return;
    this.#cards.delete(entry.id);
    const { card } = found;
    const call = [...this.#calls.values()].find((one) => one.question === entry.id);
    const held = card.hasFocus;
    card.node.replaceWith(ending(entry, Boolean(call)));
    if (call?.state === "waiting") this.#set(call, { "allow-once": "approved", "allow-session": "approved", "allow-always": "approved", deny: "denied" }[entry.end.decision] ?? (entry.end.gone ? "interrupted" : "expired"));
    if (held) this.#log.focus({ preventScroll: true });
    this.#down();
  }

  /** Shows the time that questions have left. */
  tick() {
    for (const { card } of this.#cards.values()) card.tick();
  }

  /** Forgets the questions of another session. */
  forget() {
    this.#cards.clear();
    this.#open.clear();
  }

  #run(id) {
    if (!this.#runs.has(id)) {
      // What is still told of a turn that is over does not begin it again.
      if (id === this.#done) return { text: "" };
      this.#begin();
      this.#tail(false);
      this.#runs.set(id, { message: undefined, text: "", said: [], reply: undefined, heard: false, frame: undefined });
    }
    return this.#runs.get(id);
  }

  /** Shows what a model has said so far. A screen is drawn at most once per frame. */
  #grow(run, text) {
    run.text = text;
    run.message ??= this.#said({ role: "assistant", text: "" });
    run.message.node.setAttribute("aria-busy", "true");
    run.frame ??= requestAnimationFrame(() => this.#flush(run));
  }

  #flush(run) {
    if (run.frame !== undefined) cancelAnimationFrame(run.frame);
    run.frame = undefined;
    const follows = this.#follows();
    if (run.message && run.message.markdown.text !== run.text) run.message.markdown.update(run.text);
    if (follows) this.#down("now");
  }

  /** What comes next is another message. */
  #rest(run) {
    this.#flush(run);
    run.message?.node.removeAttribute("aria-busy");
    if (run.message && !run.text.trim()) run.message.node.remove();
    else if (run.message) run.said?.push(run.text);
    run.message = undefined;
    run.text = "";
  }

  /** Shows an `agent` event. */
  agent({ runId, stream, data = {} }) {
    // A late result belongs to a turn that is over.
    const run = data.late ? undefined : this.#run(runId);
    if (stream === "assistant") this.#heard(run, data);
    else if (stream === "tool") this.#tool(run, data);
    else if (stream === "skill" && data.name) this.#used(run, data);
    else if (stream === "compaction") this.#note("Earlier messages were summarized.");
    else if (stream === "notice" && data.text) this.#note(String(data.text));
    else if (stream === "lifecycle" && data.phase === "retry") this.#discard(run);
    if (stream !== "assistant") this.#down();
  }

  #heard(run, { text, delta, reply }) {
    run.heard = true;
    if (reply !== undefined && run.reply !== undefined && reply !== run.reply) this.#rest(run);
    run.reply = reply ?? run.reply;
    const said = typeof text === "string" ? text : run.text + (delta ?? "");
    if (said || run.message) this.#grow(run, said);
  }

  #tool(run, { phase, toolCallId, name, args, result, meta, isError, status, approval, late }) {
    if (!late) this.#rest(run);
    if (phase === "start") return void this.#call(toolCallId, name, args);
    if (phase !== "result") return;
    const text = textOf(result?.content) || meta || "";
    const call = this.#calls.get(toolCallId);
    // While its question is open, a command has not run, whatever else is told of it.
    const asked = call?.state === "waiting" && this.#cards.has(call.question) ? call.question : undefined;
    const waits = status === "waiting" ? approval?.approvalId ?? "" : pending({ text }) ?? asked;
    this.#result({ id: toolCallId, name, text, images: imagesOf(result?.content), isError, waits, late, status });
  }

  #used(run, { name, phase }) {
    this.#rest(run);
    this.#log.append(el("p", { class: "used" }, el("span", { "aria-hidden": "true" }, "◆ "), "Skill ", el("span", { class: "strong theirs" }, words(name)), " ", words(phase ?? "used")));
  }

  /** An attempt that failed is tried again: what it said does not count. */
  #discard(run) {
    run.text = "";
    run.message?.node.remove();
    run.message = undefined;
  }

  /** Shows a `chat` event. Returns whether the turn is over. */
  chat({ runId, state, message, errorMessage }) {
    const run = this.#run(runId);
    const text = textOf(message?.content);
    if (state === "delta") {
      if (!run.heard && text) this.#grow(run, text);
      return false;
    }
    if (state === "final" && text) this.#grow(run, text);
    const said = run.text;
    this.#rest(run);
    this.#runs.delete(runId);
    this.#done = runId;
    for (const call of this.#calls.values()) if (call.state === "running") this.#set(call, "interrupted");
    if (state === "aborted") this.#note("Stopped");
    if (state === "error") this.#note(errorMessage ?? "The turn failed.", "bad");
    if (state === "final" && said) this.#announce?.(said);
    this.#tail();
    this.#down();
    return true;
  }

  /** The connection is gone, and with it perhaps the turn. Returns what was said of it. */
  interrupt() {
    for (const run of this.#runs.values()) this.#rest(run);
    const said = [...this.#runs.values()].flatMap((run) => run.said).join("\n\n");
    this.#runs.clear();
    for (const call of this.#calls.values()) if (["running", "approved"].includes(call.state)) this.#set(call, "interrupted");
    this.#cutOff("Interrupted: the connection to the gateway was lost.");
    this.#down();
    return said;
  }

  /** Shows what an answer had said when it was cut off, where the gateway has no more of it. */
  remember(text) {
    const notes = this.#log.querySelectorAll(".cut");
    for (const note of notes) note.remove();
    if (text) this.#said({ role: "assistant", text });
    this.#cutOff(text ? "Interrupted: the gateway stopped during this answer." : "No answer was stored: the gateway stopped before the answer was complete.");
    this.#tail();
    this.#down("now");
  }

  /** Whether the last thing that was said is a person's. */
  get unanswered() {
    const said = this.#log.querySelectorAll(".said");
    return said.length > 0 && said[said.length - 1].classList.contains("person");
  }

  /** Offers to try the last answer once more, at its end. */
  #tail(offer = true) {
    this.#log.querySelector(".retry")?.remove();
    if (!offer || !this.#retry || !this.#last || this.#runs.size) return;
    const again = button("Retry", () => this.#retry(this.#last), { class: "plain small retry", "aria-label": "Retry: send the last message again" });
    const end = this.#log.lastElementChild;
    if (end?.matches(".said.model")) end.querySelector(".under").prepend(again);
    else if (end?.matches(".used, .call")) this.#log.append(el("div", { class: "retry" }, again));
  }

  /** Brings a question into sight, from its start if it is longer than the screen. */
  #show(node) {
    const log = this.#log;
    this.#down("now");
    const above = node.getBoundingClientRect().top - log.getBoundingClientRect().top;
    if (above < 0) log.scrollTop += above - 8;
  }

  #follows() {
    const log = this.#log;
    return log.scrollHeight - log.scrollTop - log.clientHeight < NEAR;
  }

  /** Follows what is said, unless the reader looks at something above. */
  #down(when) {
    if (when === "now" || this.#follows()) this.#log.scrollTop = this.#log.scrollHeight;
  }
}
