/** Installs the real opencode. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installed } from "context-sidecar-testing";

const RELEASE = "1.18.33";

/** The program; it is installed where it is not there yet. */
export async function installOpencode(): Promise<string> {
  const modules = await installed(`opencode-${RELEASE}`, [`opencode-ai@${RELEASE}`]);
  return join(modules, ".bin/opencode");
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await installOpencode();
