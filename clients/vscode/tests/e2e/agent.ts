/** An agent that keeps its sessions by a sidecar of its own, in the store that the editor looks at. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { PYTHON, ROOT } from "context-sidecar-testing";
import { SidecarClient } from "context-sidecar-client";
import type { MessageFormat } from "context-sidecar-client";

export const NAMESPACE = "example-agent";
/** The program of this checkout, as the editor and the agent start it. */
export const COMMAND: readonly [string, ...string[]] = [PYTHON, "-m", "sidecar.cli.main", "serve"];
export const ENVIRONMENT = { PYTHONPATH: ROOT };

/** A session that comes with the sidecar. */
export const EXAMPLE = join(ROOT, "sidecar/cli/demo/session.jsonl");

type Message = Readonly<Record<string, unknown>> & { readonly role: string };

export class Agent {
  readonly #client: SidecarClient;
  #turns = 0;

  constructor(stateDir: string, engine = "lossless", messageFormat: MessageFormat = "openai") {
    this.#client = new SidecarClient({
      command: COMMAND,
      env: ENVIRONMENT,
      host: { id: NAMESPACE },
      engine,
      messageFormat,
      config: { stateDir, plugins: { entries: { lossless: { config: { recentTurns: 1 } } } } },
      notifications: {},
    });
  }

  /** Makes the session one of this engine, whatever looks at it. */
  async begin(sessionId: string, sessionKey: string | undefined, engine: string): Promise<void> {
    this.#key = sessionKey;
    this.#session = sessionId;
    this.#engine = engine;
  }

  #session = "";
  #key: string | undefined;
  #engine = "default";

  /** Stores a turn. */
  async turn(messages: readonly Message[]): Promise<void> {
    this.#turns += 1;
    const sessionId = this.#session;
    await this.#client.request("context/commitTurn", {
      sessionId,
      sessionKey: this.#key,
      advancementKey: `turn ${this.#turns} of ${sessionId}`,
      messages,
    });
    if (this.#turns === 1) await this.#client.request("session/configure", { sessionId, engine: this.#engine });
  }

  async compact(tokenBudget: number): Promise<void> {
    await this.#client.request("context/compact", { sessionId: this.#session, force: true, tokenBudget });
  }

  async close(): Promise<void> {
    await this.#client.close();
  }
}

/** The messages of a file, one a line. */
export function messagesOf(path: string): Message[] {
  const lines = readFileSync(path, "utf8").split("\n").filter((line) => line.trim() !== "");
  return lines.map((line) => JSON.parse(line) as Message);
}

/** The messages divided into turns: each begins with what the user says. */
export function turnsOf(messages: readonly Message[]): Message[][] {
  const turns: Message[][] = [];
  for (const message of messages) {
    const begins = message.role === "user" && turns.at(-1)?.some(({ role }) => role === "user");
    if (turns.length === 0 || begins) turns.push([]);
    turns.at(-1)?.push(message);
  }
  return turns;
}
