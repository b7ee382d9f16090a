/** What this plugin uses of OpenClaw, in types of its own, so that it depends on no release of it. */

import type { Message } from "context-sidecar-client";

export interface PluginApi {
  readonly pluginConfig?: Readonly<Record<string, unknown>> | undefined;
  readonly logger?: Logger | undefined;
  readonly lifecycle?: { onDispose?(dispose: () => void | Promise<void>): unknown } | undefined;
  registerContextEngine(id: string, factory: () => unknown): void;
  registerTool?(factory: (context: ToolContext) => unknown, options: { name: string }): void;
}

export interface Logger {
  info?(message: string): void;
  warn?(message: string): void;
}

export interface ToolContext {
  readonly sessionId?: string | undefined;
  readonly sessionKey?: string | undefined;
  readonly agentId?: string | undefined;
}

/** The host's model, usable while the call that carries it is running. */
export interface HostModel {
  complete(params: {
    messages: readonly { role: "user" | "assistant"; content: string }[];
    systemPrompt?: string;
    maxTokens: number;
    purpose: string;
    signal: AbortSignal;
  }): Promise<{ text: string; model?: string; usage?: { inputTokens?: number; outputTokens?: number } }>;
}

export interface SessionParams {
  readonly sessionId: string;
  readonly sessionKey?: string | undefined;
  readonly agentId?: string | undefined;
  readonly sessionTarget?: { readonly agentId?: string | undefined } | undefined;
}

/** The context of a call. It holds secrets: only `llm` is ever read, and nothing of it leaves the process. */
export interface RuntimeContext {
  readonly llm?: HostModel | undefined;
}

export interface LifecycleParams extends SessionParams {
  readonly sessionFile?: string | undefined;
  readonly runtimeContext?: RuntimeContext | undefined;
  readonly abortSignal?: AbortSignal | undefined;
}

export interface AssembleParams extends SessionParams {
  readonly messages: Message[];
  readonly tokenBudget?: number | undefined;
  readonly prompt?: string | undefined;
  readonly model?: string | undefined;
  readonly availableTools?: Iterable<string> | undefined;
  readonly citationsMode?: string | undefined;
}

export interface CompactParams extends LifecycleParams {
  readonly tokenBudget?: number | undefined;
  readonly currentTokenCount?: number | undefined;
  readonly compactionTarget?: "budget" | "threshold" | undefined;
  readonly customInstructions?: string | undefined;
  readonly force?: boolean | undefined;
}

export interface CommitParams extends SessionParams {
  readonly advancementKey: string;
  readonly messages: Message[];
  readonly isHeartbeat?: boolean | undefined;
  readonly admission?: { readonly agentId?: string | undefined } | undefined;
}

export interface AfterTurnParams extends SessionParams {
  readonly messages: Message[];
  readonly prePromptMessageCount?: number | undefined;
  readonly isHeartbeat?: boolean | undefined;
  readonly tokenBudget?: number | undefined;
}

export interface IngestParams extends SessionParams {
  readonly message: Message;
  readonly isHeartbeat?: boolean | undefined;
}

export interface IngestBatchParams extends SessionParams {
  readonly messages: Message[];
  readonly isHeartbeat?: boolean | undefined;
}

export interface SpawnParams {
  readonly parentSessionKey: string;
  readonly childSessionKey: string;
  readonly contextMode?: "isolated" | "fork" | undefined;
  readonly parentSessionId?: string | undefined;
  readonly childSessionId?: string | undefined;
  readonly ttlMs?: number | undefined;
}

export interface SubagentEndedParams {
  readonly childSessionKey: string;
  readonly reason: "deleted" | "completed" | "swept" | "released";
}
