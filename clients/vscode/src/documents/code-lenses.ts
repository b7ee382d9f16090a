/** Lets the sidecar's code lenses open the context of their turn. */

import * as vscode from "vscode";
import type { ProvideCodeLensesSignature } from "vscode-languageclient/node";

/** Where a code lens stands. */
export interface LensPlace {
  readonly uri: string;
  /** Of the first message of the turn, from 0. */
  readonly line: number;
  /** As the sidecar names turns of transcripts. */
  readonly turnId: string | undefined;
}

/** The lenses; one that only says something opens what the model saw. */
export async function withContexts(
  document: vscode.TextDocument,
  token: vscode.CancellationToken,
  next: ProvideCodeLensesSignature,
): Promise<vscode.CodeLens[] | null | undefined> {
  const lenses = await next(document, token);
  for (const lens of lenses ?? []) {
    const { command, range } = lens;
    if (command === undefined || command.command !== "") continue;
    const turnId = /^(t\d+):/.exec(command.title)?.[1];
    const place: LensPlace = { uri: document.uri.toString(), line: range.start.line, turnId };
    lens.command = {
      title: command.title,
      tooltip: "Show what the model sees at this turn",
      command: "contextSidecar.showContext",
      arguments: [place],
    };
  }
  return lenses;
}
