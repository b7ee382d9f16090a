/** The extension that pi loads: wires its events; starts nothing. */

import { TerseStripper } from "context-sidecar-client";
import { Extension } from "./extension.js";
import type { Pi } from "./host.js";
import { readSettings } from "./settings.js";

export default function contextSidecar(pi: Pi): void {
  const settings = readSettings(process.env);
  const extension = new Extension(pi, settings);
  pi.on("session_start", async (_event, context) => void (await extension.sessionStart(context)));
  pi.on("before_agent_start", (event, context) => extension.agentStart(event, context));
  pi.on("context", ({ messages }, context) => extension.assemble(messages, context));
  pi.on("message_end", async ({ message }) => void extension.said(message));
  pi.on("turn_end", async (_event, context) => void (await extension.turnEnd(context)));
  pi.on("agent_end", async (_event, context) => void extension.agentEnd(context));
  pi.on("session_before_compact", (event, context) => extension.compact(event, context));
  pi.on("session_shutdown", async (_event, context) => void (await extension.shutdown(context)));
  if (settings.engine === "terse") {
    pi.registerMarkdownTransformer?.((text, { messageType, isStreaming }) => (messageType === "assistant" ? shown(text, isStreaming) : text));
  }
  pi.registerCommand("context", {
    description: "Show what the context is made of",
    handler: async (_args, context) => context.ui.notify(extension.describe(context), "info"),
  });
}

/** The text without its tags; of a text that still grows, without what may become one. */
function shown(text: string, grows: boolean): string {
  const stripper = new TerseStripper();
  return stripper.feed(text) + (grows ? "" : stripper.close());
}
