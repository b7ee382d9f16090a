/** One editor with one store: code-server on loopback, a browser that shows it, folders that are gone afterwards. */

import { execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import type { Browser, Page } from "playwright-core";
import { COMMAND, ENVIRONMENT, NAMESPACE } from "./agent.js";
import type { Programs } from "./install.js";

const VSIX = fileURLToPath(new URL("../../../dist/context-sidecar.vsix", import.meta.url));
const START_MS = 120_000;

export interface Stage {
  readonly folder: string;
  readonly stateDir: string;
  readonly workspace: string;
  readonly page: Page;
  /** Opens the editor again, with other settings. */
  reopen(changes: Readonly<Record<string, unknown>>): Promise<void>;
  /** Process ids of the sidecars that the editor has started. */
  sidecars(): number[];
  close(): Promise<void>;
}

/** Opens an editor with the packaged extension, after `prepare` has filled the store and the folder to work in. */
export async function openStage(programs: Programs, prepare: (stateDir: string, workspace: string) => Promise<void>): Promise<Stage> {
  const folder = await mkdtemp(join(tmpdir(), "context-sidecar-vscode-"));
  const [stateDir, workspace, user] = ["state", "tidebook", "user"].map((name) => join(folder, name)) as [string, string, string];
  await Promise.all([stateDir, workspace, join(user, "User")].map((path) => mkdir(path, { recursive: true })));
  await prepare(stateDir, workspace);
  const settings = async (changes: Readonly<Record<string, unknown>>): Promise<void> => {
    const all = { ...QUIET, ...sidecarSettings(stateDir), ...changes };
    await writeFile(join(user, "User/settings.json"), JSON.stringify(all, undefined, 2));
  };
  await settings({});
  const common = ["--user-data-dir", user, "--extensions-dir", join(folder, "extensions"), "--config", join(folder, "config.yaml")];
  await writeFile(join(folder, "config.yaml"), "auth: none\n");
  await run(programs, [...common, "--install-extension", VSIX]);
  const port = await freePort();
  const options = ["--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-telemetry", "--disable-update-check", "--disable-workspace-trust"];
  const server = start(programs, [...common, ...options, workspace]);
  let said = "";
  server.stdout?.on("data", (chunk) => (said += String(chunk)));
  server.stderr?.on("data", (chunk) => (said += String(chunk)));
  let browser: Browser | undefined;
  const close = async (): Promise<void> => {
    await browser?.close();
    const ended = once(server, "exit");
    if (server.exitCode === null) {
      server.kill("SIGTERM");
      await ended;
    }
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  };
  try {
    await answering(`http://127.0.0.1:${port}/healthz`, () => said);
    browser = await chromium.launch({ executablePath: programs.chromium, args: ["--no-sandbox", "--force-color-profile=srgb"] });
    const page = await browser.newPage({ viewport: { width: 1200, height: 720 }, deviceScaleFactor: 1 });
    await page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(workspace)}`);
    await page.locator(".monaco-workbench").waitFor({ timeout: START_MS });
    const reopen = async (changes: Readonly<Record<string, unknown>>): Promise<void> => {
      await settings(changes);
      await page.reload();
      await page.locator(".monaco-workbench").waitFor({ timeout: START_MS });
    };
    return { folder, stateDir, workspace, page, reopen, sidecars: () => sidecarsOf(server.pid ?? 0), close };
  } catch (error) {
    await close();
    throw error;
  }
}

function sidecarSettings(stateDir: string): Record<string, unknown> {
  return {
    "contextSidecar.command": [...COMMAND],
    "contextSidecar.stateDir": stateDir,
    "contextSidecar.namespace": NAMESPACE,
    "contextSidecar.tokenBudget": 8_000,
    "contextSidecar.refreshSeconds": 0.5,
  };
}

/** Settings without which the editor greets, asks and suggests. */
const QUIET: Readonly<Record<string, unknown>> = {
  "workbench.startupEditor": "none",
  "workbench.colorTheme": "Default Dark Modern",
  "workbench.tips.enabled": false,
  "workbench.welcomePage.walkthroughs.openOnInstall": false,
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "workbench.layoutControl.enabled": false,
  "window.commandCenter": false,
  "chat.commandCenter.enabled": false,
  "editor.minimap.enabled": false,
  "editor.wordWrap": "on",
  "extensions.ignoreRecommendations": true,
  "telemetry.telemetryLevel": "off",
  "security.workspace.trust.enabled": false,
  "git.enabled": false,
  "diffEditor.useInlineViewWhenSpaceIsLimited": false,
  "remote.autoForwardPorts": false,
  "files.simpleDialog.enable": true,
};

/** Descendants of a process that are sidecars. */
function sidecarsOf(ancestor: number): number[] {
  const rows = execFileSync("ps", ["-eo", "pid=,ppid=,args="], { encoding: "utf8" }).trim().split("\n");
  const processes = rows.map((row) => /^\s*(\d+)\s+(\d+)\s+(.*)$/.exec(row)).filter((found) => found !== null);
  const family = new Set([ancestor]);
  for (let size = 0; size !== family.size; ) {
    size = family.size;
    for (const [, pid, parent] of processes) if (family.has(Number(parent))) family.add(Number(pid));
  }
  return processes.filter(([, pid, , args]) => family.has(Number(pid)) && args?.includes("sidecar.cli.main serve")).map(([, pid]) => Number(pid));
}

async function run(programs: Programs, args: readonly string[]): Promise<void> {
  const child = start(programs, args);
  let said = "";
  child.stdout?.on("data", (chunk) => (said += String(chunk)));
  child.stderr?.on("data", (chunk) => (said += String(chunk)));
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`code-server ${args.join(" ")} ended with ${code}: ${said}`);
}

function start({ node, codeServer }: Programs, args: readonly string[]): ChildProcess {
  const env: NodeJS.ProcessEnv = { ...process.env, ...ENVIRONMENT };
  // A test that runs inside the editor itself must not talk to that one.
  delete env["VSCODE_IPC_HOOK_CLI"];
  return spawn(node, [codeServer, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
}

async function answering(url: string, said: () => string): Promise<void> {
  const deadline = Date.now() + START_MS;
  for (;;) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    if (Date.now() > deadline) throw new Error(`code-server does not answer: ${said()}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
