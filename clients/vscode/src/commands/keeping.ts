/** Exports a session into a file. */

import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import * as vscode from "vscode";
import type { History } from "../sessions/history.js";
import { nameOf } from "../sessions/sources.js";
import { sessionFor } from "./choosing.js";
import type { Action } from "./surface.js";

/** Writes the messages of a session into a file that the user names, one a line. */
export const exportSession: Action = async (surface, given) => {
  const session = await sessionFor(surface, given, "Export a session");
  if (session === undefined) return;
  const name = nameOf(session).replace(/[^\p{L}\p{N}._-]+/gu, "-");
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri ?? vscode.Uri.file(homedir());
  const target = await vscode.window.showSaveDialog({
    title: `Export ${nameOf(session)}`,
    defaultUri: vscode.Uri.joinPath(folder, `${name}.jsonl`),
    filters: { "JSON Lines": ["jsonl"] },
  });
  if (target === undefined) return;
  const progress = { location: vscode.ProgressLocation.Notification, title: `Exporting ${nameOf(session)}` };
  const history = surface.sources.historyOf(session.sessionId);
  await vscode.window.withProgress(progress, () => write(target, history));
  const open = "Open";
  const answer = await vscode.window.showInformationMessage(`${nameOf(session)} was exported to ${target.fsPath}.`, open);
  if (answer === open) await vscode.window.showTextDocument(target);
};

async function write(target: vscode.Uri, history: History): Promise<void> {
  if (target.scheme !== "file") {
    const pieces: string[] = [];
    for await (const piece of lines(history)) pieces.push(piece);
    return vscode.workspace.fs.writeFile(target, new TextEncoder().encode(pieces.join("")));
  }
  // A file of the same name stays as it is until the new one is complete.
  const part = join(target.fsPath + ".part");
  try {
    await pipeline(Readable.from(lines(history)), createWriteStream(part, "utf8"));
    await rename(part, target.fsPath);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

async function* lines(history: History): AsyncGenerator<string> {
  for await (const messages of history.messages()) {
    yield messages.map(({ message }) => `${JSON.stringify(message)}\n`).join("");
  }
}
