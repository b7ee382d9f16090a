/** Translates pi's events into requests to the sidecar. A failure leaves pi as it is without this extension. */

import type { AssembledContext, AssembleContextParams, Message } from "context-sidecar-client";
import { assemble, newestPrompt } from "./assembling.js";
import { Child } from "./child.js";
import { compact } from "./compaction.js";
import { completions } from "./completions.js";
import { describe } from "./composition.js";
import { branch, conversation } from "./history.js";
import type { AgentStart, BeforeAgentStart, BeforeCompact, CompactDecision, Context, Pi } from "./host.js";
import { recallTool } from "./recall.js";
import type { Settings } from "./settings.js";
import { Turns } from "./turns.js";
import { activeTools, messageBudget } from "./window.js";

const BOOTSTRAP_TIMEOUT_MS = 60_000;
const MAINTAIN_TIMEOUT_MS = 120_000;
/** What is left of the budget after the provider has refused a prompt for its length. */
const AFTER_OVERFLOW = 0.75;
const CUSTOM_TYPE = "context-sidecar";

export class Extension {
  readonly #child: Child;
  readonly #turns: Turns;
  /** The latest context of pi; it knows the model. */
  #context: Context | undefined;
  #ready: Promise<void> | undefined;
  #latest: AssembledContext | undefined;
  #share = 1;

  constructor(
    private readonly pi: Pi,
    private readonly settings: Settings,
  ) {
    this.#child = new Child(settings, { "runtime/complete": completions(() => this.#context) });
    this.#turns = new Turns(this.#child);
  }

  /** Starts the sidecar while the user types, and shows it what the session already holds. */
  async sessionStart(context: Context): Promise<void> {
    for (const problem of this.settings.problems) this.#child.warn(context, "configuration", problem);
    this.#ready = this.#prepare(context);
  }

  /** Adds what engine and memory have to say to the system prompt and to the user's message. */
  async agentStart(event: BeforeAgentStart, context: Context): Promise<AgentStart | undefined> {
    this.#context = context;
    await this.#ready;
    const start: AgentStart = {};
    await this.#tolerant(context, "the turn goes on without additions", async () => {
      // The list of this turn comes with `context`; here the stored history is enough.
      const { systemPromptAddition, userMessageAppend } = await this.#assemble(context, [], event.prompt);
      if (systemPromptAddition) addToPrompt(event, start, systemPromptAddition);
      if (userMessageAppend) start.message = { customType: CUSTOM_TYPE, content: userMessageAppend, display: false };
    });
    return start;
  }

  /** What the model sees in the next call. */
  async assemble(messages: readonly Message[], context: Context): Promise<{ messages: Message[] } | undefined> {
    this.#context = context;
    return this.#tolerant(context, "the turn goes on with pi's own context", async () => {
      const list = conversation(messages);
      this.#latest = await this.#assemble(context, list, newestPrompt(list));
      this.#child.recovered();
      return { messages: this.#latest.messages };
    });
  }

  said(message: Message): void {
    this.#turns.add(message);
  }

  async turnEnd(context: Context): Promise<void> {
    await this.#turns.commit(context);
  }

  /** Lets the engine tidy up after the answer; nobody waits for it. */
  agentEnd(context: Context): void {
    const { client } = this.#child;
    if (!client.capabilities?.engine.implements.includes("maintain")) return;
    const request = { sessionId: context.sessionManager.getSessionId() };
    client.request("context/maintain", request, { timeoutMs: MAINTAIN_TIMEOUT_MS }).catch(() => undefined);
  }

  async compact(event: BeforeCompact, context: Context): Promise<CompactDecision | undefined> {
    this.#context = context;
    if (event.reason === "overflow") this.#share *= AFTER_OVERFLOW;
    return compact(this.#child, event, context, this.#budget(context));
  }

  /** Shows what the context is made of. */
  describe(context: Context): string {
    return describe(this.#child.client.capabilities?.engine, this.#latest, this.#budget(context));
  }

  /** Stores what is left and ends the sidecar. What the user did not want to keep is deleted. */
  async shutdown(context: Context): Promise<void> {
    await this.#ready;
    await this.#turns.commit(context);
    if (context.sessionManager.getSessionFile() === undefined && this.#child.client.pid !== undefined) {
      const request = { sessionId: context.sessionManager.getSessionId() };
      await this.#child.client.request("session/delete", request, { timeoutMs: 5_000 }).catch(() => undefined);
    }
    await this.#child.release();
  }

  async #prepare(context: Context): Promise<void> {
    await this.#tolerant(context, "pi works without it", async () => {
      const { client } = this.#child;
      const call = { timeoutMs: this.settings.assembleTimeoutMs };
      const { tools } = await client.request("tools/list", {}, call);
      for (const tool of tools) this.pi.registerTool(recallTool(this.#child, tool));
      const messages = branch(context.sessionManager);
      if (messages.length === 0) return;
      const request = { sessionId: context.sessionManager.getSessionId(), messages };
      await client.request("context/bootstrap", request, { timeoutMs: BOOTSTRAP_TIMEOUT_MS });
    });
  }

  #assemble(context: Context, messages: Message[], prompt: string | undefined): Promise<AssembledContext> {
    const request: AssembleContextParams = {
      sessionId: context.sessionManager.getSessionId(),
      messages,
      prompt,
      tokenBudget: this.#budget(context),
      model: context.model?.id,
      availableTools: activeTools(this.pi),
    };
    return assemble(this.#child, request, this.settings.assembleTimeoutMs);
  }

  #budget(context: Context): number | undefined {
    const budget = messageBudget(this.pi, context, this.settings.reserveTokens);
    return budget === undefined ? undefined : Math.max(1, Math.floor(budget * this.#share));
  }

  async #tolerant<Result>(context: Context, what: string, work: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await work();
    } catch (error) {
      this.#child.warn(context, what, error);
      return undefined;
    }
  }
}

/** Newer releases keep the prompt in named sections, so that providers' caches hold. */
function addToPrompt(event: BeforeAgentStart, start: AgentStart, addition: string): void {
  const sections = event.systemPromptOptions?.sections;
  if (sections === undefined) start.systemPrompt = `${event.systemPrompt}\n\n${addition}`;
  else sections["context_sidecar"] = addition;
}
