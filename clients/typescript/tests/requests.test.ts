import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ErrorCode, isResponseError, leaseSidecar, locateSidecar, SidecarClient, SidecarNotFound } from "../src/index.js";
import { assistant, client, COMMAND, gone, scratch, user } from "./real-sidecar.js";

const sessionId = "s1";

test("what is ingested comes back assembled", async (t) => {
  const sidecar = await client(t);
  await sidecar.request("context/ingest", { sessionId, message: user("one") });
  const { messages } = await sidecar.assemble({ sessionId, tokenBudget: 32_000 });
  assert.deepEqual(messages, [user("one")]);
});

test("the answer to initialize is at hand", async (t) => {
  const sidecar = await client(t);
  const said = await sidecar.start();
  assert.equal(said.engine.id, "full");
  assert.equal(sidecar.capabilities, said);
});

test("later results are whole although only changes travel", async (t) => {
  const sidecar = await client(t);
  const grown = [];
  for (const text of ["one", "two", "three"]) {
    grown.push(user(text), assistant(`answer to ${text}`));
    await sidecar.request("context/afterTurn", { sessionId, messages: grown.slice(-2) });
    const { messages } = await sidecar.assemble({ sessionId, tokenBudget: 32_000 });
    assert.deepEqual(messages, grown);
    messages.length = 0; // The list is the caller's: what the caller does to it spoils no later result.
  }
});

test("an error of the sidecar has code, advice and typed data", async (t) => {
  const sidecar = await client(t);
  await sidecar.request("context/ingest", { sessionId, message: user("word ".repeat(500)) });
  await assert.rejects(sidecar.assemble({ sessionId, tokenBudget: 10 }), (error) => {
    assert.ok(isResponseError(error, ErrorCode.ContextOverflow));
    assert.equal(error.data.tokenBudget, 10);
    assert.ok(error.data.required > 10);
    assert.notEqual(error.hint, "");
    return true;
  });
});

test("an engine that does not exist is refused with advice, and again the next time", async (t) => {
  const sidecar = await client(t, { engine: "no-such-engine" });
  for (let tries = 0; tries < 3; tries += 1) {
    await assert.rejects(sidecar.start(), (error) => isResponseError(error, ErrorCode.EngineUnavailable));
  }
});

test("requests of the sidecar are answered by the host", async (t) => {
  const asked: string[] = [];
  const sidecar = await client(t, {
    engine: "default",
    requests: {
      "runtime/complete": async ({ purpose }) => {
        asked.push(purpose);
        return { text: "The user counted words." };
      },
    },
  });
  for (let turn = 0; turn < 12; turn += 1) {
    const messages = [user(`${turn} ${"word ".repeat(300)}`), assistant("counted ".repeat(100))];
    await sidecar.request("context/afterTurn", { sessionId, messages });
  }
  const { compacted } = await sidecar.request("context/compact", { sessionId, tokenBudget: 3_000, force: true });
  assert.equal(compacted, true);
  assert.ok(asked.includes("summary"));
  const { messages } = await sidecar.assemble({ sessionId, tokenBudget: 3_000 });
  assert.match(JSON.stringify(messages), /The user counted words/);
});

test("closing ends the process, and later requests are refused", async (t) => {
  const sidecar = await client(t);
  await sidecar.start();
  const pid = sidecar.pid as number;
  await sidecar.close();
  await gone(pid);
  await assert.rejects(sidecar.request("engine/list", {}), { name: "ClientClosed" });
});

test("many short-lived users share one process, and the last one ends it", async (t) => {
  const stateDir = await scratch(t);
  const options = () => ({ command: COMMAND, host: { id: "test" }, engine: "full", stateDir });
  const first = leaseSidecar(stateDir, options);
  await first.client.start();
  const pid = first.client.pid as number;
  for (let users = 0; users < 20; users += 1) {
    const lease = leaseSidecar(stateDir, options);
    await lease.client.request("context/ingest", { sessionId, message: user(`by ${users}`) });
    assert.equal(lease.client.pid, pid);
    await lease.release();
  }
  assert.equal((await first.client.assemble({ sessionId })).messages.length, 20);
  await first.release();
  await gone(pid);
});

test("the explicit program is taken as it is", () => {
  assert.deepEqual(locateSidecar("/opt/sidecar"), ["/opt/sidecar", "serve"]);
  assert.deepEqual(locateSidecar(["python", "-m", "x"]), ["python", "-m", "x"]);
});

test("no program anywhere is told with advice on how to get one", () => {
  assert.throws(() => locateSidecar(undefined, { PATH: "" }), (error) => {
    assert.ok(error instanceof SidecarNotFound);
    assert.match(error.message, /uv tool install "\.\/context-sidecar"/);
    return true;
  });
});

test("tools that could fetch a program are left alone", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "path-"));
  t.after(() => rm(folder, { recursive: true }));
  for (const name of ["uvx", "pipx", "npx"]) await writeFile(join(folder, name), "#!/bin/sh\n", { mode: 0o755 });
  assert.throws(() => locateSidecar(undefined, { PATH: folder }), SidecarNotFound);
});

test("a program that does not start is told, not waited for", async (t) => {
  const sidecar = new SidecarClient({ command: "/no/such/program", host: { id: "test" } });
  t.after(() => sidecar.close());
  await assert.rejects(sidecar.start(), { name: "ConnectionLost" });
});
