/** The driver around this client, as `spec/checking-clients.md` describes drivers. */

import { createInterface } from "node:readline";
import { ClientClosed, ConnectionLost, RequestTimeout, ResponseError, SidecarClient } from "../src/index.js";
import type { ClientOptions, Command } from "../src/index.js";

type Line = Readonly<Record<string, unknown>>;
type Answer = { readonly result?: unknown; readonly error?: string; readonly never?: true; readonly together?: number };
type Handler = (params: unknown, signal: AbortSignal) => Promise<never>;

class Cancelled extends Error {}

const command = JSON.parse(process.env["CEP_SIDECAR"] ?? "[]") as unknown as Command;
const cancelling = new Map<string, AbortController>();
let client: SidecarClient | undefined;

function tell(line: Line): void {
  process.stdout.write(JSON.stringify(line) + "\n");
}

/** What the runtime answers to a request of the server, once as many as `together` says are with it. */
function answering(answer: Answer): Handler {
  let asked = 0;
  let enough = (): void => undefined;
  const gathered = new Promise<void>((resolve) => (enough = resolve));
  return async (_, signal) => {
    asked += 1;
    if (asked >= (answer.together ?? 1)) enough();
    await gathered;
    return new Promise((resolve, reject) => {
      if (answer.error !== undefined) reject(new Error(answer.error));
      else if (answer.result !== undefined) resolve(answer.result as never);
      else if (signal.aborted) reject(new Error("taken back"));
      else signal.addEventListener("abort", () => reject(new Error("taken back")), { once: true });
    });
  };
}

async function open(line: Line): Promise<null> {
  const answers = (line["answers"] ?? {}) as Readonly<Record<string, Answer>>;
  const requests: ClientOptions["requests"] = Object.fromEntries(
    Object.entries(answers).map(([method, answer]) => [method, answering(answer)]),
  );
  const sources = ((line["sources"] ?? []) as readonly string[]).map((name) => ({
    name,
    injectionPoints: ["per-message"],
  }));
  const notifications: ClientOptions["notifications"] = {
    "session/changed": (params) => tell({ heard: "session/changed", params }),
    "$/progress": (params) => tell({ heard: "$/progress", params }),
  };
  client ??= new SidecarClient({ command, host: { id: "driver" }, requests, sources, notifications });
  await client.start();
  return null;
}

async function carryOut(line: Line): Promise<unknown> {
  const id = line["id"] as string;
  const controller = new AbortController();
  cancelling.set(id, controller);
  const timeoutMs = line["timeoutMs"] as number | undefined;
  const call = timeoutMs === undefined ? { signal: controller.signal } : { signal: controller.signal, timeoutMs };
  switch (line["do"]) {
    case "open":
      return open(line);
    case "request":
      return (await client?.request(line["method"] as never, line["params"] as never, call)) ?? null;
    case "assemble":
      return client?.assemble(line["params"] as never, call);
    case "close":
      await client?.close();
      return null;
    default:
      throw new Error(`unknown operation ${String(line["do"])}`);
  }
}

function failure(error: unknown): Line {
  const message = String(error);
  if (error instanceof ResponseError) return { kind: "answer", message, code: error.code, data: error.data };
  if (error instanceof RequestTimeout) return { kind: "timeout", message };
  if (error instanceof ConnectionLost) return { kind: "lost", message };
  if (error instanceof ClientClosed) return { kind: "closed", message };
  return { kind: error instanceof Cancelled ? "cancelled" : "other", message };
}

function take(line: Line): void {
  if (line["do"] === "cancel") {
    cancelling.get(line["target"] as string)?.abort(new Cancelled("taken back"));
    return;
  }
  const id = line["id"];
  carryOut(line).then(
    (result) => tell({ id, result }),
    (error: unknown) => tell({ id, failure: failure(error) }),
  );
}

tell({
  ready: ["cancelling", "timeouts", "deltas", "notifications", "progress", "runtime/complete", "memory/getContext"],
});
const lines = createInterface({ input: process.stdin });
lines.on("line", (line) => take(JSON.parse(line) as Line));
lines.on("close", () => void client?.close());
