/** The packaged extension in a real editor, with a real sidecar, beside a real agent on the same store. */

import { cp } from "node:fs/promises";
import { join } from "node:path";
import { after, before } from "node:test";
import { Agent, EXAMPLE, messagesOf, turnsOf } from "./agent.js";
import { programs } from "./install.js";
import { ANTHROPIC, ODD, ODD_NAME, Scene, SESSION } from "./scene.js";
import { following } from "./scenes/following.js";
import { looking } from "./scenes/looking.js";
import { reading } from "./scenes/reading.js";
import { steering } from "./scenes/steering.js";
import { openStage } from "./stage.js";
import { Workbench } from "./workbench.js";

/** A transcript of one's own; pictures are made of the example only. */
const TRANSCRIPT = process.env["TRANSCRIPT"] || EXAMPLE;

const scene = new Scene(TRANSCRIPT === EXAMPLE);

before(async () => {
  scene.stage = await openStage(await programs(), async (stateDir, workspace) => {
    const other = new Agent(stateDir, ODD, { sessionKey: ODD_NAME });
    await other.turn([
      { role: "user", content: "请解释 <script>alert(1)</script> 潮汐" },
      { role: "assistant", content: "潮汐由月球和太阳的引力引起。" },
    ]);
    await other.close();
    const claude = new Agent(stateDir, ANTHROPIC, { messageFormat: "anthropic" });
    await claude.turn([
      { role: "user", content: "Which stations are there?" },
      { role: "assistant", content: [{ type: "text", text: "Husum and Cuxhaven." }] },
    ]);
    await claude.close();
    scene.agent = new Agent(stateDir, SESSION, { engine: "lossless" });
    for (const turn of turnsOf(messagesOf(EXAMPLE))) await scene.agent.turn(turn);
    await scene.agent.compact(6_000);
    await cp(TRANSCRIPT, join(workspace, "transcript.jsonl"));
  });
  scene.bench = new Workbench(scene.stage.page);
});

after(async () => {
  await scene.agent?.close();
  await scene.stage?.close();
});

looking(scene);
reading(scene);
steering(scene);
following(scene);
