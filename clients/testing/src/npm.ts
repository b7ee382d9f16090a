/** Installs real hosts from npm into a cache folder outside of the tree. */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const TIMEOUT_MS = 540_000;
/** A registry may be out of reach for a moment. */
const TRIES = 3;

/** A folder with a Node of its own and the packages beside it; what is there already is taken as it is. */
export async function installed(name: string, specs: readonly string[]): Promise<string> {
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const folder = join(cache, "context-sidecar-tests", name);
  const complete = join(folder, "complete");
  if (!existsSync(complete)) {
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, "package.json"), '{"private": true}\n');
    // One after the other: scripts of the later ones run on the Node that came first.
    for (const spec of specs) await install(folder, spec);
    await writeFile(complete, `${specs.join(" ")}\n`);
  }
  return join(folder, "node_modules");
}

async function install(folder: string, spec: string): Promise<void> {
  const env = { ...process.env, PATH: `${join(folder, "node_modules/node/bin")}:${process.env["PATH"] ?? ""}` };
  const options = { cwd: folder, env, timeout: TIMEOUT_MS, maxBuffer: 64 * 2 ** 20 };
  const args = ["install", "--no-audit", "--no-fund", "--loglevel=error", spec];
  for (let tries = 1; ; tries += 1) {
    try {
      await promisify(execFile)("npm", args, options);
      return;
    } catch (error) {
      if (tries === TRIES) throw error;
      await rm(join(folder, "node_modules", spec.replace(/(.)@.*$/, "$1")), { recursive: true, force: true });
    }
  }
}
