/** A real pi with this extension, in a scratch folder, driven over its RPC mode. */

import { spawn } from "node:child_process";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { bounded, ROOT, Tap } from "context-sidecar-testing";
import { installPi } from "./install.js";
import type { Installed } from "./install.js";

const EXTENSION = fileURLToPath(new URL("../../../dist", import.meta.url));
const LIMIT_MS = 120_000;

/** A line that pi writes: an answer to a command, or an event. */
export interface Line {
  readonly type: string;
  readonly id?: string;
  readonly success?: boolean;
  readonly error?: string;
  readonly data?: Record<string, unknown>;
  readonly method?: string;
  readonly message?: unknown;
  readonly messages?: readonly { readonly stopReason?: string }[];
}

export class Pi {
  /** Everything that pi has written since its latest start. */
  lines: Line[] = [];
  #process: ChildProcessWithoutNullStreams | undefined;
  #errors = "";
  #commands = 0;

  private constructor(
    readonly folder: string,
    readonly tap: Tap,
    private readonly programs: Installed,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  /** A pi that is configured and not started. */
  static async configure(release: string, folder: string, modelUrl: string, settings: object = {}): Promise<Pi> {
    const programs = await installPi(release);
    const agent = join(folder, "agent");
    for (const name of ["home", "agent", "workspace"]) await mkdir(join(folder, name), { recursive: true });
    const tap = new Tap(join(folder, "tap.jsonl"));
    const model = { id: "scripted-1", contextWindow: 64_000, maxTokens: 1024 };
    const scripted = { baseUrl: modelUrl, apiKey: "secret-of-the-provider", api: "openai-completions", models: [model] };
    await writeFile(join(agent, "models.json"), JSON.stringify({ providers: { scripted } }));
    await writeFile(join(agent, "context-sidecar.json"), JSON.stringify({ command: tap.command, ...settings }));
    const env = {
      ...process.env,
      HOME: join(folder, "home"),
      PATH: `${join(programs.node, "..")}:${process.env["PATH"] ?? ""}`,
      PI_CODING_AGENT_DIR: agent,
      PI_OFFLINE: "1",
      PYTHONPATH: ROOT,
    };
    return new Pi(folder, tap, programs, env);
  }

  get pid(): number {
    return this.#process?.pid as number;
  }

  /** Messages that the extension has shown to the user. */
  get notices(): string[] {
    return this.lines.filter(({ method }) => method === "notify").map(({ message }) => String(message));
  }

  /** Starts pi and waits until it answers. */
  async start(args: readonly string[] = []): Promise<void> {
    this.lines = [];
    const { node, pi } = this.programs;
    const model = ["--provider", "scripted", "--model", "scripted-1"];
    const child = spawn(node, [pi, "--mode", "rpc", "--extension", EXTENSION, ...model, ...args], {
      cwd: join(this.folder, "workspace"),
      env: this.env,
      stdio: "pipe",
    });
    this.#process = child;
    child.stdin.on("error", () => undefined);
    child.stderr.setEncoding("utf8").on("data", (text: string) => (this.#errors += text));
    let rest = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("{")) this.lines.push(JSON.parse(line) as Line);
    });
    await this.command({ type: "get_state" });
  }

  /** One prompt, with all that follows it; returns when pi is idle again. */
  async prompt(message: string): Promise<void> {
    const before = this.lines.length;
    await this.command({ type: "prompt", message });
    await this.#waitFor(() => this.lines.slice(before).some(isEnd), "the end of the turn");
    for (;;) {
      const { isStreaming, isCompacting } = await this.command({ type: "get_state" });
      if (isStreaming !== true && isCompacting !== true) return;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** A command of the RPC mode; its answer. */
  async command(command: { readonly type: string; readonly [field: string]: unknown }): Promise<Record<string, unknown>> {
    const id = `c${(this.#commands += 1)}`;
    this.#process?.stdin.write(`${JSON.stringify({ id, ...command })}\n`);
    const isAnswer = (line: Line) => line.type === "response" && line.id === id;
    await this.#waitFor(() => this.lines.some(isAnswer), `an answer to ${command.type}`);
    const answer = this.lines.find(isAnswer);
    if (answer?.success !== true) throw new Error(`${command.type}: ${answer?.error}\n${this.#errors}`);
    return answer.data ?? {};
  }

  /** Ends pi as an RPC client does. */
  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.stdin.end();
    await bounded(ended, 30_000, "pi to end").catch(async () => {
      child.kill("SIGKILL");
      await ended;
    });
  }

  async #waitFor(condition: () => boolean, what: string): Promise<void> {
    const child = this.#process;
    const ended = () => child?.exitCode !== null;
    const deadline = Date.now() + LIMIT_MS;
    while (!condition()) {
      if (ended()) throw new Error(`pi has ended while ${what} was awaited\n${this.#errors}`);
      if (Date.now() > deadline) throw new Error(`waited in vain for ${what}\n${this.#errors}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** True for the end of a run that pi does not try again. */
function isEnd({ type, messages }: Line): boolean {
  return type === "agent_end" && messages?.at(-1)?.stopReason !== "error";
}
