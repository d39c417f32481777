// The connection to the gateway: one socket, requests by id, events by name. It reconnects by itself.
//
// Rights: the page asks for few scopes when it connects, and for more when an action needs them.
//   link.can("write")             whether this connection has the scope now; views hide or explain what it lacks
//   await link.need("admin", why) the same, and asks the person (and the gateway) for it if it is missing
//   await link.act(method, …)     a call that was the person's wish: asks for the scope that the gateway says is missing
//   link.on("rights", …)          hears that the scopes have changed
// Use `call` for what a view loads by itself, `act` for what a person pressed a button for.

import * as device from "./device.js";
import { unique } from "./dom.js";

const PROTOCOL = 3;
const READ_ONLY = ["operator.read"];
const NORMAL = ["operator.read", "operator.write", "operator.approvals"];
const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 15000;
/** How often a device asks whether it was approved, in milliseconds. */
const PAIRING_PAUSE = 2000;
const PATIENCE = 120000;
/** Refusals that mean: come with a device key. */
const WANTS_DEVICE = ["CONTROL_UI_DEVICE_IDENTITY_REQUIRED", "DEVICE_IDENTITY_REQUIRED"];
/** Client capabilities that the gateway is told of. */
const CAPS = ["tool-events", "event-deltas", ...(globalThis.DecompressionStream ? ["deflate"] : [])];

/** The code of a request that was sent, and may have been done or not. */
export const UNSURE = "unsure";

/** Why a request failed. */
export class Refused extends Error {
  constructor(error) {
    super(error?.message ?? "refused without a reason");
    this.code = error?.code;
    this.details = error?.details;
    this.retryAfterMs = error?.retryAfterMs;
  }
}

/** No answer came, so nothing is known. */
class Unanswered extends Refused {}

/** `admin` is `operator.admin`. */
const full = (scope) => (scope.startsWith("operator.") ? scope : `operator.${scope}`);

/** Whether this page was loaded from the gateway's own machine, or through a tunnel to it. */
const isHere = () => /^(localhost|127(\.\d+){3}|\[::1\])$/.test(location.hostname);

export class Link {
  #secret;
  #socket;
  #waiting = new Map();
  #heard = new Map();
  #pause = FIRST_PAUSE;
  #next = 0;
  #ended = false;
  #known = false;
  #pairing = false;
  #withDevice;
  #scopes;
  #held = [];
  #instance = unique();
  #order = Promise.resolve();
  #unpacking = 0;

  /**
   * `tell(how, error)` hears how the connection stands: open, away, pairing (a person has to approve this device) or
   * refused. `access` is "read" or "normal"; `confirm(scope, why)` asks the person whether to use more rights.
   */
  constructor(secret, tell, { access = "normal", confirm = async () => false } = {}) {
    this.#secret = secret;
    this.tell = tell;
    this.access = access;
    this.confirm = confirm;
    this.hello = undefined;
    this.#scopes = access === "read" ? READ_ONLY : isHere() ? [...NORMAL, "operator.pairing"] : NORMAL;
    // A gateway that asks for no secret has a proxy in front that knows its users, or is this machine's.
    this.#withDevice = !isHere() && document.documentElement.dataset.auth !== "none";
  }

