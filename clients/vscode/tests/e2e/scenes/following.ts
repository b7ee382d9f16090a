/** What happens beside the editor: an agent goes on, a process dies, the program is not there, the theme is another one. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { kill } from "node:process";
import { COMMAND } from "../agent.js";
import { SESSION } from "../scene.js";
import type { Scene } from "../scene.js";

export function following(scene: Scene): void {
  scene.test("what an agent adds appears while one looks", async () => {
    const { bench, agent } = scene;
    await bench.foldAll();
    await bench.unfold(SESSION);
    await bench.menu(bench.row(SESSION), "Show What the Model Sees");
    await bench.panel.locator("h1", { hasText: `${SESSION}, now` }).waitFor();
    const before = await bench.status.textContent();
    await agent.turn([
      { role: "user", content: "And what about Helgoland?" },
      { role: "assistant", content: `Helgoland is not in the table of stations. ${"The harbour is small. ".repeat(200)}` },
    ]);
    await bench.row(/^t13/).waitFor();
    await bench.panel.locator(".speaker-user", { hasText: "And what about Helgoland?" }).waitFor();
    await bench.changes(bench.status, before);
    await bench.closeAll();
  });

  scene.test("a sidecar that is killed is started again, and the view goes on", async () => {
    const { bench, stage, agent } = scene;
    for (const pid of stage.sidecars()) kill(pid, "SIGKILL");
    await agent.turn([{ role: "user", content: "Thank you." }, { role: "assistant", content: "Gladly." }]);
    await bench.unfold(SESSION);
    await bench.row("Thank you.").waitFor();
  });

  scene.test("without the program, the editor says how to get it, and goes on once it is there", async () => {
    const { bench, stage } = scene;
    const program = join(stage.folder, "context-sidecar");
    await stage.reopen({ "contextSidecar.command": program });
    await bench.says(bench.status, /not installed/);
    await bench.notice("uv tool install").waitFor();
    const welcome = bench.page.locator(".welcome-view");
    await welcome.getByText("is not installed").waitFor();
    await scene.picture("missing-dark");
    await bench.dismissNotices();
    await welcome.getByText("How to Install").click();
    await bench.picks.filter({ hasText: "pipx install" }).first().waitFor();
    await bench.page.keyboard.press("Escape");
    await writeFile(program, `#!/bin/sh\nexec ${COMMAND.map((part) => `'${part}'`).join(" ")}\n`, { mode: 0o755 });
    await welcome.getByText("Try Again").click();
    await bench.row(SESSION).waitFor();
  });

  scene.test("everything can be read on a light ground too", async () => {
    const { bench, stage } = scene;
    await stage.reopen({ "workbench.colorTheme": "Default Light Modern" });
    await bench.page.locator(".monaco-workbench.vs").waitFor();
    await bench.unfold(SESSION);
    await bench.menu(bench.row(SESSION), "Show What the Model Sees");
    await bench.panel.locator("h1", { hasText: `${SESSION}, now` }).waitFor();
    await scene.picture("panel-light");
    await bench.panel.locator("button", { hasText: "What became of each message" }).click();
    await bench.panel.locator(".badge-summarised").first().waitFor();
  });
}
