/** The commands that change or keep something. */

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { EXAMPLE } from "../agent.js";
import { ANTHROPIC, SESSION } from "../scene.js";
import type { Scene } from "../scene.js";

export function steering(scene: Scene): void {
  scene.test("the message under the cursor is pinned, and unpinned in the view", async () => {
    const { bench } = scene;
    await bench.command("Context: Pin Message");
    await bench.unfold(SESSION);
    await bench.unfold("Pinned");
    const pinned = bench.row(/^message /);
    await pinned.waitFor();
    await bench.menu(pinned, "Unpin");
    await bench.row("Pinned").waitFor({ state: "detached" });
    await bench.closeAll();
  });

  scene.test("a session is compacted", async () => {
    const { bench } = scene;
    await bench.menu(bench.row(SESSION), "Compact Session");
    await bench.notice(/one-hour-early was (not )?compacted/).waitFor();
    await bench.dismissNotices();
  });

  scene.test("a session gets another engine", async () => {
    const { bench } = scene;
    await bench.menu(bench.row(ANTHROPIC), "Switch Engine");
    await bench.pick("sliding-window");
    await bench.notice("served by the engine sliding-window").waitFor();
    await bench.row(/station-list.*sliding-window/).waitFor();
    await bench.dismissNotices();
  });

  scene.test("a session is exported word for word", async () => {
    const { bench, stage } = scene;
    const target = join(stage.workspace, `${SESSION}.jsonl`);
    await bench.menu(bench.row(SESSION), "Export Session");
    await bench.holds(target);
    await bench.page.keyboard.press("Enter");
    await bench.notice("was exported").waitFor();
    const read = async (path: string) => (await readFile(path, "utf8")).trim().split("\n").map((line) => JSON.parse(line) as unknown);
    assert.deepEqual(await read(target), await read(EXAMPLE));
    await bench.dismissNotices();
  });

  scene.test("the doctor tells how the sidecar is", async () => {
    const { bench } = scene;
    await bench.command("Context: Doctor");
    await bench.tab("Context Doctor").waitFor();
    await bench.says(bench.lines, /Everything is well|Something has to be done/);
    await bench.closeAll();
  });
}
