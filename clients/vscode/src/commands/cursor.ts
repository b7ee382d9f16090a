/** The message of a session's document that the cursor stands in. */

import type { ExportedMessage } from "context-sidecar-client";
import * as vscode from "vscode";
import { sessionOf } from "../documents/names.js";
import type { Surface } from "./surface.js";

/** The message; undefined where no session is shown. */
export async function messageUnderCursor(
  surface: Surface,
): Promise<{ sessionId: string; exported: ExportedMessage } | undefined> {
  const editor = vscode.window.activeTextEditor;
  const sessionId = editor && sessionOf(editor.document.uri.scheme, editor.document.uri.path);
  if (editor === undefined || sessionId === undefined) return undefined;
  const history = surface.sources.historyOf(sessionId);
  await history.refresh();
  const line = editor.selection.active.line;
  const turn = history.turns.at(line);
  if (turn === undefined) return undefined;
  const exported = (await history.messagesOf(turn))[line - turn.first];
  return exported && { sessionId, exported };
}
