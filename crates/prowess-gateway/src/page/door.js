// Signing in: where does the token come from, who has to approve this device, and who is asked for more rights?
//
// A token comes from the address once, from what was kept, or from the person. A device that was approved needs none.

import * as device from "./device.js";
import { button, copyable, el, put, words } from "./dom.js";

const NAME = "prowess.token";
const ACCESS = "prowess.access";
/** Refusals that say that the secret itself is wrong. No other makes us forget it: it may be right in a minute. */
const WRONG = ["AUTH_TOKEN_MISMATCH", "AUTH_PASSWORD_MISMATCH"];
/** How often it is asked whether more rights were approved, in milliseconds. */
const POLL = 2000;
const RIGHTS = {
  "operator.read": ["Reading", "see what this gateway does"],
  "operator.write": ["Talking to agents", "talk to agents and run commands on nodes"],
  "operator.approvals": ["Answering approvals", "decide which commands may run"],
  "operator.pairing": ["Approving devices", "approve and remove devices"],
  "operator.admin": ["Administrator rights", "change the configuration, skills and everything else"],
};

const by = (id) => document.getElementById(id);
const isPassword = () => document.documentElement.dataset.auth === "password";

/** The secret that is known, if any. One in the address is kept for this tab and taken out of the address. */
export function known() {
  const given = new URLSearchParams(location.hash.slice(1));
  if (given.get("access")) sessionStorage.setItem(ACCESS, given.get("access") === "read" ? "read" : "normal");
  if (given.get("token")) sessionStorage.setItem(NAME, given.get("token"));
  if (given.get("token") || given.get("access")) history.replaceState(null, "", location.pathname);
  return sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? "";
}

/** How the person signed in: to read only, or as usual. */
export const access = () => sessionStorage.getItem(ACCESS) ?? localStorage.getItem(ACCESS) ?? "normal";

/** Signs in with what is known, or asks. */
export async function start(enter) {
  const secret = known();
  const own = secret ? undefined : await device.known().catch(() => undefined);
  if (secret || own?.token || document.documentElement.dataset.auth === "none") enter(secret);
  else ask(undefined, enter);
}

/** Signs out: forgets the secret and the token of this device. */
export function leave() {
  for (const storage of [sessionStorage, localStorage]) for (const name of [NAME, ACCESS]) storage.removeItem(name);
  return device.forget().catch(() => undefined);
}

function forgetSecret() {
  for (const storage of [sessionStorage, localStorage]) storage.removeItem(NAME);
}

/** The gateway let us in. A device has a token of its own now, and needs the gateway's no longer. */
export function arrived(link) {
  if (link.hello?.auth?.deviceToken) forgetSecret();
  by("door").hidden = true;
}

/** The gateway did not let us in, or not yet. */
export function turned(how, error, enter, link) {
  if (how === "pairing") return wait(error, enter, link);
  const code = error.details?.code;
  const secret = sessionStorage.getItem(NAME) ?? localStorage.getItem(NAME) ?? "";
  if (WRONG.includes(code)) forgetSecret();
  if (code === "AUTH_DEVICE_TOKEN_MISMATCH") return ask("This device is no longer approved. Sign in again.", enter);
  const isDevice = code === "CONTROL_UI_DEVICE_IDENTITY_REQUIRED" || code === "DEVICE_IDENTITY_REQUIRED";
  if (isDevice && !device.possible()) {
    return ask("This page was loaded over plain HTTP, and browsers create device keys only on HTTPS pages. Start the gateway with --tls and open the https address it prints, or use a tunnel: ssh -N -L 18789:127.0.0.1:18789 HOST", enter);
  }
  const why = error.details?.reason === "rejected" ? "An operator rejected the request." : error.message;
  const isOver = WRONG.includes(code) || code === "AUTH_TOKEN_MISSING" || code === "AUTH_PASSWORD_MISSING";
  return ask(why, enter, isOver ? undefined : () => enter(secret));
}

