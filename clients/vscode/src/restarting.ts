/** Decides whether a process that has ended is started again. */

/** A process may end so often within `WINDOW_MS`; then it stays off until somebody asks for it. */
const MOST = 4;
const WINDOW_MS = 3 * 60_000;

export class Restarts {
  #ends: number[] = [];

  /** Notes that the process has ended; true where it may be started again. */
  allowed(now: number): boolean {
    this.#ends = [...this.#ends.filter((at) => now - at < WINDOW_MS), now];
    return this.#ends.length <= MOST;
  }
}
