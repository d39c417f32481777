// The key of this browser: how is it known on a gateway that is another machine?
//
// An Ed25519 key that the browser keeps to itself: scripts can sign with it and cannot read it. The gateway lets it in
// once a person has approved it, and gives it a token that is of use to nobody without the key.

const [DATABASE, STORE, NAME] = ["prowess", "device", "own"];

/** Whether this browser can have a key here. Browsers only give pages keys that came over HTTPS or from this machine. */
export const possible = () => isSecureContext && Boolean(globalThis.crypto?.subtle && globalThis.indexedDB);

function store(mode, work) {
  return new Promise((done, failed) => {
    const opening = indexedDB.open(DATABASE, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore(STORE);
    opening.onerror = () => failed(opening.error);
    opening.onsuccess = () => {
      const transaction = opening.result.transaction(STORE, mode);
      const request = work(transaction.objectStore(STORE));
      transaction.oncomplete = () => (opening.result.close(), done(request.result));
      transaction.onabort = () => (opening.result.close(), failed(transaction.error));
    };
  });
}

/** The device of this browser, if it has one: its id, its public key, and what the gateway gave it. */
export const known = () => (possible() ? store("readonly", (at) => at.get(NAME)) : Promise.resolve(undefined));

const keep = (device) => store("readwrite", (at) => at.put(device, NAME)).then(() => device);

/** The device of this browser; the first time, it is made. */
export async function own() {
  const before = await known();
  if (before) return before;
  let keys;
  try {
    keys = await crypto.subtle.generateKey({ name: "Ed25519" }, false, ["sign", "verify"]);
  } catch {
    throw new Error("This browser does not support Ed25519 device keys. Update it, or use another browser.");
  }
  const raw = new Uint8Array(await crypto.subtle.exportKey("raw", keys.publicKey));
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", raw));
  const id = Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return keep({ id, publicKey: base64(raw), privateKey: keys.privateKey, token: undefined, scopes: [] });
}

/** Keeps the token that the gateway gave, and what it is good for. */
export async function remember({ deviceToken, scopes }) {
  const device = await known();
  if (device && deviceToken) await keep({ ...device, token: deviceToken, scopes: scopes ?? [] });
}

/** Forgets the token; the key stays, so that the gateway knows the device again. */
export async function forget() {
  const device = await known();
  if (device?.token) await keep({ ...device, token: undefined, scopes: [] });
}

/** `device` of the parameters of `connect`: the proof for one challenge and one purpose. */
export async function prove(device, { client, role, scopes, auth, nonce }) {
  const signedAt = Date.now();
  const token = auth?.token ?? auth?.deviceToken ?? "";
  const text = ["v3", device.id, client.id, client.mode, role, scopes.join(","), signedAt, token, nonce, client.platform, ""].join("|");
  const signature = await crypto.subtle.sign({ name: "Ed25519" }, device.privateKey, new TextEncoder().encode(text));
  return { id: device.id, publicKey: device.publicKey, signature: base64(new Uint8Array(signature)), signedAt, nonce };
}

function base64(bytes) {
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** What people call this browser, as in "Chrome on Android". */
export function name() {
  const agent = navigator.userAgent;
  const first = (table) => table.find(([pattern]) => pattern.test(agent))?.[1];
  const browser = first([[/Edg/, "Edge"], [/Firefox|FxiOS/, "Firefox"], [/Chrome|Chromium|CriOS/, "Chrome"], [/Safari/, "Safari"]]) ?? "Browser";
  const system = first([[/Android/, "Android"], [/iPhone/, "iPhone"], [/iPad/, "iPad"], [/Mac OS X/, "macOS"], [/Windows/, "Windows"], [/CrOS/, "ChromeOS"], [/Linux/, "Linux"]]);
  return system ? `${browser} on ${system}` : browser;
}
