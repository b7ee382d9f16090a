/** One story in a real OpenClaw: every test goes on where the one before has ended. */

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { applyEdits, SidecarClient } from "context-sidecar-client";
import type { AssembleContextResult, ExportedMessage } from "context-sidecar-client";
import { Gateway, PYTHON } from "./gateway.js";
import type { Tapped } from "./gateway.js";
import { ScriptedModel } from "./model.js";
import type { ChatRequest, Script } from "./model.js";

const KEY = "agent:main:story";
const REPLY = "The model has answered";

const model = new ScriptedModel();
const said: string[] = [];
let folder: string;
let gateway: Gateway;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "context-sidecar-openclaw-"));
  gateway = await Gateway.configure(folder, await model.listen(), { settings: { summaryTokens: 200 } });
  await gateway.start();
});

after(async () => {
  await gateway?.stop();
  model.close();
  if (folder !== undefined) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
});

test("the first turn reaches model and store", async () => {
  const [request] = await turn("The code word is heliotrope.");
  assert.deepEqual(conversation(request), ["The code word is heliotrope."]);
  assert.equal(commits().length, 1);
});

test("later turns show the model every earlier one, once and in order", async () => {
  await turn("Second message, about granite.");
  const [request] = await turn("Third message, about basalt.");
  assert.deepEqual(conversation(request), interleaved());
});

test("a tool call and its result reach the model in the same turn and in the next one", async () => {
  const requests = await turn("Fourth message: which agents are there?", toolOnce("agents_list", {}));
  assert.equal(requests.length, 2);
  assert.equal(toolResults(requests[1]).length, 1);
  const [next] = await turn("Fifth message, after the tool.");
  assert.equal(toolResults(next).length, 1);
  assert.equal(calls(next).length, 1);
  assertPaired(next);
});

test("the recall tool finds what was said earlier in this session", async () => {
  const recall = toolOnce("context_search", { mode: "search", query: "heliotrope" });
  const requests = await turn("Sixth message: what was the code word?", recall);
  assert.ok(requests[0]?.tools?.some((tool) => tool.function.name === "context_search"));
  assert.match(JSON.stringify(toolResults(requests[1]).at(-1)), /\[user t1\] The code word is heliotrope/);
});

test("what the model gets is what the sidecar answered", async () => {
  const [request] = await turn("Here everything is compared.");
  const list = assembledLists(gateway.tapped).at(-1) as object[];
  const answered = list.filter((message) => !isToolResult(message)).map(plainText).filter((text) => text !== "");
  assert.ok(answered.length >= 12);
  assert.deepEqual(conversation(request), [...answered, "Here everything is compared."]);
  assert.deepEqual(fellBack(), []);
});

test("no secret of the host reaches the sidecar", () => {
  const sent = JSON.stringify(gateway.tapped.filter((line) => line.to === "sidecar"));
  assert.doesNotMatch(sent, /secret-of-the/);
});

test("compaction by hand is answered, and its summary takes the place of old turns", async () => {
  for (const stone of ["gneiss", "schist", "marble"]) await turn(`About ${stone}: ${stone.repeat(3)} ${"word ".repeat(4000)}`);
  const before = size(model.requests.at(-1));
  await gateway.command(["sessions", "compact", KEY, "--json"]);
  const compaction = answersTo("context/compact").at(-1);
  assert.equal(compaction?.body.error, undefined);
  const [request] = await turn("Seventh message, after the compaction.");
  assert.equal(compaction?.body.result?.["compacted"], true);
  assert.ok(size(request) < before);
  assertNothingTwice(request);
});

test("an overflow that the provider reports is compacted away, and the turn gets its answer", async () => {
  let refused = 0;
  const requests = await turn("Eighth message, which overflows.", () => {
    refused += 1;
    return refused === 1 ? { overflow: true } : { say: `${REPLY} after the overflow.` };
  });
  assert.ok(requests.length >= 2);
  assert.equal(answersTo("context/compact").at(-1)?.body.error, undefined);
  assert.ok(size(requests.at(-1)) < size(requests[0]), "the second prompt is no smaller");
});

