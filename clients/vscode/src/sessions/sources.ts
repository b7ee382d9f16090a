/** What contexts are shown of: stored sessions, and transcript files that are read without being stored. */

import { basename } from "node:path";
import type { SessionEntry } from "context-sidecar-client";
import { counted } from "../reading/composition.js";
import { excerpt } from "../reading/messages.js";
import type { Requests } from "../requests.js";
import { History } from "./history.js";

/** Histories that are remembered; the rest is read again when it is looked at. */
const MOST_HISTORIES = 16;
const LONGEST_NAME = 60;

export interface Source {
  /** Tells sources apart. */
  readonly key: string;
  /** For people. */
  readonly name: string;
  readonly about: string;
  readonly sessionId: string;
  /** The connection that speaks the dialect of the messages. */
  readonly requests: Requests;
  readonly history: History;
  /** The stored session; undefined for a file. */
  readonly session: SessionEntry | undefined;
}

/** The connections that sources are read by. */
export interface Connections extends Requests {
  in(format: SessionEntry["messageFormat"]): Requests;
  imported(path: string, sessionId: string): Promise<Requests>;
}

/** The name of a session for people. */
export function nameOf({ sessionKey, sessionId }: Pick<SessionEntry, "sessionKey" | "sessionId">): string {
  const name = excerpt(sessionKey || sessionId, LONGEST_NAME);
  return name === "" ? JSON.stringify(sessionId) : name;
}

export class Sources {
  #histories = new Map<string, History>();

  constructor(private readonly connections: Connections) {}

  /** The history of a stored session, as far as it has been read. */
  historyOf(sessionId: string): History {
    return this.#remembered(`session ${sessionId}`, () => new History(this.connections, sessionId));
  }

  /** A stored session. */
  ofSession(session: SessionEntry): Source {
    const { sessionId, engine, messageFormat, messageCount } = session;
    return {
      key: `session ${sessionId}`,
      name: nameOf(session),
      about: `${engine} · ${messageFormat} · ${counted(messageCount, "message")}`,
      sessionId,
      requests: this.connections.in(messageFormat),
      history: this.historyOf(sessionId),
      session,
    };
  }

  /**
   * A transcript file, as it is on disk.
   *
   * @throws {Error} where the file is no transcript.
   */
  async ofFile(path: string): Promise<Source> {
    const requests = await this.connections.imported(path, path);
    const { engine, messageFormat, messageCount } = await requests.request("session/get", { sessionId: path });
    return {
      key: `file ${path}`,
      name: basename(path),
      about: `transcript, not stored · ${engine} · ${messageFormat} · ${counted(messageCount, "message")}`,
      sessionId: path,
      requests,
      history: this.#remembered(`file ${path}`, () => new History(requests, path)),
      session: undefined,
    };
  }

  forget(): void {
    this.#histories.clear();
  }

  #remembered(key: string, make: () => History): History {
    const history = this.#histories.get(key) ?? make();
    this.#histories.delete(key);
    this.#histories.set(key, history);
    for (const oldest of this.#histories.keys()) {
      if (this.#histories.size <= MOST_HISTORIES) break;
      this.#histories.delete(oldest);
    }
    return history;
  }
}
