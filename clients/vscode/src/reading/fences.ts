/** Text that the sidecar wrote into a context, without the fence by which it is recognised. */

import type { CompositionPart } from "context-sidecar-client";
import { KINDS } from "./composition.js";

export interface Made {
  /** What of the window it fills; other texts count as recent messages. */
  readonly kind: CompositionPart["kind"];
  /** What it is, for people. */
  readonly name: string;
  readonly text: string;
}

const NAMES: Readonly<Record<string, string>> = {
  summary: "summary of earlier messages",
  activityLog: "activity log of earlier turns",
  memory: "memory",
  recall: "recalled from earlier turns",
  stub: "shortened tool result",
  noResult: "stand-in for a missing tool result",
  note: "note of the sidecar",
};
const FENCES = /\[ctx:([A-Za-z]+):[A-Za-z0-9._~%-]*:\d{18}\]\s?([^]*?)\s?\[\/ctx\]/g;
const ESCAPED = /\[\\(?=\\*\/?ctx[:\]])/g;

/** What a text says that is nothing but fenced text; undefined for any other, which is somebody else's. */
export function made(text: string): Made | undefined {
  if (!text.startsWith("[ctx:")) return undefined;
  const parts = [...text.matchAll(FENCES)];
  const kind = parts[0]?.[1] ?? "";
  if (NAMES[kind] === undefined || text.replace(FENCES, "").trim() !== "") return undefined;
  return {
    kind: kind in KINDS ? (kind as Made["kind"]) : "recent",
    name: NAMES[kind],
    text: parts.map((part) => part[2]?.replace(ESCAPED, "[") ?? "").join("\n\n"),
  };
}
