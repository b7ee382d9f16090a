/** The context engine that OpenClaw sees: one object per logical turn, all state in the sidecar. */

import { isAbsolute } from "node:path";
import { ErrorCode, isResponseError } from "context-sidecar-client";
import { assemble } from "./assembling.js";
import type { AssembleResult } from "./assembling.js";
import type { Child } from "./child.js";
import { lending } from "./completions.js";
import type {
  AfterTurnParams,
  AssembleParams,
  CommitParams,
  CompactParams,
  IngestBatchParams,
  IngestParams,
  LifecycleParams,
  SpawnParams,
  SubagentEndedParams,
} from "./host.js";
import { LatestAnswer } from "./latest-answer.js";
import { agentOf, isCopy, session } from "./session.js";

export const ENGINE_ID = "context-sidecar";

const STORE_TIMEOUT_MS = 15_000;
/** After a turn; before one, the user waits. */
const MAINTAIN_TIMEOUT_MS = 60_000;
/** Below the 180 seconds that the host allows. */
const COMPACT_TIMEOUT_MS = 150_000;

const UNTOUCHED = { changed: false, bytesFreed: 0, rewrittenEntries: 0 };

/** A fresh engine object. Its members can be called apart from it, and through any proxy. */
export function contextEngine(child: Child, assembleTimeoutMs: number) {
  const engine = new ContextEngine(child, assembleTimeoutMs);
  return {
    info: engine.info,
    bootstrap: engine.bootstrap.bind(engine),
    ingest: engine.ingest.bind(engine),
    ingestBatch: engine.ingestBatch.bind(engine),
    afterTurn: engine.afterTurn.bind(engine),
    commitTurn: engine.commitTurn.bind(engine),
    assemble: engine.assemble.bind(engine),
    compact: engine.compact.bind(engine),
    maintain: engine.maintain.bind(engine),
    prepareSubagentSpawn: engine.prepareSubagentSpawn.bind(engine),
    onSubagentEnded: engine.onSubagentEnded.bind(engine),
    dispose: engine.dispose.bind(engine),
  };
}

class ContextEngine {
  readonly info = {
    id: ENGINE_ID,
    name: "Context Sidecar",
    ownsCompaction: true,
    acceptedHostParams: ["sessionKey", "prompt", "runtimeSettings", "sessionTarget", "runtimeContext", "abortSignal"],
    transcriptSemantics: {
      currentTurnFence: "before-current-turn-entry-v1",
      turnAdvancementIdempotency: "atomic-idempotent-v1",
    },
  } as const;

  /** Budget of the turn's first call; those of the tool loop leave out what the host adds. */
  #turnBudget: number | undefined;
  readonly #answered = new LatestAnswer();
  /** True as long as the host has a call of the model in front of it. */
  #userWaits = true;

  constructor(
    private readonly child: Child,
    private readonly assembleTimeoutMs: number,
  ) {}

