// A conversation on the screen: who said what, which tools were called, and which skills came into use.

import { badge, clock, el, nothing, put, words } from "./dom.js";

/** The most of one result that is shown. */
const LONGEST = 20000;

const textOf = (content) => typeof content === "string" ? content : (content ?? []).filter((part) => part?.type === "text").map((part) => part.text ?? "").join("\n");
const callsOf = (content) => (Array.isArray(content) ? content : []).filter((part) => ["toolCall", "toolUse", "tool_use"].includes(part?.type));
const whole = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "");
const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}\n… ${text.length - LONGEST} more characters` : text);

export class Talk {
  #log;
  #calls = new Map();
  #runs = new Map();

  constructor(log) {
    this.#log = log;
  }

  /** Shows what was said before, and forgets what was shown. */
  history(messages) {
    this.#calls.clear();
    this.#runs.clear();
    put(this.#log);
    for (const message of messages) this.#past(message);
    if (!messages.length) put(this.#log, nothing("Nothing was said yet", "Write a message below, or a slash for the commands of skills."));
    this.#down("now");
  }

  /** Shows what the person says, and gives what takes it away again. */
  person(text) {
    this.#begin();
    const said = this.#add("user", text).parentElement;
    this.#down("now");
    return () => said.remove();
  }

  #past(message) {
    const { role, content, timestamp } = message;
    if (role === "toolResult" || role === "tool") {
      this.#result(message.toolCallId, message.toolName ?? "tool", textOf(content), message.isError, this.#log);
      return;
    }
    const text = textOf(content).trim();
    if (text || message.errorMessage) this.#add(role, text || message.errorMessage, timestamp);
    for (const call of callsOf(content)) this.#call(call.id ?? call.toolCallId, call.name, call.arguments ?? call.input, this.#log);
  }

  #begin() {
    this.#log.querySelector(".nothing")?.remove();
  }

  #add(role, text, when) {
    const who = { user: "You", assistant: "Assistant", system: "System" }[role] ?? role;
    const body = el("div", { class: "text theirs" }, words(text));
    this.#log.append(el("article", { class: `said ${role === "user" ? "person" : "model"}` }, el("header", {}, el("span", { class: "strong" }, words(who)), el("time", { class: "soft" }, clock(when ?? Date.now()))), body));
    return body;
  }

  #call(id, name, args, into) {
    const result = el("pre", { class: "result theirs", hidden: true, tabindex: 0, "aria-label": `What ${name} gave` });
    const state = badge("running", "calm");
    const shown = typeof args?.command === "string" && Object.keys(args).length === 1 ? args.command : whole(args ?? {});
    const brief = typeof args?.command === "string" ? args.command : args?.path ?? "";
    const node = el("details", { class: "call" },
      el("summary", {}, el("span", { class: "strong theirs" }, words(name ?? "tool")), el("code", { class: "brief theirs" }, words(String(brief).split("\n")[0])), state),
      el("pre", { class: "theirs", tabindex: 0, "aria-label": `What ${name} was asked` }, words(cut(shown))), result);
    into.append(node);
    this.#calls.set(id, { node, result, state });
    return this.#calls.get(id);
  }

  #result(id, name, text, isError, into) {
    const call = this.#calls.get(id) ?? this.#call(id, name, {}, into);
    call.state.textContent = isError ? "failed" : "done";
    call.state.className = `badge ${isError ? "bad" : "good"}`;
    if (text) {
      call.result.hidden = false;
      put(call.result, words(cut(text)));
    }
  }

  #run(id) {
    if (!this.#runs.has(id)) {
      this.#begin();
      this.#runs.set(id, { segment: undefined, told: false });
    }
    return this.#runs.get(id);
  }

  #segment(run, text) {
    run.segment ??= this.#add("assistant", "");
    run.segment.parentElement.setAttribute("aria-busy", "true");
    put(run.segment, words(text));
    this.#down();
  }

  /** Shows what an `agent` event tells. */
  agent({ runId, stream, data = {} }) {
    const run = this.#run(runId);
    if (stream === "assistant") {
      run.told = true;
      this.#segment(run, data.text ?? "");
    } else if (stream === "tool") {
      this.#rest(run);
      if (data.phase === "start") this.#call(data.toolCallId, data.name, data.args, this.#log);
      else if (data.phase === "result") this.#result(data.toolCallId, data.name, textOf(data.result?.content) || data.meta || "", data.isError, this.#log);
      this.#down();
    } else if (stream === "skill" && data.name) {
      this.#log.append(el("p", { class: "used" }, el("span", { "aria-hidden": "true" }, "◆ "), "Skill ", el("span", { class: "strong theirs" }, words(data.name)), ` ${data.phase ?? "used"}`));
      this.#down();
    } else if (stream === "compaction") {
      this.#log.append(el("p", { class: "used soft" }, "Earlier messages were summed up."));
    }
  }

  /** What comes next is said anew. */
  #rest(run) {
    run.segment?.parentElement.removeAttribute("aria-busy");
    run.segment = undefined;
  }

  /** Shows what a `chat` event tells. Says whether the turn is over. */
  chat({ runId, state, message, errorMessage }) {
    const run = this.#run(runId);
    const text = textOf(message?.content);
    if (state === "delta") {
      if (!run.told && text) this.#segment(run, text);
      return false;
    }
    if (state === "final" && text) this.#segment(run, text);
    this.#rest(run);
    this.#runs.delete(runId);
    if (state === "aborted") this.#log.append(el("p", { class: "used soft" }, "Stopped."));
    if (state === "error") this.#log.append(el("p", { class: "used bad theirs" }, words(errorMessage ?? "The turn failed.")));
    this.#down();
    return true;
  }

  /** Follows what is said, unless the reader looks at something above. */
  #down(when) {
    const log = this.#log;
    const near = log.scrollHeight - log.scrollTop - log.clientHeight < 240;
    if (when === "now" || near) log.scrollTop = log.scrollHeight;
  }
}
