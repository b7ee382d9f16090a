/** The view of sessions: sessions, and under each its summaries, pins, turns with their messages, read when unfolded. */

import type { SessionEntry, SummaryNode } from "context-sidecar-client";
import * as vscode from "vscode";
import type { Requests } from "../requests.js";
import type { SessionList } from "../sessions/session-list.js";
import type { Sources } from "../sessions/sources.js";
import { SummaryTree } from "../sessions/summaries.js";
import type { Turn } from "../sessions/turns.js";
import { itemOf } from "./items.js";
import { divided } from "./nodes.js";
import type { Node } from "./nodes.js";

export class SessionTree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<Node | undefined>();
  readonly onDidChangeTreeData = this.#changed.event;
  /** Nodes of sessions as the view has them, so that it can be told of one. */
  #sessions = new Map<string, Node>();
  #summaries = new Map<string, SummaryTree>();

  constructor(
    private readonly requests: Requests,
    private readonly list: SessionList,
    private readonly sources: Sources,
    private readonly usable: () => boolean,
  ) {}

  /** Draws everything anew. */
  refresh(): void {
    this.#changed.fire(undefined);
  }

  /** Draws what is under one session anew. */
  refreshSession(sessionId: string): void {
    const node = this.#sessions.get(sessionId);
    const session = this.list.get(sessionId);
    if (node?.kind !== "session" || session === undefined) return;
    // The view knows its nodes by identity.
    Object.assign(node, { session });
    this.#changed.fire(node);
  }

  dispose(): void {
    this.#changed.dispose();
  }

  getTreeItem(node: Node): vscode.TreeItem {
    return itemOf(node);
  }

  async getChildren(node?: Node): Promise<Node[]> {
    if (!this.usable()) return [];
    if (node === undefined) return this.#roots();
    switch (node.kind) {
      case "session":
        return this.#session(node.session);
      case "summaries":
        return this.#nodes(node.session, this.#tree(node.session).roots, "");
      case "summary":
        return this.#nodes(node.session, this.#tree(node.session).sourcesOf(node.summary), node.path);
      case "pins":
        return node.pins.map((pin) => ({ kind: "pin", session: node.session, pin }));
      case "turns":
        return this.#turns(node.session, node.from, node.to);
      case "turn":
        return this.#messages(node.session, node.turn, undefined);
      case "messages":
        return this.#messages(node.session, node.turn, node);
      default:
        return [];
    }
  }

  #roots(): Node[] {
    const before = this.#sessions;
    this.#sessions = new Map();
    for (const session of this.list.entries) {
      const node: Node = before.get(session.sessionId) ?? { kind: "session", session };
      Object.assign(node, { session });
      this.#sessions.set(session.sessionId, node);
    }
    const nodes = [...this.#sessions.values()];
    return this.list.hasMore ? [...nodes, { kind: "more" }] : nodes;
  }

  async #session(session: SessionEntry): Promise<Node[]> {
    const { sessionId } = session;
    const history = this.sources.historyOf(sessionId);
    const [{ summaries }, { pins }] = await Promise.all([
      this.requests.request("session/summaries", { sessionId }),
      this.requests.request("session/pins", { sessionId }),
      history.refresh(),
    ]);
    const nodes: Node[] = [];
    this.#summaries.set(sessionId, new SummaryTree(summaries));
    if (summaries.length > 0) nodes.push({ kind: "summaries", session, count: summaries.length });
    if (pins.length > 0) nodes.push({ kind: "pins", session, pins });
    const count = history.turns.list.length;
    const { ranges, tail } = divided(count);
    // Newest first, as sessions are.
    nodes.push(...this.#turns(session, tail, count));
    for (const [from, to] of ranges.toReversed()) nodes.push({ kind: "turns", session, from, to });
    return nodes;
  }

  #turns(session: SessionEntry, from: number, to: number): Node[] {
    const turns = this.sources.historyOf(session.sessionId).turns.list.slice(from, to);
    return turns.map((turn): Node => ({ kind: "turn", session, turn })).toReversed();
  }

  async #messages(session: SessionEntry, turn: Turn, range: { from: number; to: number } | undefined): Promise<Node[]> {
    const { sessionId } = session;
    if (range === undefined) {
      const { ranges, tail } = divided(turn.messageCount);
      if (ranges.length > 0) {
        const all = [...ranges, [tail, turn.messageCount] as const];
        return all.map(([from, to]) => ({ kind: "messages", session, turn, from, to }));
      }
    }
    const history = this.sources.historyOf(sessionId);
    const [messages, { pins }] = await Promise.all([
      history.messagesOf(turn),
      this.requests.request("session/pins", { sessionId }),
    ]);
    const pinned = new Map(pins.flatMap((pin) => (pin.messageId ? [[pin.messageId, pin] as const] : [])));
    const from = range?.from ?? 0;
    return messages.slice(from, range?.to).map((exported, place) => ({
      kind: "message",
      session,
      turn,
      exported,
      position: turn.first + from + place,
      pin: pinned.get(exported.messageId),
    }));
  }

  #tree({ sessionId }: SessionEntry): SummaryTree {
    return this.#summaries.get(sessionId) ?? new SummaryTree([]);
  }

  #nodes(session: SessionEntry, summaries: readonly SummaryNode[], path: string): Node[] {
    return summaries.map((summary) => ({ kind: "summary", session, summary, path: `${path}/${summary.nodeId}` }));
  }
}
