/** Looks at the store again and again while somebody sees something of it, and at once where the sidecar says so. */

import type { Disposable } from "vscode";

/** Quiet after a notification within which further ones are waited for, in milliseconds. */
const GATHER_MS = 150;

export class Watch implements Disposable {
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | undefined;
  #soon = false;
  #ended = false;

  /**
   * @param look Looks at the store once.
   * @param pauseMs How long to wait between two looks.
   * @param wanted Whether there is a reason to look.
   */
  constructor(
    private readonly look: () => Promise<void>,
    private readonly pauseMs: () => number,
    private readonly wanted: () => boolean,
  ) {
    this.#wait(pauseMs());
  }

  /** Looks at once, or once more after the look that goes on. */
  soon(): void {
    if (this.#ended) return;
    this.#soon = true;
    if (this.#looking === undefined) this.#wait(GATHER_MS);
  }

  dispose(): void {
    this.#ended = true;
    clearTimeout(this.#timer);
  }

  #wait(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (this.#ended) return;
    this.#timer = setTimeout(() => void this.#turn(), milliseconds);
  }

  async #turn(): Promise<void> {
    const asked = this.#soon;
    this.#soon = false;
    if (asked || this.wanted()) {
      this.#looking = this.look().finally(() => (this.#looking = undefined));
      // A look that fails is repeated; the state of the sidecar tells why.
      await this.#looking.catch(() => undefined);
    }
    this.#wait(this.#soon ? GATHER_MS : this.pauseMs());
  }
}
