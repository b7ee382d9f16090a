/** Keeps a turn's latest answer, which the host hands back in front of every further call of the model. */

import type { Message } from "context-sidecar-client";
import type { AssembleResult } from "./assembling.js";
import type { AssembleParams } from "./host.js";

export class LatestAnswer {
  #key: { readonly sessionId: string; readonly prompt: string | undefined; readonly budget: number } | undefined;
  #result: AssembleResult | undefined;
  /** The messages as they were given out; the host may change its list. */
  #messages: readonly Message[] = [];

  /** Remembers what was answered within a budget in tokens. */
  keep({ sessionId, prompt }: AssembleParams, tokenBudget: number | undefined, result: AssembleResult): void {
    this.#key = { sessionId, prompt, budget: tokenBudget ?? Infinity };
    this.#result = result;
    this.#messages = [...result.messages];
  }

  /**
   * The answer once more, where its own messages are all that came back for the same prompt, and no less room is left:
   * a list that was assembled is not changed by assembling it. A session of thousands of messages is not sent for that.
   */
  again({ sessionId, prompt, messages }: AssembleParams, tokenBudget: number | undefined): AssembleResult | undefined {
    const key = this.#key;
    if (key === undefined || sessionId !== key.sessionId || prompt !== key.prompt) return undefined;
    const same = messages.length === this.#messages.length && messages.every((message, at) => message === this.#messages[at]);
    if (!same || (tokenBudget ?? Infinity) < key.budget || this.#result === undefined) return undefined;
    return { ...this.#result, messages: [...this.#messages] };
  }

  /** Forgets it, as the next answer is to be another one. */
  clear(): void {
    this.#key = undefined;
    this.#result = undefined;
    this.#messages = [];
  }
}