test("a subagent has a history of its own, and its parent goes on with theirs", async () => {
  const parent = "agent:main:parent";
  const task = "Child task: name three stones.";
  let spawned = false;
  model.script = (request) => {
    const texts = conversation(request).join("\n");
    if (spawned || !texts.includes("Spawn a child")) return { say: texts.includes("Child task") ? "CHILD DONE" : REPLY };
    spawned = true;
    return { call: "sessions_spawn", with: { task } };
  };
  await gateway.turn(parent, "Spawn a child, please.");
  await until(() => commitsOf(/^agent:main:subagent:/).length > 0, "the child's turn to be stored");
  assert.match(JSON.stringify(commitsOf(/^agent:main:subagent:/)), /Child task: name three stones/);
  const first = model.requests.length;
  await gateway.turn(parent, "Parent goes on.");
  const request = model.requests.slice(first).find((asked) => conversation(asked).includes("Parent goes on."));
  assert.ok(conversation(request).includes("Spawn a child, please."));
  assertPaired(request);
});

test("a sidecar that is killed between two turns costs nothing", async () => {
  const pid = gateway.sidecarPid;
  process.kill(pid, "SIGKILL");
  const [request] = await turn("Ninth message, after the kill.");
  assert.notEqual(gateway.sidecarPid, pid);
  assert.ok(conversation(request).some((text) => text.includes("Seventh message")));
  assertNothingTwice(request);
  assert.deepEqual(fellBack(), []);
});

test("a hung sidecar does not take the turn down, and the next turn has everything", async () => {
  const pid = gateway.sidecarPid;
  process.kill(pid, "SIGSTOP");
  const [request] = await turn("Tenth message, to a sidecar that hangs.");
  assert.ok(conversation(request).some((text) => text.includes("Ninth message")));
  assert.ok(await isGone(pid));
  const [next] = await turn("Eleventh message, to a new sidecar.");
  assert.ok(conversation(next).some((text) => text.includes("Tenth message")));
  assertNothingTwice(next);
});

test("a restart of the gateway ends the sidecar and loses nothing", async () => {
  const pid = gateway.sidecarPid;
  await gateway.stop();
  assert.ok(await isGone(pid));
  await gateway.start();
  const [request] = await turn("Twelfth message, after the restart.");
  assert.ok(conversation(request).some((text) => text.includes("Eleventh message")));
  assertNothingTwice(request);
});

test("in the end everything is stored once and in order, nothing runs on, and the doctor is content", async () => {
  const pid = gateway.sidecarPid;
  await gateway.stop();
  assert.ok(await isGone(pid));
  const env = { PYTHONPATH: new URL("../../../../../", import.meta.url).pathname };
  const stateDir = join(folder, "state", "context-sidecar");
  const doctor = ["-m", "sidecar.cli.main", "doctor", "--namespace", "openclaw", "--state-dir", stateDir, "--json"];
  // It ends with another status, and this call throws, where something has to be done.
  execFileSync(PYTHON, doctor, { env: { ...process.env, ...env }, timeout: 30_000 });
  const client = new SidecarClient({
    command: [PYTHON, "-m", "sidecar.cli.main", "serve"],
    env,
    host: { id: "openclaw" },
    messageFormat: "openclaw",
    engine: "default",
    stateDir,
  });
  try {
    const { sessions } = await client.request("session/list", {});
    const story = sessions.filter((entry) => entry.sessionKey === KEY);
    assert.equal(story.length, 1);
    const stored: ExportedMessage[] = [];
    let cursor: string | null | undefined;
    do {
      const sessionId = story[0]?.sessionId as string;
      const page = await client.request("session/export", { sessionId, cursor });
      stored.push(...page.messages);
      cursor = page.nextCursor;
    } while (cursor);
    assert.deepEqual(stored.map(({ message }) => message).filter(isUser).map(plainText), said);
  } finally {
    await client.close();
  }
  if (process.platform === "linux") assert.deepEqual(processesOf(folder), []);
});

/** One turn of the story; the requests that reached the model. */
async function turn(text: string, script: Script = () => ({ say: `${REPLY} (${model.requests.length}).` })) {
  const first = model.requests.length;
  model.script = script;
  said.push(text.trim());
  await gateway.turn(KEY, text);
  const requests = model.requests.slice(first).filter((request) => JSON.stringify(request).includes(text.slice(0, 20)));
  assert.ok(requests.length > 0, `the model was not asked:\n${gateway.output.slice(-2000)}`);
  return requests;
}

/** Calls a tool once, then answers. */
function toolOnce(name: string, args: Record<string, unknown>): Script {
  let called = false;
  return () => {
    if (called) return { say: `${REPLY} with ${name}.` };
    called = true;
    return { call: name, with: args };
  };
}

