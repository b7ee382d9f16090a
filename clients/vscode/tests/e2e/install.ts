/** Installs what the end-to-end tests need: code-server from npm, on a Node of the version that it is made for. */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { installed } from "context-sidecar-testing";

const VERSION = "4.100.3";
const NODE = "20";
const TIMEOUT_MS = 540_000;
/** Parts with native code, and the file by which one sees that it was built. */
const NATIVE: readonly (readonly [folder: string, name: string, built: string])[] = [
  ["", "argon2", "node_modules/argon2/lib/binding/napi-v3/argon2.node"],
  ["lib/vscode", "@vscode/spdlog", "node_modules/@vscode/spdlog/build/Release/spdlog.node"],
  ["lib/vscode", "native-watchdog", "node_modules/native-watchdog/build/Release/watchdog.node"],
  ["lib/vscode", "node-pty", "node_modules/node-pty/build/Release/pty.node"],
];

export interface Programs {
  readonly node: string;
  /** The script that starts the editor. */
  readonly codeServer: string;
  readonly chromium: string;
}

/** Programs of the machine that the tests need, with the package of Debian that has them. */
const NEEDED: readonly (readonly [names: readonly string[], debian: string])[] = [
  [["chromium", "chromium-browser", "google-chrome"], "chromium"],
  [["g++"], "g++"],
  [["make"], "make"],
  [["python3"], "python3"],
  ...(process.env["PICTURES"] ? [[["pngquant"], "pngquant"] as const] : []),
];

/** Everything, installed into a cache folder outside of the tree; what is there already is taken as it is. */
export async function programs(): Promise<Programs> {
  const missing = NEEDED.filter(([names]) => found(names) === undefined).map(([, debian]) => debian);
  if (missing.length > 0) throw new Error(`Install first, such as with apt-get install: ${missing.join(" ")}`);
  const node = process.versions.node.startsWith(`${NODE}.`)
    ? process.execPath
    : join(await installed(`node-${NODE}`, [`node@${NODE}`]), "node/bin/node");
  return { node, codeServer: await codeServer(node), chromium: found(NEEDED[0]?.[0] ?? []) as string };
}

async function codeServer(node: string): Promise<string> {
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const folder = join(cache, "context-sidecar-tests", `code-server-${VERSION}`);
  const root = join(folder, "node_modules/code-server");
  if (existsSync(join(folder, "complete"))) return join(root, "out/node/entry.js");
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), '{"private": true}\n');
  const npm = runner(node);
  // Scripts of some packages fetch programs from elsewhere; what needs building is built below.
  await npm(folder, "install", "--ignore-scripts", `code-server@${VERSION}`);
  const editor = join(root, "lib/vscode");
  await npm(editor, "install", "--ignore-scripts", "--omit=dev");
  await npm(join(editor, "extensions"), "install", "--ignore-scripts", "--omit=dev");
  for (const [part, name, built] of NATIVE) {
    const inside = part === "" ? folder : join(root, part);
    // A script that runs after the build may fail; what counts is what was built.
    const problem = await npm(inside, "rebuild", name).then(
      () => undefined,
      (error: unknown) => error,
    );
    if (problem !== undefined && !existsSync(join(inside, built))) throw problem;
  }
  await symlink("node_modules", join(editor, "node_modules.asar"));
  await writeFile(join(folder, "complete"), `${VERSION}\n`);
  return join(root, "out/node/entry.js");
}

function runner(node: string) {
  const env = { ...process.env, PATH: `${dirname(node)}${delimiter}${process.env["PATH"] ?? ""}` };
  return async (cwd: string, ...args: string[]): Promise<void> => {
    const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
    await promisify(execFile)("npm", [...args, ...quiet], { cwd, env, timeout: TIMEOUT_MS, maxBuffer: 64 * 2 ** 20 });
  };
}

function found(names: readonly string[]): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return folders.flatMap((folder) => names.map((name) => join(folder, name))).find((path) => existsSync(path));
}
