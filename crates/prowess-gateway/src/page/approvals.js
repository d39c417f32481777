// Approvals: may this command run? The real command is shown, with everything that comes with it, and one click answers.

import { badge, button, clock, command, el, nothing, put, words } from "./dom.js";

const DECISIONS = [["allow-once", "Allow once", "main"], ["allow-always", "Always allow", ""], ["deny", "Deny", "deny"]];
const SAID = { "allow-once": ["allowed once", "good"], "allow-always": ["always allowed", "good"], deny: ["denied", "bad"] };
/** How many answered questions are kept in sight. */
const KEPT = 30;
/** The longest question that can be looked at, in characters. What cannot be shown whole can only be denied. */
const LONGEST = 500000;

export function make(app, panel) {
  const open = new Map();
  const done = [];
  let timer;
  const heading = el("h1", { tabindex: -1 }, "Approvals");
  const waiting = el("div", { class: "stack", "aria-live": "assertive", "aria-label": "Commands that wait" });
  const past = el("ul", { class: "rows plain-rows", "aria-label": "Answered" });
  const rest = el("section", { hidden: true }, el("h2", {}, "Answered"), past);
  put(panel, el("div", { class: "head" }, heading, el("p", { class: "soft" }, "Commands that may only run if you say so. The first answer counts, whoever gives it.")), waiting, rest);
  empty();

  async function load() {
    if (!app.link.knows("exec.approval.list") || !app.link.can("approvals")) return;
    const before = [...open.keys()];
    try {
      const known = await app.link.call("exec.approval.list");
      const list = Array.isArray(known) ? known : known.approvals ?? known.pending ?? known.items ?? [];
      const waits = list.filter((one) => !one.decision && !one.resolvedAtMs);
      // What is not known any more was answered or given up while we were away.
      for (const id of before) if (!waits.some((one) => one.id === id)) close(id);
      waits.forEach(ask);
    } catch (error) {
      app.failed(error);
    }
  }

  function empty() {
    if (open.size === 0) clearInterval(timer);
    if (open.size === 0) put(waiting, nothing("No command waits", "Questions appear here, on every connected screen, as soon as they come up."));
    app.asking(open.size);
  }

  function ask(question) {
    if (open.has(question.id) || question.expiresAtMs <= Date.now()) return;
    waiting.querySelector(".nothing")?.remove();
    const node = card(question, (decision) => answer(question.id, decision));
    if (open.size === 0) timer = setInterval(tick, 1000);
    open.set(question.id, { ...question, node });
    waiting.append(node);
    tick();
    app.asking(open.size);
  }

  async function answer(id, decision) {
    const question = open.get(id);
    if (!question) return;
    const buttons = question.node.querySelectorAll("button");
    // A button that is put out of use loses the keyboard, which belongs here nevertheless.
    const focused = question.node.contains(document.activeElement) ? document.activeElement : undefined;
    question.held = Boolean(focused);
    for (const one of buttons) one.disabled = true;
    try {
      await app.link.act("exec.approval.resolve", { id, decision });
      close(id, decision, "you");
    } catch (error) {
      for (const one of buttons) one.disabled = false;
      if (holds(question)) focused?.focus();
      question.held = false;
      app.failed(error);
    }
  }

  /** Whether the keyboard is at this question, or would be if it had not been answered. */
  function holds({ node, held }) {
    return node.contains(document.activeElement) || (held && [document.body, null].includes(document.activeElement));
  }

  function close(id, decision, by) {
    const question = open.get(id);
    if (!question) return;
    open.delete(id);
    const held = holds(question);
    question.node.remove();
    const [said, kind] = SAID[decision] ?? ["expired", "dim"];
    done.unshift(el("li", { class: "answered" }, badge(said, kind), el("code", { class: "theirs" }, command(question.request?.command)), el("span", { class: "soft theirs" }, by && ["by ", words(by), ", "], clock(Date.now()))));
    done.length = Math.min(done.length, KEPT);
    put(past, done);
    rest.hidden = false;
    empty();
    // Not a button of it: a key that is pressed twice must not answer two questions.
    if (held) (waiting.querySelector(".question") ?? heading).focus();
  }

  /** Shows how much time is left, and puts away what nobody answered. */
  function tick() {
    for (const [id, question] of open) {
      const left = Math.ceil((question.expiresAtMs - Date.now()) / 1000);
      if (left <= 0) {
        close(id);
        continue;
      }
      question.node.querySelector(".left").textContent = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, "0")}`;
      question.node.querySelector("progress").value = left;
    }
  }

  app.link.on("rights", load);
  app.link.on("exec.approval.requested", ask);
  app.link.on("exec.approval.resolved", ({ id, decision, resolvedBy }) => close(id, decision, resolvedBy));
  return { fresh: load };
}

function card({ id, request = {}, createdAtMs, expiresAtMs }, answer) {
  const seconds = Math.max(1, Math.round((expiresAtMs - createdAtMs) / 1000));
  const whole = JSON.stringify(request).length <= LONGEST;
  const offered = whole ? request.decisions ?? DECISIONS.map(([decision]) => decision) : ["deny"];
  return el("article", { class: "question card", tabindex: -1, "aria-labelledby": `ask-${id}`, data: { id } },
    el("div", { class: "line between" }, el("h2", { id: `ask-${id}` }, request.tool ? "May this be done?" : "May this run?"), el("span", { class: "soft" }, "expires in ", el("span", { class: "left", role: "timer", "aria-live": "off" }))),
    whole ? shown(request, offered) : el("p", { class: "warned" }, "This is too long to be shown whole, so it cannot be allowed."),
    el("div", { class: "line answers" }, DECISIONS.filter(([decision]) => offered.includes(decision)).map(([decision, label, kind]) => button(label, () => answer(decision), { class: kind, data: { decision } }))),
    el("progress", { max: seconds, value: seconds, "aria-label": "Time left" }));
}

/** All that an answer is about. */
function shown(request, offered) {
  const argv = request.commandArgv ?? request.systemRunPlan?.argv;
  // Some gateways only tell the names of variables.
  const variables = request.variables?.length ? request.variables : request.envKeys;
  const facts = [
    ["Where", request.nodeId ? ["node ", request.nodeName && [words(request.nodeName), " "], code(request.nodeId)] : words(request.host ?? "this machine")],
    ["Folder", request.cwd && code(request.cwd)],
    ["Program", request.resolvedPath && code(request.resolvedPath)],
    ["Words", argv && el("span", { class: "argv" }, argv.map((word) => code(plain(word))))],
    ["Variables", lines(variables, plain)],
    ["Keys of skills", request.skillVariables?.length && ["the node gets what skills have for ", request.skillVariables.map((name, at) => [at > 0 && ", ", code(plain(name))])]],
    ["Agent", request.agentId && words(request.agentId)],
    ["Session", request.sessionKey && code(request.sessionKey)],
    ["Rules", words([request.security, request.ask && `ask ${request.ask}`].filter(Boolean).join(", "))],
    ["Because", lines(request.objections, plain)],
    ["Always would allow", offered.includes("allow-always") && lines(request.always, grant)],
  ].filter(([, value]) => value && value.textContent !== "" && value.length !== 0);
  const texts = [
    el("pre", { class: "command theirs", tabindex: 0, "aria-label": "The command" }, command(request.command)),
    request.text && el("pre", { class: "command theirs text", tabindex: 0, "aria-label": "What it would change" }, command(request.text)),
  ].filter(Boolean);
  const about = el("dl", { class: "facts" }, facts.map(([name, value]) => [el("dt", {}, name), el("dd", { class: "theirs" }, value)]));
  const odd = texts.some((text) => text.querySelector(".hidden-char, .foreign")) || about.querySelector(".hidden-char");
  return [
    texts,
    odd && el("p", { class: "warned" }, "There are characters in it that can be mistaken for others or not be seen; they are marked."),
    about,
  ];
}

const code = (text) => el("code", { class: "theirs" }, command(text));
const plain = (value) => (typeof value === "string" ? value : JSON.stringify(value));
const lines = (list, text) => list?.length && el("ul", { class: "lines" }, list.map((one) => el("li", {}, code(text(one)))));

/** What a rule for good would allow: a gateway tells it in parts, a node in its own words. */
function grant(rule) {
  const { program, command: text, cwd } = rule ?? {};
  return program && text && cwd ? `${program} as \`${text}\` in ${cwd}` : plain(rule);
}
