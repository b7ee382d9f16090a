/** Makes the language client that the sidecar behind a window is spoken to by. */

import type { Command, ContextEngineCapabilities, ContextEngineOptions } from "context-sidecar-client";
import type { LogOutputChannel } from "vscode";
import { CloseAction, ErrorAction, LanguageClient, RevealOutputChannelOn } from "vscode-languageclient/node";
import type { LanguageClientOptions, StaticFeature } from "vscode-languageclient/node";
import { SESSION_SCHEME } from "./documents/names.js";

/** Tells the sidecar that its code lenses may open contexts. */
const LENSES_OPEN_CONTEXTS: StaticFeature = {
  fillClientCapabilities(capabilities) {
    capabilities.experimental = { ...(capabilities.experimental as object), commands: { commands: ["contextSidecar.showContext"] } };
  },
  initialize() {},
  getState: () => ({ kind: "static" }),
  clear() {},
};

/** A client that is not started yet. It is not started again when its process ends: that is for its owner to decide. */
export function languageClient(
  [program, ...args]: Command,
  contextEngine: ContextEngineOptions,
  output: LogOutputChannel,
  stateDir: string | undefined,
): LanguageClient {
  const options: LanguageClientOptions = {
    documentSelector: [
      { scheme: "file", language: "jsonl" },
      { scheme: "untitled", language: "jsonl" },
      { scheme: SESSION_SCHEME },
    ],
    initializationOptions: { contextEngine },
    outputChannel: output,
    revealOutputChannelOn: RevealOutputChannelOn.Never,
    initializationFailedHandler: () => false,
    errorHandler: {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => ({ action: CloseAction.DoNotRestart, handled: true }),
    },
  };
  const env = stateDir === undefined ? process.env : { ...process.env, CONTEXT_SIDECAR_STATE_DIR: stateDir };
  const executable = { command: program, args: [...args], options: { env } };
  const client = new LanguageClient("contextSidecar", "Context Sidecar", executable, options);
  client.registerFeature(LENSES_OPEN_CONTEXTS);
  return client;
}

/** What the sidecar has said of itself; undefined before it has answered. */
export function capabilitiesOf(client: LanguageClient): ContextEngineCapabilities | undefined {
  const experimental = client.initializeResult?.capabilities.experimental as unknown;
  return (experimental as { contextEngine?: ContextEngineCapabilities } | undefined)?.contextEngine;
}
