/** The panel that shows the context of a turn. */

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { explained } from "../failures.js";
import type { Contexts, Looked } from "../sessions/contexts.js";
import type { Openings } from "../sessions/history.js";
import type { Source } from "../sessions/sources.js";
import { MOST_ROWS, page } from "./page.js";

/** What a button of the panel asks for. */
type Ask = "previous" | "next" | "document" | "compare";

/** What the panel shows, or is about to. */
export interface Place {
  readonly source: Source;
  /** Undefined: the whole history, also as it grows. */
  readonly turnId: string | undefined;
}

export class ContextPanel implements vscode.Disposable {
  #panel: vscode.WebviewPanel | undefined;
  #place: Place | undefined;
  readonly #asked = new vscode.EventEmitter<{ ask: "document" | "compare"; place: Place }>();
  readonly onAsked = this.#asked.event;

  constructor(private readonly contexts: Contexts) {}

  get place(): Place | undefined {
    return this.#place;
  }

  /** Shows a context, in the panel that is open already where one is. */
  async show(place: Place): Promise<void> {
    const looked = await this.contexts.at(place.source, place.turnId);
    const openings = await openingsOf(looked);
    this.#place = place;
    this.#panel ??= this.#open();
    this.#draw(looked, openings);
    this.#panel.reveal(undefined, true);
  }

  /** Draws the context anew after its session has changed. */
  async refresh(source: Source): Promise<void> {
    const place = this.#place;
    if (this.#panel === undefined || place?.source.key !== source.key) return;
    const now: Place = { source, turnId: place.turnId };
    const looked = await this.contexts.at(source, now.turnId);
    const openings = await openingsOf(looked);
    if (this.#place !== place) return;
    this.#place = now;
    this.#draw(looked, openings);
  }

  dispose(): void {
    this.#panel?.dispose();
    this.#asked.dispose();
  }

  #open(): vscode.WebviewPanel {
    const panel = vscode.window.createWebviewPanel("contextSidecar.context", "Context", vscode.ViewColumn.Active, {
      enableScripts: true,
      enableFindWidget: true,
      localResourceRoots: [],
    });
    panel.webview.onDidReceiveMessage((said: unknown) => void this.#take(said));
    panel.onDidDispose(() => {
      this.#panel = undefined;
      this.#place = undefined;
    });
    return panel;
  }

  #draw({ source, turn, preview }: Looked, openings: Openings): void {
    if (this.#panel === undefined) return;
    const first = turn !== undefined && source.history.turns.placeOf(turn.turnId) === 0;
    this.#panel.title = turn === undefined ? `Context: ${source.name}` : `Context ${turn.turnId}: ${source.name}`;
    const title = turn === undefined ? `${source.name}, now` : `${source.name}, turn ${turn.turnId}`;
    const about = turn?.title ? `${source.about} · ${turn.title}` : source.about;
    this.#panel.webview.html = page(
      { title, about, preview, openings, hasPrevious: !first, hasNext: turn !== undefined },
      randomBytes(16).toString("hex"),
    );
  }

  async #take(said: unknown): Promise<void> {
    const place = this.#place;
    const ask = askOf(said);
    if (place === undefined || ask === undefined) return;
    if (ask === "document" || ask === "compare") return this.#asked.fire({ ask, place });
    try {
      await this.show({ source: place.source, turnId: await neighbour(place, ask) });
    } catch (error) {
      void vscode.window.showErrorMessage(explained(error));
    }
  }
}

/** How the messages begin that the panel lists. */
function openingsOf({ source, preview }: Looked): Promise<Openings> {
  return source.history.openings(new Set(preview.decisions.slice(-MOST_ROWS).map(({ turnId }) => turnId)));
}

/** The turn before or after; behind the last one stands the history as a whole. */
async function neighbour({ source, turnId }: Place, ask: "previous" | "next"): Promise<string | undefined> {
  await source.history.refresh();
  const { turns } = source.history;
  const at = turnId === undefined ? turns.list.length : turns.placeOf(turnId);
  return turns.list[Math.max(0, ask === "previous" ? at - 1 : at + 1)]?.turnId;
}

function askOf(said: unknown): Ask | undefined {
  const ask = typeof said === "object" && said !== null && "ask" in said ? said.ask : undefined;
  return ask === "previous" || ask === "next" || ask === "document" || ask === "compare" ? ask : undefined;
}
