/** The search over all sessions, with results while one types. */

import * as vscode from "vscode";
import type { SymbolInformation, WorkspaceSymbol } from "vscode-languageclient/node";
import { sessionOf } from "../documents/names.js";
import { messageAt } from "../documents/session-documents.js";
import { explained } from "../failures.js";
import type { Action, Surface } from "./surface.js";

/** Quiet after a key until it is searched, in milliseconds. */
const TYPING_MS = 200;

interface Found extends vscode.QuickPickItem {
  readonly uri: vscode.Uri;
}

/** Lets the user search, and opens what is chosen. */
export const search: Action = async (surface, given) => {
  await surface.sidecars.start();
  const pick = vscode.window.createQuickPick<Found>();
  pick.title = "Search stored sessions";
  pick.placeholder = "Words of a message, or the name of a session";
  // The sidecar has decided what matches, by more than letters in their order.
  pick.matchOnDescription = true;
  pick.matchOnDetail = true;
  const chosen = await new Promise<Found | undefined>((resolve) => follow(surface, pick, resolve, typeof given === "string" ? given : ""));
  pick.dispose();
  const sessionId = chosen && sessionOf(chosen.uri.scheme, chosen.uri.path);
  if (chosen !== undefined && sessionId !== undefined) await surface.sessions.open(sessionId, messageAt(chosen.uri));
};

function follow(surface: Surface, pick: vscode.QuickPick<Found>, finish: (found: Found | undefined) => void, query: string): void {
  let timer: NodeJS.Timeout | undefined;
  let newest = 0;
  const ask = async (words: string): Promise<void> => {
    const number = (newest += 1);
    pick.busy = true;
    try {
      const symbols = await surface.sidecars.symbols(words);
      if (number === newest) pick.items = symbols.flatMap(item);
    } catch (error) {
      if (number === newest) pick.placeholder = explained(error);
    } finally {
      if (number === newest) pick.busy = false;
    }
  };
  pick.onDidChangeValue((words) => {
    clearTimeout(timer);
    timer = setTimeout(() => void ask(words), TYPING_MS);
  });
  pick.onDidAccept(() => finish(pick.selectedItems[0]));
  pick.onDidHide(() => {
    clearTimeout(timer);
    newest += 1;
    finish(undefined);
  });
  pick.value = query;
  pick.show();
  void ask(query);
}

function item(symbol: SymbolInformation | WorkspaceSymbol): Found[] {
  const uri = vscode.Uri.parse(symbol.location.uri, false);
  const isMessage = uri.fragment !== "";
  const [, role, said] = isMessage ? (/^(\S+): (.*)$/su.exec(symbol.name) ?? []) : [];
  return [
    {
      label: isMessage ? (said ?? symbol.name) : symbol.name,
      description: isMessage ? (role ?? "") : "session",
      detail: symbol.containerName ?? "",
      iconPath: new vscode.ThemeIcon(isMessage ? "comment" : "comment-discussion"),
      alwaysShow: true,
      uri,
    },
  ];
}
