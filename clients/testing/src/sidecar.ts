/** The sidecar of this checkout, for tests that look into what a host has left behind. */

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SidecarClient } from "../../typescript/dist/index.js";
import type { ExportedMessage } from "../../typescript/dist/index.js";

/** The root of this checkout. */
export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
/** The Python that has the dependencies of the sidecar; `CONTEXT_SIDECAR_PYTHON` names another one. */
export const PYTHON = process.env["CONTEXT_SIDECAR_PYTHON"] ?? join(ROOT, ".venv/bin/python");

const PROGRAM = ["-m", "sidecar.cli.main"] as const;
const ENV = { PYTHONPATH: ROOT };

/** Runs `doctor` on a store. Fails where something has to be done. */
export function doctor(stateDir: string, namespace: string): void {
  const args = [...PROGRAM, "doctor", "--namespace", namespace, "--state-dir", stateDir, "--json"];
  execFileSync(PYTHON, args, { env: { ...process.env, ...ENV }, timeout: 60_000 });
}

/** What a host has stored. */
export interface Stored {
  readonly sessionId: string;
  readonly sessionKey: string | undefined;
  readonly messages: readonly ExportedMessage[];
}

/** Every session in a store, with all its messages. */
export async function storedSessions(stateDir: string, host: string): Promise<Stored[]> {
  const client = new SidecarClient({
    command: [PYTHON, ...PROGRAM, "serve"],
    env: ENV,
    host: { id: host },
    messageFormat: "openclaw",
    engine: "default",
    stateDir,
  });
  try {
    const { sessions } = await client.request("session/list", {});
    const stored: Stored[] = [];
    for (const { sessionId, sessionKey } of sessions) {
      const messages: ExportedMessage[] = [];
      let cursor: string | null | undefined;
      do {
        const page = await client.request("session/export", { sessionId, cursor });
        messages.push(...page.messages);
        cursor = page.nextCursor;
      } while (cursor);
      stored.push({ sessionId, sessionKey: sessionKey ?? undefined, messages });
    }
    return stored;
  } finally {
    await client.close();
  }
}
