/** The style sheet of the panel, in the colours of the editor's theme. */

import { KINDS } from "../reading/composition.js";

const KIND_COLOURS = Object.keys(KINDS)
  .map((kind) => `.kind-${kind} { --kind: var(--vscode-contextSidecar-${kind}); }`)
  .join("\n");

export const STYLES = `
:root { color-scheme: light dark; }
body { padding: 0 24px 48px; max-width: 1100px; line-height: 1.5; }
header { position: sticky; top: 0; z-index: 1; padding: 16px 0 12px; background: var(--vscode-editor-background);
  border-bottom: 1px solid var(--vscode-widget-border, var(--vscode-contrastBorder, transparent)); }
h1 { font-size: 1.35em; font-weight: 600; margin: 0; overflow-wrap: anywhere; }
.about { color: var(--vscode-descriptionForeground); margin: 2px 0 12px; overflow-wrap: anywhere; }
.fill { display: flex; align-items: baseline; gap: 8px; margin-bottom: 6px; }
.fill strong { font-size: 1.6em; font-weight: 600; }
.bar { display: flex; height: 16px; border-radius: 8px; overflow: hidden;
  background: color-mix(in srgb, var(--vscode-foreground) 12%, transparent);
  outline: 1px solid var(--vscode-contrastBorder, transparent); }
.bar svg { display: block; width: 100%; height: 100%; }
.bar rect { fill: var(--kind); }
.legend { display: flex; flex-wrap: wrap; gap: 4px 20px; list-style: none; margin: 10px 0 0; padding: 0; }
.legend .swatch { display: inline-block; width: 10px; height: 10px; border-radius: 3px; background: var(--kind); margin-right: 6px; }
.legend .free { --kind: color-mix(in srgb, var(--vscode-foreground) 22%, transparent); }
.legend .tokens { color: var(--vscode-descriptionForeground); }
nav { display: flex; gap: 4px; margin: 16px 0 0; }
nav button, .turns button { font: inherit; color: inherit; background: none; border: 1px solid transparent; border-radius: 4px;
  padding: 4px 12px; cursor: pointer; }
nav button:hover, .turns button:hover { background: var(--vscode-toolbar-hoverBackground); }
nav button[aria-selected="true"] { background: var(--vscode-button-secondaryBackground); color: var(--vscode-button-secondaryForeground);
  border-color: var(--vscode-contrastBorder, transparent); }
button:focus-visible, summary:focus-visible { outline: 1px solid var(--vscode-focusBorder); outline-offset: 1px; }
.turns { display: flex; align-items: center; gap: 4px; float: right; }
.turns button { padding: 2px 8px; }
.turns button:disabled { opacity: 0.4; cursor: default; background: none; }
.message { margin: 16px 0 0; border-left: 3px solid var(--role); padding: 2px 0 2px 14px; }
.message h2 { font-size: 0.85em; font-weight: 600; margin: 0 0 2px; color: var(--role); }
pre { margin: 0; white-space: pre-wrap; overflow-wrap: anywhere; font-family: var(--vscode-editor-font-family); font-size: var(--vscode-editor-font-size); }
.message { --role: var(--vscode-descriptionForeground); }
.made { --role: var(--kind); }
.speaker { color: var(--role); font-weight: 600; }
.speaker-system, .speaker-added { --role: var(--vscode-contextSidecar-memory); }
.speaker-user { --role: var(--vscode-contextSidecar-recent); }
.speaker-assistant { --role: var(--vscode-contextSidecar-recall); }
.speaker-tool { --role: var(--vscode-contextSidecar-system); }
details summary { cursor: pointer; color: var(--vscode-textLink-foreground); margin-top: 4px; }
table { border-collapse: collapse; width: 100%; margin-top: 16px; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--vscode-descriptionForeground); }
td { overflow-wrap: anywhere; }
th, td { padding: 4px 12px 4px 0; vertical-align: top; border-bottom: 1px solid var(--vscode-widget-border, var(--vscode-contrastBorder, transparent)); }
td.count, th.count { text-align: right; white-space: nowrap; }
.badge { display: inline-block; border-radius: 10px; padding: 0 9px; white-space: nowrap; border: 1px solid var(--badge); color: var(--badge); }
.badge-sent { --badge: var(--vscode-contextSidecar-recent); }
.badge-pinned { --badge: var(--vscode-contextSidecar-memory); }
.badge-summarised { --badge: var(--vscode-contextSidecar-summary); }
.badge-stubbed { --badge: var(--vscode-contextSidecar-system); }
.badge-dropped { --badge: var(--vscode-contextSidecar-activityLog); }
.note { color: var(--vscode-descriptionForeground); margin-top: 16px; }
[hidden] { display: none; }
${KIND_COLOURS}
`;
