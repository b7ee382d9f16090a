/** Stores what was said, once, at the end of each turn. */

import type { Message } from "context-sidecar-client";
import type { Child } from "./child.js";
import type { Context } from "./host.js";
import { isConversation } from "./history.js";

const TIMEOUT_MS = 15_000;
/** Turns that wait for a sidecar; beyond that, the next list that pi shows has to do. */
const WAITING = 200;

interface Turn {
  readonly sessionId: string;
  readonly advancementKey: string;
  readonly messages: readonly Message[];
}

export class Turns {
  #said: Message[] = [];
  #waiting: Turn[] = [];

  constructor(private readonly child: Child) {}

  /** Remembers a message until its turn ends. */
  add(message: Message): void {
    if (isConversation(message)) this.#said.push(message);
  }

  /** Commits the turn, and those that could not be committed before. Never fails. */
  async commit(context: Context): Promise<void> {
    const messages = this.#said;
    this.#said = [];
    const last = messages.at(-1);
    if (last !== undefined) {
      const advancementKey = keyOf(messages);
      this.#waiting.push({ sessionId: context.sessionManager.getSessionId(), advancementKey, messages });
      this.#waiting.splice(0, this.#waiting.length - WAITING);
    }
    try {
      for (let turn = this.#waiting[0]; turn !== undefined; turn = this.#waiting[0]) {
        await this.child.client.request("context/commitTurn", turn, { timeoutMs: TIMEOUT_MS });
        this.#waiting.shift();
      }
    } catch (error) {
      this.child.warn(context, "the turn will be stored with the next one", error);
    }
  }
}

/** The same for the same turn, and for no other: times to the millisecond, tool calls and the answer's id. */
function keyOf(messages: readonly Message[]): string {
  return messages.map((message) => {
    const { role, timestamp, responseId, toolCallId } = message as Record<string, unknown>;
    return [role, timestamp, toolCallId ?? responseId].filter((part) => part !== undefined).join("@");
  }).join(" ");
}
