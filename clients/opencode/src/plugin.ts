/** Translates opencode's hooks into requests to the sidecar. A failure leaves opencode as it is without this plugin. */

import { ErrorCode, isResponseError, leaseSidecar } from "context-sidecar-client";
import type { AssembledContext, AssembleContextParams, Lease, ToolDefinition } from "context-sidecar-client";
import type { Client, Entry, Hooks, Info, Tool } from "./host.js";
import { decode, encode, isComplete } from "./messages.js";
import type { Settings } from "./settings.js";

const COMMIT_TIMEOUT_MS = 15_000;

export class Plugin {
  readonly #lease: Lease;
  /** Sessions whose place among others is known, and their parents. */
  readonly #parents = new Map<string, string | undefined>();
  /** Windows of models, by provider and model. */
  #windows: Map<string, number> | undefined;
  #told = "";

  constructor(
    private readonly host: Client,
    private readonly settings: Settings,
  ) {
    const { engine, engineSettings, stateDir, command } = settings;
    const name = `opencode ${JSON.stringify([engine, engineSettings, stateDir, command])}`;
    this.#lease = leaseSidecar(name, () => ({
      command,
      stateDir,
      engine,
      host: { id: "opencode" },
      messageFormat: "anthropic",
      config: { memory: { placement: "message" }, plugins: { entries: { [engine]: { config: engineSettings } } } },
      cancelGraceMs: 2_000,
    }));
    for (const problem of settings.problems) this.#warn("option", problem);
  }

  /** The hooks; asking for the tools of the engine starts the sidecar. */
  async hooks(): Promise<Hooks> {
    const definitions = (await this.#tolerant("the tools are missing", async () => {
      const { timeoutMs } = this.settings;
      return (await this.#lease.client.request("tools/list", {}, { timeoutMs })).tools;
    })) ?? [];
    const schemas = new Map(definitions.map(({ name, inputSchema }) => [name, inputSchema]));
    return {
      tool: Object.fromEntries(definitions.map((definition) => [definition.name, this.#tool(definition)])),
      dispose: () => this.#lease.release().catch(() => undefined),
      event: ({ event }) => this.#event(event.type, event.properties),
      // opencode takes every property of a tool as required.
      "tool.definition": async ({ toolID }, output) => {
        const schema = schemas.get(toolID);
        if (schema === undefined) return;
        output.parameters = schema;
        if ("jsonSchema" in output) output.jsonSchema = schema;
      },
      "experimental.chat.messages.transform": (_input, output) => this.#transform(output.messages),
    };
  }

  /** Replaces the messages of a call with what the engine has chosen, in the list that opencode goes on with. */
  async #transform(messages: Entry[]): Promise<void> {
    const newest = messages.findLast(({ info }) => info.role === "user");
    if (newest === undefined) return;
    await this.#tolerant("the turn goes on with opencode's own context", async () => {
      const { sessionID } = newest.info;
      await this.#known(sessionID);
      const encoded = encode(messages);
      const request: AssembleContextParams = {
        sessionId: sessionID,
        messages: encoded.flatMap(({ wire }) => wire),
        tokenBudget: await this.#budget(newest.info),
      };
      const answer = await this.#assemble(request);
      messages.splice(0, messages.length, ...decode(answer.messages, encoded, newest));
      this.#told = "";
    });
  }

  /** The context. Where not even the least fits the budget, the least, since opencode would send more. */
  async #assemble(request: AssembleContextParams): Promise<AssembledContext> {
    const { client } = this.#lease;
    const { timeoutMs } = this.settings;
    try {
      return await client.assemble(request, { timeoutMs });
    } catch (error) {
      if (!isResponseError(error, ErrorCode.ContextOverflow)) throw error;
      return client.assemble({ ...request, tokenBudget: error.data.required }, { timeoutMs });
    }
  }

  /** Lets the sidecar know whose child a session is. */
  async #known(sessionID: string): Promise<void> {
    if (this.#parents.has(sessionID)) return;
    const { data } = await this.host.session.get({ path: { id: sessionID } });
    const parent = data?.parentID;
    if (parent !== undefined) {
      const spawn = { parentSessionKey: parent, childSessionKey: sessionID, parentSessionId: parent, childSessionId: sessionID };
      await this.#lease.client.request("subagent/prepareSpawn", { ...spawn, contextMode: "isolated" });
    }
    this.#parents.set(sessionID, parent);
  }

  /** Keeps a turn once the session is idle, and forgets sessions with opencode. */
  async #event(type: string, properties: Record<string, unknown>): Promise<void> {
    if (type === "session.idle") {
      const sessionID = String(properties["sessionID"]);
      if (this.#parents.has(sessionID)) await this.#tolerant("the turn is stored with the next one", () => this.#commit(sessionID));
    } else if (type === "session.deleted") {
      const sessionId = (properties["info"] as { id: string }).id;
      this.#parents.delete(sessionId);
      await this.#tolerant("the session is not erased", () => this.#lease.client.request("session/delete", { sessionId }));
    }
  }

  async #commit(sessionID: string): Promise<void> {
    const { data = [] } = await this.host.session.messages({ path: { id: sessionID } });
    const turn = data.slice(Math.max(0, data.findLastIndex(({ info }) => info.role === "user")));
    // The event may come when the next turn has begun; that one's event will keep it, and its request this one.
    if (!isComplete(turn)) return;
    const messages = encode(turn).flatMap(({ wire }) => wire);
    const last = turn.at(-1)?.info.id;
    const limit = { timeoutMs: COMMIT_TIMEOUT_MS };
    if (last !== undefined) {
      const commit = { sessionId: sessionID, advancementKey: last, messages };
      await this.#lease.client.request("context/commitTurn", commit, limit);
    }
    if (this.#parents.get(sessionID) === undefined) return;
    this.#parents.delete(sessionID);
    await this.#lease.client.request("subagent/ended", { childSessionKey: sessionID, reason: "completed" }, limit);
  }

  async #budget({ model }: Info): Promise<number | undefined> {
    const { tokenBudget, reserveTokens } = this.settings;
    if (tokenBudget !== undefined || model === undefined) return tokenBudget;
    const window = (await this.#models()).get(`${model.providerID}/${model.modelID}`);
    return window ? Math.max(Math.floor(window / 2), window - reserveTokens) : undefined;
  }

  async #models(): Promise<Map<string, number>> {
    if (this.#windows !== undefined) return this.#windows;
    const { data } = await this.host.config.providers();
    const windows = (data?.providers ?? []).flatMap(({ id, models }) =>
      Object.entries(models).map(([name, { limit }]) => [`${id}/${name}`, limit?.context ?? 0] as const),
    );
    return (this.#windows = new Map(windows));
  }

  /** A tool of the sidecar; it looks into the session in which it is called. */
  #tool({ name, description, inputSchema }: ToolDefinition): Tool {
    const { properties = {} } = inputSchema as { properties?: Record<string, unknown> };
    return {
      description,
      args: properties,
      execute: async (args, { sessionID, abort }) => {
        const request = { sessionId: sessionID, name, arguments: args };
        try {
          const call = { timeoutMs: this.settings.timeoutMs, signal: abort };
          const { content } = await this.#lease.client.request("tools/call", request, call);
          return content.map(({ text }) => text).join("\n");
        } catch (error) {
          if (isResponseError(error, ErrorCode.InvalidParams)) return `Wrong arguments: ${error.message}`;
          if (isResponseError(error, ErrorCode.SessionNotFound)) return "Nothing is stored of this conversation yet.";
          this.#warn(`${name} failed`, error);
          return `${name} cannot be used at the moment.`;
        }
      },
    };
  }

  async #tolerant<Result>(what: string, work: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await work();
    } catch (error) {
      this.#warn(what, error);
      return undefined;
    }
  }

  /** Tells of something that opencode has survived, in its log; the same thing once in a row. */
  #warn(what: string, error: unknown): void {
    const line = `context-sidecar: ${what}: ${error instanceof Error ? error.message : String(error)}`;
    if (line === this.#told) return;
    this.#told = line;
    console.error(line);
  }
}
