/** A real opencode with this plugin, in a scratch folder, driven over its HTTP API. */

import { spawn } from "node:child_process";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { bounded, ROOT, Tap } from "context-sidecar-testing";
import { installOpencode } from "./install.js";

const PLUGIN = pathToFileURL(join(ROOT, "clients/opencode/dist/index.js")).href;
const LIMIT_MS = 60_000;

/** A message as opencode keeps it. */
export interface Kept {
  readonly info: { readonly id: string; readonly role: string };
  readonly parts: readonly {
    readonly type: string;
    readonly text?: string;
    readonly tool?: string;
    readonly state?: { readonly status: string; readonly output?: string; readonly error?: string };
  }[];
}

export class Opencode {
  #process: ChildProcessWithoutNullStreams | undefined;
  #url = "";
  #errors = "";

  private constructor(
    readonly folder: string,
    readonly tap: Tap,
    private readonly program: string,
    private readonly env: NodeJS.ProcessEnv,
  ) {}

  /** An opencode that is configured and not started. */
  static async configure(folder: string, modelUrl: string, options: object = {}): Promise<Opencode> {
    const program = await installOpencode();
    const tap = new Tap(join(folder, "tap.jsonl"));
    const model = { name: "Scripted", tool_call: true, limit: { context: 64_000, output: 1_000 } };
    const scripted = {
      npm: "@ai-sdk/openai-compatible",
      name: "Scripted",
      options: { baseURL: modelUrl, apiKey: "secret-of-the-provider" },
      models: { "scripted-1": model },
    };
    const config = {
      autoupdate: false,
      share: "disabled",
      snapshot: false,
      model: "scripted/scripted-1",
      small_model: "scripted/scripted-1",
      permission: { "*": "allow" },
      plugin: [[PLUGIN, { command: tap.command, stateDir: join(folder, "state"), ...options }]],
      provider: { scripted },
    };
    for (const name of ["home", "workspace"]) await mkdir(join(folder, name), { recursive: true });
    await writeFile(join(folder, "workspace/opencode.json"), JSON.stringify(config));
    const home = join(folder, "home");
    const env = {
      ...process.env,
      HOME: home,
      XDG_CONFIG_HOME: join(home, "config"),
      XDG_DATA_HOME: join(home, "data"),
      XDG_CACHE_HOME: join(home, "cache"),
      XDG_STATE_HOME: join(home, "state"),
      OPENCODE_DISABLE_AUTOUPDATE: "1",
      OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
      OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      OPENCODE_DISABLE_MODELS_FETCH: "1",
      PYTHONPATH: ROOT,
    };
    return new Opencode(folder, tap, program, env);
  }

  /** What opencode has written to stderr; its plugins too. */
  get errors(): string {
    return this.#errors;
  }

  /** A path in the workspace. */
  path(name: string): string {
    return join(this.folder, "workspace", name);
  }

  /** Starts the server of opencode and waits until it listens. */
  async start(): Promise<void> {
    const child = spawn(this.program, ["serve", "--hostname", "127.0.0.1", "--port", "0"], {
      cwd: this.path("."),
      env: this.env,
      stdio: "pipe",
    });
    this.#process = child;
    child.stderr.setEncoding("utf8").on("data", (text: string) => (this.#errors += text));
    const listens = new Promise<string>((resolve, reject) => {
      let said = "";
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        said += text;
        const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(said) ?? [];
        if (url !== undefined) resolve(url);
      });
      child.once("exit", () => reject(new Error(`opencode has ended\n${said}${this.#errors}`)));
    });
    this.#url = await bounded(listens, LIMIT_MS, "opencode to listen");
  }

  /** A new session; its id. */
  async session(): Promise<string> {
    return ((await this.#ask("POST", "/session", { title: "A session" })) as { id: string }).id;
  }

  /** One prompt; returns the text of the answer. */
  async prompt(session: string, text: string): Promise<string> {
    const answer = (await this.#ask("POST", `/session/${session}/message`, { parts: [{ type: "text", text }] })) as Kept;
    return answer.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  }

  /** The messages that opencode itself keeps. */
  async messages(session: string): Promise<Kept[]> {
    return (await this.#ask("GET", `/session/${session}/message`)) as Kept[];
  }

  async erase(session: string): Promise<void> {
    await this.#ask("DELETE", `/session/${session}`);
  }

  /** Ends opencode. */
  async stop(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.kill("SIGTERM");
    await bounded(ended, 20_000, "opencode to end").catch(async () => {
      child.kill("SIGKILL");
      await ended;
    });
  }

  async #ask(method: string, path: string, body?: object): Promise<unknown> {
    const request = { method, headers: { "content-type": "application/json" }, signal: AbortSignal.timeout(LIMIT_MS) };
    const response = await fetch(this.#url + path, body === undefined ? request : { ...request, body: JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}\n${this.#errors}`);
    return text === "" ? undefined : JSON.parse(text);
  }
}
