/** The turns of a session, gathered from its messages. */

import type { ExportedMessage } from "context-sidecar-client";
import { excerpt, spoken } from "../reading/messages.js";

/** Characters of what a turn is about. */
const TITLE = 80;

export interface Turn {
  readonly turnId: string;
  /** What the user asked for, on one line. */
  title: string;
  messageCount: number;
  /** Position of the first message in the session, from 0. */
  readonly first: number;
  /** The last message that the model had before its last answer of the turn: what it saw ends there. */
  seenThrough: string;
  timestamp: string;
}

/** The turns of one history, in their order; messages are added at its end. */
export class Turns {
  readonly list: Turn[] = [];
  #places = new Map<string, number>();
  #messages = 0;
  #titled = false;

  /** How many messages have been added. */
  get messageCount(): number {
    return this.#messages;
  }

  get(turnId: string): Turn | undefined {
    return this.list[this.placeOf(turnId)];
  }

  /** Place of a turn in the list; -1 where there is none of this id. */
  placeOf(turnId: string): number {
    return this.#places.get(turnId) ?? -1;
  }

  /** The turn that has the message at this position, from 0. */
  at(position: number): Turn | undefined {
    let low = 0;
    let high = this.list.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.list[middle] as Turn).first <= position) low = middle;
      else high = middle - 1;
    }
    return this.list[low];
  }

  add(messages: readonly ExportedMessage[]): void {
    for (const exported of messages) this.#add(exported);
  }

  #add({ messageId, turnId, timestamp, message }: ExportedMessage): void {
    const { speaker, text } = spoken(message);
    const open = this.get(turnId) ?? this.#begin(turnId, messageId, timestamp);
    open.messageCount += 1;
    if (speaker !== "assistant") open.seenThrough = messageId;
    if (!this.#titled && text.trim() !== "" && (speaker === "user" || open.title === "")) {
      open.title = excerpt(text, TITLE);
      this.#titled = speaker === "user";
    }
    this.#messages += 1;
  }

  #begin(turnId: string, messageId: string, timestamp: string): Turn {
    const turn: Turn = {
      turnId,
      title: "",
      messageCount: 0,
      first: this.#messages,
      seenThrough: messageId,
      timestamp,
    };
    this.#titled = false;
    this.#places.set(turnId, this.list.length);
    this.list.push(turn);
    return turn;
  }
}
