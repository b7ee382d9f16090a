/** Lends pi's current model to the sidecar. */

import type { ServerRequestHandlers } from "context-sidecar-client";
import type { Complete, Context } from "./host.js";

type Handler = NonNullable<ServerRequestHandlers["runtime/complete"]>;

/** Answers `runtime/complete` by the model that the user has chosen; `current` is the latest context of pi. */
export function completions(current: () => Context | undefined): Handler {
  return async ({ messages, systemPrompt, maxTokens }, signal) => {
    const context = current();
    const complete = lent(context);
    const model = context?.model;
    if (complete === undefined || model === undefined) throw new Error("this release of pi lends no model");
    const prompt = {
      ...(systemPrompt ? { systemPrompt } : {}),
      messages: [{ role: "user", content: [{ type: "text", text: oneText(messages) }], timestamp: Date.now() }],
    };
    const answer = await complete(model, prompt, { signal, maxTokens });
    if (answer.stopReason === "error") throw new Error(answer.errorMessage ?? "the model has failed");
    const text = answer.content.map((part) => (part.type === "text" ? (part.text ?? "") : "")).join("");
    const { input = 0, output = 0 } = answer.usage ?? {};
    return { text, model: model.id, usage: { inputTokens: input, outputTokens: output } };
  };
}

/** What calls a model with the credentials that pi has; undefined in releases without it. */
function lent(context: Context | undefined): Complete | undefined {
  const registry = context?.modelRegistry;
  const complete = registry?.completeSimple ?? registry?.complete;
  return complete?.bind(registry);
}

/** Whatever the roles, the model is to answer once. */
function oneText(messages: readonly { role: string; content: string }[]): string {
  if (messages.length === 1) return messages[0]?.content ?? "";
  return messages.map(({ role, content }) => `${role}: ${content}`).join("\n\n");
}
