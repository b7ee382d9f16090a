/** Reads the settings of the extension. */

import { join } from "node:path";
import type { Command, JsonObject } from "context-sidecar-client";

/** The section of the editor's settings that is ours. */
export const SECTION = "contextSidecar";

export interface Settings {
  /** The program, or the program with its arguments; undefined: look for it. */
  readonly command: string | Command | undefined;
  readonly namespace: string;
  /** Undefined: what the configuration of the sidecar says. */
  readonly engine: string | undefined;
  /** Overrides in the shape of the configuration file. */
  readonly config: JsonObject;
  /** The folder of the store; a host may not name it in its overrides. */
  readonly stateDir: string | undefined;
  /** Size of the window in tokens; undefined: what the configuration of the sidecar says. */
  readonly tokenBudget: number | undefined;
  readonly refreshMs: number;
}

/** The settings; a value of the wrong type counts as absent. */
export function readSettings(get: (key: string) => unknown, home: string): Settings {
  const stateDir = text(get("stateDir"));
  const given = get("configuration");
  const stated = isObject(given) ? given : {};
  const tokenBudget = whole(get("tokenBudget"));
  const config = tokenBudget === undefined ? stated : withBudget(stated, tokenBudget);
  const seconds = get("refreshSeconds");
  return {
    command: command(get("command"), home),
    namespace: text(get("namespace")) ?? "default",
    engine: text(get("engine")),
    config,
    stateDir: stateDir === undefined ? undefined : expanded(stateDir, home),
    tokenBudget,
    refreshMs: typeof seconds === "number" && seconds >= 0.5 ? seconds * 1_000 : 2_000,
  };
}

/** Lenses measure by the same window. */
function withBudget(config: JsonObject, defaultTokenBudget: number): JsonObject {
  const { limits } = config;
  return { ...config, limits: { ...(isObject(limits) ? limits : {}), defaultTokenBudget } };
}

/** True where both start and ask the sidecar in the same way. */
export function sameSidecar(one: Settings, other: Settings): boolean {
  const told = ({ command, namespace, engine, config }: Settings) => JSON.stringify([command, namespace, engine, config]);
  return told(one) === told(other);
}

function command(value: unknown, home: string): string | Command | undefined {
  if (Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === "string")) {
    const [program, ...args] = value as [string, ...string[]];
    return [expanded(program, home), ...args];
  }
  const program = text(value);
  return program === undefined ? undefined : expanded(program, home);
}

function expanded(path: string, home: string): string {
  return path === "~" ? home : path.startsWith("~/") ? join(home, path.slice(2)) : path;
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

function whole(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value > 0 ? value : undefined;
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
