// Images: which are sent with a message, and how are they shown? Only bytes that are on this page are ever shown.

import { button, el, put, words } from "./dom.js";

/** What models accept, how many images go with one message, and how large each may be, in bytes and pixels. */
const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MOST = 8;
const LARGEST = 5 * 1024 * 1024;
const LONGEST_SIDE = 2048;

/** An image of a message. One that the gateway left out is only named. */
export function image({ mimeType, mediaType, data, fileName }) {
  const type = mimeType ?? mediaType;
  if (!TYPES.includes(type) || typeof data !== "string" || !/^[A-Za-z0-9+/]+=*$/.test(data)) {
    return el("span", { class: "badge" }, "Image", fileName && [": ", words(fileName)]);
  }
  return el("img", { class: "shown", src: `data:${type};base64,${data}`, alt: fileName ? words(fileName).textContent : "Image in this conversation" });
}

/** The images that go with the next message: taken by a button, by pasting, or by dropping them. */
export class Images {
  #list = [];
  #failed;
  #changed;

  constructor({ failed, changed }) {
    this.#failed = failed;
    this.#changed = changed;
    this.node = el("ul", { class: "thumbs", "aria-label": "Images to send", hidden: true });
    this.input = el("input", { type: "file", accept: TYPES.join(","), multiple: true, hidden: true, "aria-label": "Choose images", tabindex: -1, on: { change: () => this.#chosen() } });
  }

  get list() {
    return this.#list;
  }

  /** Takes over `list` in place of what there was. */
  set(list) {
    this.#list = [...list];
    this.#draw();
  }

  /** Listens for images that are pasted into `field` or dropped onto `area`. */
  listen(field, area) {
    field.addEventListener("paste", (event) => this.#given(event, event.clipboardData));
    area.addEventListener("dragover", (event) => {
      if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
      event.preventDefault();
      area.classList.add("dropping");
    });
    area.addEventListener("dragleave", (event) => !area.contains(event.relatedTarget) && area.classList.remove("dropping"));
    area.addEventListener("drop", (event) => {
      area.classList.remove("dropping");
      this.#given(event, event.dataTransfer);
    });
  }

  #given(event, data) {
    const files = [...(data?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    this.add(files);
  }

  #chosen() {
    this.add([...this.input.files]);
    this.input.value = "";
  }

  /** Adds files; says why one cannot be sent. */
  async add(files) {
    for (const file of files) {
      try {
        if (this.#list.length >= MOST) throw new Error(`At most ${MOST} images can be sent with one message.`);
        this.#list.push(await prepare(file));
      } catch (error) {
        this.#failed(error);
      }
    }
    this.#draw();
  }

  #draw() {
    this.node.hidden = !this.#list.length;
    put(this.node, this.#list.map((one, place) => el("li", {}, image(one),
      button("×", () => this.set(this.#list.filter((_, at) => at !== place)), { class: "remove", "aria-label": `Remove ${one.fileName}` }))));
    this.#changed();
  }
}

/** A file as it is sent. Large ones are made smaller, which also removes where and with what they were taken. */
async function prepare(file) {
  const named = `“${file.name || "image"}”`;
  if (!TYPES.includes(file.type)) throw new Error(`${named} cannot be sent. Use a PNG, JPEG, GIF or WebP image.`);
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`${named} cannot be sent: it is not a readable image.`);
  }
  const scale = LONGEST_SIDE / Math.max(bitmap.width, bitmap.height);
  const blob = scale < 1 || file.size > LARGEST ? await smaller(bitmap, Math.min(scale, 1), file.type) : file;
  bitmap.close();
  if (blob.size > LARGEST) throw new Error(`${named} is too large: the limit is ${LARGEST / 1024 / 1024} MB.`);
  return { type: "image", mimeType: blob.type, fileName: file.name || "image", data: await base64(blob) };
}

async function smaller(bitmap, scale, type) {
  const canvas = el("canvas", { width: Math.max(1, Math.round(bitmap.width * scale)), height: Math.max(1, Math.round(bitmap.height * scale)) });
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return new Promise((done, failed) => canvas.toBlob((blob) => (blob ? done(blob) : failed(new Error("The image could not be made smaller."))), type === "image/png" ? type : "image/jpeg", 0.9));
}

function base64(blob) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => done(reader.result.slice(reader.result.indexOf(",") + 1)));
    reader.addEventListener("error", () => failed(new Error("The image could not be read.")));
    reader.readAsDataURL(blob);
  });
}
