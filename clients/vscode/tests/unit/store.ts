/** A store of sessions in memory that answers as the sidecar does, in pages that tests can make small. */

import type { ExportedMessage } from "context-sidecar-client";
import type { HostRequests } from "context-sidecar-client";
import type { Params, Requests, Result } from "../../src/requests.js";

export class PagedStore implements Requests {
  messages: ExportedMessage[] = [];
  /** Rises where the history is changed otherwise than by appending. */
  revision = 1;
  /** Names of the methods that were asked, oldest first. */
  readonly asked: string[] = [];

  constructor(private readonly pageSize: number) {}

  say(turnId: string, role: string, content: string): void {
    const messageId = `m${this.messages.length + 1}`;
    this.messages.push({ messageId, turnId, timestamp: "2026-01-01T00:00:00Z", message: { role, content } as ExportedMessage["message"] });
  }

  async request<Method extends keyof HostRequests>(method: Method, params: Params<Method>): Promise<Result<Method>> {
    this.asked.push(method);
    if (method !== "session/export") throw new Error(`${method} is not answered here`);
    return this.#export((params as Params<"session/export">).cursor ?? undefined) as Result<Method>;
  }

  #export(cursor: string | undefined): Result<"session/export"> {
    const [revision, from] = (cursor ?? `${this.revision}-0`).split("-").map(Number) as [number, number];
    if (revision !== this.revision) throw new Error("cursor: the history has changed since");
    const end = from + this.pageSize;
    const nextCursor = end < this.messages.length ? `${this.revision}-${end}` : undefined;
    return { sessionId: "s", messageFormat: "openai", messages: this.messages.slice(from, end), nextCursor };
  }
}
