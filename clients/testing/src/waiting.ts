/** Waits for conditions, always with a limit. */

import { execFileSync } from "node:child_process";

/** The value of a promise, or an error that says what did not happen in time. */
export async function bounded<Value>(promise: Promise<Value>, milliseconds: number, what: string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${milliseconds} ms in vain for ${what}`)), milliseconds);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(timer));
}

/** Returns when the condition holds. */
export async function until(condition: () => boolean, what: string, milliseconds = 60_000): Promise<void> {
  const deadline = Date.now() + milliseconds;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Returns when a process is gone. */
export async function gone(pid: number): Promise<void> {
  await until(() => !runs(pid), `process ${pid} to end`);
}

/** Command lines of processes that name a folder. */
export function processesOf(folder: string): string[] {
  const lines = execFileSync("ps", ["-eo", "args"], { encoding: "utf8" }).split("\n");
  return lines.filter((line) => line.includes(folder));
}

function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
