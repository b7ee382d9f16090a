/** The plugin that opencode loads. */

import type { Hooks, PluginInput } from "./host.js";
import { Plugin } from "./plugin.js";
import { readSettings } from "./settings.js";

/** opencode calls whatever this module exports. */
export async function ContextSidecar({ client }: PluginInput, options: Record<string, unknown> = {}): Promise<Hooks> {
  return new Plugin(client, readSettings(options)).hooks();
}
