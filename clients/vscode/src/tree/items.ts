/** How the nodes of the view look. */

import * as vscode from "vscode";
import { counted, grouped } from "../reading/composition.js";
import { excerpt, spoken } from "../reading/messages.js";
import type { Speaker } from "../reading/messages.js";
import { nameOf } from "../sessions/sources.js";
import { idOf } from "./nodes.js";
import type { Node } from "./nodes.js";

const LABEL = 90;
const TOOLTIP = 1_500;

const SPEAKERS: Readonly<Record<Speaker, string>> = {
  system: "gear",
  user: "account",
  assistant: "hubot",
  tool: "tools",
  unknown: "question",
};

const { None, Collapsed } = vscode.TreeItemCollapsibleState;

/** The item of a node. */
export function itemOf(node: Node): vscode.TreeItem {
  const item = new vscode.TreeItem("", None);
  item.id = idOf(node);
  item.contextValue = node.kind;
  fill(item, node);
  return item;
}

function fill(item: vscode.TreeItem, node: Node): void {
  switch (node.kind) {
    case "session": {
      const { session } = node;
      item.label = nameOf(session);
      item.description = `${counted(session.messageCount, "message")} · ${session.engine} · ${ago(session.updatedAt)}`;
      item.tooltip = plain(
        `${session.sessionId}\nengine ${session.engine}, messages in the dialect ${session.messageFormat}\nbegun ${local(session.createdAt)}, changed ${local(session.updatedAt)}`,
      );
      return look(item, Collapsed, "comment-discussion");
    }
    case "more":
      item.label = "Show more sessions";
      item.command = { command: "contextSidecar.showMore", title: "Show More" };
      return look(item, None, "ellipsis");
    case "summaries":
      item.label = "Summaries";
      item.description = String(node.count);
      return look(item, Collapsed, "layers", "contextSidecar.summary");
    case "summary": {
      const { summary } = node;
      item.label = excerpt(summary.text, LABEL) || summary.nodeId;
      item.description = `${counted(summary.messageCount, "message")} in ${counted(summary.tokens, "token")}`;
      item.tooltip = plain(`${summary.text.slice(0, TOOLTIP)}\n\n${summary.nodeId}, depth ${summary.depth}, ${summary.quality}`);
      item.command = { command: "contextSidecar.showSummary", title: "Read Summary", arguments: [node] };
      return look(item, summary.sources.length > 0 ? Collapsed : None, summary.sources.length > 0 ? "layers" : "note", "contextSidecar.summary");
    }
    case "pins":
      item.label = "Pinned";
      item.description = String(node.pins.length);
      return look(item, Collapsed, "pin", "contextSidecar.memory");
    case "pin":
      item.label = excerpt(node.pin.note || node.pin.text || `message ${node.pin.messageId ?? ""}`, LABEL);
      item.description = node.pin.text ? "text" : (node.pin.messageId ?? "");
      return look(item, None, "pinned", "contextSidecar.memory");
    case "turn": {
      const { turn } = node;
      item.label = turn.turnId;
      item.description = turn.title;
      item.tooltip = plain(`${turn.title}\n\n${counted(turn.messageCount, "message")}, begun ${local(turn.timestamp)}`);
      return look(item, Collapsed, "comment");
    }
    case "turns":
      item.label = `Turns ${grouped(node.from + 1)} to ${grouped(node.to)}`;
      return look(item, Collapsed, "history");
    case "message": {
      const { speaker, text } = spoken(node.exported.message);
      item.label = excerpt(text, LABEL) || "(empty)";
      if (node.pin !== undefined) item.description = "pinned";
      item.contextValue = node.pin === undefined ? "message" : "message-pinned";
      item.tooltip = plain(`${speaker} · ${local(node.exported.timestamp)} · ${node.exported.messageId}\n\n${text.slice(0, TOOLTIP)}`);
      item.command = { command: "contextSidecar.openSession", title: "Open Messages", arguments: [node] };
      return look(item, None, node.pin === undefined ? SPEAKERS[speaker] : "pinned", node.pin && "contextSidecar.memory");
    }
    case "messages":
      item.label = `Messages ${grouped(node.from + 1)} to ${grouped(node.to)} of the turn`;
      return look(item, Collapsed, "list-unordered");
  }
}

function look(item: vscode.TreeItem, state: vscode.TreeItemCollapsibleState, icon: string, colour?: string): void {
  item.collapsibleState = state;
  item.iconPath = new vscode.ThemeIcon(icon, colour === undefined ? undefined : new vscode.ThemeColor(colour));
}

/** Text as it is: what a message says must not become links and pictures. */
function plain(text: string): vscode.MarkdownString {
  const shown = new vscode.MarkdownString();
  shown.appendText(text);
  return shown;
}

function local(time: string): string {
  return new Date(time).toLocaleString();
}

function ago(time: string): string {
  const minutes = Math.max(0, (Date.now() - Date.parse(time)) / 60_000);
  if (minutes < 1) return "now";
  if (minutes < 60) return `${Math.round(minutes)} min`;
  if (minutes < 48 * 60) return `${Math.round(minutes / 60)} h`;
  return `${Math.round(minutes / 60 / 24)} d`;
}
