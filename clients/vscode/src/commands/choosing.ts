/** What a command is about: what it was called on, else what is shown, else what the user picks. */

import type { SessionEntry } from "context-sidecar-client";
import * as vscode from "vscode";
import { SESSION_SCHEME, sessionOf } from "../documents/names.js";
import { counted } from "../reading/composition.js";
import type { Place } from "../panel/panel.js";
import { nameOf } from "../sessions/sources.js";
import type { Source } from "../sessions/sources.js";
import type { Turn } from "../sessions/turns.js";
import type { Node } from "../tree/nodes.js";
import type { Surface } from "./surface.js";

/** Languages that transcripts are written in. */
const TRANSCRIPTS: ReadonlySet<string> = new Set(["jsonl", "json"]);

/** The node of the view that a command was called on. */
export function nodeOf(given: unknown): Node | undefined {
  return isObject(given) && typeof given["kind"] === "string" ? (given as unknown as Node) : undefined;
}

/** The session of the node, else that of the panel, the editor, or a pick; undefined where the user picks none. */
export async function sessionFor(surface: Surface, given: unknown, title: string): Promise<SessionEntry | undefined> {
  const node = nodeOf(given);
  if (node !== undefined && node.kind !== "more") return node.session;
  return openedSession(surface) ?? pickSession(surface, title);
}

/** What the context is shown of; undefined where the user picks nothing. */
export async function placeFor(surface: Surface, given: unknown, title: string): Promise<Place | undefined> {
  const node = nodeOf(given);
  if (node !== undefined && node.kind !== "more") {
    const turnId = "turn" in node ? node.turn.turnId : undefined;
    return { source: surface.sources.ofSession(node.session), turnId };
  }
  if (isObject(given) && typeof given["sourceKey"] === "string") {
    const { source } = surface.status;
    if (source?.key === given["sourceKey"]) return { source, turnId: undefined };
  }
  const named = await namedPlace(surface, given);
  if (named !== undefined) return named;
  const shown = await openedSource(surface);
  if (shown !== undefined) return { source: shown, turnId: undefined };
  const session = await pickSession(surface, title);
  return session && { source: surface.sources.ofSession(session), turnId: undefined };
}

/** A turn of a source that the user picks; undefined where none is picked. */
export async function pickTurn(source: Source, title: string, but?: string): Promise<Turn | undefined> {
  await source.history.refresh();
  const turns = source.history.turns.list.filter(({ turnId }) => turnId !== but).toReversed();
  const items = turns.map((turn) => ({
    label: turn.turnId,
    description: counted(turn.messageCount, "message"),
    detail: turn.title,
    turn,
  }));
  const picked = await vscode.window.showQuickPick(items, { title, placeHolder: "A turn", matchOnDetail: true });
  return picked?.turn;
}

/** What a document shows, a session or a transcript file. */
export async function sourceOf(surface: Surface, uri: vscode.Uri): Promise<Source | undefined> {
  const sessionId = sessionOf(uri.scheme, uri.path);
  if (sessionId !== undefined) {
    const session = await knownSession(surface, sessionId);
    return session && surface.sources.ofSession(session);
  }
  return uri.scheme === "file" ? surface.sources.ofFile(uri.fsPath) : undefined;
}

/** What a code lens of the sidecar gives its command. */
interface LensPlace {
  readonly uri: string;
  /** Of the first message of the turn, from 0. */
  readonly line: number;
  /** As the sidecar names turns of transcripts. */
  readonly turnId: string;
}

/** Where a code lens of the sidecar points to: the name of a document, and a turn. */
async function namedPlace(surface: Surface, given: unknown): Promise<Place | undefined> {
  if (given instanceof vscode.Uri) {
    const source = await sourceOf(surface, given);
    return source && { source, turnId: undefined };
  }
  if (!isObject(given) || typeof given["uri"] !== "string") return undefined;
  const source = await sourceOf(surface, vscode.Uri.parse(given["uri"], true));
  if (source === undefined) return undefined;
  const { line, turnId } = given as unknown as LensPlace;
  if (source.session === undefined) return { source, turnId };
  // A host may have named the turns of its sessions; each line of theirs is a message.
  await source.history.refresh();
  return { source, turnId: source.history.turns.at(line)?.turnId };
}

async function openedSource(surface: Surface): Promise<Source | undefined> {
  const document = vscode.window.activeTextEditor?.document;
  if (document === undefined) return surface.panel.place?.source;
  const readable = document.uri.scheme === SESSION_SCHEME || TRANSCRIPTS.has(document.languageId);
  return readable ? sourceOf(surface, document.uri) : undefined;
}

function openedSession(surface: Surface): SessionEntry | undefined {
  const uri = vscode.window.activeTextEditor?.document.uri;
  if (uri === undefined) return surface.panel.place?.source.session;
  const sessionId = sessionOf(uri.scheme, uri.path);
  return sessionId === undefined ? undefined : surface.list.get(sessionId);
}

async function knownSession(surface: Surface, sessionId: string): Promise<SessionEntry | undefined> {
  return surface.list.get(sessionId) ?? surface.sidecars.request("session/get", { sessionId });
}

async function pickSession(surface: Surface, title: string): Promise<SessionEntry | undefined> {
  await surface.sidecars.start();
  await surface.list.refresh();
  // The one that was looked at last comes first.
  const looked = surface.status.source?.sessionId;
  const entries = surface.list.entries.toSorted((one, other) => Number(other.sessionId === looked) - Number(one.sessionId === looked));
  const items = entries.map((session) => ({
    label: nameOf(session),
    description: `${counted(session.messageCount, "message")} · ${session.engine}`,
    session,
  }));
  if (items.length === 0) throw new Error("no session is stored in this namespace");
  const picked = await vscode.window.showQuickPick(items, { title, placeHolder: "A session", matchOnDescription: true });
  return picked?.session;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
