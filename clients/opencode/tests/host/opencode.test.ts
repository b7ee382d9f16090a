/** The plugin inside the real opencode, whose model says what the script says. */

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import {
  assertPaired,
  gone,
  ScriptedModel,
  sizeOf,
  storedSessions,
  textOf,
  texts,
  toolOnce,
  toolResults,
  until,
} from "context-sidecar-testing";
import type { ChatRequest, Reply } from "context-sidecar-testing";
import { Opencode } from "./opencode.js";

const TURNS = 40;
const BUDGET = 6_000;
const QUESTION = /^Question (\d+)\?/;
const SUMMARY = /\[ctx:summary:\S+\]/;

const model = new ScriptedModel();
let modelUrl = "";
let folder = "";
let opencode: Opencode;

before(async () => {
  modelUrl = await model.listen();
});

beforeEach(async () => {
  await opencode?.stop();
  if (folder) await rm(folder, { recursive: true, force: true });
  folder = await mkdtemp(join(tmpdir(), "context-sidecar-opencode-"));
  model.requests.length = 0;
});

after(async () => {
  await opencode?.stop();
  model.close();
  await rm(folder, { recursive: true, force: true });
});

/** Requests of the conversation; others, such as those for a title, have no tools. */
function calls(): ChatRequest[] {
  return model.requests.filter(({ tools }) => tools !== undefined);
}

/** Reads two files after each prompt, then answers; in one turn looks up what was said first. */
function walking(request: ChatRequest): Reply {
  if (request.tools === undefined) return { say: "A walk" };
  // What was recalled may follow the question, and hold older ones.
  const asked = request.messages.findLastIndex((message) => message.role === "user" && QUESTION.test(textOf(message)));
  const turn = Number(QUESTION.exec(textOf(request.messages[asked] ?? {}))?.[1]);
  const done = request.messages.slice(asked).filter(({ role }) => role === "tool").length;
  if (done < 2) return { call: "read", with: { filePath: opencode.path(`place-${done}.txt`) } };
  if (turn === 30 && done === 2) return { call: "context_search", with: { mode: "search", query: "the first heron" } };
  return { say: `Done with ${turn}.` };
}

async function stored(): Promise<Record<string, number>> {
  const sessions = await storedSessions(join(folder, "state"), "opencode");
  return Object.fromEntries(sessions.map(({ sessionId, messages }) => [sessionId, messages.length]));
}

test("forty turns past the budget, with a sidecar that is killed and an opencode that is started again", async () => {
  opencode = await Opencode.configure(folder, modelUrl, { tokenBudget: BUDGET });
  for (const number of [0, 1]) await writeFile(opencode.path(`place-${number}.txt`), `place ${number}: ${"grass and stones ".repeat(60)}\n`);
  await opencode.start();
  model.script = walking;
  const session = await opencode.session();
  for (let turn = 0; turn < TURNS; turn += 1) {
    if (turn === 20) process.kill(opencode.tap.pid, "SIGKILL");
    if (turn === 35) {
      await opencode.stop();
      await gone(opencode.tap.pid);
      await opencode.start();
    }
    const heron = turn === 0 ? " I saw the first heron of the year in Bergen." : "";
    assert.equal(await opencode.prompt(session, `Question ${turn}?${heron}`), `Done with ${turn}.`);
  }
  assert.equal(calls().length, 3 * TURNS + 1);
  for (const request of calls()) {
    assertPaired(request);
    // Four characters to a token, and the JSON around them; everything would be 120,000 at the end.
    assert.ok(sizeOf(request) < 7 * BUDGET, `${sizeOf(request)} characters`);
  }
  assert.ok(texts(calls().at(-1)).some((text) => SUMMARY.test(text)), "no summary after the restart");
  const whole = await opencode.messages(session);
  assert.equal(whole.filter(({ info }) => info.role === "user").length, TURNS);
  const tools = whole.flatMap(({ parts }) => parts.filter(({ type }) => type === "tool"));
  assert.equal(tools.length, 2 * TURNS + 1);
  assert.ok(tools.filter(({ tool }) => tool === "read").every(({ state }) => state?.output?.includes("grass and stones")));
  const [found] = tools.filter(({ tool }) => tool === "context_search");
  assert.equal(found?.state?.status, "completed", found?.state?.error);
  assert.match(found?.state?.output ?? "", /Bergen/);
  assert.ok(!JSON.stringify(whole).includes("[ctx:summary"), "the summary is in opencode's own history");
  const kept = () => JSON.stringify(opencode.tap.asked("context/commitTurn").at(-1)).includes(`Done with ${TURNS - 1}.`);
  await until(kept, "the last turn to be kept");
  await opencode.stop();
  assert.deepEqual(await stored(), { [session]: 6 * TURNS + 2 });
});

test("a subagent has a session of its own, two sessions are kept apart, and what opencode deletes is erased", async () => {
  opencode = await Opencode.configure(folder, modelUrl);
  await opencode.start();
  const sessions = [await opencode.session(), await opencode.session()];
  const delegate = { description: "Look", prompt: "Look around.", subagent_type: "general" };
  const once = toolOnce("task", delegate, "It is done.");
  model.script = (request) => {
    const asked = request.messages.findLast(({ role }) => role === "user");
    return textOf(asked ?? {}).includes("Delegate") ? once(request) : { say: "Grass and stones." };
  };
  const [parent, other] = sessions as [string, string];
  await Promise.all([opencode.prompt(parent, "Delegate it."), opencode.prompt(other, "Hello?")]);
  await until(() => opencode.tap.answersTo("context/commitTurn").length >= 3, "the turns to be kept");
  await until(() => opencode.tap.answersTo("subagent/ended").length >= 1, "the subagent to end");
  const [spawn] = opencode.tap.asked("subagent/prepareSpawn");
  const child = String(spawn?.["childSessionId"]);
  assert.equal(spawn?.["parentSessionId"], parent);
  assert.deepEqual(await stored(), { [parent]: 4, [other]: 2, [child]: 2 });
  assert.ok(calls().every((request) => !texts(request).some((text) => text.includes("Delegate")) || !texts(request).includes("Hello?")));
  await opencode.erase(other);
  await until(() => opencode.tap.answersTo("session/delete").length >= 1, "the session to be erased");
  await opencode.stop();
  assert.deepEqual(await stored(), { [parent]: 4, [child]: 2 });
});

test("without a sidecar opencode goes on", async () => {
  opencode = await Opencode.configure(folder, modelUrl, { command: ["/no/such/program"] });
  await opencode.start();
  model.script = () => ({ say: "ok" });
  const session = await opencode.session();
  for (const said of ["One?", "Two?"]) assert.equal(await opencode.prompt(session, said), "ok");
  assert.deepEqual(texts(calls().at(-1)), ["One?", "ok", "Two?"]);
  assert.equal(toolResults(calls().at(-1)).length, 0);
  assert.match(opencode.errors, /context-sidecar: the turn goes on with opencode's own context/);
});