/** Asks the person, and calls `enter` with what they typed; `again` tries once more with what is known. */
export function ask(why, enter, again) {
  const word = isPassword() ? "password" : "token";
  const [door, form, secret, error] = [by("door"), by("door-form"), by("door-secret"), by("door-error")];
  show(form);
  by("door-what").textContent = word;
  by("door-key").textContent = word;
  by("door-label").textContent = isPassword() ? "Password" : "Token";
  error.hidden = !why;
  put(error, why ?? "", again && el("span", { class: "line" }, button("Try again", () => ((door.hidden = true), again()), { class: "small", id: "door-again" })));
  secret.value = "";
  by("door-read").checked = access() === "read";
  form.onsubmit = (event) => {
    event.preventDefault();
    const text = secret.value.trim();
    if (!text) return;
    const kept = [sessionStorage, ...(by("door-remember").checked ? [localStorage] : [])];
    for (const storage of kept) {
      storage.setItem(NAME, text);
      storage.setItem(ACCESS, by("door-read").checked ? "read" : "normal");
    }
    secret.value = "";
    door.hidden = true;
    enter(text);
  };
  secret.focus();
}

function show(card) {
  by("house").hidden = true;
  by("door").hidden = false;
  by("door-form").hidden = card !== by("door-form");
  by("door-wait").hidden = card !== by("door-wait");
}

/** Shows that a person has to approve this device, and how. The link looks by itself whether one has. */
async function wait(error, enter, link) {
  const card = by("door-wait");
  const { requestId = "", reason } = error.details ?? {};
  if (card.dataset.request === requestId && !card.hidden && !by("door").hidden) return;
  card.dataset.request = requestId;
  const own = await device.known();
  const print = document.documentElement.dataset.fingerprint;
  const cancel = () => {
    link.end();
    card.dataset.request = "";
    ask(undefined, enter);
  };
  put(card,
    el("h1", { id: "door-wait-title", tabindex: -1 }, "Approve this device"),
    el("p", {}, el("span", { class: "strong" }, device.name()), ", device ", el("code", {}, (own?.id ?? "").slice(0, 8)), reason === "scope-upgrade" ? ", asks for more rights than it was approved for." : ", is not approved on this gateway yet."),
    el("p", {}, "Approve it under Nodes on a page that is already signed in, or on the gateway's machine:"),
    copyable(`prowess devices approve ${requestId.slice(0, 8)}`),
    print && el("p", { class: "soft" }, "Compare the certificate's SHA-256 fingerprint in your browser with the one the gateway printed at startup:"),
    print && el("p", { class: "print" }, el("code", {}, print)),
    el("p", { role: "status" }, "Waiting for approval…"),
    el("div", { class: "line" }, button("Cancel", cancel, {})));
  show(card);
  by("door-wait-title").focus({ preventScroll: true });
}

/** Asks the person whether to use more rights, and the gateway for them. Tells whether they were given. */
export function rights(link, scope, why) {
  const [title, what] = RIGHTS[scope] ?? [scope, "do this"];
  return new Promise((done) => {
    let given = false;
    let timer;
    const status = el("p", { role: "status", hidden: true });
    const use = button("Continue", () => request(), { class: "main", data: { rights: scope } });
    const dialog = el("dialog", { class: "rights", "aria-labelledby": "rights-title" },
      el("h2", { id: "rights-title" }, `${title} needed`),
      el("p", {}, why ?? `This needs the right to ${what}.`, " This tab does not have it yet."),
      link.access === "read" && el("p", { class: "soft" }, "You signed in to read only."),
      status,
      el("div", { class: "line" }, use, button("Cancel", () => dialog.close(), {})));
    const tell = (...parts) => (put(status, ...parts), (status.hidden = false));
    async function request() {
      use.disabled = true;
      try {
        await link.request(scope);
        given = true;
        dialog.close();
      } catch (error) {
        const { code, requestId } = error.details ?? {};
        if (code === "PAIRING_REQUIRED" && requestId) {
          if (status.dataset.request !== requestId) tell("An operator has to approve this device for it, on a page that has the right or on the gateway's machine: ", el("code", {}, `prowess devices approve ${requestId.slice(0, 8)}`));
          status.dataset.request = requestId;
          timer = setTimeout(() => dialog.open && request(), POLL);
        } else {
          use.disabled = false;
          tell(code === "SCOPE_NOT_GRANTED" ? "Your account may not do this. The operator sets it in gateway.auth.trustedProxy.scopes." : words(error.message));
        }
      }
    }
    dialog.addEventListener("close", () => {
      clearTimeout(timer);
      dialog.remove();
      done(given);
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
