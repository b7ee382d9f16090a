/** What the model sees of a session at a turn, worked out on a copy that is erased at once. */

import { randomUUID } from "node:crypto";
import type {
  AssembleContextResult,
  CompositionPart,
  ContextDecision,
  ExplainContextResult,
  InjectedItem,
  SessionEntry,
} from "context-sidecar-client";
import type { Requests } from "../requests.js";

/** Begins the ids of copies. Agents do not name sessions like this. */
const PREFIX = "editor-preview:";
/** A copy of this age was left behind by an editor that ended, in milliseconds. */
const STALE_MS = 10 * 60_000;

export interface Preview {
  readonly messages: readonly unknown[];
  readonly composition: readonly CompositionPart[];
  readonly tokens: number;
  readonly tokenBudget: number;
  readonly systemPromptAddition: string | undefined;
  readonly userMessageAppend: string | undefined;
  readonly decisions: readonly ContextDecision[];
  readonly injected: readonly InjectedItem[];
}

/** True for a copy that a preview works on. */
export function isCopy(sessionId: string): boolean {
  return sessionId.startsWith(PREFIX);
}

/**
 * The context that the session has with its messages up to `atMessageId`, or with all of them.
 *
 * Assembling may write down what was injected, and start an epoch; the agent's own session must not notice that
 * somebody looks at it. A copy takes its summaries, pins, settings along, and copies no message.
 */
export async function preview(
  requests: Requests,
  sessionId: string,
  tokenBudget: number,
  atMessageId?: string,
): Promise<Preview> {
  const copy = `${PREFIX}${randomUUID()}`;
  await requests.request("session/fork", { sessionId, newSessionId: copy, atMessageId });
  try {
    const assembled = await requests.request("context/assemble", { sessionId: copy, tokenBudget });
    const { resultId } = assembled;
    const explained = await requests.request("context/explain", { sessionId: copy, resultId });
    return joined(assembled, explained, tokenBudget);
  } finally {
    await requests.request("session/delete", { sessionId: copy }).catch(() => undefined);
  }
}

/** Erases copies that an editor has left behind when it ended in the middle of a preview. */
export async function eraseStale(requests: Requests, sessions: readonly SessionEntry[], now: number): Promise<void> {
  for (const { sessionId, updatedAt } of sessions) {
    if (!isCopy(sessionId) || now - Date.parse(updatedAt) < STALE_MS) continue;
    await requests.request("session/delete", { sessionId });
  }
}

function joined(assembled: AssembleContextResult, explained: ExplainContextResult, tokenBudget: number): Preview {
  return {
    messages: assembled.messages ?? [],
    composition: assembled.composition,
    tokens: assembled.estimatedTokens,
    tokenBudget,
    systemPromptAddition: assembled.systemPromptAddition ?? undefined,
    userMessageAppend: assembled.userMessageAppend ?? undefined,
    decisions: explained.decisions,
    injected: explained.injected,
  };
}
