/** The status item: how full the window of the session is that was looked at last, or else has changed last. */

import * as vscode from "vscode";
import { bar, percent, short } from "./reading/composition.js";
import { fillTable } from "./reading/fill-table.js";
import { excerpt } from "./reading/messages.js";
import type { Contexts, Looked } from "./sessions/contexts.js";
import type { Source } from "./sessions/sources.js";
import type { SidecarState } from "./sidecars.js";

const CELLS = 8;
/** Percent of the window from which the item warns. */
const FULL = 90;

const STATES: Readonly<Record<Exclude<SidecarState, "running">, readonly [text: string, tooltip: string, command: string]>> = {
  stopped: ["$(graph) Context", "The sidecar is not running. Click to start it.", "contextSidecar.restart"],
  starting: ["$(loading~spin) Context", "The sidecar starts.", "contextSidecar.showLog"],
  missing: ["$(warning) Context: not installed", "context-sidecar is not installed. Click to see how to get it.", "contextSidecar.howToInstall"],
  failed: ["$(error) Context: not running", "The sidecar has refused to start. Click to see its log.", "contextSidecar.showLog"],
};

export class StatusItem implements vscode.Disposable {
  readonly #item = vscode.window.createStatusBarItem("contextSidecar.fill", vscode.StatusBarAlignment.Right, 90);
  #source: Source | undefined;
  #drawing: Promise<void> | undefined;
  #again = false;

  constructor(private readonly contexts: Contexts) {
    this.#item.name = "Context Sidecar";
    this.#item.show();
  }

  /** The session that it shows. */
  get source(): Source | undefined {
    return this.#source;
  }

  /** Shows a state in which there is nothing to measure. */
  tell(state: SidecarState): void {
    this.#item.backgroundColor = undefined;
    if (state === "running") return this.#empty();
    this.#source = undefined;
    [this.#item.text, this.#item.tooltip, this.#item.command] = STATES[state] as [string, string, string];
  }

  /** Shows the window of a session; what comes while it is drawn is drawn after that, once. */
  show(source: Source | undefined): Promise<void> {
    this.#source = source;
    if (source === undefined) {
      this.#empty();
      return Promise.resolve();
    }
    this.#again = this.#drawing !== undefined;
    this.#drawing ??= this.#draw().finally(() => (this.#drawing = undefined));
    return this.#drawing;
  }

  dispose(): void {
    this.#item.dispose();
  }

  async #draw(): Promise<void> {
    do {
      this.#again = false;
      const source = this.#source;
      if (source === undefined) return;
      const looked = await this.contexts.at(source, undefined).catch(() => undefined);
      if (looked !== undefined && this.#source?.key === source.key) this.#fill(looked);
    } while (this.#again);
  }

  #fill({ source, preview }: Looked): void {
    const { tokens, tokenBudget } = preview;
    // The next request is meant, which has everything up to the newest turn.
    const turn = preview.decisions.at(-1)?.turnId;
    const full = (100 * tokens) / Math.max(1, tokenBudget);
    this.#item.text = `$(graph) ${excerpt(source.name, 24)}${turn === undefined ? "" : ` ${excerpt(turn, 12)}`} ${bar(full, CELLS)} ${percent(full)} of ${short(tokenBudget)}`;
    const tooltip = new vscode.MarkdownString(fillTable(source.name, preview));
    tooltip.supportHtml = true;
    this.#item.tooltip = tooltip;
    this.#item.command = { command: "contextSidecar.showContext", title: "Show What the Model Sees", arguments: [{ sourceKey: source.key }] };
    this.#item.backgroundColor = full >= FULL ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
  }

  #empty(): void {
    this.#item.text = "$(graph) Context";
    this.#item.tooltip = "No session is stored yet.";
    this.#item.command = "contextSidecar.sessions.focus";
  }
}
