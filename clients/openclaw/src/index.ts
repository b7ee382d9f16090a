/** The plugin: registers the context engine and its tool; starts nothing. */

import { Child } from "./child.js";
import { contextEngine, ENGINE_ID } from "./engine.js";
import type { PluginApi, ToolContext } from "./host.js";
import { SEARCH_TOOL, searchTool } from "./search-tool.js";
import { readSettings } from "./settings.js";

export default {
  id: ENGINE_ID,
  name: "Context Sidecar",
  description: "Context engines that run in a process of their own: durable history, stable prompts, recall.",

  register(api: PluginApi): void {
    const settings = readSettings(api.pluginConfig ?? {}, process.env);
    const child = new Child(settings, api.logger);
    api.registerContextEngine(ENGINE_ID, () => contextEngine(child, settings.assembleTimeoutMs));
    api.registerTool?.((context: ToolContext) => searchTool(child, context), { name: SEARCH_TOOL });
    api.lifecycle?.onDispose?.(() => child.release());
  },
};
