/** Shows what the sidecar says of its own health. */

import type { DoctorEngineResult } from "context-sidecar-client";
import type { Action } from "./surface.js";

/** Asks the sidecar, and shows the answer as a document. */
export const doctor: Action = async ({ sidecars, texts }) => {
  await texts.show("Context Doctor", report(await sidecars.request("engine/doctor", {})), "markdown");
};

/** The answer as Markdown. */
export function report({ ok, checks }: DoctorEngineResult): string {
  const lines = [ok ? "# Everything is well" : "# Something has to be done", ""];
  for (const { ok: well, name, message, fix } of checks) {
    lines.push(`- ${well ? "✓" : "✗"} **${name}**: ${message}`);
    if (!well && fix) lines.push(`  What to do: ${fix}`);
  }
  return `${lines.join("\n")}\n`;
}
