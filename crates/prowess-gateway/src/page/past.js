// The past: what do the messages of a transcript say, one thing after the other?
//
// Pure: messages in, parts out. A part is `{ kind, … }` with one of these kinds: `said` (by a person or a model), `call`,
// `result`, `late` (the result of a command that waited for its approval), `note`.

/** How older transcripts tell the model that its command waits. */
const WAITS = /^The command waits for a person to approve it \(id ([0-9a-f-]{6,})\)/;
/** How older transcripts tell of what came of it: as a person's message, each line with `System: ` in front. */
const NEWS = "System: ";
const CAME = /^Exec (finished|denied|running) \((\S+) id=([^\s,)]+)(?:, code (-?\d+))?\): (.*)$/;

export const textOf = (content) => (typeof content === "string" ? content : (content ?? []).filter((part) => part?.type === "text").map((part) => part.text ?? "").join("\n"));
const callsOf = (content) => (Array.isArray(content) ? content : []).filter((part) => ["toolCall", "toolUse", "tool_use"].includes(part?.type));
export const imagesOf = (content) => (Array.isArray(content) ? content : []).filter((part) => part?.type === "image");

/** For the answer to which question a result says that its command waits; nothing if it does not. */
export function pending({ approval, text }) {
  if (approval) return approval.status === "waiting" ? approval.approvalId ?? "" : undefined;
  return WAITS.exec(text ?? "")?.[1];
}

/** How a command ended whose approval came late. */
export const outcome = (status, isError) => (["denied", "expired", "interrupted"].includes(status) ? status : isError ? "failed" : "completed");

/** The parts of a transcript. */
export function read(messages) {
  // What came of a command that waited is stored as the result of a call of its own. It belongs to the first call.
  const late = new Map(messages.filter(({ approval }) => approval?.toolCallId).map(({ toolCallId, approval }) => [toolCallId, approval.toolCallId]));
  const parts = messages.flatMap(part).filter(({ kind, id }) => kind !== "call" || !late.has(id));
  return parts.map((one) => (one.kind === "result" && late.has(one.id) ? { ...one, id: late.get(one.id), late: true } : one));
}

function part(message) {
  const { role, content, timestamp } = message;
  if (role === "toolResult" || role === "tool") return [result(message)];
  if (role === "user") return person(message);
  const text = textOf(content).trim();
  const parts = [];
  if (text) parts.push({ kind: "said", role, text, images: imagesOf(content), when: timestamp });
  for (const call of callsOf(content)) parts.push({ kind: "call", id: call.id ?? call.toolCallId, name: call.name, args: call.arguments ?? call.input });
  if (message.interrupted) parts.push({ kind: "cut" });
  else if (message.stopReason === "aborted") parts.push({ kind: "note", text: "Stopped" });
  else if (message.errorMessage) parts.push({ kind: "note", text: message.errorMessage, bad: true });
  return parts;
}

function result({ toolCallId: id, toolName: name, isError, content, approval }) {
  const text = textOf(content);
  return { kind: "result", id, name: name ?? "tool", text, images: imagesOf(content), isError, status: approval?.status, waits: pending({ approval, text }) };
}

/** What a person said, after what happened in the meantime. */
function person({ content, timestamp }) {
  const [news, said] = split(textOf(content));
  const images = imagesOf(content);
  const parts = news.map((one) => came(one));
  if (said.trim() || images.length) parts.push({ kind: "said", role: "user", text: said.trim(), images, when: timestamp });
  return parts;
}

/** The news at the start of a message, each with its first line and the rest, and what follows them. */
function split(text) {
  const lines = text.split("\n");
  const end = lines.findIndex((line) => !line.startsWith(NEWS));
  const news = [];
  for (const line of lines.slice(0, end < 0 ? lines.length : end).map((one) => one.slice(NEWS.length))) {
    if (CAME.test(line) || !news.length) news.push([line]);
    else news.at(-1).push(line);
  }
  return [news, end < 0 ? "" : lines.slice(end).join("\n")];
}

function came([first, ...rest]) {
  const found = CAME.exec(first);
  const text = rest.join("\n");
  if (!found) return { kind: "note", text: [first, ...rest].join("\n") };
  const [, how, , question, exit, command] = found;
  return { kind: "late", question, command, text, status: how, isError: how === "finished" && exit !== "0" };
}
