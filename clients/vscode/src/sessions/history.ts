/** The history of one session: its turns, kept up to date at the price of what was added. */

import type { ExportedMessage } from "context-sidecar-client";
import { excerpt, spoken } from "../reading/messages.js";
import type { Spoken } from "../reading/messages.js";
import type { Requests } from "../requests.js";
import { Turns } from "./turns.js";
import type { Turn } from "./turns.js";

/** Characters of how a message begins. */
const OPENING = 120;

/** How messages begin, by their ids. */
export type Openings = ReadonlyMap<string, Spoken>;

/** Where a page of messages begins. */
interface Page {
  /** How to ask for it; undefined for the first one. */
  readonly cursor: string | undefined;
  /** Position of its first message, from 0. */
  readonly first: number;
}

export class History {
  #turns = new Turns();
  #pages: Page[] = [];
  /** Messages of the last page that have been taken. */
  #taken = 0;
  #running: Promise<void> | undefined;

  constructor(
    private readonly requests: Requests,
    readonly sessionId: string,
  ) {}

  get turns(): Turns {
    return this.#turns;
  }

  /** Reads what is new. A history that was changed otherwise than by appending is read anew. */
  refresh(): Promise<void> {
    this.#running ??= this.#read().finally(() => (this.#running = undefined));
    return this.#running;
  }

  /** The messages of a turn, in their order. */
  async messagesOf(turn: Turn): Promise<ExportedMessage[]> {
    const found: ExportedMessage[] = [];
    let page = this.#pages.findLastIndex(({ first }) => first <= turn.first);
    for (; page >= 0 && page < this.#pages.length && found.length < turn.messageCount; page += 1) {
      const { messages } = await this.#page((this.#pages[page] as Page).cursor);
      const before = found.length;
      found.push(...messages.filter(({ turnId }) => turnId === turn.turnId));
      if (before > 0 && found.length === before) break;
    }
    return found;
  }

  /** How the messages of some turns begin. */
  async openings(turnIds: ReadonlySet<string>): Promise<Openings> {
    await this.refresh();
    const turns = [...turnIds].map((turnId) => this.#turns.get(turnId)).filter((turn) => turn !== undefined);
    const first = Math.min(...turns.map((turn) => turn.first));
    const behind = Math.max(...turns.map((turn) => turn.first + turn.messageCount));
    const found = new Map<string, Spoken>();
    for (const [place, page] of this.#pages.entries()) {
      const next = this.#pages[place + 1]?.first ?? Infinity;
      if (next <= first || page.first >= behind) continue;
      for (const { messageId, turnId, message } of (await this.#page(page.cursor)).messages) {
        if (!turnIds.has(turnId)) continue;
        const { speaker, text } = spoken(message);
        found.set(messageId, { speaker, text: excerpt(text, OPENING) });
      }
    }
    return found;
  }

  /** Every message, page after page. */
  async *messages(): AsyncGenerator<readonly ExportedMessage[]> {
    let cursor: string | undefined;
    do {
      const { messages, nextCursor } = await this.#page(cursor);
      yield messages;
      cursor = nextCursor ?? undefined;
    } while (cursor !== undefined);
  }

  async #read(): Promise<void> {
    try {
      await this.#walk();
    } catch (error) {
      if (this.#pages.length === 0) throw error;
      // The cursor is of a history that is no more, such as one that was rewound.
      this.#forget();
      await this.#walk();
    }
  }

  async #walk(): Promise<void> {
    const last = this.#pages.at(-1);
    let cursor = last?.cursor;
    let known = last !== undefined;
    for (;;) {
      const { messages, nextCursor } = await this.#page(cursor);
      if (!known) {
        this.#pages.push({ cursor, first: this.#turns.messageCount });
        this.#taken = 0;
      }
      // A first page has no cursor that could have become stale; it is shorter where the session was rewound.
      if (messages.length < this.#taken) throw new Error("the history was changed");
      this.#turns.add(messages.slice(this.#taken));
      this.#taken = messages.length;
      if (nextCursor === undefined || nextCursor === null) return;
      cursor = nextCursor;
      known = false;
    }
  }

  #forget(): void {
    this.#turns = new Turns();
    this.#pages = [];
    this.#taken = 0;
  }

  #page(cursor: string | undefined) {
    return this.requests.request("session/export", { sessionId: this.sessionId, cursor });
  }
}
