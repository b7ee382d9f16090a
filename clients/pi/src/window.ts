/** Tells how much of the model's window the messages may take. */

import type { Context, Pi } from "./host.js";

const SMALLEST = 1_000;
/** Characters of English prose and JSON that make a token, at least. */
const CHARACTERS = 3.5;

/** Tokens for the messages: the window without the answer, the system prompt and the tools; undefined where unknown. */
export function messageBudget(pi: Pi, context: Context, reserveTokens: number): number | undefined {
  const window = context.model?.contextWindow;
  if (window === undefined || window <= 0) return undefined;
  const fixed = (context.getSystemPrompt().length + toolsLength(pi)) / CHARACTERS;
  const reserve = Math.min(reserveTokens, window / 2);
  return Math.max(SMALLEST, Math.floor(window - reserve - fixed));
}

/** Names of the tools that the model can call. */
export function activeTools(pi: Pi): string[] {
  return [...(pi.getActiveTools?.() ?? [])];
}

function toolsLength(pi: Pi): number {
  const active = new Set(activeTools(pi));
  const tools = (pi.getAllTools?.() ?? []).filter(({ name }) => active.has(name));
  return tools.reduce((length, { name, description, parameters }) => {
    return length + JSON.stringify([name, description, parameters]).length;
  }, 0);
}
