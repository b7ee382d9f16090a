/** The sidecar of one pi process, and what is said to the user when it fails. */

import { leaseSidecar } from "context-sidecar-client";
import type { Lease, ServerRequestHandlers, SidecarClient } from "context-sidecar-client";
import type { Context } from "./host.js";
import type { Settings } from "./settings.js";

export class Child {
  #lease: Lease | undefined;
  #told = "";

  constructor(
    private readonly settings: Settings,
    private readonly requests: ServerRequestHandlers,
  ) {}

  /** The client. Its process starts with the first request, never before. */
  get client(): SidecarClient {
    const { engine, engineSettings, stateDir, command } = this.settings;
    const name = `pi ${JSON.stringify([engine, engineSettings, stateDir, command])}`;
    this.#lease ??= leaseSidecar(name, () => ({
      command,
      stateDir,
      engine,
      host: { id: "pi" },
      messageFormat: "openclaw",
      config: { plugins: { entries: { [engine]: { config: engineSettings } } } },
      requests: this.requests,
      cancelGraceMs: 2_000,
    }));
    return this.#lease.client;
  }

  /** Ends the process, in order where it still answers. Never fails. */
  async release(): Promise<void> {
    const lease = this.#lease;
    this.#lease = undefined;
    await lease?.release().catch(() => undefined);
  }

  /** Tells the user of something that the turn has survived; the same thing once in a row. */
  warn(context: Context, what: string, error: unknown): void {
    const line = `context-sidecar: ${what}: ${error instanceof Error ? error.message : String(error)}`;
    if (line === this.#told) return;
    this.#told = line;
    if (context.hasUI) context.ui.notify(line, "warning");
    else console.error(line);
  }

  /** Says that all is well again, so that the next failure is told. */
  recovered(): void {
    this.#told = "";
  }
}
