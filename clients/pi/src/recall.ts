/** Offers the tools of the engine, by which the model looks up what it no longer sees, and makes room. */

import { ErrorCode, isResponseError } from "context-sidecar-client";
import type { ToolDefinition } from "context-sidecar-client";
import type { Child } from "./child.js";
import type { Context, Tool } from "./host.js";

/** As long as a model may take to sum up what is compacted. */
const TIMEOUT_MS = 120_000;

/** A tool of the sidecar as pi wants it; it looks into the session in which it is called. */
export function recallTool(child: Child, { name, description, inputSchema }: ToolDefinition): Tool {
  return {
    name,
    label: name.replaceAll("_", " "),
    description,
    parameters: inputSchema,
    async execute(_callId, args, signal, _onUpdate, context) {
      const request = { sessionId: context.sessionManager.getSessionId(), name, arguments: args };
      try {
        const { content, structuredContent } = await child.client.request("tools/call", request, {
          timeoutMs: TIMEOUT_MS,
          signal,
        });
        return { content: content.map(({ text }) => ({ type: "text", text })), details: structuredContent ?? undefined };
      } catch (error) {
        if (signal?.aborted) throw error;
        throw new Error(excuse(child, context, name, error));
      }
    },
  };
}

/** What the model is told, so that it can go on. */
function excuse(child: Child, context: Context, name: string, error: unknown): string {
  if (isResponseError(error, ErrorCode.SessionNotFound)) return "Nothing is stored of this conversation yet.";
  if (isResponseError(error, ErrorCode.InvalidParams)) return error.message;
  child.warn(context, `${name} failed`, error);
  return `${name} cannot be used at the moment.`;
}
