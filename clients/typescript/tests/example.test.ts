import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createInterface } from "node:readline";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { COMMAND, scratch } from "./real-sidecar.js";

const AGENT = fileURLToPath(new URL("../examples/agent.js", import.meta.url));
const LIMIT_MS = 30_000;

interface Asked {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

/** A model on loopback that says what the script tells it to, and everything that it was asked. */
async function model(t: TestContext, script: (asked: Asked) => object) {
  const requests: Asked[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    requests.push(JSON.parse(body) as Asked);
    const message = { role: "assistant", content: null, ...script(requests.at(-1) as Asked) };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ choices: [{ message }] }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.closeAllConnections());
  t.after(() => server.close());
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` };
}

/** What the agent answers to these lines, in a process of its own. */
async function converse(lines: readonly string[], env: Record<string, string>): Promise<string[]> {
  const agent = spawn(process.execPath, [AGENT], {
    env: { ...process.env, CONTEXT_SIDECAR: COMMAND[0], ...env },
    stdio: ["pipe", "pipe", "inherit"],
    timeout: LIMIT_MS,
  });
  const ended = new Promise<number | null>((resolve) => agent.once("exit", resolve));
  const answers: string[] = [];
  createInterface({ input: agent.stdout }).on("line", (line) => answers.push(line));
  agent.stdin.end(`${lines.join("\n")}\n`);
  assert.equal(await ended, 0);
  return answers;
}

test("the example shows the model every earlier turn, also in the next process", async (t) => {
  const stateDir = await scratch(t);
  const { requests, url } = await model(t, ({ messages }) => ({ content: `answer ${messages.length}` }));
  const env = { OPENAI_BASE_URL: url, CONTEXT_SIDECAR_STATE_DIR: stateDir };
  assert.deepEqual(await converse(["one", "two"], env), ["answer 2", "answer 4"]);
  assert.deepEqual(await converse(["three"], env), ["answer 6"]);
  const last = requests.at(-1)?.messages.slice(1).map(({ content }) => content);
  assert.deepEqual(last, ["one", "answer 2", "two", "answer 4", "three"]);
});

test("the example runs tools, its own and those of the sidecar", async (t) => {
  const call = (name: string, args: object) => {
    return { tool_calls: [{ id: `call-${name}`, type: "function", function: { name, arguments: JSON.stringify(args) } }] };
  };
  const script = [
    () => ({ content: "noted" }),
    () => call("clock", {}),
    () => call("context_search", { mode: "search", query: "heliotrope" }),
    () => ({ content: "heliotrope" }),
  ];
  const { requests, url } = await model(t, () => script.shift()?.() ?? { content: "too much" });
  const env = { OPENAI_BASE_URL: url, CONTEXT_SIDECAR_STATE_DIR: await scratch(t) };
  const answers = await converse(["The code word is heliotrope.", "What was it?"], env);
  assert.deepEqual(answers, ["noted", "heliotrope"]);
  assert.deepEqual(requests[0]?.tools?.map((tool) => tool.function.name), [
    "clock",
    "context_search",
    "context_expand",
    "context_grep",
    "context_status",
    "context_compact",
  ]);
  const results = requests.at(-1)?.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
  assert.match(results?.[0] ?? "", /20\d\d/);
  assert.match(results?.[1] ?? "", /\[user t1\] The code word is heliotrope/);
});

test("the example stays within its budget, with summaries that the model writes", async (t) => {
  const { requests, url } = await model(t, ({ tools }) => ({ content: tools ? "long ".repeat(150) : "The user counted." }));
  const env = { OPENAI_BASE_URL: url, CONTEXT_SIDECAR_STATE_DIR: await scratch(t), TOKEN_BUDGET: "2000" };
  await converse(Array.from({ length: 16 }, (_, index) => `number ${index}`), env);
  const turns = requests.filter(({ tools }) => tools !== undefined);
  assert.ok(requests.length > turns.length, "the model was not asked for a summary");
  assert.match(JSON.stringify(turns.at(-1)), /The user counted\./);
  for (const { messages } of turns) assert.ok(JSON.stringify(messages).length < 12_000);
});
