/** The fill of a window as Markdown, for the tooltip of the status item. */

import type { Preview } from "../sessions/previews.js";
import { bar, grouped, percent, shares } from "./composition.js";

const CELLS = 20;

/** A table of what fills the window; the name is shown as plain text. */
export function fillTable(name: string, preview: Preview): string {
  const { tokens, tokenBudget, composition } = preview;
  const newest = preview.decisions.at(-1)?.turnId;
  const free = Math.max(0, tokenBudget - tokens);
  const rows = shares(composition, tokenBudget).map(
    ({ kind, name: what, tokens: size, percent: share }) =>
      `| <span style="color:var(--vscode-contextSidecar-${kind});">${bar(share, CELLS)}</span> | ${what} | ${grouped(size)} | ${percent(share)} |`,
  );
  rows.push(`| ${bar(0, CELLS)} | free | ${grouped(free)} | ${percent((100 * free) / Math.max(1, tokenBudget))} |`);
  return [
    `**${literal(name)}**`,
    "",
    `${grouped(tokens)} of ${grouped(tokenBudget)} tokens would be sent now${newest === undefined ? "" : `, up to turn ${literal(newest)}`}`,
    "",
    "| | | tokens | of the window |",
    "| :-- | :-- | --: | --: |",
    ...rows,
  ].join("\n");
}

/** Text in which Markdown and HTML have no say. */
function literal(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+\-.!|<>&~$:@/"']/g, (letter) => `&#${letter.charCodeAt(0)};`).replace(/\s+/g, " ");
}
