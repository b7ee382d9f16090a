/** Compacts the context in pi's place. */

import type { CompactContextResult } from "context-sidecar-client";
import type { Child } from "./child.js";
import type { BeforeCompact, CompactDecision, Context } from "./host.js";
import { branch, summaryForPi } from "./history.js";

const BOOTSTRAP_TIMEOUT_MS = 60_000;
const COMPACT_TIMEOUT_MS = 150_000;

/** What pi shall do: take our compaction, leave it, or, where the sidecar fails, make its own (undefined). */
export async function compact(
  child: Child,
  event: BeforeCompact,
  context: Context,
  tokenBudget: number | undefined,
): Promise<CompactDecision | undefined> {
  const { preparation, customInstructions, reason, signal } = event;
  const sessionId = context.sessionManager.getSessionId();
  let answer: CompactContextResult;
  try {
    const messages = branch(context.sessionManager);
    await child.client.request("context/bootstrap", { sessionId, messages }, { timeoutMs: BOOTSTRAP_TIMEOUT_MS, signal });
    const request = {
      sessionId,
      tokenBudget,
      customInstructions,
      force: true,
      compactionTarget: reason === "manual" ? ("threshold" as const) : ("budget" as const),
    };
    answer = await child.client.request("context/compact", request, { timeoutMs: COMPACT_TIMEOUT_MS, signal });
  } catch (error) {
    if (signal.aborted) return { cancel: true };
    child.warn(context, "pi compacts by itself", error);
    return undefined;
  }
  if (!answer.ok) {
    child.warn(context, "pi compacts by itself", answer.reason);
    return undefined;
  }
  // An overflow has to end in a smaller prompt, whoever makes it.
  if (!answer.compacted && reason === "manual") {
    context.ui.notify(`context-sidecar: nothing was compacted: ${answer.reason ?? ""}`, "info");
    return { cancel: true };
  }
  const { firstKeptEntryId, tokensBefore } = preparation;
  const { summary, tokensAfter } = answer.result ?? {};
  return {
    compaction: {
      summary: summaryForPi(summary),
      firstKeptEntryId,
      tokensBefore,
      details: { contextSidecar: { engine: child.client.capabilities?.engine.id, tokensAfter } },
    },
  };
}
