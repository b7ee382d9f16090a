/** Decides which of pi's messages are the conversation, and which were never meant for the model. */

import type { Message } from "context-sidecar-client";
import type { SessionManager } from "./host.js";

/** Begins every summary that this extension hands to pi, so that the sidecar is not told it back. */
const HEADING = "Earlier messages of this session are kept by context-sidecar.";

interface Read {
  readonly role?: unknown;
  readonly summary?: unknown;
  readonly content?: unknown;
  readonly stopReason?: unknown;
  readonly excludeFromContext?: unknown;
}

/** The messages of a list that belong to the conversation. */
export function conversation(messages: readonly Message[]): Message[] {
  return messages.filter(isConversation);
}

/** True for what the model has seen, or may see. */
export function isConversation(message: Message): boolean {
  const { role, summary, content, stopReason, excludeFromContext } = message as Read;
  if (role === "system" || excludeFromContext === true) return false;
  if (role === "compactionSummary") return !(typeof summary === "string" && summary.startsWith(HEADING));
  const failed = stopReason === "error" || stopReason === "aborted";
  return !(failed && Array.isArray(content) && content.length === 0);
}

/** The whole conversation of the session's branch, older than any compaction. */
export function branch(session: SessionManager): Message[] {
  const messages = session.getBranch().map(({ type, message }) => (type === "message" ? message : undefined));
  return conversation(messages.filter((message) => message !== undefined));
}

/** The text that pi keeps in the place of what it leaves out; shown to the model where the sidecar is gone. */
export function summaryForPi(summary: string | null | undefined): string {
  return summary ? `${HEADING}\n\n${summary}` : `${HEADING} They can be looked up with context_search.`;
}
