/** One conversation in a real gateway, and what the model and the sidecar were told in it. */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assertOnce, assertPaired, gone, ScriptedModel, textOf, texts } from "context-sidecar-testing";
import type { ChatRequest, Script, Tap } from "context-sidecar-testing";
import { Gateway } from "./gateway.js";

export const KEY = "agent:main:story";
export const REPLY = "The model has answered";

export class Story {
  /** What the user has said, oldest first. */
  readonly said: string[] = [];

  private constructor(
    readonly folder: string,
    readonly gateway: Gateway,
    readonly model: ScriptedModel,
  ) {}

  /** A story in a gateway that runs. */
  static async begin(plugin: Record<string, unknown> = {}): Promise<Story> {
    const folder = await mkdtemp(join(tmpdir(), "context-sidecar-openclaw-"));
    const model = new ScriptedModel();
    const gateway = await Gateway.configure(folder, await model.listen(), plugin);
    await gateway.start();
    return new Story(folder, gateway, model);
  }

  get tap(): Tap {
    return this.gateway.tap;
  }

  get stateDir(): string {
    return join(this.folder, "state", "context-sidecar");
  }

  /** One turn; the requests that reached the model in it. */
  async turn(text: string, script?: Script): Promise<ChatRequest[]> {
    const first = this.model.requests.length;
    this.said.push(text.trim());
    this.model.script = script ?? (() => ({ say: `${REPLY} (${this.said.length}).` }));
    await this.gateway.turn(KEY, text);
    const requests = this.model.requests.slice(first).filter((request) => conversation(request).includes(text.trim()));
    assert.ok(requests.length > 0, `the model was not asked:\n${this.gateway.output.slice(-2000)}`);
    return requests;
  }

  /** Ends the gateway, and the sidecar with it, and starts it again. */
  async restart(): Promise<void> {
    const { pid } = this.tap;
    await this.gateway.stop();
    await gone(pid);
    await this.gateway.start();
  }

  /** What the user has said is in the prompt at most once, calls have results, and these texts are there. */
  assertWhole(request: ChatRequest | undefined, ...expected: readonly string[]): void {
    const shown = conversation(request);
    assertOnce(this.said, shown);
    assertPaired(request);
    for (const text of expected) assert.ok(shown.includes(text), `not in the prompt: ${text}`);
  }

  /** Lines in which the plugin tells that a turn went on without the sidecar. */
  get fellBack(): string[] {
    return this.gateway.output.split("\n").filter((line) => line.includes("unchanged messages"));
  }

  async end(): Promise<void> {
    await this.gateway.stop();
    this.model.close();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Texts of users and assistants as the model saw them, without what the host puts around them. */
export function conversation(request: ChatRequest | undefined): string[] {
  return texts(request).filter((text) => !text.includes("BEGIN_OPENCLAW_INTERNAL_CONTEXT")).map(undecorated);
}

/** A text without the time in front of it and the host's block behind it. */
export function undecorated(text: string): string {
  return text
    .replace(/^\[[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d UTC\] /, "")
    .replace(/\n\nRuntime: agent=[^]*$/, "")
    .trim();
}

/** Roles and texts of a list of the host's messages, as a request would carry them. */
export function asRequest(messages: readonly object[]): { role: string; text: string; calls: number }[] {
  return (messages as { role: string; content?: unknown }[]).map(({ role, content }) => {
    const parts = Array.isArray(content) ? (content as { type: string }[]) : undefined;
    const text = textOf({ content: parts?.filter(({ type }) => type === "text") ?? content });
    const calls = parts?.filter(({ type }) => type === "toolCall").length ?? 0;
    return { role: role === "toolResult" ? "tool" : role, text, calls };
  });
}
