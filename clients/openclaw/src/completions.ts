/** Lends the host's model to the sidecar, while a call that carries it is running. */

import type { ServerRequestHandlers } from "context-sidecar-client";
import type { HostModel } from "./host.js";

const REGISTRY = Symbol.for("context-sidecar/openclaw/models/1");

/** Runs `work` while the sidecar may ask for completions on behalf of this session. */
export async function lending<Result>(
  sessionId: string,
  model: HostModel | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  if (typeof model?.complete !== "function") return work();
  const models = lent();
  const turn = { sessionId, model };
  models.add(turn);
  try {
    return await work();
  } finally {
    models.delete(turn);
  }
}

/** Answers `runtime/complete` by a model that is lent for the session. */
export const complete: NonNullable<ServerRequestHandlers["runtime/complete"]> = async (params, signal) => {
  // A request that names no session can only be told from the calls that run; two of them leave it open.
  const turns = [...lent()].filter(({ sessionId }) => !params.sessionId || sessionId === params.sessionId);
  const [turn] = turns;
  if (turn === undefined || (!params.sessionId && turns.length > 1)) throw new Error("the host lends its model during bootstrap, maintain and compact only");
  const { text, model, usage } = await turn.model.complete({
    messages: params.messages.map(({ role, content }) => ({ role: role === "assistant" ? "assistant" : "user", content })),
    ...(params.systemPrompt ? { systemPrompt: params.systemPrompt } : {}),
    maxTokens: params.maxTokens,
    purpose: `context-sidecar ${params.purpose}`,
    signal,
  });
  const { inputTokens = 0, outputTokens = 0 } = usage ?? {};
  return { text, model, usage: { inputTokens, outputTokens } };
};

/** The host evaluates this module more than once; the models are common to all. */
function lent(): Set<{ sessionId: string; model: HostModel }> {
  const home = globalThis as { [REGISTRY]?: Set<{ sessionId: string; model: HostModel }> };
  return (home[REGISTRY] ??= new Set());
}
