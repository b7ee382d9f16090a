/** The sidecar processes of one window: the language client, and one for each further dialect or file that needs it. */

import { homedir } from "node:os";
import { ResponseError, SidecarClient } from "context-sidecar-client";
import type { ChangedSessionParams, Command, ContextEngineCapabilities, HostRequests, JsonObject, MessageFormat } from "context-sidecar-client";
import * as vscode from "vscode";
import { LanguageClient, RevealOutputChannelOn, State, WorkspaceSymbolRequest } from "vscode-languageclient/node";
import type { LanguageClientOptions, StaticFeature, SymbolInformation, WorkspaceSymbol } from "vscode-languageclient/node";
import { SESSION_SCHEME } from "./documents/names.js";
import { explained } from "./failures.js";
import { located } from "./locating.js";
import type { Params, Requests, Result } from "./requests.js";
import type { Settings } from "./settings.js";

/** `missing`: there is no program; `failed`: it has refused to start, or ended and is not started again. */
export type SidecarState = "stopped" | "starting" | "running" | "missing" | "failed";

/** The dialect of the language client. Sessions of any dialect can be read by it, but not assembled. */
const FORMAT: MessageFormat = "openai";
const OTHERS: readonly string[] = ["anthropic", "openclaw", "openai-responses"] satisfies MessageFormat[];
const DEFAULT_BUDGET = 128_000;

/** Tells the sidecar that its code lenses may open contexts. */
const LENSES_OPEN_CONTEXTS: StaticFeature = {
  fillClientCapabilities(capabilities) {
    capabilities.experimental = { ...(capabilities.experimental as object), commands: { commands: ["contextSidecar.showContext"] } };
  },
  initialize() {},
  getState: () => ({ kind: "static" }),
  clear() {},
};

export class Sidecars implements Requests, vscode.Disposable {
  #client: LanguageClient | undefined;
  #state: SidecarState = "stopped";
  #capabilities: ContextEngineCapabilities | undefined;
  /** Processes beside the language client, by what they are for. */
  #others = new Map<string, SidecarClient>();
  /** Starting and stopping, one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  readonly #stateChanged = new vscode.EventEmitter<SidecarState>();
  readonly #sessionChanged = new vscode.EventEmitter<string>();
  readonly onStateChanged = this.#stateChanged.event;
  /** Says which session the sidecar has told us of. */
  readonly onSessionChanged = this.#sessionChanged.event;

  constructor(
    private settings: Settings,
    private readonly version: string,
    private readonly output: vscode.LogOutputChannel,
  ) {}

  get state(): SidecarState {
    return this.#state;
  }

  get tokenBudget(): number {
    return this.settings.tokenBudget ?? this.#capabilities?.limits.defaultTokenBudget ?? DEFAULT_BUDGET;
  }

