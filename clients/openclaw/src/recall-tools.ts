/** The tools by which the model looks up what it no longer sees, and makes room. */

import { ErrorCode, isResponseError } from "context-sidecar-client";
import type { Child } from "./child.js";
import type { ToolContext } from "./host.js";
import { session } from "./session.js";
import definitions from "./tools.json" with { type: "json" };

type Definition = (typeof definitions)[number];

/** Every tool that an engine may offer, as the manifest names them. */
export const RECALL_TOOLS: readonly Definition[] = definitions;

/** As long as a model may take to sum up what is compacted. */
const TIMEOUT_MS = 120_000;

/** A tool for one session; none where the host names no session or the engine has no such tool. */
export function recallTool(child: Child, context: ToolContext, definition: Definition) {
  const { sessionId } = context;
  const tool = definition.name;
  const offered = child.client.capabilities?.tools;
  if (!sessionId || (offered !== undefined && !offered.includes(tool))) return null;
  const name = session({ ...context, sessionId });
  return {
    name: tool,
    label: tool.replace("_", " ").replace(/^c/, "C"),
    description: definition.description,
    parameters: definition.inputSchema,
    async execute(_callId: string, args: Record<string, unknown>, signal?: AbortSignal) {
      try {
        const request = { ...name, name: tool, arguments: args };
        const { content, structuredContent, isError } = await child.client.request("tools/call", request, {
          timeoutMs: TIMEOUT_MS,
          signal,
        });
        return { content, details: { ...structuredContent, isError: isError ?? false } };
      } catch (error) {
        if (signal?.aborted) throw error;
        return { content: [{ type: "text", text: excuse(child, tool, error) }], details: { isError: true } };
      }
    },
  };
}

/** What the model is told, so that it can go on. */
function excuse(child: Child, tool: string, error: unknown): string {
  if (isResponseError(error, ErrorCode.SessionNotFound)) return "Nothing is stored of this conversation yet.";
  if (isResponseError(error, ErrorCode.InvalidParams)) return error.message;
  child.warn(`${tool} failed`, error);
  return `${tool} cannot be used at the moment.`;
}
