/** What commands work with. */

import type { LogOutputChannel } from "vscode";
import type { SessionDocuments } from "../documents/session-documents.js";
import type { Texts } from "../documents/texts.js";
import type { ContextPanel } from "../panel/panel.js";
import type { Contexts } from "../sessions/contexts.js";
import type { SessionList } from "../sessions/session-list.js";
import type { Sources } from "../sessions/sources.js";
import type { Sidecars } from "../sidecars.js";
import type { StatusItem } from "../status.js";
import type { SessionTree } from "../tree/provider.js";
import type { Watch } from "../watching.js";

export interface Surface {
  readonly sidecars: Sidecars;
  readonly list: SessionList;
  readonly tree: SessionTree;
  readonly sources: Sources;
  readonly contexts: Contexts;
  readonly panel: ContextPanel;
  readonly status: StatusItem;
  readonly watch: Watch;
  readonly texts: Texts;
  readonly sessions: SessionDocuments;
  readonly output: LogOutputChannel;
}

/** Does what a command of this name does, with what it was called with. */
export type Action = (surface: Surface, ...given: unknown[]) => Promise<unknown>;
