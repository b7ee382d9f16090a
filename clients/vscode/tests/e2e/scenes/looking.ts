/** The view, the status item, the panel, the comparison. */

import assert from "node:assert/strict";
import { ANTHROPIC, ODD_NAME, SESSION } from "../scene.js";
import type { Scene } from "../scene.js";

const TEXT = "What the model sees";
const DECISIONS = "What became of each message";

export function looking(scene: Scene): void {
  scene.test("the view lists the sessions of the agent, whatever their names and dialects are", async () => {
    await scene.bench.openView();
    for (const name of [SESSION, ODD_NAME, ANTHROPIC]) await scene.bench.row(name).waitFor();
  });

  scene.test("a session unfolds to its summaries and its turns, a turn to its messages", async () => {
    const { bench } = scene;
    await bench.unfold(SESSION);
    await bench.unfold("Summaries");
    await bench.unfold(/^t11/);
    await bench.row("CHANGELOG.md").waitFor();
  });

  scene.test("the panel shows the context of a turn, as a bar and as text", async () => {
    const { bench } = scene;
    await bench.menu(bench.row(/^t11/), "Show What the Model Sees");
    await bench.panel.locator("h1", { hasText: "turn t11" }).waitFor();
    assert.ok((await bench.panel.locator(".bar rect").count()) > 1, "the bar has several kinds");
    await bench.panel.locator("article.speaker-user", { hasText: "Please add it" }).waitFor();
    await bench.panel.locator("article.kind-summary h2", { hasText: "summary of earlier messages" }).first().waitFor();
    assert.equal(await bench.panel.locator("article", { hasText: "[ctx:" }).count(), 0);
    await scene.picture("panel-dark");
  });

  scene.test("the panel tells what became of each message, and goes from turn to turn", async () => {
    const { bench } = scene;
    await bench.panel.locator("button", { hasText: DECISIONS }).click();
    await bench.panel.locator("tr", { has: bench.panel.locator(".badge-summarised"), hasText: /user|assistant|tool/ }).first().waitFor();
    await bench.panel.locator("td .speaker-user").first().waitFor();
    await scene.picture("decisions-dark");
    await bench.panel.locator("button", { hasText: "Earlier turn" }).click();
    await bench.panel.locator("h1", { hasText: "turn t10" }).waitFor();
    await bench.panel.locator("button", { hasText: TEXT }).click();
    await bench.panel.locator("article.speaker-user", { hasText: "machine-readable" }).waitFor();
  });

  scene.test("the contexts of two turns are compared", async () => {
    const { bench } = scene;
    await bench.menu(bench.row(/^t6/), "Compare What the Model Sees");
    await bench.pick("t11");
    await bench.tab("t6 ↔ t11").waitFor();
    await bench.says(bench.page.locator(".monaco-diff-editor").first(), /of 8,000 tokens/);
    await scene.picture("diff-dark");
  });

  scene.test("the status item tells how full the window of the session is", async () => {
    const { bench } = scene;
    await bench.foldAll();
    await bench.row(SESSION).click();
    await bench.says(bench.status, /one-hour-early t\d+ .*\d+ % of 8k/);
    await bench.status.hover();
    await bench.says(bench.page.locator(".monaco-hover:visible").last(), /would be sent now, up to turn t\d+.*recent messages/s);
    await scene.picture("status-dark", true);
  });

  scene.test("the panel runs nothing of what a message says, and loads nothing", async () => {
    const { bench } = scene;
    await bench.foldAll();
    await bench.menu(bench.row(ODD_NAME), "Show What the Model Sees");
    await bench.panel.locator(".speaker-user pre", { hasText: "<script>alert(1)</script>" }).waitFor();
    assert.equal(await bench.panel.locator("script", { hasText: "alert" }).count(), 0);
    const policy = await bench.panel.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute("content");
    assert.match(policy ?? "", /^default-src 'none'; style-src 'nonce-\w+'; script-src 'nonce-\w+'$/);
  });

  scene.test("a session of another dialect has a context too", async () => {
    const { bench } = scene;
    await bench.menu(bench.row(ANTHROPIC), "Show What the Model Sees");
    await bench.panel.locator(".speaker-assistant pre", { hasText: "Husum and Cuxhaven." }).waitFor();
    await bench.closeAll();
  });
}
