/** The stored sessions, newest change first, as many pages as somebody has asked for. */

import type { SessionEntry } from "context-sidecar-client";
import type { Requests } from "../requests.js";
import { isCopy } from "./previews.js";

const PAGE = 100;

/** What has become different since the list was read before. */
export interface Changes {
  /** Sessions that are new or have changed. */
  readonly changed: readonly string[];
  /** True where sessions have come, gone, or moved. */
  readonly list: boolean;
}

export class SessionList {
  #entries: readonly SessionEntry[] = [];
  /** How to go on behind the pages that have been read; undefined at the end. */
  #next: string | undefined;
  #pages = 1;
  #running: Promise<Changes> | undefined;

  constructor(private readonly requests: Requests) {}

  get entries(): readonly SessionEntry[] {
    return this.#entries;
  }

  get hasMore(): boolean {
    return this.#next !== undefined;
  }

  get(sessionId: string): SessionEntry | undefined {
    return this.#entries.find((entry) => entry.sessionId === sessionId);
  }

  /** Reads one page more. */
  async more(): Promise<void> {
    await this.#running;
    this.#pages += 1;
    await this.refresh();
  }

  /** Reads the pages again. */
  refresh(): Promise<Changes> {
    this.#running ??= this.#read().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** Forgets everything, as after a change of the store. */
  clear(): void {
    this.#entries = [];
    this.#next = undefined;
    this.#pages = 1;
  }

  async #read(): Promise<Changes> {
    const found: SessionEntry[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < this.#pages; page += 1) {
      const answer = await this.requests.request("session/list", { limit: PAGE, cursor });
      found.push(...answer.sessions);
      cursor = answer.nextCursor ?? undefined;
      if (cursor === undefined) break;
    }
    this.copies = found.filter(({ sessionId }) => isCopy(sessionId));
    const before = this.#entries;
    this.#entries = found.filter(({ sessionId }) => !isCopy(sessionId));
    this.#next = cursor;
    return changes(before, this.#entries);
  }

  /** Copies that previews work on, as they were when the list was read. */
  copies: readonly SessionEntry[] = [];
}

/** How one list differs from an earlier one. */
export function changes(before: readonly SessionEntry[], after: readonly SessionEntry[]): Changes {
  const known = new Map(before.map((entry) => [entry.sessionId, facts(entry)]));
  const changed = after.filter((entry) => known.get(entry.sessionId) !== facts(entry)).map(({ sessionId }) => sessionId);
  const list = before.length !== after.length || before.some(({ sessionId }, place) => after[place]?.sessionId !== sessionId);
  return { changed, list };
}

function facts({ engine, messageCount, updatedAt, sessionKey }: SessionEntry): string {
  return JSON.stringify([engine, messageCount, updatedAt, sessionKey]);
}
