// Copying: how does a text reach the clipboard, also on a page that came over plain HTTP?

import { button, el } from "./dom.js";

/** A button that copies what `text` gives when it is pressed, and says whether it did. */
export function copyButton(text, label = "Copy", props = {}) {
  const node = button("Copy", async () => {
    const done = await copy(text());
    node.textContent = done ? "Copied" : "Not copied";
    setTimeout(() => (node.textContent = "Copy"), 1500);
  }, { class: "plain small", "aria-label": label, ...props });
  return node;
}

async function copy(text) {
  try {
    if (navigator.clipboard) return await navigator.clipboard.writeText(text), true;
  } catch {
    // The browser forbids it here; the older way may still work.
  }
  const field = el("textarea", { class: "quiet", "aria-hidden": "true" });
  field.value = text;
  const focused = document.activeElement;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  focused?.focus();
  return done;
}
