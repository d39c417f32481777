// How does the page talk with its gateway? One socket, requests by number, events by name, and it comes back by itself.

import { unique } from "./dom.js";

const PROTOCOL = 3;
const SCOPES = ["operator.admin", "operator.read", "operator.write", "operator.approvals", "operator.pairing"];
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15000;
const PATIENCE = 120000;

/** The code of a request that was sent, and may have been done or not. */
export const UNSURE = "unsure";

/** Why a request came to nothing. */
export class Refused extends Error {
  constructor(error) {
    super(error?.message ?? "refused without a reason");
    this.code = error?.code;
    this.details = error?.details;
  }
}

/** No answer came, so nothing is known. */
class Unanswered extends Refused {}

export class Link {
  #secret;
  #socket;
  #waiting = new Map();
  #heard = new Map();
  #pause = FIRST_PAUSE;
  #next = 0;
  #ended = false;
  #known = false;
  #instance = unique();

  /** `tell` hears how the connection stands: open, away or refused. */
  constructor(secret, tell) {
    this.#secret = secret;
    this.tell = tell;
    this.hello = undefined;
  }

  /** Begins, and begins again whenever the connection is lost. */
  open() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/`);
    this.#socket = socket;
    this.#known = false;
    socket.addEventListener("message", (message) => this.#hear(JSON.parse(message.data)));
    socket.addEventListener("close", () => this.#lost(socket));
  }

  /** Ends it for good. */
  end() {
    this.#ended = true;
    this.#socket?.close();
  }

  /** Whether the gateway knows this method. */
  knows(method) {
    return this.hello?.features?.methods?.includes(method) ?? false;
  }

  /** Hears an event from now on. */
  on(event, heard) {
    this.#heard.set(event, [...(this.#heard.get(event) ?? []), heard]);
  }

  /** Asks, and waits for the answer. */
  call(method, params = {}) {
    return new Promise((done, failed) => {
      // A gateway hears nothing from those it does not know yet.
      if (this.#socket?.readyState !== WebSocket.OPEN || !(this.#known || method === "connect")) {
        failed(new Unanswered({ message: "the gateway cannot be reached at the moment" }));
        return;
      }
      const id = `p${++this.#next}`;
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        failed(new Unanswered({ message: "no answer came", code: UNSURE }));
      }, PATIENCE);
      this.#waiting.set(id, { done, failed, timer });
      this.#socket.send(JSON.stringify({ type: "req", id, method, params }));
    });
  }

  #hear(frame) {
    if (frame.type === "event") {
      if (frame.event === "connect.challenge") this.#introduce(this.#socket);
      for (const heard of this.#heard.get(frame.event) ?? []) heard(frame.payload ?? {});
      return;
    }
    const waiting = this.#waiting.get(frame.id);
    if (frame.type !== "res" || !waiting) return;
    clearTimeout(waiting.timer);
    this.#waiting.delete(frame.id);
    if (frame.ok) waiting.done(frame.payload ?? {});
    else waiting.failed(new Refused(frame.error));
  }

  async #introduce(socket) {
    const auth = this.#secret ? { token: this.#secret, password: this.#secret } : undefined;
    const client = {
      id: "openclaw-control-ui", displayName: "the page", version: "1", platform: "web", mode: "webchat", instanceId: this.#instance,
    };
    try {
      this.hello = await this.call("connect", {
        minProtocol: PROTOCOL, maxProtocol: PROTOCOL, client, role: "operator", scopes: SCOPES, caps: ["tool-events"], auth,
      });
      this.#known = true;
      this.#pause = FIRST_PAUSE;
      this.tell("open");
    } catch (refused) {
      // Only who was told no has to come with something else; whoever heard nothing comes back.
      if (refused instanceof Unanswered) return void socket.close();
      this.end();
      this.tell("refused", refused.message);
    }
  }

  #lost(socket) {
    if (socket !== this.#socket) return;
    for (const { failed, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      failed(new Unanswered({ message: "the connection was lost", code: UNSURE }));
    }
    this.#waiting.clear();
    if (this.#ended) return;
    this.tell("away");
    setTimeout(() => !this.#ended && this.open(), this.#pause);
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
  }
}