  /** Imports the transcript where the host names a file; newer hosts hand it to `assemble`. */
  async bootstrap(params: LifecycleParams) {
    this.#turnBudget = undefined;
    const { sessionFile } = params;
    const none = { bootstrapped: false, importedMessages: 0, reason: "the transcript comes with assemble" };
    if (isCopy(params.sessionId) || sessionFile === undefined || !isAbsolute(sessionFile)) return none;
    return this.#tolerant("bootstrap", none, async () => {
      const request = { ...session(params), sessionFile };
      const call = { timeoutMs: STORE_TIMEOUT_MS };
      return lending(params.sessionId, params.runtimeContext?.llm, () =>
        this.child.client.request("context/bootstrap", request, call),
      );
    });
  }

  async ingest(params: IngestParams) {
    return this.#tolerant("ingest", { ingested: false }, async () => {
      const request = { ...session(params), message: params.message, isHeartbeat: params.isHeartbeat };
      const { ingested } = await this.child.client.request("context/ingest", request, { timeoutMs: STORE_TIMEOUT_MS });
      return { ingested };
    });
  }

  async ingestBatch(params: IngestBatchParams) {
    return this.#tolerant("ingestBatch", { ingestedCount: 0 }, async () => {
      const request = { ...session(params), messages: params.messages, isHeartbeat: params.isHeartbeat };
      const call = { timeoutMs: STORE_TIMEOUT_MS };
      const { ingestedCount } = await this.child.client.request("context/ingestBatch", request, call);
      return { ingestedCount };
    });
  }

  async afterTurn(params: AfterTurnParams): Promise<void> {
    await this.#tolerant("afterTurn", undefined, async () => {
      const { messages, prePromptMessageCount, isHeartbeat, tokenBudget } = params;
      const request = {
        ...session(params),
        messages,
        prePromptMessageCount,
        isHeartbeat,
        tokenBudget: positive(tokenBudget),
      };
      await this.child.client.request("context/afterTurn", request, { timeoutMs: STORE_TIMEOUT_MS });
    });
  }

  /** Fails where the turn is not stored: the host keeps it and hands it over again. */
  async commitTurn(params: CommitParams): Promise<{ status: "committed" | "duplicate" }> {
    const { advancementKey, messages, isHeartbeat } = params;
    if (isCopy(params.sessionId)) return { status: "committed" };
    this.#userWaits = false;
    const request = { ...session(params), advancementKey, messages, isHeartbeat };
    const { status } = await this.child.client.request("context/commitTurn", request, { timeoutMs: STORE_TIMEOUT_MS });
    return { status: status === "duplicate" ? "duplicate" : "committed" };
  }

  async assemble(params: AssembleParams): Promise<AssembleResult> {
    const budget = positive(params.tokenBudget);
    this.#turnBudget ??= budget;
    const smaller = budget === undefined ? this.#turnBudget : Math.min(budget, this.#turnBudget ?? budget);
    return this.#answered.again(params, smaller) ?? this.#assembled(params, smaller);
  }

  async #assembled(params: AssembleParams, tokenBudget: number | undefined): Promise<AssembleResult> {
    const { result, fromSidecar } = await assemble(this.child, params, tokenBudget, this.assembleTimeoutMs);
    if (fromSidecar) this.#answered.keep(params, tokenBudget, result);
    return result;
  }

  /** Never fails: the host would put its own compaction in our place. */
  async compact(params: CompactParams) {
    this.#turnBudget = undefined;
    this.#answered.clear();
    const { tokenBudget, currentTokenCount, compactionTarget, customInstructions, force } = params;
    const request = {
      ...session(params),
      tokenBudget: positive(tokenBudget),
      currentTokenCount,
      compactionTarget,
      customInstructions,
      force,
    };
    const call = { timeoutMs: COMPACT_TIMEOUT_MS, signal: params.abortSignal };
    try {
      return await lending(params.sessionId, params.runtimeContext?.llm, () =>
        this.child.client.request("context/compact", request, call),
      );
    } catch (error) {
      if (!isUnknownSession(error)) this.child.warn("compaction failed", error);
      return { ok: false, compacted: false, reason: error instanceof Error ? error.message : String(error) };
    }
  }

  /** Lets the engine tidy up. The transcript of the host is never rewritten. */
  async maintain(params: LifecycleParams) {
    if (isCopy(params.sessionId)) return UNTOUCHED;
    return this.#tolerant("maintain", UNTOUCHED, async () => {
      const call = { timeoutMs: this.#userWaits ? this.assembleTimeoutMs : MAINTAIN_TIMEOUT_MS, signal: params.abortSignal };
      await lending(params.sessionId, params.runtimeContext?.llm, () =>
        this.child.client.request("context/maintain", session(params), call),
      );
      return UNTOUCHED;
    });
  }

  async prepareSubagentSpawn(params: SpawnParams) {
    return this.#tolerant("prepareSubagentSpawn", undefined, async () => {
      const { parentSessionKey, childSessionKey, parentSessionId, childSessionId, ttlMs } = params;
      const contextMode = params.contextMode ?? "isolated";
      const agentId = agentOf(parentSessionKey);
      const keys = { parentSessionKey, childSessionKey, parentSessionId, childSessionId };
      const request = { ...keys, contextMode, agentId, childAgentId: agentOf(childSessionKey), ttlMs };
      const call = { timeoutMs: STORE_TIMEOUT_MS };
      const { preparationId } = await this.child.client.request("subagent/prepareSpawn", request, call);
      const rollback = async (): Promise<void> => {
        if (!preparationId) return;
        await this.#tolerant("rollback", undefined, async () => {
          await this.child.client.request("subagent/rollbackSpawn", { preparationId, agentId }, call);
        });
      };
      return { rollback };
    });
  }

  /** The host names the child alone, so that the agent that has spawned it is not known here. */
  async onSubagentEnded({ childSessionKey, reason }: SubagentEndedParams): Promise<void> {
    await this.#tolerant("onSubagentEnded", undefined, async () => {
      await this.child.client.request("subagent/ended", { childSessionKey, reason }, { timeoutMs: STORE_TIMEOUT_MS });
    });
  }

  /** Ends this object. The process serves the next turn too. */
  async dispose(): Promise<void> {}

  /** The result of `work`; `otherwise`, with a warning, where it fails. */
  async #tolerant<Result>(what: string, otherwise: Result, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      const expected = isUnknownSession(error) || isResponseError(error, ErrorCode.MethodNotFound);
      if (!expected) this.child.warn(`${what} failed`, error);
      return otherwise;
    }
  }
}

function isUnknownSession(error: unknown): boolean {
  return isResponseError(error, ErrorCode.SessionNotFound);
}

function positive(tokens: number | undefined): number | undefined {
  return tokens !== undefined && tokens >= 1 ? Math.floor(tokens) : undefined;
}
