/** Shows what the context is made of. */

import type { AssembledContext, ContextEngineCapabilities } from "context-sidecar-client";

const WIDTH = 24;

/** Lines for the user: engine, size, a bar per part. */
export function describe(
  engine: ContextEngineCapabilities["engine"] | undefined,
  latest: AssembledContext | undefined,
  budget: number | undefined,
): string {
  const name = engine === undefined ? "no sidecar yet" : `engine ${engine.id} ${engine.version}`;
  if (latest === undefined) return `Context: ${name}. Nothing was assembled in this session yet.`;
  const { estimatedTokens, contextEpoch, messages, composition, stablePrefix } = latest;
  const of = budget === undefined ? "" : ` of ${count(budget)} (${Math.round((100 * estimatedTokens) / budget)} %)`;
  return [
    `Context: ${name}`,
    `${count(estimatedTokens)} tokens${of} in ${count(messages.length)} messages, epoch ${contextEpoch}`,
    ...composition.map(({ kind, tokens, messageCount }) => {
      const share = estimatedTokens > 0 ? tokens / estimatedTokens : 0;
      const bar = "█".repeat(Math.round(share * WIDTH)).padEnd(WIDTH, "·");
      return `  ${kind.padEnd(12)} ${bar} ${count(tokens)} tokens, ${count(messageCount)} messages`;
    }),
    `  cacheable    the first ${count(stablePrefix.messageCount)} messages, ${count(stablePrefix.tokens)} tokens`,
  ].join("\n");
}

function count(value: number): string {
  return value.toLocaleString("en-US");
}
