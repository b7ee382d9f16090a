/** Asks the sidecar what the model should see, and falls back to what the host has. */

import { ErrorCode, isResponseError } from "context-sidecar-client";
import type { AssembleContextParams, AssembledContext, Message } from "context-sidecar-client";
import type { Child } from "./child.js";
import type { AssembleParams } from "./host.js";
import { session } from "./session.js";

export interface AssembleResult {
  messages: Message[];
  estimatedTokens: number;
  systemPromptAddition?: string;
  promptAuthority?: "assembled" | "preassembly_may_overflow";
}

/** An answer, and whether the sidecar gave it. */
export interface Assembled {
  readonly result: AssembleResult;
  readonly fromSidecar: boolean;
}

/** The context, or the host's own messages where the sidecar gives none in time. Never fails. */
export async function assemble(
  child: Child,
  params: AssembleParams,
  tokenBudget: number | undefined,
  timeoutMs: number,
): Promise<Assembled> {
  const { messages, prompt, model, availableTools, citationsMode } = params;
  const request: AssembleContextParams = {
    ...session(params),
    messages,
    tokenBudget,
    prompt,
    model,
    availableTools: availableTools === undefined ? undefined : [...availableTools],
    citationsMode,
  };
  try {
    return { result: result(await assembleWithin(child, request, timeoutMs)), fromSidecar: true };
  } catch (error) {
    child.warn("the turn goes on with the unchanged messages", error);
    return { result: { messages, estimatedTokens: roughTokens(messages) }, fromSidecar: false };
  }
}

/** The answer; where not even the least fits the budget, the least, since the host would send more. */
async function assembleWithin(child: Child, request: AssembleContextParams, timeoutMs: number): Promise<AssembledContext> {
  try {
    return await child.client.assemble(request, { timeoutMs });
  } catch (error) {
    if (!isResponseError(error, ErrorCode.ContextOverflow)) throw error;
    return child.client.assemble({ ...request, tokenBudget: error.data.required }, { timeoutMs });
  }
}

const AUTHORITIES = ["assembled", "preassembly_may_overflow"] as const;

function result(context: AssembledContext): AssembleResult {
  const { messages, estimatedTokens, systemPromptAddition, userMessageAppend, promptAuthority } = context;
  // The host has no place for text at the end of the user's message.
  const addition = [systemPromptAddition, userMessageAppend].filter(Boolean).join("\n\n");
  // A value that a newer sidecar has is left out: the host knows these two.
  const authority = AUTHORITIES.find((known) => known === promptAuthority);
  return {
    messages,
    estimatedTokens,
    ...(addition === "" ? {} : { systemPromptAddition: addition }),
    ...(authority ? { promptAuthority: authority } : {}),
  };
}

function roughTokens(messages: Message[]): number {
  return Math.ceil(JSON.stringify(messages).length / 4);
}
