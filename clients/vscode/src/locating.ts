/** Finds the program to start, and says how to get it where there is none. */

import { statSync } from "node:fs";
import { delimiter, isAbsolute, join } from "node:path";
import { launched } from "context-sidecar-client";
import type { Command } from "context-sidecar-client";

const PROGRAM = "context-sidecar";

/** Ways to install the sidecar with what editors need of it, best first. */
export const INSTALLERS: readonly { readonly name: string; readonly command: string }[] = [
  { name: "uv", command: 'uv tool install "./context-sidecar[lsp]"' },
  { name: "pipx", command: 'pipx install "./context-sidecar[lsp]"' },
  { name: "npm, without Python", command: "npm install --global ./context-sidecar/dist/*.tgz" },
  { name: "pip", command: 'pip install "./context-sidecar[lsp]"' },
];

/** The command to start; undefined where there is no such program. A program is never fetched without being asked for. */
export function located(explicit: string | Command | undefined, env: NodeJS.ProcessEnv, home: string): Command | undefined {
  const [program, ...args]: Command = typeof explicit === "object" ? explicit : [explicit ?? PROGRAM, "serve"];
  const found = foundIn(program, env, home, explicit === undefined);
  // An editor often lacks the PATH with Node that a launcher of npm would need.
  return found === undefined ? undefined : [launched(found) ?? found, ...args];
}

function foundIn(program: string, env: NodeJS.ProcessEnv, home: string, usual: boolean): string | undefined {
  const endings = process.platform === "win32" ? ["", ".exe", ".cmd"] : [""];
  if (isAbsolute(program) || program.includes("/")) return endings.map((ending) => program + ending).find(isFile);
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  // Editors that are not started from a shell often lack the folder that installers put programs into.
  if (usual) folders.push(join(home, ".local", "bin"));
  return folders.flatMap((folder) => endings.map((ending) => join(folder, program + ending))).find(isFile);
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
