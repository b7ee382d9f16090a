/** A real OpenClaw gateway with this plugin, in a scratch folder. */

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { createWriteStream, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import { bounded, ROOT, Tap } from "context-sidecar-testing";
import { installOpenClaw } from "./install.js";
import type { Installed } from "./install.js";

const PLUGIN = fileURLToPath(new URL("../../../dist", import.meta.url));

/** What else may differ from gateway to gateway. */
export interface Variation {
  /** True for the engine of OpenClaw itself, without the plugin. */
  readonly builtIn?: boolean;
  /** Window of the model, in tokens. */
  readonly contextWindow?: number;
  /** Options for the Node that runs the gateway. */
  readonly nodeOptions?: readonly string[];
}

export class Gateway {
  #process: ChildProcess | undefined;

  private constructor(
    readonly folder: string,
    readonly tap: Tap,
    private readonly programs: Installed,
    private readonly env: NodeJS.ProcessEnv,
    private readonly nodeOptions: readonly string[],
  ) {}

  /** A gateway that is configured and not started. */
  static async configure(
    folder: string,
    modelUrl: string,
    plugin: Record<string, unknown> = {},
    variation: Variation = {},
  ): Promise<Gateway> {
    const programs = await installOpenClaw();
    for (const name of ["home", "state", "workspace"]) await mkdir(join(folder, name), { recursive: true });
    const env = {
      ...process.env,
      HOME: join(folder, "home"),
      PATH: `${join(programs.node, "..")}:${process.env["PATH"] ?? ""}`,
      OPENCLAW_STATE_DIR: join(folder, "state"),
      OPENCLAW_CONFIG_PATH: join(folder, "openclaw.json"),
      PYTHONPATH: ROOT,
    };
    const tap = new Tap(join(folder, "tap.jsonl"));
    const config = configuration(folder, await freePort(), modelUrl, { command: tap.command, ...plugin }, variation);
    await writeFile(join(folder, "openclaw.json"), JSON.stringify(config));
    return new Gateway(folder, tap, programs, env, variation.nodeOptions ?? []);
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** What the gateway wrote, for messages of failing tests. */
  get output(): string {
    return readFileSync(join(this.folder, "gateway.out"), "utf8");
  }

  async start(): Promise<void> {
    const out = createWriteStream(join(this.folder, "gateway.out"), { flags: "a" });
    const gateway = this.#spawn(["gateway", "run"], this.nodeOptions);
    this.#process = gateway;
    const ready = new Promise<void>((resolve, reject) => {
      for (const stream of [gateway.stdout, gateway.stderr]) {
        stream?.setEncoding("utf8").on("data", (text: string) => {
          out.write(text);
          if (stripVTControlCharacters(text).includes("[gateway] ready")) resolve();
        });
      }
      gateway.once("exit", (code) => reject(new Error(`the gateway ended with status ${code}:\n${this.output}`)));
    });
    await bounded(ready, 120_000, "the gateway to be ready");
  }

  /** Ends the gateway as an operator would. */
  async stop(): Promise<void> {
    const gateway = this.#process;
    this.#process = undefined;
    if (gateway === undefined || gateway.exitCode !== null) return;
    const ended = new Promise<void>((resolve) => gateway.once("exit", () => resolve()));
    gateway.kill("SIGTERM");
    await bounded(ended, 30_000, "the gateway to end").catch(async () => {
      gateway.kill("SIGKILL");
      await ended;
    });
  }

  /** Ends the gateway as a crash would. */
  async kill(): Promise<void> {
    const gateway = this.#process;
    this.#process = undefined;
    if (gateway === undefined) return;
    const ended = new Promise<void>((resolve) => gateway.once("exit", () => resolve()));
    gateway.kill("SIGKILL");
    await bounded(ended, 30_000, "the gateway to end");
  }

  /** One turn; what the agent said. */
  async turn(sessionKey: string, message: string): Promise<string> {
    return this.command(["agent", "--session-key", sessionKey, "-m", message]);
  }

  /** Runs a command of OpenClaw; what it wrote to standard output. */
  async command(args: readonly string[]): Promise<string> {
    const child = this.#spawn(args);
    let out = "";
    let err = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => (out += text));
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (err += text));
    const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
    try {
      const status = await bounded(ended, 120_000, `openclaw ${args.join(" ")}`);
      if (status !== 0) throw new Error(`openclaw ${args.join(" ")}: status ${status}\n${out}\n${err}`);
    } finally {
      child.kill("SIGKILL");
    }
    return out;
  }

  #spawn(args: readonly string[], nodeOptions: readonly string[] = []): ChildProcess {
    const { node, openclaw } = this.programs;
    return spawn(node, [...nodeOptions, openclaw, ...args], {
      cwd: join(this.folder, "workspace"),
      env: this.env,
      stdio: ["ignore", "pipe", "pipe"],
    });
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function configuration(
  folder: string,
  port: number,
  modelUrl: string,
  plugin: Record<string, unknown>,
  { builtIn = false, contextWindow = 200_000 }: Variation,
): object {
  const model = {
    id: "scripted-1",
    name: "Scripted",
    reasoning: false,
    input: ["text"],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow,
    maxTokens: 1024,
  };
  const provider = { baseUrl: modelUrl, apiKey: "secret-of-the-provider", api: "openai-completions", models: [model] };
  return {
    gateway: { mode: "local", port, bind: "loopback", auth: { mode: "token", token: "secret-of-the-gateway" } },
    logging: { file: join(folder, "openclaw.log") },
    models: { providers: { scripted: provider } },
    agents: {
      defaults: {
        model: { primary: "scripted/scripted-1" },
        workspace: join(folder, "workspace"),
        skipBootstrap: true,
        heartbeat: { every: "0m" },
        compaction: { memoryFlush: { enabled: false } },
      },
    },
    tools: { toolSearch: false },
    plugins: builtIn
      ? {}
      : {
          load: { paths: [PLUGIN] },
          slots: { contextEngine: "context-sidecar" },
          entries: { "context-sidecar": { enabled: true, config: plugin } },
        },
  };
}
