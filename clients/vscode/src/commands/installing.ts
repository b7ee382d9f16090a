/** Says how to get the sidecar. */

import * as vscode from "vscode";
import { INSTALLERS } from "../locating.js";
import { SECTION } from "../settings.js";
import type { Action } from "./surface.js";

const SETTINGS = "Open Settings";
const AGAIN = "Try Again";

/** Offers the commands that install the sidecar, the settings, and another try. */
export const howToInstall: Action = async () => {
  const items: (vscode.QuickPickItem & { readonly command?: string })[] = INSTALLERS.map(({ name, command }) => ({
    label: `$(terminal) ${command}`,
    description: `with ${name}`,
    detail: "Puts the command into a terminal, where you run it.",
    command,
  }));
  items.push({ label: `$(gear) ${SETTINGS}`, detail: "Name the program in contextSidecar.command." });
  items.push({ label: `$(debug-restart) ${AGAIN}`, detail: "Look for the program again." });
  const title = "context-sidecar is not installed";
  const picked = await vscode.window.showQuickPick(items, { title, placeHolder: "How to go on" });
  if (picked === undefined) return;
  if (picked.command !== undefined) return putIntoTerminal(picked.command);
  await vscode.commands.executeCommand(picked.label.endsWith(AGAIN) ? "contextSidecar.restart" : "contextSidecar.openSettings");
};

export const openSettings: Action = async () => {
  await vscode.commands.executeCommand("workbench.action.openSettings", `${SECTION}.`);
};

/** Tells once that there is no sidecar. */
export async function tellMissing(): Promise<void> {
  const how = "How to Install";
  const answer = await vscode.window.showWarningMessage(
    `The program context-sidecar is not installed, or not where the setting ${SECTION}.command says. ` +
      `Install it with: ${INSTALLERS[0]?.command}`,
    how,
    SETTINGS,
  );
  if (answer === how) await vscode.commands.executeCommand("contextSidecar.howToInstall");
  if (answer === SETTINGS) await vscode.commands.executeCommand("contextSidecar.openSettings");
}

/** The command is not run: what is installed is the user's decision. */
function putIntoTerminal(command: string): void {
  const terminal = vscode.window.createTerminal("Install context-sidecar");
  terminal.show();
  terminal.sendText(command, false);
}
