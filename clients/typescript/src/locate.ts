/** Finds the command that starts a sidecar. */

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { SidecarNotFound } from "./errors.js";

/** A program with its arguments. */
export type Command = readonly [program: string, ...args: string[]];

const PROGRAM = "context-sidecar";

const ADVICE =
  'Found no context-sidecar in PATH. Install it from a checkout, with `uv tool install "./context-sidecar"` or ' +
  '`pipx install "./context-sidecar"`, or name the program in the option `command`.';

/**
 * The command to start: `explicit` as it is, otherwise `context-sidecar` in PATH. Nothing is fetched: a name on a
 * registry may belong to anybody.
 *
 * @throws {SidecarNotFound} where there is none; the message says what to install.
 */
export function locateSidecar(explicit?: string | Command, env: NodeJS.ProcessEnv = process.env): Command {
  if (typeof explicit === "string") return [explicit, "serve"];
  if (explicit !== undefined) return explicit;
  const installed = findInPath(PROGRAM, env);
  if (installed !== undefined) return [installed, "serve"];
  throw new SidecarNotFound(ADVICE);
}

function findInPath(program: string, env: NodeJS.ProcessEnv): string | undefined {
  const endings = process.platform === "win32" ? [".exe"] : [""];
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    if (folder === "") continue;
    for (const ending of endings) {
      const path = join(folder, program + ending);
      if (isProgram(path)) return path;
    }
  }
  return undefined;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
