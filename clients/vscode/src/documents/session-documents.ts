/** Documents with the messages of stored sessions, one a line, which follow the sessions as they grow. */

import * as vscode from "vscode";
import type { Sources } from "../sessions/sources.js";
import { matchIn } from "../reading/matches.js";
import { positionOf, SESSION_SCHEME, sessionOf, sessionUri } from "./names.js";

/** Characters after which a document ends; editors do not show longer ones in full. */
const MOST = 45 * 2 ** 20;

export class SessionDocuments implements vscode.TextDocumentContentProvider, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.#changed.event;
  readonly #registrations: vscode.Disposable[];

  constructor(private readonly sources: Sources) {
    this.#registrations = [vscode.workspace.registerTextDocumentContentProvider(SESSION_SCHEME, this), this.#changed];
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const sessionId = sessionOf(uri.scheme, uri.path);
    if (sessionId === undefined) throw new Error(`${uri.toString()} names no session`);
    const lines: string[] = [];
    let size = 0;
    for await (const messages of this.sources.historyOf(sessionId).messages()) {
      for (const { message } of messages) {
        const line = JSON.stringify(message);
        size += line.length + 1;
        if (size > MOST) return lines.join("\n");
        lines.push(line);
      }
    }
    return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
  }

  /** Reads the document of a session anew where it is open. */
  refresh(sessionId: string): void {
    for (const { uri } of vscode.workspace.textDocuments) {
      if (sessionOf(uri.scheme, uri.path) === sessionId) this.#changed.fire(uri);
    }
  }

  /** Opens a session, at a message where one is named (from 0), with the first of the words in it selected. */
  async open(sessionId: string, position?: number, words = ""): Promise<void> {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(sessionUri(sessionId), true));
    if (document.languageId !== "jsonl") await vscode.languages.setTextDocumentLanguage(document, "jsonl");
    const line = Math.min(position ?? 0, document.lineCount - 1);
    const [start, end] = matchIn(document.lineAt(line).text, words);
    const selection = new vscode.Range(line, start, line, end);
    const editor = await vscode.window.showTextDocument(document, { preview: true, selection });
    editor.revealRange(selection, vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }

  dispose(): void {
    for (const registration of this.#registrations) registration.dispose();
  }
}

/** The message that a name stands for, from 0; undefined where it names none. */
export function messageAt(uri: vscode.Uri): number | undefined {
  const position = positionOf(uri.fragment);
  return position === undefined ? undefined : position - 1;
}
