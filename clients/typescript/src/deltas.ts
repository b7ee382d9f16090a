/** Applies the changes of `context/assemble` to earlier results, so that callers see whole lists. */

import type { AssembleContextResult, Message, MessageEdit } from "./protocol/types.js";
import { SidecarError } from "./errors.js";

/** A result of `context/assemble` with its whole list. */
export type AssembledContext = Omit<AssembleContextResult, "messages" | "edits"> & { messages: Message[] };

/**
 * A new list: `previous` with every edit applied. Positions refer to `previous`, ascending, without overlap.
 *
 * @throws {SidecarError} where an edit does not fit the list.
 */
export function applyEdits(previous: readonly Message[], edits: readonly MessageEdit[]): Message[] {
  const list: Message[] = [];
  let at = 0;
  for (const { start, deleteCount, messages } of edits) {
    if (start < at || start + deleteCount > previous.length) {
      throw new SidecarError(`An edit of [${start}, ${start + deleteCount}) does not fit ${previous.length} messages.`);
    }
    for (; at < start; at += 1) list.push(previous[at] as Message);
    for (const message of messages) list.push(message);
    at = start + deleteCount;
  }
  for (; at < previous.length; at += 1) list.push(previous[at] as Message);
  return list;
}

/** Keeps the latest result of each session, of the most recent `limit` sessions. */
export class AssembledResults {
  readonly #latest = new Map<string, { resultId: string; messages: readonly Message[] }>();

  constructor(private readonly limit = 64) {}

  /** What to send as `previousResultId`, and the list that it names. */
  latest(sessionId: string): { resultId: string; messages: readonly Message[] } | undefined {
    return this.#latest.get(sessionId);
  }

  /** The result with its whole list, which the caller owns. */
  complete(
    sessionId: string,
    previous: readonly Message[] | undefined,
    result: AssembleContextResult,
  ): AssembledContext {
    const { messages, edits, ...rest } = result;
    const list = messages ? [...messages] : applyEdits(previous ?? [], edits ?? []);
    this.#latest.delete(sessionId);
    this.#latest.set(sessionId, { resultId: result.resultId, messages: list });
    for (const oldest of this.#latest.keys()) {
      if (this.#latest.size <= this.limit) break;
      this.#latest.delete(oldest);
    }
    return { ...rest, messages: [...list] };
  }

  /** Forgets everything, as a new process knows none of it. */
  clear(): void {
    this.#latest.clear();
  }
}
