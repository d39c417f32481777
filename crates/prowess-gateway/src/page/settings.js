// Settings: what can be set, of which kind is it, and what is it now? Pure functions over the schema and the file.

/** Stands for a secret that is not shown. */
export const MASKED = "__OPENCLAW_REDACTED__";

/** All settings that the schema knows, with those below names that the configuration has. */
export function settings(schema, config, hints = {}) {
  const found = [];
  walk(schema, [], config, (path, node) => found.push(setting(path, node, hints)));
  return found;
}

function walk(node, path, value, tell) {
  const properties = Object.entries(node.properties ?? {});
  const below = typeof node.additionalProperties === "object" ? Object.keys(value ?? {}).filter((name) => !node.properties?.[name]) : [];
  if (path.length && !properties.length && !below.length && !isSection(node)) return tell(path, node);
  for (const [name, part] of properties) walk(part, [...path, name], value?.[name], tell);
  for (const name of below) walk(node.additionalProperties, [...path, name], value?.[name], tell);
}

const isSection = (node) => node.type === "object" && typeof node.additionalProperties === "object";

function setting(path, node, hints) {
  const name = path.join(".");
  const hint = hints[name] ?? {};
  return {
    path, name, kind: kind(node, hint), help: node.description ?? hint.help ?? "", fallback: node.default,
    choices: choices(node), min: node.minimum, max: node.maximum, text: `${name} ${node.description ?? ""}`.toLowerCase(),
  };
}

function kind(node, hint) {
  const parts = node.anyOf ?? [node];
  if (hint.sensitive || parts.some((part) => part.required?.includes("source"))) return "secret";
  if (choices(node)) return "choice";
  if (node.type === "boolean") return "switch";
  if (node.type === "integer" || node.type === "number") return "number";
  if (node.type === "string") return "text";
  if (node.type === "array" && node.items?.type === "string") return "list";
  return "json";
}

function choices(node) {
  const parts = node.anyOf ?? [node];
  const words = parts.flatMap((part) => part.enum ?? (part.type === "boolean" && node.anyOf ? [true, false] : []));
  return parts.some((part) => part.enum) ? words : undefined;
}

/** What is at a path. */
export const at = (tree, path) => path.reduce((value, name) => value?.[name], tree);

/** Where a value comes from, in words. */
export function origin(path, { parsed, config }) {
  const written = at(parsed, path);
  if (written !== undefined) return typeof written === "string" && written.includes("${") ? "from an environment variable" : "set in the file";
  return at(config, path) === undefined ? "default" : "from an included file";
}

/** What a person typed, as a value. Throws when it is none. */
export function typed({ kind: of, min, max }, text) {
  if (of === "switch") return text === "true";
  if (of === "choice") return text === "true" ? true : text === "false" ? false : text;
  if (of === "list") return text.split("\n").map((line) => line.trim()).filter(Boolean);
  if (of === "number") {
    const number = Number(text);
    if (!text.trim() || !Number.isFinite(number)) throw new Error("Enter a number.");
    if (min !== undefined && number < min) throw new Error(`Enter at least ${min}.`);
    if (max !== undefined && number > max) throw new Error(`Enter at most ${max}.`);
    return number;
  }
  if (of === "json") {
    try {
      return JSON.parse(text);
    } catch (error) {
      throw new Error(`This is not valid JSON: ${error.message}`);
    }
  }
  return text;
}

/** A value as it is shown in a field. */
export function shown({ kind: of }, value) {
  if (value === undefined || value === null) return "";
  if (of === "list" && Array.isArray(value)) return value.join("\n");
  return typeof value === "string" ? value : JSON.stringify(value, null, of === "json" ? 2 : undefined);
}

/** The changes as a merge patch: `undefined` removes. */
export function patch(changes) {
  const whole = {};
  for (const { path, value } of changes) {
    let here = whole;
    for (const name of path.slice(0, -1)) here = here[name] ??= {};
    here[path.at(-1)] = value === undefined ? null : value;
  }
  return whole;
}
