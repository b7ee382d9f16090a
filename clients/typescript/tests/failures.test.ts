import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { client, COMMAND, gone, scratch, user } from "./real-sidecar.js";

const sessionId = "s1";

test("after a crash the next request finds a new process and everything acknowledged", async (t) => {
  const sidecar = await client(t);
  await sidecar.request("context/ingest", { sessionId, message: user("kept") });
  await sidecar.assemble({ sessionId });
  const pid = sidecar.pid as number;
  process.kill(pid, "SIGKILL");
  await gone(pid);
  const { messages } = await sidecar.assemble({ sessionId });
  assert.deepEqual(messages, [user("kept")]);
  assert.notEqual(sidecar.pid, pid);
});

test("a repeatable request that a crash interrupts is sent again", async (t) => {
  const sidecar = await client(t);
  await sidecar.request("context/ingest", { sessionId, message: user("kept") });
  const pid = sidecar.pid as number;
  process.kill(pid, "SIGSTOP");
  const pending = sidecar.assemble({ sessionId });
  process.kill(pid, "SIGKILL");
  assert.deepEqual((await pending).messages, [user("kept")]);
});

test("an ingest that a crash interrupts is not sent again", async (t) => {
  const sidecar = await client(t);
  await sidecar.start();
  const pid = sidecar.pid as number;
  process.kill(pid, "SIGSTOP");
  const pending = sidecar.request("context/ingest", { sessionId, message: user("once") });
  process.kill(pid, "SIGKILL");
  await assert.rejects(pending, { name: "ConnectionLost" });
});

test("a process that ends again and again is not started for ever", async (t) => {
  const sidecar = await client(t, { command: [process.execPath, "-e", "console.error('no luck'); process.exit(3)"] });
  await assert.rejects(sidecar.request("engine/list", {}), /status 3.*no luck/s);
  await assert.rejects(sidecar.request("engine/list", {}), { name: "ConnectionLost" });
  await assert.rejects(sidecar.request("engine/list", {}), /2 times within/);
});

test("a hung process is given up in time and replaced", async (t) => {
  const sidecar = await client(t, { cancelGraceMs: 200 });
  await sidecar.request("context/ingest", { sessionId, message: user("kept") });
  const pid = sidecar.pid as number;
  process.kill(pid, "SIGSTOP");
  await assert.rejects(sidecar.assemble({ sessionId }, { timeoutMs: 300 }), { name: "RequestTimeout" });
  await gone(pid);
  assert.deepEqual((await sidecar.assemble({ sessionId })).messages, [user("kept")]);
});

test("a slow request that times out does not cost the process", async (t) => {
  const sidecar = await slowHost(t);
  const pid = sidecar.pid;
  const compact = sidecar.request("context/compact", { sessionId, tokenBudget: 3_000, force: true }, { timeoutMs: 300 });
  await assert.rejects(compact, { name: "RequestTimeout" });
  await sidecar.request("session/get", { sessionId });
  assert.equal(sidecar.pid, pid);
});

test("an abort reaches the sidecar, which takes its own request to the host back", async (t) => {
  const takenBack = deferred<void>();
  const controller = new AbortController();
  const sidecar = await slowHost(t, () => controller.abort(), takenBack.resolve);
  const call = { signal: controller.signal };
  const compact = sidecar.request("context/compact", { sessionId, tokenBudget: 3_000, force: true }, call);
  await assert.rejects(compact, { name: "AbortError" });
  await takenBack.promise;
});

test("a request whose signal has fired already is not sent", async (t) => {
  const sidecar = await client(t);
  const call = { signal: AbortSignal.abort() };
  await assert.rejects(sidecar.request("context/ingest", { sessionId, message: user("never") }, call), {
    name: "AbortError",
  });
  await assert.rejects(sidecar.request("session/get", { sessionId }), /session\/get/);
});

test("a host that ends leaves no process behind, and an idle client does not keep it", async (t) => {
  const stateDir = await scratch(t);
  const index = new URL("../src/index.js", import.meta.url).href;
  const script = `
    import { SidecarClient } from ${JSON.stringify(index)};
    const options = { command: ${JSON.stringify(COMMAND)}, host: { id: "t" }, stateDir: ${JSON.stringify(stateDir)} };
    const client = new SidecarClient(options);
    await client.request("context/ingest", { sessionId: "s", message: { role: "user", content: "x" } });
    process.stdout.write(String(client.pid));`;
  const host = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  let written = "";
  host.stdout.setEncoding("utf8").on("data", (text: string) => (written += text));
  const [status] = (await once(host, "exit")) as [number];
  assert.equal(status, 0);
  await gone(Number(written));
});

/** A client whose host never finishes a completion, with a session worth compacting. */
async function slowHost(t: Parameters<typeof client>[0], asked = () => {}, takenBack = () => {}) {
  const complete = (_params: unknown, signal: AbortSignal) =>
    new Promise<never>((_, reject) => {
      signal.addEventListener("abort", () => {
        takenBack();
        reject(new Error("taken back"));
      });
      asked();
    });
  const sidecar = await client(t, { engine: "default", requests: { "runtime/complete": complete } });
  for (let turn = 0; turn < 12; turn += 1) {
    const messages = [user(`${turn} ${"word ".repeat(300)}`), { role: "assistant", content: "counted ".repeat(100) }];
    await sidecar.request("context/afterTurn", { sessionId, messages });
  }
  return sidecar;
}

function deferred<Value>() {
  let resolve!: (value: Value) => void;
  const promise = new Promise<Value>((done) => (resolve = done));
  return { promise, resolve };
}
