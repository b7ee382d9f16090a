/** Messages of opencode as those of Anthropic's Messages API, and back. */

import type { Message } from "context-sidecar-client";
import type { Entry, Part } from "./host.js";

type Block = Record<string, unknown> & { readonly type: string };

interface Wire {
  readonly role: "user" | "assistant";
  readonly content: Block[] | string;
}

/** A message, and what stands for it on the wire: an answer is followed by the results of its calls. */
export interface Encoded {
  readonly entry: Entry;
  readonly wire: readonly Message[];
}

const UNFINISHED = "The tool was interrupted.";

/** Whether nothing of a turn is still to come: it has an answer, and each call has its result. */
export function isComplete(turn: readonly Entry[]): boolean {
  const answers = turn.filter(({ info }) => info.role === "assistant");
  const ended = (part: Part) => part.state?.status === "completed" || part.state?.status === "error";
  return (
    answers.length > 0 &&
    answers.every(({ info, parts }) => info.time?.completed !== undefined && parts.every((part) => !isCall(part) || ended(part)))
  );
}

/** What stands for each message; messages without content, such as answers that failed at once, stand for nothing. */
export function encode(entries: readonly Entry[]): Encoded[] {
  return entries.map((entry) => ({ entry, wire: wireOf(entry) }));
}

function wireOf({ info, parts }: Entry): Message[] {
  const content = parts.flatMap((part) => blockOf(part, info.role));
  const calls = info.role === "assistant" ? parts.filter(isCall) : [];
  const wire: Wire[] = content.length > 0 ? [{ role: info.role, content }] : [];
  if (calls.length > 0) wire.push({ role: "user", content: calls.map(resultOf) });
  return wire as unknown as Message[];
}

function isCall({ type, callID }: Part): boolean {
  return type === "tool" && callID !== undefined;
}

function blockOf(part: Part, role: "user" | "assistant"): Block[] {
  if (part.ignored === true) return [];
  if (part.type === "text" && part.text) return [{ type: "text", text: part.text }];
  if (part.type === "reasoning" && part.text) return [{ type: "thinking", thinking: part.text }];
  if (part.type === "file" && part.url) {
    const type = part.mime?.startsWith("image/") ? "image" : "document";
    return [{ type, source: { type: "url", url: part.url } }];
  }
  if (role === "assistant" && isCall(part)) {
    return [{ type: "tool_use", id: part.callID, name: part.tool, input: part.state?.input ?? {} }];
  }
  return [];
}

function resultOf({ callID, state }: Part): Block {
  const failed = state?.status !== "completed";
  const content = state?.output ?? state?.error ?? UNFINISHED;
  return { type: "tool_result", tool_use_id: callID, content, ...(failed ? { is_error: true } : {}) };
}

/** The messages of an answer: kept ones are the very objects that they were, others are made after `like`. */
export function decode(answer: readonly Message[], encoded: readonly Encoded[], like: Entry): Entry[] {
  const kept = new Map<string, Encoded[]>();
  const calls = new Map<unknown, Part>();
  for (const each of encoded) {
    const key = keyOf(each.wire[0]);
    if (key !== undefined) kept.set(key, [...(kept.get(key) ?? []), each]);
    for (const part of each.entry.parts) if (isCall(part)) calls.set(part.callID, part);
  }
  const entries: Entry[] = [];
  // From the end: of messages that say the same the newest are kept.
  for (let at = answer.length - 1; at >= 0; at -= 1) {
    const results = resultsOf(answer[at]);
    if (results.size > 0) at -= 1;
    const message = answer[at];
    if (message === undefined) break;
    const own = kept.get(keyOf(message) ?? "")?.pop();
    entries.push(own === undefined ? made(message, results, calls, like, at) : withResults(own.entry, results));
  }
  return entries.reverse();
}

function keyOf(message: Message | undefined): string | undefined {
  return message === undefined ? undefined : JSON.stringify(message);
}

/** The results of a message that holds nothing else. */
function resultsOf(message: Message | undefined): Map<unknown, string> {
  const { content } = (message ?? {}) as Partial<Wire>;
  const results = new Map<unknown, string>();
  for (const block of Array.isArray(content) ? content : []) {
    if (block.type === "tool_result") results.set(block["tool_use_id"], textOf(block["content"]));
  }
  return results;
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return Array.isArray(content) ? content.map(({ text }: { text?: string }) => text ?? "").join("\n") : "";
}

/** The message itself, unless the sidecar replaced the result of one of its calls. */
function withResults(entry: Entry, results: ReadonlyMap<unknown, string>): Entry {
  const parts = entry.parts.map((part) => {
    const text = isCall(part) ? results.get(part.callID) : undefined;
    return text === undefined || text === resultOf(part)["content"] ? part : withOutput(part, text);
  });
  return parts.every((part, at) => part === entry.parts[at]) ? entry : { ...entry, parts };
}

function withOutput(part: Part, output: string): Part {
  return { ...part, state: { ...part.state, status: "completed", output } };
}

function made(
  message: Message,
  results: ReadonlyMap<unknown, string>,
  calls: ReadonlyMap<unknown, Part>,
  like: Entry,
  at: number,
): Entry {
  const { role, content } = message as unknown as Wire;
  const id = `${like.info.id}_context_${at}`;
  const blocks: Block[] = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const parts = blocks.flatMap((block, number): Part[] => {
    const place = { id: `${id}_${number}`, sessionID: like.info.sessionID, messageID: id };
    if (block.type === "text") return [{ ...place, type: "text", text: String(block["text"]) }];
    const call = block.type === "tool_use" ? calls.get(block["id"]) : undefined;
    return call === undefined ? [] : [withOutput(call, results.get(call.callID) ?? UNFINISHED)];
  });
  return { info: { ...like.info, id, role }, parts };
}
