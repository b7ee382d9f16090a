/** Wires the parts of the extension together. */

import { homedir } from "node:os";
import * as vscode from "vscode";
import { registerCommands } from "./commands/index.js";
import { tellMissing } from "./commands/installing.js";
import { compare, openText } from "./commands/looking.js";
import type { Surface } from "./commands/surface.js";
import { sessionOf } from "./documents/names.js";
import { SessionDocuments } from "./documents/session-documents.js";
import { Texts } from "./documents/texts.js";
import { explained } from "./failures.js";
import { Live } from "./live.js";
import { ContextPanel } from "./panel/panel.js";
import { Contexts } from "./sessions/contexts.js";
import { SessionList } from "./sessions/session-list.js";
import { Sources } from "./sessions/sources.js";
import { readSettings, sameSidecar, SECTION } from "./settings.js";
import type { Settings } from "./settings.js";
import { Sidecars } from "./sidecars.js";
import type { SidecarState } from "./sidecars.js";
import { StatusItem } from "./status.js";
import { SessionTree } from "./tree/provider.js";
import { Watch } from "./watching.js";

let running: Sidecars | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  let settings = current();
  const output = vscode.window.createOutputChannel("Context Sidecar", { log: true });
  const version = String((context.extension.packageJSON as { version?: unknown }).version);
  const sidecars = new Sidecars(settings, version, output);
  running = sidecars;
  const list = new SessionList(sidecars);
  const sources = new Sources(sidecars);
  const contexts = new Contexts(() => sidecars.tokenBudget);
  const status = new StatusItem(contexts);
  const panel = new ContextPanel(contexts);
  const sessions = new SessionDocuments(sources);
  const texts = new Texts();
  const tree = new SessionTree(sidecars, list, sources, () => sidecars.state !== "missing" && sidecars.state !== "failed");
  const view = vscode.window.createTreeView("contextSidecar.sessions", { treeDataProvider: tree, showCollapseAll: true });
  const live = new Live({ sidecars, list, sources, tree, status, panel, sessions });
  const watch = new Watch(
    () => live.look(),
    () => settings.refreshMs,
    () => sidecars.state === "running" && vscode.window.state.focused,
  );
  const surface: Surface = { sidecars, list, tree, sources, contexts, panel, status, watch, texts, sessions, output };

  const forget = (): void => {
    sources.forget();
    contexts.forget();
    list.clear();
    tree.refresh();
  };
  const restart = (): Promise<void> => {
    forget();
    return sidecars.restart(settings);
  };

  let told = false;
  const follow = (state: SidecarState): void => {
    void vscode.commands.executeCommand("setContext", "contextSidecar.state", state);
    status.tell(state);
    // What is shown stays while a process that has ended is started again.
    if (state === "missing" || state === "failed") forget();
    if (state === "running") watch.soon();
    if (state === "missing" && !told) void tellMissing();
    told ||= state === "missing";
  };

  context.subscriptions.push(
    output,
    sidecars,
    status,
    panel,
    sessions,
    texts,
    tree,
    view,
    watch,
    sidecars.onStateChanged(follow),
    sidecars.onSessionChanged((sessionId) => live.told(sessionId) && watch.soon()),
    view.onDidChangeVisibility(({ visible }) => visible && watch.soon()),
    view.onDidChangeSelection(({ selection: [node] }) => {
      if (node !== undefined && node.kind !== "more") void status.show(sources.ofSession(node.session));
    }),
    vscode.window.onDidChangeWindowState(({ focused }) => focused && watch.soon()),
    vscode.window.onDidChangeActiveTextEditor((editor) => {
      const uri = editor?.document.uri;
      const session = uri && list.get(sessionOf(uri.scheme, uri.path) ?? "");
      if (session !== undefined) void status.show(sources.ofSession(session));
    }),
    panel.onAsked(({ ask, place }) => {
      const done = ask === "document" ? openText(surface, place) : compare(surface, place);
      done.catch((error: unknown) => vscode.window.showErrorMessage(`Context: ${explained(error)}`));
    }),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (!event.affectsConfiguration(SECTION)) return;
      const before = settings;
      settings = current();
      if (sameSidecar(before, settings)) sidecars.adopt(settings);
      else void restart();
      watch.soon();
    }),
    ...registerCommands(surface, restart),
  );
  follow(sidecars.state);
  await sidecars.start();
}

/** Lets the processes end in order. */
export async function deactivate(): Promise<void> {
  await running?.stop();
}

function current(): Settings {
  const section = vscode.workspace.getConfiguration(SECTION);
  return readSettings((key) => section.get(key), homedir());
}
