/** Asks the sidecar what the model should see. */

import { ErrorCode, isResponseError } from "context-sidecar-client";
import type { AssembleContextParams, AssembledContext, Message } from "context-sidecar-client";
import type { Child } from "./child.js";

/** The context. Where not even the least fits the budget, the least, since pi would send more. */
export async function assemble(
  child: Child,
  request: AssembleContextParams,
  timeoutMs: number,
): Promise<AssembledContext> {
  try {
    return await child.client.assemble(request, { timeoutMs });
  } catch (error) {
    if (!isResponseError(error, ErrorCode.ContextOverflow)) throw error;
    return child.client.assemble({ ...request, tokenBudget: error.data.required }, { timeoutMs });
  }
}

/** The text of the newest message of the user; undefined where there is none. */
export function newestPrompt(messages: readonly Message[]): string | undefined {
  const newest = messages.findLast((message) => (message as { role?: unknown }).role === "user") as
    | { content?: unknown }
    | undefined;
  if (typeof newest?.content === "string") return newest.content;
  if (!Array.isArray(newest?.content)) return undefined;
  return (newest.content as { text?: string }[]).map(({ text }) => text ?? "").join("\n") || undefined;
}
