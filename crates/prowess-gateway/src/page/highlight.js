// The colours of code: comments, strings, numbers and the words of a language. It guesses, and never changes the text.

import { el, words } from "./dom.js";

/** The longest code that is coloured. */
const LONGEST = 60000;

const SLASHES = String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`;
const HASH = String.raw`(?<![\w$&])#[^\n]*`;
const DASHES = String.raw`--[^\n]*`;
const C_WORDS = "break case catch class const continue default do else enum export extends false finally for function if implements import in instanceof interface let new null return static struct super switch this throw true try type typeof var void while async await yield of from as private protected public final int long double float bool boolean char string unsigned package func go defer chan map range nil fn impl match mod mut pub ref self Self trait use where unsafe dyn loop namespace template using virtual override auto";
const LANGUAGES = [
  ["js jsx ts tsx javascript typescript java c cpp c++ h cs csharp go kotlin swift php scala dart json json5 jsonc css", SLASHES, C_WORDS],
  ["rust rs", SLASHES, C_WORDS, String.raw`b?"(?:[^"\\]|\\[\s\S])*"?|'(?:[^'\\\n]|\\.)'`],
  ["py python", HASH, "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield match case self"],
  ["rb ruby", HASH, "begin break case class def do else elsif end ensure false for if in module next nil not or raise redo rescue return self super then true unless until when while yield"],
  ["sh bash zsh shell console fish dockerfile make makefile", HASH, "if then else elif fi for in do done while until case esac function return export local set unset source exit FROM RUN COPY ENV WORKDIR CMD ENTRYPOINT ARG EXPOSE"],
  ["yaml yml toml ini conf", HASH, "true false null yes no on off"],
  ["sql", DASHES, "select from where and or not insert into values update set delete create table alter drop index join left right inner outer on group by order having limit offset as distinct union all null primary key references default exists in is like between case when then else end with"],
];
const STRING = String.raw`"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|` + "`(?:[^`\\\\]|\\\\.)*`?";
const NUMBER = String.raw`\b(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:[eE][+-]?\d+)?)\b`;

const TABLE = new Map(LANGUAGES.flatMap(([names, comment, list, string = STRING]) => {
  const entry = { pattern: new RegExp(`(${comment})|(${string})|(${NUMBER})|([A-Za-z_]\\w*)`, "g"), words: new Set(list.split(" ")), folds: names === "sql" };
  return names.split(" ").map((name) => [name, entry]);
}));

/** Code with its colours, as nodes. */
export function highlight(text, language) {
  const known = TABLE.get(language.toLowerCase());
  if (!known || text.length > LONGEST) return words(text);
  const out = [];
  let last = 0;
  for (const found of text.matchAll(known.pattern)) {
    const [all, comment, string, number, word] = found;
    const kind = (comment && "comment") || (string && "string") || (number && "number") || (known.words.has(known.folds ? word.toLowerCase() : word) && "word");
    if (!kind) continue;
    out.push(words(text.slice(last, found.index)), el("span", { class: `hl-${kind}` }, words(all)));
    last = found.index + all.length;
  }
  return [out, words(text.slice(last))];
}
