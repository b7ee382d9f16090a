/** Transcripts and sessions as documents. */

import { SESSION } from "../scene.js";
import type { Scene } from "../scene.js";

export function reading(scene: Scene): void {
  scene.test("a transcript has a lens above each turn, which opens what the model sees", async () => {
    const { bench } = scene;
    await bench.openFile(scene.transcript);
    const lens = bench.page.locator(".codelens-decoration a", { hasText: /^t1: / }).first();
    await lens.waitFor();
    await scene.picture("transcript-dark");
    await lens.click();
    await bench.panel.locator("h1", { hasText: "transcript.jsonl, turn t1" }).waitFor();
    await bench.panel.locator(".about", { hasText: "not stored" }).waitFor();
    await bench.closeAll();
  });

  scene.test("a message of a transcript tells its tokens where one points at it", async () => {
    const { bench } = scene;
    await bench.openFile(scene.transcript);
    await bench.page.locator(".codelens-decoration a").first().waitFor();
    const line = bench.page.locator(".editor-instance .view-line").first();
    await line.hover({ position: { x: 60, y: 8 } });
    await bench.says(bench.page.locator(".monaco-hover:visible").first(), /tokens/);
    await bench.closeAll();
  });

  scene.test("a search finds messages while one types, and opens the session there", async () => {
    const { bench } = scene;
    await bench.command("Context: Search Sessions");
    await bench.input.fill("clocks went forward");
    const found = bench.picks.filter({ hasText: "one-hour-early · message" }).first();
    await found.waitFor();
    await scene.picture("search-dark");
    await found.click();
    await bench.tab(SESSION).waitFor();
    await bench.says(bench.lines, /asks for the offset of the zone once/);
  });
}