  /** Connects, and connects again whenever the connection is lost. */
  open() {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}/`);
    this.#socket = socket;
    this.#known = false;
    socket.binaryType = "arraybuffer";
    socket.addEventListener("message", (message) => this.#arrived(message.data));
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

  /** Whether this connection may do what takes the scope. */
  can(scope) {
    const wanted = full(scope);
    return this.#held.some((own) => own === wanted || own === "operator.admin" || (own === "operator.write" && wanted === "operator.read"));
  }

  /** Whether it may now, after asking the person if it could not before. */
  async need(scope, why) {
    return this.can(scope) || (await this.confirm(full(scope), why));
  }

  /** Asks the gateway for a scope. A device that is not approved for it is refused with PAIRING_REQUIRED. */
  async request(scope) {
    const { scopes, auth } = await this.call("operator.scopes.request", { scopes: [full(scope)] });
    if (auth) await device.remember(auth);
    this.#scopes = this.#held = scopes;
    this.#tell("rights", {});
  }

  /** Calls a method because the person wants it; what they lack the right for, they are asked about. */
  async act(method, params = {}, why = undefined) {
    try {
      return await this.call(method, params);
    } catch (error) {
      const missing = error instanceof Refused && /^missing scope: (operator\.\w+)$/.exec(error.message)?.[1];
      if (!missing || this.can(missing)) throw error;
      if (!(await this.confirm(missing, why))) throw new Refused({ message: "Not done: this needs more rights.", code: "declined" });
      return this.call(method, params);
    }
  }

  /** Calls a method, and waits for the answer. */
  call(method, params = {}) {
    return new Promise((done, failed) => {
      // A gateway answers nothing before `connect`.
      if (this.#socket?.readyState !== WebSocket.OPEN || !(this.#known || method === "connect")) {
        failed(new Unanswered({ message: "Cannot reach the gateway right now." }));
        return;
      }
      const id = `p${++this.#next}`;
      const timer = setTimeout(() => {
        this.#waiting.delete(id);
        failed(new Unanswered({ message: "The gateway did not answer.", code: UNSURE }));
      }, PATIENCE);
      this.#waiting.set(id, { done, failed, timer });
      this.#socket.send(JSON.stringify({ type: "req", id, method, params }));
    });
  }

  /** Large frames come compressed. What comes behind one waits until it is unpacked, so that everything keeps its order. */
  #arrived(data) {
    if (typeof data === "string" && !this.#unpacking) return this.#hear(JSON.parse(data));
    this.#unpacking += 1;
    const text = typeof data === "string" ? data : new Response(new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate-raw"))).text();
    this.#order = this.#order.then(() => text).then((whole) => this.#hear(JSON.parse(whole))).catch(() => this.#socket?.close()).finally(() => (this.#unpacking -= 1));
  }

  #tell(event, payload) {
    for (const heard of this.#heard.get(event) ?? []) heard(payload);
  }

  #hear(frame) {
    if (frame.type === "event") {
      if (frame.event === "connect.challenge") this.#introduce(this.#socket, frame.payload?.nonce ?? "");
      this.#tell(frame.event, frame.payload ?? {});
      return;
    }
    const waiting = this.#waiting.get(frame.id);
    if (frame.type !== "res" || !waiting) return;
    clearTimeout(waiting.timer);
    this.#waiting.delete(frame.id);
    if (frame.ok) waiting.done(frame.payload ?? {});
    else waiting.failed(new Refused(frame.error));
  }

  async #introduce(socket, nonce) {
    try {
      const params = await this.#introduction(nonce);
      this.hello = await this.call("connect", params);
      const auth = this.hello.auth;
      // A device's token may be good for more than was asked for; a proxy's user may have got less.
      this.#held = auth?.scopes && !auth.deviceToken ? auth.scopes : params.scopes;
      if (auth?.deviceToken) await device.remember(auth);
      this.#known = true;
      this.#pairing = false;
      this.#pause = FIRST_PAUSE;
      this.tell("open");
    } catch (error) {
      if (error instanceof Unanswered) return void socket.close();
      await this.#refused(socket, error);
    }
  }

  async #introduction(nonce) {
    const own = this.#withDevice && device.possible() ? await device.own() : undefined;
    // A token of a device is good for the scopes that it was given, and for no others.
    const scopes = own?.token && !this.#secret ? this.#scopes.filter((scope) => covered(own.scopes, scope)) : this.#scopes;
    const auth = this.#secret ? { token: this.#secret, password: this.#secret } : own?.token ? { deviceToken: own.token } : undefined;
    const client = {
      id: "openclaw-control-ui", displayName: device.name(), version: "1", platform: "web", mode: "webchat", instanceId: this.#instance,
    };
    const params = { minProtocol: PROTOCOL, maxProtocol: PROTOCOL, client, role: "operator", scopes, caps: CAPS, auth };
    return own ? { ...params, device: await device.prove(own, { client, role: "operator", scopes, auth, nonce }) } : params;
  }

  async #refused(socket, error) {
    const code = error.details?.code;
    if (WANTS_DEVICE.includes(code) && !this.#withDevice && device.possible()) {
      this.#withDevice = true;
      return void socket.close();
    }
    if (code === "PAIRING_REQUIRED" && error.details.requestId) {
      this.#pairing = true;
      this.tell("pairing", error);
      return void socket.close();
    }
    if (code === "AUTH_DEVICE_TOKEN_MISMATCH") await device.forget();
    this.end();
    this.tell("refused", error);
  }

  #lost(socket) {
    if (socket !== this.#socket) return;
    for (const { failed, timer } of this.#waiting.values()) {
      clearTimeout(timer);
      failed(new Unanswered({ message: "The connection was lost.", code: UNSURE }));
    }
    this.#waiting.clear();
    if (this.#ended) return;
    if (!this.#pairing) this.tell("away");
    setTimeout(() => !this.#ended && this.open(), this.#pairing ? PAIRING_PAUSE : this.#pause);
    this.#pause = Math.min(this.#pause * 2, LONGEST_PAUSE);
  }
}

function covered(own, scope) {
  return own.includes(scope) || own.includes("operator.admin") || (scope === "operator.read" && own.includes("operator.write"));
}
