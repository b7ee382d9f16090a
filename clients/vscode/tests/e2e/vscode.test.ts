/** The packaged extension in a real editor, with a real sidecar, beside a real agent on the same store. */

import assert from "node:assert/strict";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test as run } from "node:test";
import { Agent, EXAMPLE, messagesOf, turnsOf } from "./agent.js";
import { programs } from "./install.js";
import { failure, picture } from "./pictures.js";
import { openStage } from "./stage.js";
import type { Stage } from "./stage.js";
import { Workbench } from "./workbench.js";

/** A transcript of one's own; pictures are made of the example only. */
const TRANSCRIPT = process.env["TRANSCRIPT"] || EXAMPLE;
const OWN = TRANSCRIPT === EXAMPLE;
const SESSION = "one-hour-early";
const ODD = "odd/../name?#%41 <b>&";
const ODD_NAME = "潮汐表 北京时间";

let stage: Stage;
let bench: Workbench;
let agent: Agent;

before(async () => {
  stage = await openStage(await programs(), async (stateDir, workspace) => {
    const other = new Agent(stateDir, "default");
    await other.begin(ODD, ODD_NAME, "default");
    await other.turn([
      { role: "user", content: "请解释 <script>alert(1)</script> 潮汐" },
      { role: "assistant", content: "潮汐由月球和太阳的引力引起。" },
    ]);
    await other.close();
    const claude = new Agent(stateDir, "default", "anthropic");
    await claude.begin("station-list", undefined, "default");
    await claude.turn([
      { role: "user", content: "Which stations are there?" },
      { role: "assistant", content: [{ type: "text", text: "Husum and Cuxhaven." }] },
    ]);
    await claude.close();
    agent = new Agent(stateDir);
    await agent.begin(SESSION, undefined, "lossless");
    for (const turn of turnsOf(messagesOf(EXAMPLE))) await agent.turn(turn);
    await agent.compact(6_000);
    await cp(TRANSCRIPT, join(workspace, "transcript.jsonl"));
  });
  bench = new Workbench(stage.page);
});

after(async () => {
  await agent?.close();
  await stage?.close();
});

/** A test that leaves a picture of the editor where it fails. */
const test = (name: string, work: () => Promise<void>) =>
  run(name, async () => {
    try {
      await work();
    } catch (error) {
      await failure(stage.page, name);
      throw error;
    }
  });

const shot = (name: string) => (OWN ? picture(stage.page, name) : Promise.resolve());

test("the view lists the sessions of the agent, whatever their names and dialects are", async () => {
  await bench.openView();
  for (const name of [SESSION, ODD_NAME, "station-list"]) await bench.row(name).waitFor();
});

test("a session unfolds to its summaries and its turns, a turn to its messages", async () => {
  await bench.unfold(SESSION);
  await bench.unfold("Summaries");
  await bench.unfold(/^t3/);
  await bench.row("把命令行的帮助文字").waitFor();
});

test("the status item tells how full the window of the session is", async () => {
  await bench.row(SESSION).click();
  await bench.says(bench.status, /one-hour-early.*\d+ % of 8k/);
  await bench.unfold(SESSION);
});

test("the panel shows the context of a turn, as a bar and as text", async () => {
  const turn = bench.row(/^t10/);
  await turn.click();
  await bench.menu(turn, "Show What the Model Sees");
  await bench.panel.locator("h1", { hasText: "turn t10" }).waitFor();
  assert.ok((await bench.panel.locator(".bar rect").count()) > 1, "the bar has several kinds");
  await bench.panel.locator(".speaker-user", { hasText: "machine-readable" }).waitFor();
  await shot("panel-dark");
  await bench.panel.locator("button", { hasText: "What became of each message" }).click();
  await bench.panel.locator(".badge-summarised").first().waitFor();
  await shot("decisions-dark");
  await bench.panel.locator("button", { hasText: "Earlier turn" }).click();
  await bench.panel.locator("h1", { hasText: "turn t9" }).waitFor();
  await bench.panel.locator("button", { hasText: "What the model sees" }).click();
});

test("the panel runs nothing of what a message says, and loads nothing", async () => {
  const row = bench.row(ODD_NAME);
  await bench.menu(row, "Show What the Model Sees");
  await bench.panel.locator(".speaker-user pre", { hasText: "<script>alert(1)</script>" }).waitFor();
  assert.equal(await bench.panel.locator("script", { hasText: "alert" }).count(), 0);
  const policy = await bench.panel.locator('meta[http-equiv="Content-Security-Policy"]').getAttribute("content");
  assert.match(policy ?? "", /^default-src 'none'; style-src 'nonce-\w+'; script-src 'nonce-\w+'$/);
});

test("a session of another dialect has a context too", async () => {
  await bench.menu(bench.row("station-list"), "Show What the Model Sees");
  await bench.panel.locator(".speaker-assistant pre", { hasText: "Husum and Cuxhaven." }).waitFor();
});

test("the contexts of two turns are compared", async () => {
  await bench.menu(bench.row(/^t4/), "Compare What the Model Sees");
  await bench.pick("t12");
  await bench.tab("t4 ↔ t12").waitFor();
  await bench.says(bench.page.locator(".diff-editor, .monaco-diff-editor").first(), /of 8,000 tokens/);
  await shot("diff-dark");
});
