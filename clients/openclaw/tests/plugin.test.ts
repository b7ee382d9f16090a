import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { SidecarClient } from "context-sidecar-client";
import { Tap } from "context-sidecar-testing";
import { contextEngine } from "../src/engine.js";
import type { HostModel, PluginApi, ToolContext } from "../src/host.js";
import plugin from "../src/index.js";

const HERE = fileURLToPath(new URL("../../", import.meta.url));
const SIDECAR = process.env["CONTEXT_SIDECAR"] ?? join(HERE, "../../.venv/bin/context-sidecar");

const sessionId = "4c1f";
const sessionKey = "agent:main:story";
const sessionTarget = { agentId: "main" };
const common = { sessionId, sessionKey, sessionTarget };

type Engine = ReturnType<typeof contextEngine>;
type Details = { messages?: { text: string }[]; nextCursor?: string };
type Tool = { execute(id: string, args: object): Promise<{ content: { text: string }[]; details?: Details }> };

/** What a host holds after it has loaded the plugin. */
async function load(t: TestContext, config: Record<string, unknown> = {}) {
  const stateDir = await mkdtemp(join(tmpdir(), "context-sidecar-plugin-"));
  const warnings: string[] = [];
  const disposers: (() => unknown)[] = [];
  let factory: (() => unknown) | undefined;
  const tools = new Map<string, (context: ToolContext) => unknown>();
  const api: PluginApi = {
    pluginConfig: { command: SIDECAR, stateDir, ...config },
    logger: { warn: (line) => void warnings.push(line) },
    lifecycle: { onDispose: (dispose) => void disposers.push(dispose) },
    registerContextEngine: (_id, made) => void (factory = made),
    registerTool: (made, { name }) => void tools.set(name, made),
  };
  plugin.register(api);
  t.after(async () => {
    for (const dispose of disposers) await dispose();
    await rm(stateDir, { recursive: true, force: true, maxRetries: 5 });
  });
  const tool = (context: ToolContext, name = "context_search") => tools.get(name)?.(context) as Tool;
  return { engine: () => factory?.() as Engine, tool, warnings, stateDir };
}

function user(content: string, timestamp: number) {
  return { role: "user", content, timestamp };
}

function assistant(text: string, timestamp: number) {
  return { role: "assistant", content: [{ type: "text", text }], timestamp, stopReason: "stop" };
}

function turnOf(number: number, words = 3) {
  const at = 1_795_000_000_000 + number * 60_000;
  return [user(`question ${number} ${"word ".repeat(words)}`, at), assistant(`answer ${number} ${"word ".repeat(words)}`, at + 1)];
}

test("the engine declares what OpenClaw asks for before it uses one", async (t) => {
  const { info } = (await load(t)).engine();
  assert.equal(info.id, "context-sidecar");
  assert.equal(info.ownsCompaction, true);
  assert.deepEqual(info.transcriptSemantics, {
    currentTurnFence: "before-current-turn-entry-v1",
    turnAdvancementIdempotency: "atomic-idempotent-v1",
  });
});

test("a turn is committed once, whoever brings it again", async (t) => {
  const { engine } = await load(t);
  const commit = { ...common, advancementKey: "k1", messages: turnOf(1) };
  assert.deepEqual(await engine().commitTurn(commit), { status: "committed" });
  assert.deepEqual(await engine().commitTurn(commit), { status: "duplicate" });
});

test("assembling the engine's own answer again changes nothing", async (t) => {
  const { engine } = await load(t);
  const messages = [1, 2, 3].flatMap((number) => turnOf(number));
  const turn = engine();
  const first = await turn.assemble({ ...common, messages, tokenBudget: 50_000, prompt: "next" });
  const copied = structuredClone(first.messages);
  const second = await turn.assemble({ ...common, messages: copied, tokenBudget: 90_000, prompt: "next" });
  assert.deepEqual(second.messages, first.messages);
});

test("an answer that comes back in the same turn is not assembled anew, unless there is less room", async (t) => {
  const stateDir = await mkdtemp(join(tmpdir(), "context-sidecar-tapped-"));
  t.after(() => rm(stateDir, { recursive: true, force: true, maxRetries: 5 }));
  const tap = new Tap(join(stateDir, "tap.jsonl"));
  const { engine } = await load(t, { command: tap.command });
  const turn = engine();
  const asked = { ...common, messages: [1, 2, 3].flatMap((number) => turnOf(number)), tokenBudget: 50_000, prompt: "next" };
  const first = await turn.assemble(asked);
  const { messages } = first;
  assert.deepEqual(await turn.assemble({ ...asked, messages }), first);
  assert.equal(tap.asked("context/assemble").length, 1);
  await turn.assemble({ ...asked, messages: messages.slice(1) });
  await turn.assemble({ ...asked, messages, prompt: "something else" });
  await turn.assemble({ ...asked, messages, tokenBudget: 1_000 });
  await turn.compact({ ...common, force: true });
  await turn.assemble({ ...asked, messages });
  assert.equal(tap.asked("context/assemble").length, 5);
});

