/** Installs the real OpenClaw, with a Node that it accepts. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installed } from "context-sidecar-testing";

const OPENCLAW = "2026.9.6";

export interface Installed {
  readonly node: string;
  readonly openclaw: string;
}

/** The programs; they are installed where they are not there yet. */
export async function installOpenClaw(): Promise<Installed> {
  const modules = await installed(`openclaw-${OPENCLAW}`, ["node@24", `openclaw@${OPENCLAW}`]);
  return { node: join(modules, "node/bin/node"), openclaw: join(modules, "openclaw/openclaw.mjs") };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await installOpenClaw();
