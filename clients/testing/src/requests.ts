/** Reads the requests that reached the model. */

import assert from "node:assert/strict";
import type { ChatRequest } from "./model.js";

/** Text of a message, whatever the shape of its content. */
export function textOf({ content }: { readonly content?: unknown }): string {
  const parts = Array.isArray(content) ? (content as { text?: string }[]).map(({ text }) => text ?? "") : [String(content ?? "")];
  return parts.join("\n").trim();
}

/** Texts of users and assistants in their order. */
export function texts(request: ChatRequest | undefined): string[] {
  const spoken = (request?.messages ?? []).filter(({ role }) => role === "user" || role === "assistant");
  return spoken.map(textOf).filter((text) => text !== "");
}

/** Results of tools in their order. */
export function toolResults(request: ChatRequest | undefined) {
  return (request?.messages ?? []).filter(({ role }) => role === "tool");
}

/** Calls of tools in their order. */
export function toolCalls(request: ChatRequest | undefined) {
  return (request?.messages ?? []).flatMap(({ tool_calls }) => tool_calls ?? []);
}

/** Every call has its result, in order, and no result is without its call. */
export function assertPaired(request: ChatRequest | undefined): void {
  assert.deepEqual(
    toolResults(request).map(({ tool_call_id }) => tool_call_id),
    toolCalls(request).map(({ id }) => id),
  );
}

/** None of these texts stands in the list more than once. */
export function assertOnce(said: readonly string[], shown: readonly string[]): void {
  for (const text of said) {
    assert.ok(shown.filter((other) => other === text).length <= 1, `twice in the prompt: ${text.slice(0, 60)}`);
  }
}

/** Length of all that is not the system prompt, in characters. */
export function sizeOf(request: ChatRequest | undefined): number {
  return JSON.stringify(request?.messages.slice(1) ?? []).length;
}
