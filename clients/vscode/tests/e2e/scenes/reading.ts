/** Transcripts and sessions as documents. */

import { SESSION } from "../scene.js";
import type { Scene } from "../scene.js";

export function reading(scene: Scene): void {
  scene.test("a transcript has a lens above each turn, which opens what the model sees", async () => {
    const { bench } = scene;
    await bench.openFile(scene.transcript);
    const lens = await bench.firstLens();
    await scene.picture("transcript-dark");
    await lens.click();
    await bench.panel.locator("h1", { hasText: /transcript\.jsonl, turn t\d+/ }).waitFor();
    await bench.panel.locator(".about", { hasText: "not stored" }).waitFor();
    await bench.closeAll();
  });

  scene.test("a message of a transcript tells its tokens where one points at it", async () => {
    const { bench } = scene;
    await bench.openFile(scene.transcript);
    const place = await (await bench.firstLens()).boundingBox();
    await bench.page.mouse.move((place?.x ?? 0) + 60, (place?.y ?? 0) + (place?.height ?? 0) + 10);
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
    await bench.says(bench.page.locator(".statusbar-item", { hasText: /selected/ }), /\(19 selected\)/);
    await bench.page.locator(".editor-instance .selected-text").first().waitFor();
  });
}
