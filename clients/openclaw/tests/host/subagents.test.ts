/** Subagents in a real OpenClaw: every test goes on where the one before has ended. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertOnce, assertPaired, doctor, gone, storedSessions, textOf, until } from "context-sidecar-testing";
import type { ChatRequest } from "context-sidecar-testing";
import { conversation, KEY, REPLY, Story } from "./story.js";

const CHILD = /^agent:main:subagent:/;
const SAID = "The mineral of the day is chrysoprase.";

let story: Story;

before(async () => {
  story = await Story.begin();
  await story.turn(SAID);
});

after(() => story?.end());

test("a subagent has a history of its own, and its parent goes on with theirs", async () => {
  const task = "First task of a child: name three stones.";
  const [request] = await spawned(task, "isolated");
  assert.ok(!conversation(request).includes(SAID));
  assert.match(JSON.stringify(childCommits()), /name three stones/);
  story.assertWhole((await story.turn("Parent goes on."))[0], SAID, "Spawn a child, isolated.");
});

test("a subagent that is forked begins with the history of its parent, once", async () => {
  const task = "Second task of a child: which mineral was it?";
  const [request] = await spawned(task, "fork");
  const shown = conversation(request);
  assertOnce([SAID, "Parent goes on."], shown);
  assert.ok(shown.includes(SAID), `not in the prompt of the child: ${shown.join("\n")}`);
  assertPaired(request);
  story.assertWhole((await story.turn("Parent goes on again."))[0], SAID, "Spawn a child, fork.");
});

test("the sidecar had an answer to everything that concerns subagents", () => {
  const spawns = story.tap.answersTo("subagent/prepareSpawn");
  assert.deepEqual(story.tap.asked("subagent/prepareSpawn").map(({ contextMode }) => contextMode), ["isolated", "fork"]);
  for (const method of ["subagent/prepareSpawn", "subagent/ended", "subagent/rollbackSpawn", "context/commitTurn"]) {
    assert.deepEqual(story.tap.answersTo(method).filter(({ error }) => error !== undefined), [], method);
  }
  assert.ok(spawns.every(({ result }) => typeof result?.["preparationId"] === "string"), JSON.stringify(spawns));
  assert.deepEqual(story.fellBack, []);
});

test("in the end the history of the parent is stored once and in order, and the doctor is content", async () => {
  const { pid } = story.tap;
  await story.gateway.stop();
  await gone(pid);
  doctor(story.stateDir, "openclaw");
  const sessions = (await storedSessions(story.stateDir, "openclaw")).filter(({ sessionKey }) => sessionKey === KEY);
  const stored = (sessions[0]?.messages ?? []).map(({ message }) => message as { role?: string; content?: unknown });
  const users = stored.filter(({ role }) => role === "user").map((message) => textOf(message));
  assert.deepEqual(users.filter((text) => story.said.includes(text)), story.said);
});

/** Has the parent spawn a child; the requests of the child, once it has ended. */
async function spawned(task: string, context: "isolated" | "fork"): Promise<ChatRequest[]> {
  const first = story.model.requests.length;
  const ended = story.tap.answersTo("subagent/ended").length;
  const committed = childCommits().length;
  let called = false;
  await story.turn(`Spawn a child, ${context}.`, (request) => {
    if (isChild(request, task)) return { say: "CHILD DONE" };
    if (called) return { say: REPLY };
    called = true;
    return { call: "sessions_spawn", with: { task, context } };
  });
  await until(() => childCommits().length > committed, "the child's turn to be stored");
  await until(() => story.tap.answersTo("subagent/ended").length > ended, "the end of the child to be told");
  return story.model.requests.slice(first).filter((request) => isChild(request, task));
}

/** A request of the child has its task as what the user says last; the parent has it in a call at most. */
function isChild(request: ChatRequest, task: string): boolean {
  return conversation(request).some((text) => text.includes(task));
}

/** Turns that were committed to sessions of subagents. */
function childCommits(): Record<string, unknown>[] {
  return story.tap.asked("context/commitTurn").filter(({ sessionKey }) => CHILD.test(String(sessionKey)));
}
