/** Starts clients of a real sidecar in folders that are removed after the test. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestContext } from "node:test";
import { SidecarClient } from "../src/index.js";
import type { ClientOptions, Command } from "../src/index.js";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));

/** The sidecar of this checkout; `CONTEXT_SIDECAR` names another program. */
export const COMMAND: Command = [process.env["CONTEXT_SIDECAR"] ?? join(ROOT, ".venv/bin/context-sidecar"), "serve"];

/** A folder of its own for one test. */
export async function scratch(test: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "context-sidecar-client-"));
  test.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** A client of a sidecar with the engine `full` unless the options say otherwise. */
export async function client(test: TestContext, options: Partial<ClientOptions> = {}): Promise<SidecarClient> {
  const stateDir = options.stateDir ?? (await scratch(test));
  const made = new SidecarClient({ command: COMMAND, host: { id: "test" }, engine: "full", ...options, stateDir });
  test.after(() => made.close());
  return made;
}

/** A message of the user. */
export function user(content: string): { role: string; content: string } {
  return { role: "user", content };
}

/** A message of the assistant. */
export function assistant(content: string): { role: string; content: string } {
  return { role: "assistant", content };
}

/** Waits until a process is gone. */
export async function gone(pid: number): Promise<void> {
  for (let tries = 0; tries < 500; tries += 1) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`process ${pid} is still there`);
}
