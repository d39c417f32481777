// One skill: everything about it, and what can be done.

import { away, badge, brief, button, copyable, el, words } from "./dom.js";
import { standing } from "./skills.js";

const GROUPS = [
  ["bins", "Programs"],
  ["anyBins", "One of these programs"],
  ["env", "Variables"],
  ["config", "Settings"],
  ["os", "Systems"],
];

/** The card of `skill`; `change` is called with what the person wants of it. */
export function card(skill, report, change) {
  const [word, kind] = standing(skill);
  return [
    el("header", { class: "title" },
      el("span", { class: "emoji large", "aria-hidden": "true" }, words(Array.from(skill.emoji ?? "◆").slice(0, 4).join(""))),
      el("div", {}, el("h2", { class: "theirs" }, words(skill.name)), el("div", { class: "line" }, badge(word, kind), badge(skill.tier), skill.always && badge("always"))),
      toggle(skill, change)),
    el("p", { class: "lead theirs" }, words(skill.description)),
    objections(skill),
    key(skill, change),
    needs(skill),
    facts(skill, report),
    shadows(skill, report),
    problems(skill),
  ];
}

function toggle(skill, change) {
  const on = !skill.disabled;
  const pressed = () => change(skill, { enabled: !on }, `${skill.name} is now ${on ? "off" : "on"}`);
  return button(el("span", { class: "knob" }), pressed, {
    class: "switch", role: "switch", "aria-checked": String(on), "aria-label": `Use ${skill.name}`, data: { act: "switch" },
  });
}

/** Why it is not offered, and what would change that. */
function objections(skill) {
  if (!skill.objections.length && !skill.fixes.length) return undefined;
  return el("section", { class: "why" },
    el("h3", {}, skill.objections.length ? "What keeps it back" : "Suggestions"),
    skill.objections.length > 0 && el("ul", { class: "reasons" }, skill.objections.map((one) => el("li", { class: "theirs" }, words(one.message)))),
    skill.fixes.length > 0 && el("div", { class: "fixes" },
      el("h4", {}, "To fix it"),
      skill.fixes.map((fix) => el("div", { class: "fix" }, el("p", { class: "soft theirs" }, words(fix.why)), copyable(fix.command)))));
}

/** A key is typed, sent, and never seen again. */
function key(skill, change) {
  if (!skill.primaryEnv) return undefined;
  const id = "skill-key";
  const input = el("input", {
    id, type: "password", autocomplete: "off", spellcheck: "false", required: true, data: { act: "key" },
    placeholder: skill.hasKey ? "A key is set; type a new one to replace it" : "Paste the key",
  });
  const save = (event) => {
    event.preventDefault();
    const apiKey = input.value.trim();
    input.value = "";
    if (apiKey) change(skill, { apiKey }, `Saved the key of ${skill.name}`);
  };
  const remove = () => change(skill, { apiKey: "" }, `Removed the key of ${skill.name}`);
  return el("section", {},
    el("h3", {}, "Key"),
    el("form", { class: "key", on: { submit: save } },
      el("label", { for: id }, el("code", { class: "theirs" }, words(skill.primaryEnv)), " ", skill.hasKey ? badge("set", "good") : badge("not set", "dim")),
      el("div", { class: "line" }, input,
        el("button", { type: "submit", class: "main", data: { act: "save" } }, "Save"),
        skill.hasKey && button("Remove", remove, { data: { act: "remove" } }))));
}

/** Each need, and whether it is met. */
function needs(skill) {
  const groups = GROUPS.filter(([name]) => skill.requirements[name]?.length);
  if (!groups.length) return undefined;
  const item = (name, what) => {
    const missing = skill.missing[name].includes(what);
    return el("li", { class: missing ? "missing" : "met" },
      el("span", { "aria-hidden": "true" }, missing ? "✗ " : "✓ "), el("span", { class: "quiet" }, missing ? "missing: " : "there: "), el("code", { class: "theirs" }, words(what)));
  };
  return el("section", {},
    el("h3", {}, "Needs"),
    el("dl", { class: "facts" }, groups.map(([name, label]) => [el("dt", {}, label), el("dd", {}, el("ul", { class: "marks" }, skill.requirements[name].map((what) => item(name, what))))])));
}

function facts(skill, report) {
  const command = report.commands?.find((one) => one.skillName === skill.name);
  const rows = [
    ["File", el("code", { class: "theirs" }, words(brief(skill.filePath, report.userHome)))],
    skill.homepage && ["Homepage", away(skill.homepage)],
    command && ["Command", el("code", { class: "theirs" }, `/${command.name}`)],
    ["Visible to the model", skill.modelVisible && !skill.cut ? "yes" : "no"],
    skill.skillKey !== skill.name && ["Settings under", el("code", { class: "theirs" }, words(skill.skillKey))],
    skill.license && ["License", el("span", { class: "theirs" }, words(skill.license))],
    skill.compatibility && ["Compatibility", el("span", { class: "theirs" }, words(skill.compatibility))],
    skill.allowedTools?.length && ["Allowed tools", el("span", { class: "theirs" }, words(skill.allowedTools.join(" ")))],
    skill.install.length && ["Installers", el("ul", { class: "bare" }, skill.install.map((one) => el("li", { class: "theirs" }, words(one.label), one.bins.length > 0 && [" brings ", words(one.bins.join(", "))])))],
  ].filter(Boolean);
  return el("section", {}, el("h3", {}, "About"), el("dl", { class: "facts" }, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
}

/** Others of the same name that it hides. */
function shadows(skill, report) {
  if (!skill.shadowed.length) return undefined;
  return el("section", {},
    el("h3", {}, "Shadows other skills with this name"),
    el("ul", { class: "bare" }, skill.shadowed.map((other) => el("li", {}, badge(other.source, "dim"), " ", el("code", { class: "theirs" }, words(brief(other.filePath, report.userHome)))))));
}

function problems(skill) {
  if (!skill.problems.length) return undefined;
  return el("section", {},
    el("h3", {}, "Notes about the file"),
    el("ul", { class: "bare" }, skill.problems.map((one) => el("li", { class: "remark" },
      badge(one.severity, { error: "bad", warning: "warn" }[one.severity] ?? "dim"),
      el("p", { class: "theirs" }, one.line && `Line ${one.line}: `, words(one.reason)),
      el("p", { class: "soft theirs" }, words(one.fix))))));
}
