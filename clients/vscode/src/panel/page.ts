/** The page of the panel: a bar of what fills the window, the text that the model sees, and what became of each message. */

import { counted, grouped, percent, shares } from "../reading/composition.js";
import type { Share } from "../reading/composition.js";
import { made } from "../reading/fences.js";
import { spoken } from "../reading/messages.js";
import type { Spoken } from "../reading/messages.js";
import type { Openings } from "../sessions/history.js";
import type { Preview } from "../sessions/previews.js";
import { Html, html } from "./escaping.js";
import { SCRIPT } from "./script.js";
import { STYLES } from "./styles.js";

/** Characters of a message that are shown before it is folded. */
const FOLDED = 4_000;
/** Characters of a message that are shown at all; the whole of it is in the text document. */
const MOST = 100_000;
/** Messages and decisions that one page shows; editors become slow beyond. */
export const MOST_ROWS = 1_000;

export interface Shown {
  readonly title: string;
  /** Engine, dialect, number of messages. */
  readonly about: string;
  readonly preview: Preview;
  readonly openings: Openings;
  readonly hasPrevious: boolean;
  readonly hasNext: boolean;
}

/** The whole document. Nothing is loaded from anywhere, and only the script with the nonce may run. */
export function page(shown: Shown, nonce: string): string {
  const policy = `default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'`;
  return html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${shown.title}</title>
<style nonce="${nonce}">${new Html(STYLES)}</style>
</head>
<body data-of="${shown.title}">
${header(shown)}
<section data-page="text">${text(shown.preview)}</section>
<section data-page="decisions" hidden>${decisions(shown.preview, shown.openings)}</section>
<script nonce="${nonce}">${new Html(SCRIPT)}</script>
</body>
</html>`.markup;
}

function header({ title, about, preview, hasPrevious, hasNext }: Shown): Html {
  const parts = shares(preview.composition, preview.tokenBudget);
  const free = Math.max(0, preview.tokenBudget - preview.tokens);
  return html`<header>
<div class="turns">
<button data-ask="previous" title="The turn before" ${hasPrevious ? undefined : new Html("disabled")}>← Earlier turn</button>
<button data-ask="next" title="The turn after" ${hasNext ? undefined : new Html("disabled")}>Later turn →</button>
</div>
<h1>${title}</h1>
<div class="about">${about}</div>
<div class="fill"><strong>${percent((100 * preview.tokens) / Math.max(1, preview.tokenBudget))}</strong>
<span>${grouped(preview.tokens)} of ${counted(preview.tokenBudget, "token")}</span></div>
${stackedBar(parts)}
<ul class="legend">${parts.map(legend)}
<li class="free"><span class="swatch"></span>free <span class="tokens">${grouped(free)}</span></li></ul>
<nav role="tablist">
<button role="tab" data-tab="text" aria-selected="true">What the model sees</button>
<button role="tab" data-tab="decisions" aria-selected="false">What became of each message</button>
<button data-ask="document">Open as text</button>
<button data-ask="compare">Compare with another turn</button>
</nav>
</header>`;
}

/** Drawn as SVG: widths in style attributes would need a weaker policy. */
function stackedBar(parts: readonly Share[]): Html {
  let from = 0;
  const pieces = parts.map(({ kind, name, percent: width }) => {
    const piece = html`<rect class="kind-${kind}" x="${from.toFixed(3)}" y="0" width="${Math.max(width, 0.15).toFixed(3)}" height="1"><title>${name}</title></rect>`;
    from += width;
    return piece;
  });
  const said = parts.map(({ name, percent: width }) => `${name} ${percent(width)}`).join(", ");
  return html`<div class="bar"><svg viewBox="0 0 100 1" preserveAspectRatio="none" role="img" aria-label="${said}">${pieces}</svg></div>`;
}

function legend({ kind, name, tokens, messageCount, percent: width }: Share): Html {
  const messages = messageCount > 0 ? `, ${counted(messageCount, "message")}` : "";
  return html`<li class="kind-${kind}"><span class="swatch"></span>${name} <span class="tokens">${grouped(tokens)} tokens (${percent(width)})${messages}</span></li>`;
}

function text({ messages, systemPromptAddition, userMessageAppend }: Preview): Html {
  const first = Math.max(0, messages.length - MOST_ROWS);
  return html`${first > 0 ? html`<p class="note">${counted(first, "earlier message")} of this context are in its text document.</p>` : undefined}
${systemPromptAddition ? block("speaker-added", "Added to the system prompt", systemPromptAddition) : undefined}
${messages.slice(first).map((message) => {
  const { speaker, text: said } = spoken(message);
  const ours = made(said);
  return ours === undefined ? block(`speaker-${speaker}`, speaker, said) : block(`made kind-${ours.kind}`, ours.name, ours.text);
})}
${userMessageAppend ? block("speaker-added", "Added to the user's message", userMessageAppend) : undefined}
${messages.length === 0 ? html`<p class="note">Nothing is sent.</p>` : undefined}`;
}

function block(look: string, heading: string, said: string): Html {
  const shown = said.length > MOST ? `${said.slice(0, MOST)}\n… (${counted(said.length - MOST, "character")} more)` : said;
  const body =
    shown.length > FOLDED
      ? html`<pre>${shown.slice(0, FOLDED)}</pre><details><summary>${counted(shown.length - FOLDED, "character")} more</summary><pre>${shown.slice(FOLDED)}</pre></details>`
      : html`<pre>${shown}</pre>`;
  return html`<article class="message ${look}"><h2>${heading}</h2>${body}</article>`;
}

function decisions({ decisions: all, injected }: Preview, openings: Openings): Html {
  const first = Math.max(0, all.length - MOST_ROWS);
  return html`${injections(injected)}
<table><thead><tr><th>Turn</th><th>Message</th><th>What became of it</th><th class="count">Tokens</th><th>Why</th></tr></thead><tbody>
${all.slice(first).map(
  ({ turnId, messageId, decision, tokens, reason }) =>
    html`<tr><td>${turnId}</td><td title="${messageId}">${said(openings.get(messageId), messageId)}</td><td><span class="badge badge-${decision}">${decision}</span></td><td class="count">${grouped(tokens)}</td><td>${reason}</td></tr>`,
)}
</tbody></table>
${first > 0 ? html`<p class="note">${counted(first, "earlier message")} not listed.</p>` : undefined}`;
}

/** How a message begins; its id where its text is not known. */
function said(opening: Spoken | undefined, messageId: string): Html {
  return opening === undefined ? html`${messageId}` : html`<span class="speaker speaker-${opening.speaker}">${opening.speaker}</span> ${opening.text}`;
}

function injections(injected: Preview["injected"]): Html | undefined {
  if (injected.length === 0) return undefined;
  return html`<table><thead><tr><th>Injected by</th><th>When</th><th class="count">Tokens</th><th>Text</th></tr></thead><tbody>
${injected.map(({ pluginName, injectionPoint, tokens, content }) => html`<tr><td>${pluginName}</td><td>${injectionPoint}</td><td class="count">${grouped(tokens)}</td><td><pre>${content}</pre></td></tr>`)}
</tbody></table>`;
}
