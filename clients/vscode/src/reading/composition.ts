/** How full a window is, and with what. */

import type { CompositionPart } from "context-sidecar-client";

/** Kinds in the order in which bars show them, with their names for people. */
export const KINDS: Readonly<Record<CompositionPart["kind"], string>> = {
  system: "system prompt",
  summary: "summaries",
  recall: "recalled",
  memory: "memory",
  activityLog: "activity log",
  recent: "recent messages",
};

export interface Share {
  readonly kind: CompositionPart["kind"];
  readonly name: string;
  readonly tokens: number;
  readonly messageCount: number;
  /** Percent of the window. */
  readonly percent: number;
}

/** What fills the window, kinds without tokens left out. */
export function shares(composition: readonly CompositionPart[], tokenBudget: number): Share[] {
  const order = Object.keys(KINDS) as CompositionPart["kind"][];
  return composition
    .filter(({ tokens }) => tokens > 0)
    .toSorted((one, other) => order.indexOf(one.kind) - order.indexOf(other.kind))
    .map(({ kind, tokens, messageCount }) => ({
      kind,
      name: KINDS[kind] ?? kind,
      tokens,
      messageCount,
      percent: (100 * tokens) / Math.max(tokenBudget, 1),
    }));
}

/** Percent in a form that tells little from nothing. */
export function percent(value: number): string {
  if (value > 0 && value < 1) return "<1 %";
  return `${Math.round(value)} %`;
}

/** 950, 12.4k, 128k, 1.2M */
export function short(count: number): string {
  if (count < 1_000) return String(count);
  const [unit, size] = count < 999_500 ? ["k", 1_000] : ["M", 1_000_000];
  const value = count / (size as number);
  return `${value < 99.95 ? value.toFixed(1).replace(/\.0$/, "") : Math.round(value)}${unit}`;
}

/** 1,234 or 1,234,567, the same in every locale. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** A bar of so many cells in plain text; what is there at all is seen. */
export function bar(value: number, cells: number): string {
  const wanted = Math.round((Math.min(value, 100) / 100) * cells);
  const full = value > 0 ? Math.max(1, wanted) : 0;
  return "▰".repeat(full) + "▱".repeat(cells - full);
}

/** "1 message", "2 messages" */
export function counted(count: number, noun: string): string {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}
