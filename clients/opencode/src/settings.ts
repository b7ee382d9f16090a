/** The options of the plugin, from the entry of opencode's configuration that names it. */

import { homedir } from "node:os";
import { join } from "node:path";
import type { Command } from "context-sidecar-client";

export interface Settings {
  readonly engine: string;
  readonly engineSettings: Readonly<Record<string, unknown>>;
  readonly stateDir: string | undefined;
  readonly command: string | Command | undefined;
  readonly timeoutMs: number;
  /** Tokens for the messages; without it the window of the model less `reserveTokens`. */
  readonly tokenBudget: number | undefined;
  /** Tokens of the window that are left to the answer, the system prompt and the tools. */
  readonly reserveTokens: number;
  /** What is wrong with the options; those have their defaults. */
  readonly problems: readonly string[];
}

/** The settings with their defaults. */
export function readSettings(options: Readonly<Record<string, unknown>>): Settings {
  const problems: string[] = [];
  const given = new Map(Object.entries(options));
  const take = <Value>(key: string, valid: (value: unknown) => value is Value, otherwise: Value): Value => {
    const value = given.get(key);
    given.delete(key);
    if (value === undefined) return otherwise;
    if (valid(value)) return value;
    problems.push(`${key} has the wrong type`);
    return otherwise;
  };
  const command = take("command", isCommand, undefined);
  const stateDir = take<string | undefined>("stateDir", isText, undefined);
  const settings = {
    engine: take("engine", isText, "default"),
    engineSettings: take("settings", isObject, {}),
    stateDir: stateDir === undefined ? undefined : expand(stateDir),
    command: typeof command === "string" ? expand(command) : command,
    timeoutMs: take("timeoutMs", isPositive, 8_000),
    tokenBudget: take<number | undefined>("tokenBudget", isPositive, undefined),
    reserveTokens: take("reserveTokens", isPositive, 24_000),
    problems,
  };
  for (const key of given.keys()) problems.push(`${key} is no option`);
  return settings;
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
