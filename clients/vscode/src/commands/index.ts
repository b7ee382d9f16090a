/** Registers the commands. */

import * as vscode from "vscode";
import { explained } from "../failures.js";
import { doctor } from "./doctor.js";
import { howToInstall, openSettings } from "./installing.js";
import { exportSession } from "./keeping.js";
import { diffTurns, openSession, showContext, showSummary } from "./looking.js";
import { search } from "./searching.js";
import { compact, pin, switchEngine, unpin } from "./steering.js";
import type { Action, Surface } from "./surface.js";

const ACTIONS: Readonly<Record<string, Action>> = {
  showContext,
  openSession,
  showSummary,
  diffTurns,
  search,
  compact,
  pin,
  unpin,
  switchEngine,
  export: exportSession,
  doctor,
  howToInstall,
  openSettings,
  refresh: async ({ watch, list, sources, contexts }) => {
    list.clear();
    sources.forget();
    contexts.forget();
    watch.soon();
  },
  showMore: async ({ list, tree }) => {
    await list.more();
    tree.refresh();
  },
  showLog: async ({ output }) => output.show(),
};

/** All commands; what fails is told, and written into the log. */
export function registerCommands(surface: Surface, restart: () => Promise<void>): vscode.Disposable[] {
  const actions: Readonly<Record<string, Action>> = { ...ACTIONS, restart };
  return Object.entries(actions).map(([name, action]) =>
    vscode.commands.registerCommand(`contextSidecar.${name}`, async (...given: unknown[]) => {
      try {
        await action(surface, ...given);
      } catch (error) {
        surface.output.error(`${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
        void vscode.window.showErrorMessage(`Context: ${explained(error)}`);
      }
    }),
  );
}
