/** An assembled context as plain text, one block a message, for reading and for comparing. */

import type { Preview } from "../sessions/previews.js";
import { grouped } from "./composition.js";
import { made } from "./fences.js";
import { spoken } from "./messages.js";

/** The text; the same context gives the same text. */
export function contextText(preview: Preview): string {
  const blocks: string[] = [];
  const { systemPromptAddition, userMessageAppend } = preview;
  if (systemPromptAddition) blocks.push(block("added to the system prompt", systemPromptAddition));
  for (const message of preview.messages) {
    const { speaker, text } = spoken(message);
    const ours = made(text);
    blocks.push(ours === undefined ? block(speaker, text) : block(ours.name, ours.text));
  }
  if (userMessageAppend) blocks.push(block("added to the user's message", userMessageAppend));
  return `${grouped(preview.tokens)} of ${grouped(preview.tokenBudget)} tokens\n\n${blocks.join("\n")}`;
}

function block(heading: string, text: string): string {
  return `─── ${heading} ───\n\n${text}\n`;
}
