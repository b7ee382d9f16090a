/** What this extension uses of pi, in types of its own, so that it depends on no release of it. */

import type { Message } from "context-sidecar-client";

export interface Pi {
  on<Name extends keyof PiEvents>(
    event: Name,
    handler: (event: PiEvents[Name]["event"], context: Context) => Promise<PiEvents[Name]["result"] | undefined>,
  ): unknown;
  registerTool(tool: Tool): void;
  registerCommand(name: string, command: Command): void;
  /** Newer releases ask before they render text in the terminal. */
  registerMarkdownTransformer?(transform: (text: string, of: { messageType: string; isStreaming: boolean }) => string): void;
  getAllTools?(): readonly ToolInfo[];
  getActiveTools?(): readonly string[];
}

export interface PiEvents {
  session_start: { event: object; result: undefined };
  before_agent_start: { event: BeforeAgentStart; result: AgentStart };
  context: { event: { messages: Message[] }; result: { messages: Message[] } };
  message_end: { event: { message: Message }; result: undefined };
  turn_end: { event: { messageEntryId?: string }; result: undefined };
  agent_end: { event: object; result: undefined };
  session_before_compact: { event: BeforeCompact; result: CompactDecision };
  session_shutdown: { event: { reason: string }; result: undefined };
}

export interface BeforeAgentStart {
  readonly prompt: string;
  readonly systemPrompt: string;
  /** Newer releases take additions to the system prompt by name. */
  readonly systemPromptOptions?: { sections?: Record<string, string> } | undefined;
}

export interface AgentStart {
  systemPrompt?: string;
  message?: { customType: string; content: string; display: boolean };
}

export interface BeforeCompact {
  readonly preparation: { readonly firstKeptEntryId: string; readonly tokensBefore: number };
  readonly customInstructions?: string | undefined;
  /** Absent in older releases. */
  readonly reason?: "manual" | "threshold" | "overflow" | undefined;
  readonly signal: AbortSignal;
}

export interface CompactDecision {
  cancel?: boolean;
  compaction?: { summary: string; firstKeptEntryId: string; tokensBefore: number; details: unknown };
}

export interface Context {
  readonly hasUI: boolean;
  readonly ui: { notify(message: string, type?: "info" | "warning" | "error"): void };
  readonly sessionManager: SessionManager;
  readonly model: Model | undefined;
  readonly modelRegistry?: ModelRegistry | undefined;
  readonly signal?: AbortSignal | undefined;
  getSystemPrompt(): string;
}

export interface SessionManager {
  getSessionId(): string;
  /** Undefined where the user wants nothing to be kept. */
  getSessionFile(): string | undefined;
  getBranch(): readonly Entry[];
}

/** An entry of the session's file; only those of type `message` carry one. */
export interface Entry {
  readonly type: string;
  readonly message?: Message | undefined;
}

export interface Model {
  readonly id: string;
  readonly contextWindow?: number | undefined;
}

/** Newer releases let extensions call models; credentials stay with pi. */
export interface ModelRegistry {
  completeSimple?: Complete | undefined;
  complete?: Complete | undefined;
}

export type Complete = (
  model: Model,
  context: { systemPrompt?: string; messages: readonly object[] },
  options: { signal: AbortSignal; maxTokens: number },
) => Promise<{
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly stopReason?: string;
  readonly errorMessage?: string;
  readonly usage?: { readonly input: number; readonly output: number };
}>;

export interface ToolInfo {
  readonly name: string;
  readonly description?: string | undefined;
  readonly parameters?: unknown;
}

export interface Tool {
  name: string;
  label: string;
  description: string;
  parameters: unknown;
  execute(
    callId: string,
    args: Record<string, unknown>,
    signal: AbortSignal | undefined,
    onUpdate: unknown,
    context: Context,
  ): Promise<{ content: { type: "text"; text: string }[]; details: unknown }>;
}

export interface Command {
  description: string;
  handler(args: string, context: Context): Promise<void>;
}
