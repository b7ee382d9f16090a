/** The search over all sessions, with results while one types. */

import * as vscode from "vscode";
import type { SymbolInformation, WorkspaceSymbol } from "vscode-languageclient/node";
import { sessionOf } from "../documents/names.js";
import { messageAt } from "../documents/session-documents.js";
import { explained } from "../failures.js";
import { counted, grouped } from "../reading/composition.js";
import { nameOf } from "../sessions/sources.js";
import type { Action, Surface } from "./surface.js";

/** Quiet after a key until it is searched, in milliseconds. */
const TYPING_MS = 200;

const SESSION = new vscode.ThemeIcon("comment-discussion");
const MESSAGE = new vscode.ThemeIcon("comment");

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
  const words = pick.value;
  pick.dispose();
  const sessionId = chosen && sessionOf(chosen.uri.scheme, chosen.uri.path);
  if (chosen !== undefined && sessionId !== undefined) await surface.sessions.open(sessionId, messageAt(chosen.uri), words);
};

function follow(surface: Surface, pick: vscode.QuickPick<Found>, finish: (found: Found | undefined) => void, query: string): void {
  let timer: NodeJS.Timeout | undefined;
  let newest = 0;
  const ask = async (words: string): Promise<void> => {
    const number = (newest += 1);
    pick.busy = true;
    try {
      const symbols = await surface.sidecars.symbols(words);
      if (number === newest) pick.items = symbols.flatMap((symbol) => item(surface, symbol));
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

function item({ list }: Surface, { name, location }: SymbolInformation | WorkspaceSymbol): Found[] {
  const uri = vscode.Uri.parse(location.uri, false);
  const sessionId = sessionOf(uri.scheme, uri.path);
  if (sessionId === undefined) return [];
  const session = list.get(sessionId);
  const place = messageAt(uri);
  if (place === undefined) {
    const detail = session === undefined ? "session" : `${counted(session.messageCount, "message")} · ${session.engine}`;
    return [{ label: name, detail, iconPath: SESSION, alwaysShow: true, uri }];
  }
  const [, role, said] = /^(\S+): (.*)$/su.exec(name) ?? ["", "", name];
  const detail = `${nameOf(session ?? { sessionId })} · message ${grouped(place + 1)} · ${role}`;
  return [{ label: said ?? name, detail, iconPath: MESSAGE, alwaysShow: true, uri }];
}
