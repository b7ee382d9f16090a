/** What this plugin uses of opencode 1.18; Kilo has the same hooks. */

export interface ToolState {
  readonly status: "pending" | "running" | "completed" | "error";
  readonly input?: Readonly<Record<string, unknown>>;
  readonly output?: string;
  readonly error?: string;
}

export interface Part {
  readonly id?: string;
  readonly type: string;
  readonly text?: string;
  readonly ignored?: boolean;
  readonly mime?: string;
  readonly url?: string;
  readonly filename?: string;
  readonly callID?: string;
  readonly tool?: string;
  readonly state?: ToolState;
}

export interface Info {
  readonly id: string;
  readonly sessionID: string;
  readonly role: "user" | "assistant";
  readonly time?: { readonly completed?: number };
  /** Of the user's messages. */
  readonly model?: { readonly providerID: string; readonly modelID: string };
}

/** A message with its parts: calls of tools hold their results. */
export interface Entry {
  readonly info: Info;
  readonly parts: readonly Part[];
}

interface Answer<Data> {
  readonly data?: Data;
}

export interface Providers {
  readonly providers: readonly {
    readonly id: string;
    readonly models: Readonly<Record<string, { readonly limit?: { readonly context: number } }>>;
  }[];
}

/** The part of opencode's client that is used. */
export interface Client {
  readonly session: {
    get(request: { path: { id: string } }): Promise<Answer<{ readonly parentID?: string }>>;
    messages(request: { path: { id: string } }): Promise<Answer<Entry[]>>;
  };
  readonly config: { providers(): Promise<Answer<Providers>> };
}

export interface PluginInput {
  readonly client: Client;
}

export interface Tool {
  readonly description: string;
  /** Properties of a JSON schema. */
  readonly args: Readonly<Record<string, unknown>>;
  execute(args: Record<string, unknown>, context: { readonly sessionID: string; readonly abort: AbortSignal }): Promise<string>;
}

export interface Hooks {
  tool?: Record<string, Tool>;
  dispose(): Promise<void>;
  event(input: { event: { type: string; properties: Record<string, unknown> } }): Promise<void>;
  "tool.definition"(input: { toolID: string }, output: { parameters: unknown; jsonSchema?: unknown }): Promise<void>;
  "experimental.chat.messages.transform"(input: object, output: { messages: Entry[] }): Promise<void>;
}
