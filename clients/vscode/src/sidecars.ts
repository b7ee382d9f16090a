/** The sidecar processes of one window: the language client, and one for each further dialect or file that needs it. */

import { homedir } from "node:os";
import { ResponseError, SidecarClient } from "context-sidecar-client";
import type { ChangedSessionParams, ContextEngineCapabilities, HostRequests, JsonObject, MessageFormat } from "context-sidecar-client";
import * as vscode from "vscode";
import { State, WorkspaceSymbolRequest } from "vscode-languageclient/node";
import type { LanguageClient, SymbolInformation, WorkspaceSymbol } from "vscode-languageclient/node";
import { explained } from "./failures.js";
import { capabilitiesOf, languageClient } from "./language-client.js";
import { located } from "./locating.js";
import type { Params, Requests, Result } from "./requests.js";
import { Restarts } from "./restarting.js";
import type { Settings } from "./settings.js";

/** `missing`: there is no program; `failed`: it has refused to start, or ended and is not started again. */
export type SidecarState = "stopped" | "starting" | "running" | "missing" | "failed";

/** The dialect of the language client. Sessions of any dialect can be read by it, but not assembled. */
const FORMAT: MessageFormat = "openai";
const OTHERS: readonly string[] = ["anthropic", "openclaw", "openai-responses"] satisfies MessageFormat[];
const DEFAULT_BUDGET = 128_000;

const NOT_RUNNING: Readonly<Record<SidecarState, string>> = {
  stopped: "context-sidecar has been stopped",
  starting: "context-sidecar is being started again",
  running: "context-sidecar has ended",
  missing: "context-sidecar is not installed, or not where the settings say",
  failed: "context-sidecar does not run; its log says why",
};

export class Sidecars implements Requests, vscode.Disposable {
  #client: LanguageClient | undefined;
  #state: SidecarState = "stopped";
  #capabilities: ContextEngineCapabilities | undefined;
  /** Processes beside the language client, by what they are for. */
  #others = new Map<string, SidecarClient>();
  readonly #restarts = new Restarts();
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

  /**
   * Starts the language client unless that has been done, whatever came of it. Never fails: the state says how it is.
   */
  start(): Promise<void> {
    return this.#after(async () => {
      if (this.#state === "stopped") await this.#start();
    });
  }

  /** Ends all processes, and starts the language client with these settings. */
  restart(settings: Settings): Promise<void> {
    return this.#after(async () => {
      await this.#end();
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
    if (format === FORMAT) return this;
    // Asked for anew each time: after a restart there is another process.
    return { request: (method, params) => this.#other(`format ${format}`, format, this.settings.config).request(method, params) };
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
    return this.#after(async () => {
      await this.#end();
      this.#become("stopped");
    });
  }

  async #running(): Promise<LanguageClient> {
    await this.start();
    const client = this.#client;
    if (client === undefined || this.#state !== "running") throw new Error(NOT_RUNNING[this.#state]);
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
    await this.#end();
    this.#become("starting");
    const { namespace, engine, config } = this.settings;
    const host = { id: "vscode", version: this.version };
    const options = { host, hostCapabilities: ["session/changed"], namespace, engine, config, messageFormat: FORMAT };
    const client = languageClient(command, options, this.output, this.settings.stateDir);
    client.onNotification("session/changed", ({ sessionId }: ChangedSessionParams) => this.#sessionChanged.fire(sessionId));
    client.onDidChangeState(({ newState }) => this.#follow(client, newState));
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

  /** A process that has ended by itself is started again, a few times. */
  #follow(client: LanguageClient, state: State): void {
    if (client !== this.#client || state !== State.Stopped || this.#state !== "running") return;
    if (!this.#restarts.allowed(Date.now())) return this.#become("failed");
    this.#become("starting");
    void this.#after(async () => {
      if (client === this.#client) await this.#start();
    });
  }

  async #end(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    const others = [...this.#others.values()];
    this.#others.clear();
    await Promise.allSettled([...others.map((other) => other.close()), client?.needsStop() ? client.dispose(4_000) : undefined]);
  }

  #other(name: string, format: MessageFormat, config: JsonObject): SidecarClient {
    const known = this.#others.get(name);
    if (known !== undefined) return known;
    const { namespace, engine, command, stateDir } = this.settings;
    const made = new SidecarClient({
      command: located(command, process.env, homedir()),
      host: { id: "vscode", version: this.version },
      messageFormat: format,
      engine,
      namespace,
      config,
      stateDir,
      notifications: { "session/changed": ({ sessionId }) => this.#sessionChanged.fire(sessionId) },
      onLog: (line) => this.output.info(line),
    });
    this.#others.set(name, made);
    return made;
  }

  #become(state: SidecarState): void {
    if (state === this.#state) return;
    this.#state = state;
    this.output.info(`The sidecar is ${state}.`);
    this.#stateChanged.fire(state);
  }
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
