/** What stands in the view of sessions. */

import type { ExportedMessage, Pin, SessionEntry, SummaryNode } from "context-sidecar-client";
import type { Turn } from "../sessions/turns.js";

/** Children of one kind that stand under one node; more are divided into ranges. */
export const RANGE = 100;

export type Node =
  | { readonly kind: "session"; readonly session: SessionEntry }
  | { readonly kind: "more" }
  | { readonly kind: "summaries"; readonly session: SessionEntry; readonly count: number }
  | { readonly kind: "summary"; readonly session: SessionEntry; readonly summary: SummaryNode; readonly path: string }
  | { readonly kind: "pins"; readonly session: SessionEntry; readonly pins: readonly Pin[] }
  | { readonly kind: "pin"; readonly session: SessionEntry; readonly pin: Pin }
  | { readonly kind: "turn"; readonly session: SessionEntry; readonly turn: Turn }
  | { readonly kind: "turns"; readonly session: SessionEntry; readonly from: number; readonly to: number }
  | {
      readonly kind: "message";
      readonly session: SessionEntry;
      readonly turn: Turn;
      readonly exported: ExportedMessage;
      /** From 0, in the session. */
      readonly position: number;
      readonly pin: Pin | undefined;
    }
  | { readonly kind: "messages"; readonly session: SessionEntry; readonly turn: Turn; readonly from: number; readonly to: number };

/** A name that stays the same as long as the node is about the same thing. */
export function idOf(node: Node): string {
  const parts = ((): readonly (string | number)[] => {
    switch (node.kind) {
      case "session":
        return [];
      case "more":
        return ["more"];
      case "summary":
        return [node.path];
      case "pin":
        return [node.pin.pinId];
      case "turn":
        return [node.turn.turnId];
      case "message":
        return [node.position, node.exported.messageId];
      case "turns":
        return [node.from];
      case "messages":
        return [node.turn.turnId, node.from];
      default:
        return [];
    }
  })();
  return JSON.stringify([node.kind, node.kind === "more" ? "" : node.session.sessionId, ...parts]);
}

/** Where a long list is divided: ranges from the front, and a tail that is shown at once. */
export function divided(count: number, size = RANGE): { readonly ranges: readonly (readonly [number, number])[]; readonly tail: number } {
  if (count <= size) return { ranges: [], tail: 0 };
  const tail = Math.floor((count - 1) / size) * size;
  const ranges: [number, number][] = [];
  for (let from = 0; from < tail; from += size) ranges.push([from, from + size]);
  return { ranges, tail };
}
