/** Brings what has changed in the store to everything that shows something of it. */

import type { SessionDocuments } from "./documents/session-documents.js";
import type { ContextPanel } from "./panel/panel.js";
import { eraseStale, isCopy } from "./sessions/previews.js";
import type { SessionList } from "./sessions/session-list.js";
import type { Sources } from "./sessions/sources.js";
import type { Sidecars } from "./sidecars.js";
import type { StatusItem } from "./status.js";
import type { SessionTree } from "./tree/provider.js";

export interface Shown {
  readonly sidecars: Sidecars;
  readonly list: SessionList;
  readonly sources: Sources;
  readonly tree: SessionTree;
  readonly status: StatusItem;
  readonly panel: ContextPanel;
  readonly sessions: SessionDocuments;
}

export class Live {
  /** Sessions of which the sidecar has told us; a pin does not show in the list. */
  #told = new Set<string>();

  constructor(private readonly shown: Shown) {}

  /** Notes that a session has changed; false where nobody needs to know. */
  told(sessionId: string): boolean {
    if (isCopy(sessionId)) return false;
    this.#told.add(sessionId);
    return true;
  }

  /** Looks at the store once. */
  async look(): Promise<void> {
    const { sidecars, list, sources, tree, status, panel, sessions } = this.shown;
    if (sidecars.state !== "running") return;
    const found = await list.refresh();
    const told = this.#told;
    this.#told = new Set();
    if (list.copies.length > 0) await eraseStale(sidecars, list.copies, Date.now());
    const changed = new Set([...found.changed, ...told]);
    if (found.list) tree.refresh();
    for (const sessionId of changed) {
      if (!found.list) tree.refreshSession(sessionId);
      const session = list.get(sessionId);
      if (session === undefined) continue;
      sessions.refresh(sessionId);
      await panel.refresh(sources.ofSession(session));
    }
    const shown = status.source?.session?.sessionId;
    const wanted = list.get(shown ?? "") ?? list.entries[0];
    if (wanted === undefined || changed.has(wanted.sessionId) || shown !== wanted.sessionId) {
      await status.show(wanted && sources.ofSession(wanted));
    }
  }
}
