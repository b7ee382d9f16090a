/** One client for many short-lived users of one process, also where this module is loaded more than once. */

import { SidecarClient } from "./client.js";
import type { ClientOptions } from "./client.js";

/** The right to use a shared client until it is released. */
export interface Lease {
  readonly client: SidecarClient;
  /** Gives the lease back; the last one ends the sidecar. A second call does nothing. */
  release(): Promise<void>;
}

interface Shared {
  readonly client: SidecarClient;
  leases: number;
}

const REGISTRY = Symbol.for("context-sidecar-client/shared/1");

/**
 * A lease on the client of this name, which is made from `options` where no lease on it is held.
 *
 * The sidecar starts with its first request and ends with the last lease.
 */
export function leaseSidecar(name: string, options: () => ClientOptions): Lease {
  const clients = registry();
  const shared = clients.get(name) ?? { client: new SidecarClient(options()), leases: 0 };
  clients.set(name, shared);
  shared.leases += 1;
  let held = true;
  return {
    client: shared.client,
    async release() {
      if (!held) return;
      held = false;
      shared.leases -= 1;
      if (shared.leases > 0) return;
      clients.delete(name);
      await shared.client.close();
    },
  };
}

function registry(): Map<string, Shared> {
  const home = globalThis as { [REGISTRY]?: Map<string, Shared> };
  return (home[REGISTRY] ??= new Map<string, Shared>());
}
