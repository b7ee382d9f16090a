/** Installs the real pi, with a Node that it accepts. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installed } from "context-sidecar-testing";

/** The newest release whose parts are all in the registry, and an old one, which lends no model to extensions. */
export const RELEASES = [
  { release: "0.87.1", lendsModel: true },
  { release: "0.74.2", lendsModel: false },
] as const;

export interface Installed {
  readonly node: string;
  readonly pi: string;
}

/** The programs; they are installed where they are not there yet. */
export async function installPi(release: string): Promise<Installed> {
  const name = "@earendil-works/pi-coding-agent";
  const modules = await installed(`pi-${release}`, ["node@24", `${name}@${release}`]);
  return { node: join(modules, "node/bin/node"), pi: join(modules, name, "dist/cli.js") };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { release } of RELEASES) await installPi(release);
}
