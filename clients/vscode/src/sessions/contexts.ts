/** The contexts that have been worked out, so that looking again costs nothing. */

import { preview } from "./previews.js";
import type { Preview } from "./previews.js";
import type { Source } from "./sources.js";
import type { Turn } from "./turns.js";

const MOST = 12;

export interface Looked {
  readonly source: Source;
  /** Undefined: the whole history, what the next request of the agent begins with. */
  readonly turn: Turn | undefined;
  readonly preview: Preview;
}

export class Contexts {
  #known = new Map<string, Promise<Preview>>();

  constructor(private readonly tokenBudget: () => number) {}

  /** What the model sees of a source at a turn, or as a whole. */
  async at(source: Source, turnId: string | undefined): Promise<Looked> {
    // The whole is had without reading it, however long it is.
    const turn = turnId === undefined ? undefined : await turnOf(source, turnId);
    return { source, turn, preview: await this.#preview(source, turn) };
  }

  forget(): void {
    this.#known.clear();
  }

  async #preview(source: Source, turn: Turn | undefined): Promise<Preview> {
    const { updatedAt, engine } = await source.requests.request("session/get", { sessionId: source.sessionId });
    const budget = this.tokenBudget();
    const key = JSON.stringify([source.key, turn?.seenThrough, updatedAt, engine, budget]);
    let made = this.#known.get(key);
    if (made === undefined) {
      made = preview(source.requests, source.sessionId, budget, turn?.seenThrough);
      made.catch(() => this.#known.delete(key));
      this.#known.set(key, made);
      const [oldest] = this.#known.keys();
      if (this.#known.size > MOST && oldest !== undefined) this.#known.delete(oldest);
    }
    return made;
  }
}

async function turnOf({ history, name }: Source, turnId: string): Promise<Turn> {
  await history.refresh();
  const turn = history.turns.get(turnId);
  if (turn === undefined) throw new Error(`${name} has no turn ${turnId}`);
  return turn;
}
