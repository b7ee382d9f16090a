/** Installs the real OpenClaw, with a Node that it accepts, into a cache folder outside of the tree. */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const OPENCLAW = "2026.9.6";
const NODE = "24";

export interface Installed {
  readonly node: string;
  readonly openclaw: string;
}

/** The programs; they are installed where they are not there yet. */
export async function installOpenClaw(): Promise<Installed> {
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const folder = join(cache, "context-sidecar-tests", `openclaw-${OPENCLAW}`);
  const node = join(folder, "node_modules/node/bin/node");
  const openclaw = join(folder, "node_modules/openclaw/openclaw.mjs");
  const complete = join(folder, "complete");
  if (!existsSync(complete)) {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "package.json"), '{"private": true}\n');
    await npm(folder, `node@${NODE}`);
    // OpenClaw's own installation runs on the Node that was just installed.
    await npm(folder, `openclaw@${OPENCLAW}`);
    await writeFile(complete, `${OPENCLAW} on node ${NODE}\n`);
  }
  return { node, openclaw };
}

async function npm(folder: string, spec: string): Promise<void> {
  const env = { ...process.env, PATH: `${join(folder, "node_modules/node/bin")}:${process.env["PATH"] ?? ""}` };
  const options = { cwd: folder, env, timeout: 540_000, maxBuffer: 64 * 2 ** 20 };
  await promisify(execFile)("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error", spec], options);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await installOpenClaw();
