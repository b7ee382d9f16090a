/** An agent that keeps one session by a sidecar of its own, in the store that the editor looks at. */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { SidecarClient } from "context-sidecar-client";
import type { MessageFormat } from "context-sidecar-client";
import { PYTHON, ROOT } from "context-sidecar-testing";

export const NAMESPACE = "example-agent";
/** The program of this checkout, as the editor and the agent start it. */
export const COMMAND: readonly [string, ...string[]] = [PYTHON, "-m", "sidecar.cli.main", "serve"];
export const ENVIRONMENT = { PYTHONPATH: ROOT };

/** A session that comes with the sidecar. */
export const EXAMPLE = join(ROOT, "sidecar/cli/demo_session.jsonl");

export type Message = Readonly<Record<string, unknown>> & { readonly role: string };

interface Options {
  readonly sessionKey?: string;
  readonly engine?: string;
  readonly messageFormat?: MessageFormat;
}

export class Agent {
  readonly #client: SidecarClient;
  readonly #engine: string;
  #turns = 0;

  constructor(
    stateDir: string,
    private readonly sessionId: string,
    private readonly options: Options = {},
  ) {
    this.#engine = options.engine ?? "default";
    this.#client = new SidecarClient({
      command: COMMAND,
      env: ENVIRONMENT,
      host: { id: NAMESPACE },
      engine: this.#engine,
      messageFormat: options.messageFormat,
      stateDir,
    });
  }

  /** Stores a turn. */
  async turn(messages: readonly Message[]): Promise<void> {
    this.#turns += 1;
    const { sessionId } = this;
    const advancementKey = `turn ${this.#turns} of ${sessionId}`;
    const { sessionKey } = this.options;
    await this.#client.request("context/commitTurn", { sessionId, sessionKey, advancementKey, messages });
    // Whatever looks at the session later takes it to be one of this engine.
    if (this.#turns === 1) await this.#client.request("session/configure", { sessionId, engine: this.#engine });
  }

  async compact(tokenBudget: number): Promise<void> {
    await this.#client.request("context/compact", { sessionId: this.sessionId, force: true, tokenBudget });
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
