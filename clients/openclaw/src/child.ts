/** The sidecar process that all instances of the plugin in one host process share. */

import { leaseSidecar } from "context-sidecar-client";
import type { Lease, SidecarClient } from "context-sidecar-client";
import { complete } from "./completions.js";
import type { Logger } from "./host.js";
import type { Settings } from "./settings.js";

export class Child {
  #lease: Lease | undefined;

  constructor(
    private readonly settings: Settings,
    private readonly logger: Logger | undefined,
  ) {}

  /** The shared client. Its process starts with the first request, never before. */
  get client(): SidecarClient {
    const { engine, engineSettings, stateDir, command } = this.settings;
    const name = `openclaw ${JSON.stringify([engine, engineSettings, stateDir, command])}`;
    this.#lease ??= leaseSidecar(name, () => ({
      command,
      stateDir,
      engine,
      host: { id: "openclaw" },
      messageFormat: "openclaw",
      config: { plugins: { entries: { [engine]: { config: engineSettings } } } },
      requests: { "runtime/complete": complete },
      cwd: undefined,
      cancelGraceMs: 2_000,
    }));
    return this.#lease.client;
  }

  /** Gives up this instance's share; the last one ends the process. Never fails. */
  async release(): Promise<void> {
    const lease = this.#lease;
    this.#lease = undefined;
    await lease?.release().catch((error: unknown) => this.warn("could not end the sidecar in order", error));
  }

  /** Tells the operator of something that a turn has survived. */
  warn(what: string, error: unknown): void {
    const why = error instanceof Error ? error.message : String(error);
    this.logger?.warn?.(`context-sidecar: ${what}: ${why}`);
  }
}