/** Texts of users and assistants as the model saw them, without what the host puts around them. */
function conversation(request: ChatRequest | undefined): string[] {
  return (request?.messages ?? [])
    .filter(({ role }) => role === "user" || role === "assistant")
    .map(plainText)
    .filter((text) => text !== "" && !text.includes("BEGIN_OPENCLAW_INTERNAL_CONTEXT"));
}

function plainText({ content }: { content?: unknown }): string {
  const parts = Array.isArray(content) ? (content as { text?: string }[]).map(({ text }) => text ?? "") : [String(content ?? "")];
  return parts
    .join("\n")
    .replace(/^\[[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d UTC\] /, "")
    .replace(/\n\nRuntime: agent=[^]*$/, "")
    .trim();
}

/** What the first turns must look like: each text of the user, and the answer between. */
function interleaved(): string[] {
  return said.flatMap((text, index) => (index === said.length - 1 ? [text] : [text, `${REPLY} (${index + 1}).`]));
}

function isUser(message: object): message is { role: "user"; content: unknown } {
  return "role" in message && message.role === "user";
}

function isToolResult(message: object): boolean {
  return "role" in message && message.role === "toolResult";
}

/** The lists that the sidecar has answered with, whole although changes travel. */
function assembledLists(lines: readonly Tapped[]): object[][] {
  const known = new Map<unknown, object[]>();
  const asked = new Map<unknown, unknown>();
  const lists: object[][] = [];
  for (const { to, body } of lines) {
    if (to === "sidecar" && body.method === "context/assemble") asked.set(body.id, body.params?.["previousResultId"]);
    if (to === "sidecar" || !asked.has(body.id) || body.result?.["resultId"] === undefined) continue;
    const { messages, edits, resultId } = body.result as unknown as AssembleContextResult;
    const list = messages ?? applyEdits(known.get(asked.get(body.id)) ?? [], edits ?? []);
    known.set(resultId, [...list]);
    lists.push([...list]);
    asked.delete(body.id);
  }
  return lists;
}

function toolResults(request: ChatRequest | undefined) {
  return (request?.messages ?? []).filter(({ role }) => role === "tool");
}

function calls(request: ChatRequest | undefined) {
  return (request?.messages ?? []).flatMap(({ tool_calls }) => tool_calls ?? []);
}

function assertPaired(request: ChatRequest | undefined): void {
  assert.deepEqual(
    toolResults(request).map(({ tool_call_id }) => tool_call_id),
    calls(request).map(({ id }) => id),
  );
}

/** Every text that the user has typed is in the prompt at most once. */
function assertNothingTwice(request: ChatRequest | undefined): void {
  const texts = conversation(request);
  for (const text of said) {
    assert.ok(texts.filter((shown) => shown === text).length <= 1, `twice in the prompt: ${text.slice(0, 60)}`);
  }
  assertPaired(request);
}

function size(request: ChatRequest | undefined): number {
  return JSON.stringify(request?.messages.slice(1) ?? []).length;
}

function commits(): Tapped[] {
  return answersTo("context/commitTurn").filter(({ body }) => body.result?.["status"] === "committed");
}

/** Turns of sessions whose key matches, as they went to the sidecar. */
function commitsOf(key: RegExp): Tapped[] {
  return gateway.tapped.filter(
    ({ body }) => body.method === "context/commitTurn" && key.test(String(body.params?.["sessionKey"])),
  );
}

async function until(condition: () => boolean, what: string): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    if (condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`waited in vain for ${what}\n${gateway.output.slice(-3000)}`);
}

/** Answers of the sidecar to one method. Ids begin anew with each process; the tap is in order. */
function answersTo(method: string): Tapped[] {
  const open = new Set<number | string | undefined>();
  return gateway.tapped.filter(({ to, body }) => {
    if (to === "sidecar" && body.method !== undefined && body.id !== undefined) {
      if (body.method === method) open.add(body.id);
      else open.delete(body.id);
    }
    return to === "host" && body.method === undefined && open.delete(body.id);
  });
}

/** Lines in which the plugin tells that it went on without the sidecar. */
function fellBack(): string[] {
  return gateway.output.split("\n").filter((line) => line.includes("unchanged messages"));
}

async function isGone(pid: number): Promise<boolean> {
  for (let tries = 0; tries < 200; tries += 1) {
    try {
      process.kill(pid, 0);
    } catch {
      return true;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

/** Command lines of processes that name the scratch folder. */
function processesOf(path: string): string[] {
  const lines = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }).split("\n");
  return lines.filter((line) => line.includes(path));
}
