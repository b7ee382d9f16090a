/** Finds the command that starts a sidecar. */

import { accessSync, constants, realpathSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, dirname, join } from "node:path";
import { SidecarNotFound } from "./errors.js";

/** A program with its arguments. */
export type Command = readonly [program: string, ...args: string[]];

const PROGRAM = "context-sidecar";
const ENDING = process.platform === "win32" ? ".exe" : "";

const ADVICE =
  "Found no context-sidecar, neither as a package of npm nor in PATH. Install it from a checkout, without Python with " +
  "`npm install --global ./context-sidecar/dist/*.tgz` after `make dist`, with Python with " +
  '`uv tool install "./context-sidecar"` or `pipx install "./context-sidecar"`; or name the program in the option `command`.';

/**
 * The command to start: `explicit` as it is, otherwise the build of npm that is installed where this module is, otherwise
 * `context-sidecar` in PATH. Nothing is fetched: a name on a registry may belong to anybody.
 *
 * @throws {SidecarNotFound} where there is none; the message says what to install.
 */
export function locateSidecar(
  explicit?: string | Command,
  env: NodeJS.ProcessEnv = process.env,
  from: string = import.meta.url,
): Command {
  if (typeof explicit === "string") return [explicit, "serve"];
  if (explicit !== undefined) return explicit;
  const installed = npmProgram(from) ?? findInPath(env);
  if (installed !== undefined) return [installed, "serve"];
  throw new SidecarNotFound(ADVICE);
}

/**
 * The program of the npm package `context-sidecar`, as a module at `from` (a path or a file URL) would import it; undefined
 * where that, or its package for this platform, is not installed. It needs no Node to run.
 */
export function npmProgram(from: string): string | undefined {
  try {
    const launcher = createRequire(from).resolve(`${PROGRAM}/package.json`);
    return programBeside(launcher);
  } catch {
    return undefined;
  }
}

/** The program that a launcher of npm, or a link to it, would start; undefined where the file is something else. */
export function launched(path: string): string | undefined {
  try {
    // On Windows the launcher is a script beside `node_modules`.
    const script = process.platform === "win32" ? join(dirname(path), "node_modules", PROGRAM, "launcher.cjs") : realpathSync(path);
    return script.endsWith("launcher.cjs") ? programBeside(script) : undefined;
  } catch {
    return undefined;
  }
}

function programBeside(launcher: string): string | undefined {
  const { resolve } = createRequire(launcher);
  const platform = `@context-sidecar/${process.platform}-${process.arch}`;
  // npm installs the one that fits the C library.
  for (const name of [platform, `${platform}-musl`]) {
    try {
      const program = join(dirname(resolve(`${name}/package.json`)), PROGRAM, PROGRAM + ENDING);
      if (isProgram(program)) return program;
    } catch {
      // It is not installed.
    }
  }
  return undefined;
}

function findInPath(env: NodeJS.ProcessEnv): string | undefined {
  for (const folder of (env["PATH"] ?? "").split(delimiter)) {
    if (folder === "") continue;
    const path = join(folder, PROGRAM + ENDING);
    const program = launched(path) ?? (isProgram(path) ? path : undefined);
    if (program !== undefined) return program;
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
