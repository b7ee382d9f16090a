/** The plugin: registers the context engine and its tools; starts nothing. */

import { Child } from "./child.js";
import { contextEngine, ENGINE_ID } from "./engine.js";
import type { PluginApi, ToolContext } from "./host.js";
import { RECALL_TOOLS, recallTool } from "./recall-tools.js";
import { readSettings } from "./settings.js";

export default {
  id: ENGINE_ID,
  name: "Context Sidecar",
  description: "Context engines that run in a process of their own: durable history, stable prompts, recall.",

  register(api: PluginApi): void {
    const settings = readSettings(api.pluginConfig ?? {}, process.env);
    const child = new Child(settings, api.logger);
    api.registerContextEngine(ENGINE_ID, () => contextEngine(child, settings.assembleTimeoutMs));
    for (const tool of RECALL_TOOLS) {
      api.registerTool?.((context: ToolContext) => recallTool(child, context, tool), { name: tool.name });
    }
    api.lifecycle?.onDispose?.(() => child.release());
  },
};
