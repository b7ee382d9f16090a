/** The client that a runtime uses: one sidecar, started when it is first needed. */

import { SidecarConnection } from "./connection.js";
import type { ServerNotificationHandlers, ServerRequestHandlers } from "./connection.js";
import { AssembledResults } from "./deltas.js";
import type { AssembledContext } from "./deltas.js";
import { ClientClosed, ConnectionLost, RequestTimeout, ResponseError, SidecarError } from "./errors.js";
import { locateSidecar } from "./locate.js";
import type { Command } from "./locate.js";
import { PROTOCOL_VERSION } from "./protocol/methods.js";
import type { HostRequests } from "./protocol/methods.js";
import type {
  AssembleContextParams,
  AssembleContextResult,
  ContextEngineCapabilities,
  HostCapability,
  InitializeParams,
  InitializeResult,
  JsonObject,
  MessageFormat,
  RegisterMemoryParams,
} from "./protocol/types.js";

export interface ClientOptions {
  /** The program, or program and arguments; absent, it is looked for (see `locateSidecar`). */
  readonly command?: string | Command | undefined;
  /** The runtime that this client is part of. */
  readonly host: { readonly id: string; readonly version?: string };
  /** Dialect of every message; `openai` unless given. */
  readonly messageFormat?: MessageFormat | undefined;
  /** Id of the context engine; absent, the configuration of the sidecar decides. */
  readonly engine?: string | undefined;
  /** Keeps hosts on one store apart; `host.id` unless given. */
  readonly namespace?: string | undefined;
  /** Folder for what the sidecar keeps. */
  readonly stateDir?: string | undefined;
  /** Overrides in the shape of the configuration file. */
  readonly config?: JsonObject | undefined;
  /** Answers to requests of the sidecar; each one given is declared as a capability of the host. */
  readonly requests?: ServerRequestHandlers | undefined;
  /** Memory sources that `requests["memory/getContext"]` answers; each sidecar that is started is offered them. */
  readonly sources?: readonly RegisterMemoryParams[] | undefined;
  /** Receivers of notifications of the sidecar. */
  readonly notifications?: ServerNotificationHandlers | undefined;
  /** Working directory of the process. */
  readonly cwd?: string | undefined;
  /** Added to the environment of the process. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Receives every line that the sidecar writes to standard error. */
  readonly onLog?: ((line: string) => void) | undefined;
  /** Bound for one request unless the call has its own, in milliseconds; 60 000 unless given. */
  readonly timeoutMs?: number | undefined;
  /** Bound for starting the process and for `initialize`, in milliseconds; 20 000 unless given. */
  readonly startTimeoutMs?: number | undefined;
  /** Silence after a cancellation that makes a process count as hung, in milliseconds; 3 000 unless given. */
  readonly cancelGraceMs?: number | undefined;
}

export interface CallOptions {
  /** Takes the request back. */
  readonly signal?: AbortSignal | undefined;
  /** Bound for this request with all that it waits for, in milliseconds. */
  readonly timeoutMs?: number | undefined;
}

type Params<Method extends keyof HostRequests> = HostRequests[Method]["params"];
type Result<Method extends keyof HostRequests> = HostRequests[Method]["result"];

const CAPABILITIES: readonly (HostCapability & keyof ServerRequestHandlers)[] = [
  "runtime/complete",
  "runtime/compact",
  "runtime/rewriteTranscript",
  "memory/getContext",
];

/** Requests that may be sent a second time after a crash: their effect is the same once or twice. */
const REPEATABLE: ReadonlySet<keyof HostRequests> = new Set([
  "context/bootstrap",
  "context/assemble",
  "context/commitTurn",
  "context/maintain",
  "context/preflight",
  "context/explain",
  "subagent/ended",
  "tools/list",
  "tools/call",
  "engine/list",
  "engine/doctor",
  "session/pins",
  "session/list",
  "session/get",
  "session/export",
  "session/summaries",
]);

/** A process may be started anew this often within `CRASH_WINDOW_MS`; after that the client waits. */
const RESTARTS = 1;
const CRASH_WINDOW_MS = 30_000;
const CLOSE_TIMEOUT_MS = 4_000;

export class SidecarClient {
  readonly #results = new AssembledResults();
  #live: Promise<SidecarConnection> | undefined;
  #capabilities: ContextEngineCapabilities | undefined;
  #pid: number | undefined;
  #crashes: number[] = [];
  #closed = false;

  constructor(private readonly options: ClientOptions) {}

  /** What the sidecar said in its latest `initialize` answer; undefined before the first one. */
  get capabilities(): ContextEngineCapabilities | undefined {
    return this.#capabilities;
  }

  /** Process id of the running sidecar. */
  get pid(): number | undefined {
    return this.#pid;
  }

  /**
   * Starts the sidecar unless it runs. Requests do so by themselves.
   *
   * @throws {SidecarNotFound} where there is none.
   * @throws {ResponseError} where it refuses engine, configuration or store; the message says what to fix.
   */
  async start(): Promise<ContextEngineCapabilities> {
    await this.#connected();
    return this.#capabilities as ContextEngineCapabilities;
  }

