/** One connection to one sidecar process: bounded requests, cancellation, answers to the sidecar's requests. */

import {
  CancellationTokenSource,
  createMessageConnection,
  ResponseError as RpcError,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node";
import type { CancellationToken, MessageConnection } from "vscode-jsonrpc/node";
import { ConnectionLost, ErrorCode, RequestTimeout, ResponseError } from "./errors.js";
import { SidecarProcess } from "./process.js";
import type { ProcessOptions } from "./process.js";
import type { ServerNotifications, ServerRequests } from "./protocol/methods.js";

/** Answers to the requests of the sidecar. `signal` fires when the sidecar no longer wants the answer. */
export type ServerRequestHandlers = {
  readonly [Method in keyof ServerRequests]?: (
    params: ServerRequests[Method]["params"],
    signal: AbortSignal,
  ) => Promise<ServerRequests[Method]["result"]>;
};

/** Receivers of the notifications of the sidecar. */
export type ServerNotificationHandlers = {
  readonly [Method in keyof ServerNotifications]?: (params: ServerNotifications[Method]) => void;
};

export interface ConnectionOptions extends ProcessOptions {
  readonly requests?: ServerRequestHandlers | undefined;
  readonly notifications?: ServerNotificationHandlers | undefined;
  /** How long a process may be silent after a request was cancelled before it counts as hung, in milliseconds. */
  readonly cancelGraceMs: number;
}

/** How long a process may live on after it has closed its output, in milliseconds. */
const LAST_WORD_MS = 1_000;

const SILENT = { error() {}, warn() {}, info() {}, log() {} };

export class SidecarConnection {
  /** Resolves when the connection is of no more use; says why. */
  readonly ended: Promise<string>;
  readonly #process: SidecarProcess;
  readonly #rpc: MessageConnection;
  readonly #losers = new Set<(why: string) => void>();
  #end: string | undefined;
  #received = 0;

  constructor(private readonly options: ConnectionOptions) {
    this.#process = new SidecarProcess(options);
    const { stdin, stdout } = this.#process.child;
    this.#rpc = createMessageConnection(new StreamMessageReader(stdout), new StreamMessageWriter(stdin), SILENT);
    stdout.on("data", () => (this.#received += 1));
    // What breaks the pipes ends the process too, so that there is one end to watch.
    this.#rpc.onError(() => this.#process.kill());
    // A process that has said its last word would be waited for in vain; most end by themselves at once.
    this.#rpc.onClose(() => setTimeout(() => this.#process.kill(), LAST_WORD_MS).unref());
    this.ended = this.#process.ended.then((how) => this.#finish(how));
    this.#answer(options.requests ?? {}, options.notifications ?? {});
    this.#rpc.listen();
  }

  /** Process id of the sidecar; undefined where it could not be started. */
  get pid(): number | undefined {
    return this.#process.child.pid;
  }

  /**
   * The result. An abort is told to the sidecar, whose answer then decides: a result, and its whole effect has
   * happened, or `signal.reason`, and none of it has. A process that stays silent is ended.
   */
  request(method: string, params: object, timeoutMs: number, signal?: AbortSignal): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      if (this.#end !== undefined) return reject(new ConnectionLost(this.#describe(method, this.#end)));
      const source = new CancellationTokenSource();
      let reason: unknown;
      const giveUp = (why: unknown): void => {
        if (reason !== undefined) return;
        reason = why;
        clearTimeout(timer);
        source.cancel();
        const heard = this.#received;
        timer = setTimeout(() => {
          if (this.#received === heard) this.#process.kill();
          settle(() => reject(why));
        }, this.options.cancelGraceMs);
      };
      const late = () => giveUp(new RequestTimeout(`${method}: no answer within ${timeoutMs} ms.`));
      const aborted = () => giveUp(signal?.reason);
      const lost = (why: string) => settle(() => reject(reason ?? new ConnectionLost(this.#describe(method, why))));
      const settle = (finish: () => void): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", aborted);
        this.#losers.delete(lost);
        source.dispose();
        finish();
      };
      let timer = setTimeout(late, timeoutMs);
      signal?.addEventListener("abort", aborted, { once: true });
      this.#losers.add(lost);
      this.#rpc.sendRequest<unknown>(method, params, source.token).then(
        (result) => settle(() => resolve(result)),
        (error: unknown) => settle(() => reject(isCancelled(error) && reason !== undefined ? reason : this.#told(method, error))),
      );
    });
  }

  /** Sends a notification; one that cannot be sent any more is dropped. */
  notify(method: string, params: object): void {
    if (this.#end === undefined) this.#rpc.sendNotification(method, params).catch(() => undefined);
  }

  /** Ends the process: in order where it answers within `timeoutMs`, by force otherwise. */
  async close(timeoutMs: number): Promise<void> {
    const limit = setTimeout(() => this.#process.kill(), timeoutMs);
    try {
      await this.request("shutdown", {}, timeoutMs);
      this.notify("exit", {});
    } catch {
      this.#process.kill();
    }
    await this.ended;
    clearTimeout(limit);
  }

  /** Ends the process at once. What it acknowledged is on the disk. */
  kill(): void {
    this.#process.kill();
  }

  #answer(requests: ServerRequestHandlers, notifications: ServerNotificationHandlers): void {
    for (const [method, handle] of Object.entries(requests)) {
      this.#rpc.onRequest<unknown, unknown>(method, (params: unknown, token: CancellationToken): Promise<unknown> =>
        handle(params as never, signalOf(token)).catch((error: unknown) => {
          if (!token.isCancellationRequested) throw error;
          throw new RpcError(ErrorCode.RequestCancelled, `${method} was taken back.`);
        }),
      );
    }
    for (const [method, take] of Object.entries(notifications)) {
      this.#rpc.onNotification(method, (params: unknown) => take(params as never));
    }
  }

  #finish(how: string): string {
    this.#end = how;
    for (const lose of [...this.#losers]) lose(how);
    this.#rpc.dispose();
    return how;
  }

  /** What the caller is told of an error of the connection. */
  #told(method: string, error: unknown): unknown {
    if (!(error instanceof RpcError)) return new ConnectionLost(this.#describe(method, String(error)));
    const ours = error.code <= -32097 && error.code >= -32099;
    if (ours) return new ConnectionLost(this.#describe(method, error.message));
    return new ResponseError(method, error.code, error.message, error.data);
  }

  #describe(method: string, why: string): string {
    const words = this.#process.lastWords;
    return `${method}: the sidecar ${why}.` + (words === "" ? "" : ` It wrote: ${words}`);
  }
}

function isCancelled(error: unknown): boolean {
  return error instanceof RpcError && error.code === ErrorCode.RequestCancelled;
}

function signalOf(token: CancellationToken): AbortSignal {
  const controller = new AbortController();
  if (token.isCancellationRequested) controller.abort();
  else token.onCancellationRequested(() => controller.abort());
  return controller.signal;
}