test("a session of an internal turn leaves nothing in the store", async (t) => {
  const { engine, stateDir } = await load(t);
  const copy = { sessionId: "internal-session-effects-1", sessionKey, sessionTarget };
  await engine().bootstrap({ ...copy, sessionFile: "/does/not/matter" });
  const { messages } = await engine().assemble({ ...copy, messages: turnOf(1), tokenBudget: 50_000 });
  assert.deepEqual(messages, turnOf(1));
  await engine().maintain(copy);
  const client = new SidecarClient({ command: SIDECAR, stateDir, host: { id: "openclaw" }, engine: "default" });
  t.after(() => client.close());
  assert.deepEqual((await client.request("session/list", {})).sessions, []);
});

test("the host's model writes the summary during a compaction, and only then", async (t) => {
  const { engine } = await load(t);
  const asked: object[] = [];
  const llm: HostModel = {
    complete: async (params) => {
      asked.push(params);
      return { text: "Questions were answered." };
    },
  };
  for (let number = 1; number <= 12; number += 1) {
    await engine().commitTurn({ ...common, advancementKey: `k${number}`, messages: turnOf(number, 200) });
  }
  const runtimeContext = { llm, config: { apiKey: "secret" } };
  const compaction = await engine().compact({ ...common, tokenBudget: 3_000, force: true, runtimeContext });
  assert.equal(compaction.compacted, true);
  assert.ok(asked.length > 0);
  assert.doesNotMatch(JSON.stringify(asked), /secret/);
});

test("the tool looks into the session of its context", async (t) => {
  const { engine, tool } = await load(t);
  await engine().commitTurn({ ...common, advancementKey: "k1", messages: turnOf(1) });
  const args = { mode: "search", query: "question 1" };
  const found = await tool({ sessionId, sessionKey, agentId: "main" }).execute("c1", args);
  assert.match(found.content[0]?.text ?? "", /\[user t1\] question 1/);
  const elsewhere = await tool({ sessionId: "other", sessionKey: "agent:main:other" }).execute("c2", args);
  assert.doesNotMatch(elsewhere.content[0]?.text ?? "", /\[user/);
});

test("a long message is read in pages, word for word", async (t) => {
  const { engine, tool } = await load(t);
  const long = Array.from({ length: 6_000 }, (_, number) => `word${number}`).join(" ");
  await engine().commitTurn({ ...common, advancementKey: "k1", messages: [user(long, 1_795_000_000_000)] });
  let read = "";
  for (let cursor: string | undefined, more = true; more; more = cursor !== undefined) {
    const args = { first: 1, last: 1, ...(cursor ? { cursor } : {}) };
    const { details } = await tool({ sessionId, sessionKey }, "context_expand").execute("c1", args);
    read += details?.messages?.map(({ text }) => text).join("") ?? "";
    cursor = details?.nextCursor;
  }
  assert.equal(read, long);
});

test("the tools are described as the sidecar describes them, and named in the manifest", async (t) => {
  const { stateDir } = await load(t);
  const client = new SidecarClient({ command: SIDECAR, stateDir, host: { id: "test" }, engine: "lossless" });
  t.after(() => client.close());
  const { tools } = await client.request("tools/list", {});
  assert.deepEqual(tools, JSON.parse(await readFile(join(HERE, "src/tools.json"), "utf8")));
  const manifest = JSON.parse(await readFile(join(HERE, "openclaw.plugin.json"), "utf8")) as { contracts: { tools: string[] } };
  assert.deepEqual(manifest.contracts.tools, tools.map(({ name }) => name));
});

test("hosts that know no commitTurn are served by afterTurn and ingest", async (t) => {
  const { engine } = await load(t);
  assert.deepEqual(await engine().ingest({ ...common, message: turnOf(1)[0] as object }), { ingested: true });
  await engine().afterTurn({ ...common, messages: [...turnOf(1), ...turnOf(2)], prePromptMessageCount: 2 });
  const { messages } = await engine().assemble({ ...common, messages: [...turnOf(1), ...turnOf(2)], tokenBudget: 9_000 });
  assert.deepEqual(messages, [...turnOf(1), ...turnOf(2)]);
});

test("without a sidecar turns go on, compaction is declined, and only the commit fails", async (t) => {
  const { engine, tool, warnings } = await load(t, { command: "/no/such/sidecar" });
  const turn = engine();
  const params = { ...common, messages: turnOf(1), tokenBudget: 50_000 };
  await turn.bootstrap({ ...common, sessionFile: sessionKey });
  assert.deepEqual((await turn.assemble(params)).messages, params.messages);
  assert.equal((await turn.compact({ ...common, force: true })).ok, false);
  assert.equal((await turn.maintain(common)).changed, false);
  assert.equal(await turn.prepareSubagentSpawn({ parentSessionKey: "a", childSessionKey: "b" }), undefined);
  await turn.onSubagentEnded({ childSessionKey: "b", reason: "completed" });
  await turn.dispose();
  await assert.rejects(turn.commitTurn({ ...common, advancementKey: "k", messages: turnOf(1) }));
  const answer = await tool({ sessionId, sessionKey }).execute("c", { mode: "tail" });
  assert.match(answer.content[0]?.text ?? "", /cannot be used/);
  assert.ok(warnings.some((line) => line.includes("unchanged messages")));
});
