import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import type { JsonObject, Message } from "../src/index.js";
import { assistant, client, user } from "./real-sidecar.js";

const VECTORS = new URL("../../../../spec/vectors/context-search/", import.meta.url);
const sessionId = "s1";

interface SearchVector {
  readonly title: string;
  readonly arguments: JsonObject;
  readonly text: readonly string[];
  readonly isError?: boolean;
  readonly hits?: readonly { readonly turnId: string; readonly text: string }[];
}

function read<Value>(name: string): Value {
  return JSON.parse(readFileSync(new URL(name, VECTORS), "utf8")) as Value;
}

test("the changes that travel add up to the whole list, whatever the engine does with it", async (t) => {
  const scout = await client(t);
  const { engines } = await scout.request("engine/list", {});
  const storing = engines.filter(({ id, available }) => available && id !== "legacy").map(({ id }) => id);
  assert.ok(storing.includes("terse"));
  for (const engine of storing) {
    const sidecar = await client(t, { engine });
    for (let turn = 1; turn <= 14; turn += 1) {
      const answer = `answer ${turn} ${"word ".repeat(30)}<terse>Did number ${turn}</terse>`;
      await sidecar.request("context/afterTurn", { sessionId, messages: [user(`question ${turn}`), assistant(answer)] });
      if (turn === 9) await sidecar.request("context/compact", { sessionId, tokenBudget: 900, force: true });
      const { messages, resultId } = await sidecar.assemble({ sessionId, tokenBudget: 900 });
      const whole = await sidecar.request("context/assemble", { sessionId, tokenBudget: 900 });
      assert.deepEqual(messages, whole.messages, `${engine}, turn ${turn}, result ${resultId}`);
    }
    await sidecar.close();
  }
});

test("context_search answers as the shared vectors say", async (t) => {
  const sidecar = await client(t);
  for (const message of read<Message[]>("session.json")) await sidecar.request("context/ingest", { sessionId, message });
  const names = readdirSync(VECTORS).filter((name) => name.endsWith(".json") && name !== "session.json");
  assert.ok(names.length >= 20);
  for (const name of names) {
    const vector = read<SearchVector>(name);
    const request = { sessionId, name: "context_search", arguments: vector.arguments };
    const { content, isError, structuredContent } = await sidecar.request("tools/call", request);
    assert.deepEqual(content.map(({ text }) => text).join("\n").split("\n"), vector.text, `${name}: ${vector.title}`);
    assert.equal(isError ?? false, vector.isError ?? false, name);
    const hits = (structuredContent as { hits?: SearchVector["hits"] } | null | undefined)?.hits;
    assert.deepEqual(hits?.map(({ turnId, text }) => ({ turnId, text })), vector.hits, name);
  }
});
