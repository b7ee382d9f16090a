/** Commands that change a session: compact, pin, unpin, switch the engine. */

import * as vscode from "vscode";
import { counted, grouped } from "../reading/composition.js";
import { excerpt, spoken } from "../reading/messages.js";
import { nameOf } from "../sessions/sources.js";
import { nodeOf, sessionFor } from "./choosing.js";
import { messageUnderCursor } from "./cursor.js";
import type { Action } from "./surface.js";

/** Compacts a session, whether it is full or not. */
export const compact: Action = async (surface, given) => {
  const session = await sessionFor(surface, given, "Compact a session");
  if (session === undefined) return;
  const { sessionId, messageFormat } = session;
  const name = nameOf(session);
  const progress = { location: vscode.ProgressLocation.Notification, title: `Compacting ${name}` };
  const answer = await vscode.window.withProgress(progress, () =>
    surface.sidecars.in(messageFormat).request("context/compact", {
      sessionId,
      force: true,
      forceReason: "manual",
      tokenBudget: surface.sidecars.tokenBudget,
    }),
  );
  surface.watch.soon();
  if (!answer.compacted) {
    const say = answer.ok ? vscode.window.showInformationMessage : vscode.window.showWarningMessage;
    return void say(`${name} was not compacted: ${answer.reason ?? "there was nothing to do"}`);
  }
  const { tokensBefore, tokensAfter } = answer.result ?? {};
  const became = tokensAfter === undefined || tokensAfter === null ? "" : `, now ${grouped(tokensAfter)}`;
  void vscode.window.showInformationMessage(`${name} was compacted: ${counted(tokensBefore ?? 0, "token")} before${became}.`);
};

/** Pins the message of the node, or under the cursor. */
export const pin: Action = async (surface, given) => {
  const node = nodeOf(given);
  const message =
    node?.kind === "message" ? { sessionId: node.session.sessionId, exported: node.exported } : await messageUnderCursor(surface);
  if (message === undefined) throw new Error("open a session, and place the cursor in the message to pin");
  const { exported, sessionId } = message;
  await surface.sidecars.request("session/pin", { sessionId, messageId: exported.messageId });
  surface.watch.soon();
  void vscode.window.setStatusBarMessage(`Pinned: ${excerpt(spoken(exported.message).text, 60)}`, 5_000);
};

/** Takes the pin of the node off, or one that the user picks. */
export const unpin: Action = async (surface, given) => {
  const node = nodeOf(given);
  const session = await sessionFor(surface, given, "Unpin");
  if (session === undefined) return;
  const { sessionId } = session;
  let pinId = node?.kind === "pin" || node?.kind === "message" ? node.pin?.pinId : undefined;
  if (pinId === undefined) {
    const { pins } = await surface.sidecars.request("session/pins", { sessionId });
    if (pins.length === 0) return void vscode.window.showInformationMessage(`Nothing is pinned in ${nameOf(session)}.`);
    const items = pins.map((one) => ({ label: one.note || one.text || (one.messageId ?? one.pinId), description: one.createdAt, pin: one }));
    const picked = await vscode.window.showQuickPick(items, { title: `Unpin in ${nameOf(session)}`, placeHolder: "A pin" });
    pinId = picked?.pin.pinId;
  }
  if (pinId === undefined) return;
  await surface.sidecars.request("session/unpin", { sessionId, pinId });
  surface.watch.soon();
};

/** Lets the user choose the engine of a session. */
export const switchEngine: Action = async (surface, given) => {
  const session = await sessionFor(surface, given, "Switch the engine of a session");
  if (session === undefined) return;
  const { engines } = await surface.sidecars.request("engine/list", {});
  const items = engines.map(({ id, name, version, available, reason }) => ({
    label: id === session.engine ? `$(check) ${name}` : name,
    description: `${id} ${version}${available ? "" : " (not available)"}`,
    detail: reason ?? "",
    id,
    available,
  }));
  const title = `Engine of ${nameOf(session)}`;
  const picked = await vscode.window.showQuickPick(items, { title, placeHolder: "An engine", matchOnDescription: true });
  if (picked === undefined || picked.id === session.engine) return;
  if (!picked.available) throw new Error(`${picked.id} is not available: ${picked.detail}`);
  const { engine } = await surface.sidecars.request("session/configure", { sessionId: session.sessionId, engine: picked.id });
  surface.watch.soon();
  void vscode.window.showInformationMessage(`${nameOf(session)} is served by the engine ${engine} from now on.`);
};
