/** Commands that show something of a session and change nothing. */

import * as vscode from "vscode";
import { contextText } from "../reading/context-text.js";
import type { Place } from "../panel/panel.js";
import { nodeOf, pickTurn, placeFor, sessionFor } from "./choosing.js";
import type { Action, Surface } from "./surface.js";

/** Shows the context of a turn in the panel. */
export const showContext: Action = async (surface, given) => {
  const place = await placeFor(surface, given, "Show what the model sees");
  if (place === undefined) return;
  await surface.panel.show(place);
  if (place.source.session !== undefined) await surface.status.show(place.source);
};

/** Shows the messages of a session, at the message, the turn that was named. */
export const openSession: Action = async (surface, given) => {
  const node = nodeOf(given);
  const session = await sessionFor(surface, given, "Open the messages of a session");
  if (session === undefined) return;
  const position = node?.kind === "message" ? node.position : node?.kind === "turn" ? node.turn.first : undefined;
  await surface.sessions.open(session.sessionId, position);
};

/** Shows a summary, with what it stands for. */
export const showSummary: Action = async (surface, given) => {
  const node = nodeOf(given);
  if (node?.kind !== "summary") return;
  const { nodeId, depth, quality, createdAt, messageCount, firstMessageId, lastMessageId, sources, text, tokens } = node.summary;
  const made = sources.length > 0 ? `made of the summaries ${sources.join(", ")}` : "made of messages";
  const head = `${nodeId}: ${tokens} tokens for ${messageCount} messages, ${firstMessageId} to ${lastMessageId}`;
  await surface.texts.show(`Summary ${nodeId}`, `${head}\ndepth ${depth}, ${made}, ${quality}, ${createdAt}\n\n${text}\n`);
};

/** Compares the contexts of two turns. */
export const diffTurns: Action = async (surface, given, other) => {
  const place = await placeFor(surface, given, "Compare the contexts of two turns");
  if (place === undefined) return;
  await compare(surface, place, typeof other === "string" ? other : undefined);
};

/** Compares the context of a place with that of another turn, which the user picks where it is not given. */
export async function compare(surface: Surface, place: Place, other?: string): Promise<void> {
  const { source } = place;
  const one = place.turnId ?? (await pickTurn(source, `Compare two turns of ${source.name}: the first`))?.turnId;
  if (one === undefined) return;
  const two = other ?? (await pickTurn(source, `Compare turn ${one} of ${source.name} with`, one))?.turnId;
  if (two === undefined) return;
  const { turns } = source.history;
  const [before, after] = turns.placeOf(one) <= turns.placeOf(two) ? [one, two] : [two, one];
  const sides = await Promise.all([before, after].map((turnId) => text(surface, { source, turnId })));
  const [left, right] = sides as [vscode.Uri, vscode.Uri];
  await vscode.commands.executeCommand("vscode.diff", left, right, `${source.name}: what the model saw at ${before} ↔ ${after}`);
}

/** Shows the context of a place as a text document. */
export async function openText(surface: Surface, place: Place): Promise<void> {
  const document = await vscode.workspace.openTextDocument(await text(surface, place));
  await vscode.window.showTextDocument(document, { preview: true });
}

async function text(surface: Surface, { source, turnId }: Place): Promise<vscode.Uri> {
  const { preview } = await surface.contexts.at(source, turnId);
  return surface.texts.add(`${source.name} ${turnId ?? "now"}`, contextText(preview));
}
