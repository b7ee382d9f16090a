/** Reads the configuration of the plugin. */

import { homedir } from "node:os";
import { join } from "node:path";
import type { Command } from "context-sidecar-client";

export interface Settings {
  readonly engine: string;
  readonly engineSettings: Readonly<Record<string, unknown>>;
  readonly stateDir: string;
  readonly command: string | Command | undefined;
  readonly assembleTimeoutMs: number;
}

/** The settings with their defaults. The host has checked them against the schema of the manifest. */
export function readSettings(config: Readonly<Record<string, unknown>>, env: NodeJS.ProcessEnv): Settings {
  const { engine, settings, stateDir, command, assembleTimeoutMs } = config;
  const hostState = env["OPENCLAW_STATE_DIR"] ?? join(homedir(), ".openclaw");
  return {
    engine: typeof engine === "string" ? engine : "default",
    engineSettings: isObject(settings) ? settings : {},
    stateDir: typeof stateDir === "string" ? expand(stateDir) : join(hostState, "context-sidecar"),
    command: typeof command === "string" ? expand(command) : isCommand(command) ? command : undefined,
    assembleTimeoutMs: typeof assembleTimeoutMs === "number" ? assembleTimeoutMs : 8_000,
  };
}

function expand(path: string): string {
  return path.startsWith("~/") ? join(homedir(), path.slice(2)) : path;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCommand(value: unknown): value is Command {
  return Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === "string");
}
