/** A sidecar process with pipes, whose standard error is always drained. */

import { spawn } from "node:child_process";
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import type { Socket } from "node:net";
import type { Command } from "./locate.js";

/** How much of standard error is remembered for error messages, in characters. */
const REMEMBERED = 4096;

export interface ProcessOptions {
  readonly command: Command;
  readonly cwd?: string | undefined;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** Receives every line that the sidecar writes to standard error. */
  readonly onLog?: ((line: string) => void) | undefined;
}

export class SidecarProcess {
  readonly child: ChildProcessWithoutNullStreams;
  /** Resolves, and never rejects, when the process is gone; says how it ended. */
  readonly ended: Promise<string>;
  #stderr = "";
  #line = "";

  constructor(private readonly options: ProcessOptions) {
    const [program, ...args] = options.command;
    this.child = spawn(program, args, {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: ["pipe", "pipe", "pipe"],
      windowsHide: true,
    });
    this.ended = new Promise((resolve) => {
      this.child.once("error", (error) => resolve(`could not be started: ${error.message}`));
      this.child.once("exit", (code, signal) => {
        resolve(signal === null ? `ended with status ${String(code)}` : `was ended by ${signal}`);
      });
    });
    this.child.stdin.on("error", () => undefined);
    this.child.stderr.setEncoding("utf8").on("data", (text: string) => this.#drain(text));
    this.#letHostExit();
  }

  /** The end of what the sidecar wrote to standard error. */
  get lastWords(): string {
    return this.#stderr.trim();
  }

  /** Ends the process at once. What it acknowledged is on the disk. */
  kill(): void {
    this.child.kill("SIGKILL");
  }

  /** The host need not stay for the sidecar, which ends by itself when its input does. */
  #letHostExit(): void {
    this.child.unref();
    for (const stream of [this.child.stdin, this.child.stdout, this.child.stderr]) {
      // Bun, on which opencode runs, has no such method; its pipes do not keep a program alive.
      (stream as unknown as Partial<Socket>).unref?.();
    }
  }

  #drain(text: string): void {
    this.#stderr = (this.#stderr + text).slice(-REMEMBERED);
    const { onLog } = this.options;
    if (onLog === undefined) return;
    const lines = (this.#line + text).split("\n");
    this.#line = (lines.pop() ?? "").slice(-REMEMBERED);
    for (const line of lines) onLog(line);
  }
}
