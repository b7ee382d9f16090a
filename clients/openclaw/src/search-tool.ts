/** The tool by which the model looks up what it no longer sees. */

import { ErrorCode, isResponseError } from "context-sidecar-client";
import type { Child } from "./child.js";
import definition from "./context-search.json" with { type: "json" };
import type { ToolContext } from "./host.js";
import { session } from "./session.js";

export const SEARCH_TOOL = definition.name;

const TIMEOUT_MS = 20_000;

/** The tool for one session; none where the host names no session or the engine has no such tool. */
export function searchTool(child: Child, context: ToolContext) {
  const { sessionId } = context;
  const offered = child.client.capabilities?.tools;
  if (!sessionId || (offered !== undefined && !offered.includes(SEARCH_TOOL))) return null;
  const name = session({ ...context, sessionId });
  return {
    name: SEARCH_TOOL,
    label: "Context search",
    description: definition.description,
    parameters: definition.inputSchema,
    async execute(_callId: string, args: Record<string, unknown>, signal?: AbortSignal) {
      try {
        const request = { ...name, name: SEARCH_TOOL, arguments: args };
        const { content, structuredContent, isError } = await child.client.request("tools/call", request, {
          timeoutMs: TIMEOUT_MS,
          signal,
        });
        return { content, details: { ...structuredContent, isError: isError ?? false } };
      } catch (error) {
        if (signal?.aborted) throw error;
        return { content: [{ type: "text", text: excuse(child, error) }], details: { isError: true } };
      }
    },
  };
}

/** What the model is told, so that it can go on. */
function excuse(child: Child, error: unknown): string {
  if (isResponseError(error, ErrorCode.SessionNotFound)) return "Nothing is stored of this conversation yet.";
  if (isResponseError(error, ErrorCode.InvalidParams)) return error.message;
  child.warn("context_search failed", error);
  return "context_search cannot be used at the moment.";
}
