/** Reads the configuration of the extension. */

import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import type { Command } from "context-sidecar-client";

export interface Settings {
  readonly engine: string;
  readonly engineSettings: Readonly<Record<string, unknown>>;
  readonly stateDir: string;
  readonly command: string | Command | undefined;
  readonly assembleTimeoutMs: number;
  /** Tokens of the model's window that are left to its answer. */
  readonly reserveTokens: number;
  /** What is wrong with the file; the keys that it speaks of have their defaults. */
  readonly problems: readonly string[];
}

/** Name of the file in pi's folder. A project has none: a file of a project must not name programs to start. */
const FILE = "context-sidecar.json";

/** The settings in the folder of pi, with their defaults. */
export function readSettings(env: NodeJS.ProcessEnv): Settings {
  const folder = expand(env["PI_CODING_AGENT_DIR"] ?? "~/.pi/agent");
  const problems: string[] = [];
  const given = new Map(Object.entries(read(join(folder, FILE), problems)));
  const take = <Value>(key: string, valid: (value: unknown) => value is Value, otherwise: Value): Value => {
    const value = given.get(key);
    given.delete(key);
    if (value === undefined) return otherwise;
    if (valid(value)) return value;
    problems.push(`${FILE}: ${key} has the wrong type`);
    return otherwise;
  };
  const command = take("command", isCommand, undefined);
  const settings = {
    engine: take("engine", isText, "default"),
    engineSettings: take("settings", isObject, {}),
    stateDir: expand(take("stateDir", isText, join(folder, "context-sidecar"))),
    command: typeof command === "string" ? expand(command) : command,
    assembleTimeoutMs: take("assembleTimeoutMs", isPositive, 8_000),
    reserveTokens: take("reserveTokens", isPositive, 16_384),
    problems,
  };
  for (const key of given.keys()) problems.push(`${FILE}: ${key} is no setting`);
  return settings;
}

function read(path: string, problems: string[]): Record<string, unknown> {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return {};
  }
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Told below.
  }
  problems.push(`${FILE} is no JSON object`);
  return {};
}

function expand(path: string): string {
  return path.startsWith("~/") ? join(homedir(), path.slice(2)) : path;
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}

function isPositive(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value > 0;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCommand(value: unknown): value is string | Command | undefined {
  if (Array.isArray(value)) return value.length > 0 && value.every((part) => typeof part === "string");
  return isText(value);
}