  /**
   * Sends a request and waits for its result.
   *
   * A request that a crash interrupts is sent once more to a new process where repeating it is harmless.
   *
   * @throws {ResponseError} where the sidecar answers with an error.
   * @throws {RequestTimeout} where no answer comes in time.
   * @throws {ConnectionLost} where the process ended, twice within half a minute or under a request that cannot be
   * repeated.
   */
  async request<Method extends keyof HostRequests>(
    method: Method,
    params: Params<Method>,
    call: CallOptions = {},
  ): Promise<Result<Method>> {
    return (await this.#send(method, () => params, call)) as Result<Method>;
  }

  /** What the model is to see. Only changes travel; the caller gets whole lists, which it owns. */
  async assemble(params: AssembleContextParams, call: CallOptions = {}): Promise<AssembledContext> {
    const { sessionId } = params;
    let previous = this.#results.latest(sessionId);
    const fill = (): AssembleContextParams => {
      previous = this.#results.latest(sessionId);
      return previous === undefined ? params : { ...params, previousResultId: previous.resultId };
    };
    const result = (await this.#send("context/assemble", fill, call)) as AssembleContextResult;
    return this.#results.complete(sessionId, previous?.messages, result);
  }

  /** Ends the sidecar, in order where it still answers. Later requests are refused. */
  async close(): Promise<void> {
    this.#closed = true;
    const live = this.#live;
    this.#live = undefined;
    if (live === undefined) return;
    const connection = await live.catch(() => undefined);
    await connection?.close(CLOSE_TIMEOUT_MS);
  }

  async #send(method: keyof HostRequests, params: () => object, call: CallOptions): Promise<unknown> {
    const timeoutMs = call.timeoutMs ?? this.options.timeoutMs ?? 60_000;
    const deadline = Date.now() + timeoutMs;
    for (let attempt = 0; ; attempt += 1) {
      const connection = await within(this.#connected(), deadline, method, call.signal);
      try {
        const left = Math.max(1, deadline - Date.now());
        return await connection.request(method, params(), left, call.signal);
      } catch (error) {
        const again = error instanceof ConnectionLost && attempt < RESTARTS && REPEATABLE.has(method);
        if (!again || this.#closed) throw error;
        await connection.ended;
      }
    }
  }

  #connected(): Promise<SidecarConnection> {
    if (this.#closed) return Promise.reject(new ClientClosed("The client is closed."));
    if (this.#live === undefined) {
      const starting = this.#start();
      this.#live = starting;
      starting.catch(() => {
        if (this.#live === starting) this.#live = undefined;
      });
    }
    return this.#live;
  }

  async #start(): Promise<SidecarConnection> {
    const now = Date.now();
    this.#crashes = this.#crashes.filter((at) => now - at < CRASH_WINDOW_MS);
    if (this.#crashes.length > RESTARTS) {
      throw new ConnectionLost(`The sidecar ended ${this.#crashes.length} times within ${CRASH_WINDOW_MS / 1000} s.`);
    }
    const { cwd, stateDir, onLog, requests, notifications, cancelGraceMs = 3_000 } = this.options;
    const env = stateDir === undefined ? this.options.env : { ...this.options.env, CONTEXT_SIDECAR_STATE_DIR: stateDir };
    const command = locateSidecar(this.options.command, { ...process.env, ...env });
    const connection = new SidecarConnection({ command, cwd, env, onLog, requests, notifications, cancelGraceMs });
    let refused = false;
    void connection.ended.then(() => this.#forget(connection, !refused));
    this.#pid = connection.pid;
    try {
      const params = initializeParams(this.options);
      const bound = this.options.startTimeoutMs ?? 20_000;
      const answer = (await connection.request("initialize", params, bound)) as InitializeResult;
      this.#capabilities = answer.capabilities.experimental.contextEngine;
    } catch (error) {
      refused = error instanceof ResponseError;
      connection.kill();
      throw error;
    }
    connection.notify("initialized", {});
    for (const source of this.options.sources ?? []) {
      await connection.request("memory/register", source, this.options.startTimeoutMs ?? 20_000);
    }
    return connection;
  }

  /** Notes that a process has gone, so that the next request starts another one. */
  #forget(connection: SidecarConnection, crashed: boolean): void {
    if (this.#closed) return;
    if (crashed) this.#crashes.push(Date.now());
    if (this.#pid !== connection.pid) return;
    this.#pid = undefined;
    this.#live = undefined;
    this.#results.clear();
  }
}

function initializeParams(options: ClientOptions): InitializeParams {
  const { host, messageFormat, engine, namespace, config } = options;
  const declared = CAPABILITIES.filter((name) => options.requests?.[name] !== undefined);
  return {
    processId: process.pid,
    clientInfo: { name: "context-sidecar-client" },
    capabilities: {},
    initializationOptions: {
      contextEngine: {
        protocolVersion: PROTOCOL_VERSION,
        host,
        hostCapabilities: [...declared, "assembleDelta"],
        messageFormat,
        engine,
        namespace,
        config,
      },
    },
  };
}

/** The value of a promise that others wait for too, as long as this caller has time for it. */
async function within<Value>(
  promise: Promise<Value>,
  deadline: number,
  method: string,
  signal: AbortSignal | undefined,
): Promise<Value> {
  signal?.throwIfAborted();
  let timer: NodeJS.Timeout | undefined;
  let aborted: (() => void) | undefined;
  const limit = new Promise<never>((_, reject) => {
    const late = new RequestTimeout(`${method}: the sidecar did not start in time.`);
    timer = setTimeout(() => reject(late), Math.max(1, deadline - Date.now()));
    aborted = () => reject(signal?.reason ?? new SidecarError("aborted"));
    signal?.addEventListener("abort", aborted, { once: true });
  });
  try {
    return await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
    if (aborted !== undefined) signal?.removeEventListener("abort", aborted);
  }
}