  /** Starts the language client unless it runs. Never fails: the state says what came of it. */
  start(): Promise<void> {
    return this.#after(async () => {
      if (this.#state !== "running") await this.#start();
    });
  }

  /** Ends all processes, and starts the language client with these settings. */
  restart(settings: Settings): Promise<void> {
    return this.#after(async () => {
      await this.#stop();
      this.settings = settings;
      await this.#start();
    });
  }

  async request<Method extends keyof HostRequests>(method: Method, params: Params<Method>): Promise<Result<Method>> {
    return (await this.#running()).sendRequest<Result<Method>>(method, params);
  }

  /** Takes settings over that need no other process. */
  adopt(settings: Settings): void {
    this.settings = settings;
  }

  /** Stored sessions and messages that match a query. */
  async symbols(query: string): Promise<readonly (SymbolInformation | WorkspaceSymbol)[]> {
    const client = await this.#running();
    return (await client.sendRequest(WorkspaceSymbolRequest.type, { query })) ?? [];
  }

  /** The connection that speaks a dialect. */
  in(format: MessageFormat): Requests {
    return format === FORMAT ? this : this.#other(`format ${format}`, format, this.settings.config);
  }

  /**
   * A connection that keeps nothing, with the messages of a transcript file as a session.
   *
   * @throws {Error} where the file is no transcript.
   */
  async imported(path: string, sessionId: string): Promise<Requests> {
    const config: JsonObject = { ...this.settings.config, store: { kind: "memory" } };
    const read = async (format: MessageFormat): Promise<Requests> => {
      const requests = this.#other(`files ${format}`, format, config);
      const { reason } = await requests.request("context/bootstrap", { sessionId, sessionFile: path });
      if (!(await has(requests, sessionId))) throw new Error(reason ?? "the file holds no messages");
      return requests;
    };
    try {
      return await read(FORMAT);
    } catch (error) {
      const format = formatOf(error);
      if (format === undefined) throw error;
      return read(format);
    }
  }

  dispose(): void {
    this.#stateChanged.dispose();
    this.#sessionChanged.dispose();
  }

  /** Ends all processes, in order where they still answer. */
  stop(): Promise<void> {
    return this.#after(() => this.#stop());
  }

  async #running(): Promise<LanguageClient> {
    await this.start();
    const client = this.#client;
    if (client === undefined || this.#state !== "running") throw new Error(`context-sidecar is ${this.#state}`);
    return client;
  }

  #after<Value>(work: () => Promise<Value>): Promise<Value> {
    const next = this.#turn.then(work);
    this.#turn = next.catch(() => undefined);
    return next;
  }

  async #start(): Promise<void> {
    const command = located(this.settings.command, process.env, homedir());
    if (command === undefined) return this.#become("missing");
    await this.#stop();
    this.#become("starting");
    const client = this.#languageClient(command);
    this.#client = client;
    try {
      await client.start();
      this.#capabilities = capabilitiesOf(client);
      this.#become("running");
    } catch (error) {
      this.output.error(explained(error));
      this.#become("failed");
    }
  }

  #languageClient([program, ...args]: Command): LanguageClient {
    const { namespace, engine, config } = this.settings;
    const options: LanguageClientOptions = {
      documentSelector: [
        { scheme: "file", language: "jsonl" },
        { scheme: "untitled", language: "jsonl" },
        { scheme: SESSION_SCHEME },
      ],
      initializationOptions: {
        contextEngine: {
          host: { id: "vscode", version: this.version },
          hostCapabilities: ["session/changed"],
          namespace,
          engine,
          config,
          messageFormat: FORMAT,
        },
      },
      outputChannel: this.output,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationFailedHandler: () => false,
    };
    const client = new LanguageClient("contextSidecar", "Context Sidecar", { command: program, args: [...args] }, options);
    client.registerFeature(LENSES_OPEN_CONTEXTS);
    client.onNotification("session/changed", ({ sessionId }: ChangedSessionParams) => this.#sessionChanged.fire(sessionId));
    client.onDidChangeState(({ newState }) => this.#follow(client, newState));
    return client;
  }

  /** The language client restarts a process that has ended, a few times; then it is stopped. */
  #follow(client: LanguageClient, state: State): void {
    if (client !== this.#client) return;
    if (state === State.Running) this.#become("running");
    else if (this.#state === "running") this.#become(state === State.Starting ? "starting" : "failed");
  }

  async #stop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    const others = [...this.#others.values()];
    this.#others.clear();
    await Promise.allSettled([...others.map((other) => other.close()), client?.needsStop() ? client.dispose(4_000) : undefined]);
    if (this.#state !== "missing") this.#become("stopped");
  }

  #other(name: string, format: MessageFormat, config: JsonObject): SidecarClient {
    const known = this.#others.get(name);
    if (known !== undefined) return known;
    const { namespace, engine, command } = this.settings;
    const made = new SidecarClient({
      command: located(command, process.env, homedir()),
      host: { id: "vscode", version: this.version },
      messageFormat: format,
      engine,
      namespace,
      config,
      notifications: { "session/changed": ({ sessionId }) => this.#sessionChanged.fire(sessionId) },
      onLog: (line) => this.output.info(line),
    });
    this.#others.set(name, made);
    return made;
  }

  #become(state: SidecarState): void {
    if (state === this.#state) return;
    this.#state = state;
    this.#stateChanged.fire(state);
  }
}

function capabilitiesOf(client: LanguageClient): ContextEngineCapabilities | undefined {
  const experimental = client.initializeResult?.capabilities.experimental as unknown;
  return (experimental as { contextEngine?: ContextEngineCapabilities } | undefined)?.contextEngine;
}

async function has(requests: Requests, sessionId: string): Promise<boolean> {
  return requests.request("session/get", { sessionId }).then(
    () => true,
    () => false,
  );
}

/** The dialect that a transcript has turned out to be in. */
function formatOf(error: unknown): MessageFormat | undefined {
  const data = error instanceof ResponseError ? error.data : undefined;
  const format = typeof data === "object" && data !== null && "messageFormat" in data ? String(data.messageFormat) : "";
  return OTHERS.includes(format) ? (format as MessageFormat) : undefined;
}
