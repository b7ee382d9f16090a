/** What becomes of a conversation in a real OpenClaw when processes die: every test goes on where the one before has ended. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { doctor, gone, processesOf, storedSessions, textOf, toolOnce, toolResults, until } from "context-sidecar-testing";
import { KEY, REPLY, Story } from "./story.js";

let story: Story;

before(async () => {
  story = await Story.begin({ engine: "full" });
});

after(() => story?.end());

test("a sidecar that is killed between two turns costs nothing", async () => {
  await story.turn("First message.");
  await story.turn("Second message.");
  const { pid } = story.tap;
  process.kill(pid, "SIGKILL");
  await gone(pid);
  const [request] = await story.turn("Third message, after the kill.");
  assert.notEqual(story.tap.pid, pid);
  story.assertWhole(request, "First message.", "Second message.");
  assert.deepEqual(story.fellBack, []);
});

test("a restart of the gateway ends the sidecar and loses nothing", async () => {
  await story.restart();
  const [request] = await story.turn("Fourth message, after the restart.");
  story.assertWhole(request, "Third message, after the kill.");
});

test("a sidecar that is killed in the middle of a turn costs nothing either", async () => {
  const recall = toolOnce("context_search", { mode: "search", query: "Second message" }, `${REPLY} in spite of all.`);
  const { pid } = story.tap;
  const requests = await story.turn("Fifth message, with a kill in its middle.", (request) => {
    if (story.tap.pid === pid) process.kill(pid, "SIGKILL");
    return recall(request);
  });
  assert.notEqual(story.tap.pid, pid);
  assert.equal(requests.length, 2);
  story.assertWhole(requests[1]);
  assert.match(textOf(toolResults(requests[1]).at(-1) ?? {}), /\[user t2\] Second message/);
  const [next] = await story.turn("Sixth message.");
  story.assertWhole(next, "Fifth message, with a kill in its middle.", `${REPLY} in spite of all.`);
  assert.deepEqual(story.fellBack, []);
});

test("a gateway that is killed takes the sidecar with it, and a new one has everything", async () => {
  const { pid } = story.tap;
  await story.gateway.kill();
  await gone(pid);
  await story.gateway.start();
  const [request] = await story.turn("Seventh message, to a new gateway.");
  story.assertWhole(request, ...story.said.slice(0, -1));
});

test("in the end everything is stored once and in order, nothing runs on, and the doctor is content", async () => {
  await story.gateway.stop();
  doctor(story.stateDir, "openclaw");
  const sessions = (await storedSessions(story.stateDir, "openclaw")).filter(({ sessionKey }) => sessionKey === KEY);
  assert.equal(sessions.length, 1);
  const stored = (sessions[0]?.messages ?? []).map(({ message }) => message as { role?: string; content?: unknown });
  assert.deepEqual(stored.filter(({ role }) => role === "user").map((message) => textOf(message)), story.said);
  if (process.platform === "linux") await until(() => processesOf(story.folder).length === 0, "all processes to end");
});
