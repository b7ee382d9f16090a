/** One story in a real OpenClaw: every test goes on where the one before has ended. */

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { assertPaired, doctor, gone, processesOf, sizeOf, storedSessions, textOf, toolCalls, toolOnce, toolResults, until } from "context-sidecar-testing";
import type { ChatMessage, ChatRequest } from "context-sidecar-testing";
import { asRequest, conversation, KEY, REPLY, Story, undecorated } from "./story.js";

const HEARTBEAT = "[OpenClaw heartbeat poll]";

let story: Story;

before(async () => {
  story = await Story.begin({ settings: { summaryTokens: 200 } });
});

after(() => story?.end());

test("the first turn reaches model and store", async () => {
  const [request] = await story.turn("The code word is heliotrope.");
  assert.deepEqual(conversation(request), ["The code word is heliotrope."]);
  await until(() => commits(KEY).length === 1, "the turn to be committed");
});

test("later turns show the model every earlier one, once and in order", async () => {
  await story.turn("Second message, about granite.");
  const [request] = await story.turn("Third message, about basalt.");
  const expected = story.said.flatMap((text, index) => [text, `${REPLY} (${index + 1}).`]).slice(0, -1);
  assert.deepEqual(conversation(request), expected);
});

test("a tool call and its result reach the model in the same turn and in the next one", async () => {
  const agents = toolOnce("agents_list", {}, `${REPLY} with agents.`);
  const requests = await story.turn("Fourth message: which agents are there?", agents);
  assert.equal(requests.length, 2);
  assert.equal(toolResults(requests[1]).length, 1);
  const [next] = await story.turn("Fifth message, after the tool.");
  assert.equal(toolResults(next).length, 1);
  assert.equal(toolCalls(next).length, 1);
  assertPaired(next);
});

test("the recall tool finds what was said earlier in this session", async () => {
  const recall = toolOnce("context_search", { mode: "search", query: "heliotrope" }, `${REPLY} with a code word.`);
  const requests = await story.turn("Sixth message: what was the code word?", recall);
  assert.ok(requests[0]?.tools?.some((tool) => tool.function.name === "context_search"));
  assert.match(JSON.stringify(toolResults(requests[1]).at(-1)), /\[user t1\] The code word is heliotrope/);
});

test("what the model gets is what the sidecar answered, tool calls and results as well", async () => {
  const [request] = await story.turn("Here everything is compared.");
  const answered = asRequest(story.tap.assembled().at(-1) ?? []);
  assert.ok(answered.length >= 16);
  assert.deepEqual(received(request), [...answered, { role: "user", text: "Here everything is compared.", calls: 0 }]);
  assert.deepEqual(story.fellBack, []);
});

test("no secret of the host reaches the sidecar", () => {
  assert.doesNotMatch(story.tap.sent, /secret-of-the/);
});

test("a heartbeat is stored as one and leaves the context", async () => {
  story.model.script = () => ({ say: "HEARTBEAT_OK" });
  const event = ["system", "event", "--text", "Wake up.", "--mode", "now", "--session-key", KEY];
  await story.gateway.command(event);
  await until(() => commits(KEY).some(({ isHeartbeat }) => isHeartbeat === true), "the heartbeat to be committed", 150_000);
  await story.turn("Seventh message, after the heartbeat.");
  const [request] = await story.turn("Eighth message, after a real turn.");
  story.assertWhole(request, "Sixth message: what was the code word?", "Seventh message, after the heartbeat.");
  assert.ok(!JSON.stringify(request?.messages.slice(1)).includes(HEARTBEAT));
});

test("compaction by hand is answered, and its summary takes the place of old turns", async () => {
  for (const stone of ["gneiss", "schist", "marble"]) await story.turn(`About ${stone}: ${"word ".repeat(4000)}`);
  const before = sizeOf(story.model.requests.at(-1));
  await story.gateway.command(["sessions", "compact", KEY, "--json"]);
  const compaction = story.tap.answersTo("context/compact").at(-1);
  assert.equal(compaction?.result?.["compacted"], true, JSON.stringify(compaction));
  const [request] = await story.turn("Ninth message, after the compaction.");
  assert.ok(sizeOf(request) < before);
  story.assertWhole(request);
});

test("an overflow that the provider reports is compacted away, and the turn gets its answer", async () => {
  let refused = false;
  const requests = await story.turn("Tenth message, which overflows.", () => {
    if (refused) return { say: `${REPLY} after the overflow.` };
    refused = true;
    return { overflow: true };
  });
  const last = story.model.requests.at(-1);
  assert.equal(story.tap.answersTo("context/compact").at(-1)?.error, undefined);
  assert.ok(sizeOf(last) < sizeOf(requests[0]), "the second prompt is no smaller");
  const [next] = await story.turn("Eleventh message, after the overflow.");
  story.assertWhole(next, "Tenth message, which overflows.", `${REPLY} after the overflow.`);
});

test("the model asks how much room is left, makes some, and what it keeps stays in view", async () => {
  for (const stone of ["flint", "slate", "chalk"]) await story.turn(`About ${stone}: ${"word ".repeat(3000)}`);
  const asked = await story.turn("How much room is left?", toolOnce("context_status", {}, `${REPLY} with a number.`));
  assert.match(JSON.stringify(toolResults(asked[1]).at(-1)), /Sent last: \d+ of \d+ tokens\. \d+ tokens are left/);
  const keep = "Task: count the stones. Left to do: basalt, in quarry/list.md.";
  const requests = await story.turn("Make room, and keep the task.", toolOnce("context_compact", { keep }, `${REPLY} with room.`));
  assert.match(JSON.stringify(toolResults(requests[1]).at(-1)), /Compacted from \d+ to \d+ tokens/);
  const [next] = await story.turn("What is left to do?");
  assert.ok(sizeOf(next) < sizeOf(requests[0]), "the prompt is no smaller");
  assert.match(JSON.stringify(next?.messages), /Pinned, to be kept in mind: Task: count the stones/);
  story.assertWhole(next);
});

test("a hung sidecar does not take the turn down, and the next turn has everything", async () => {
  const { pid } = story.tap;
  process.kill(pid, "SIGSTOP");
  const [request] = await story.turn("Twelfth message, to a sidecar that hangs.");
  story.assertWhole(request, "What is left to do?");
  await gone(pid);
  const [next] = await story.turn("Thirteenth message, to a new sidecar.");
  story.assertWhole(next, "Twelfth message, to a sidecar that hangs.");
});

test("in the end everything is stored once and in order, nothing runs on, and the doctor is content", async () => {
  const { pid } = story.tap;
  await story.gateway.stop();
  await gone(pid);
  doctor(story.stateDir, "openclaw");
  const sessions = (await storedSessions(story.stateDir, "openclaw")).filter(({ sessionKey }) => sessionKey === KEY);
  assert.equal(sessions.length, 1);
  const stored = (sessions[0]?.messages ?? []).map(({ message }) => message as { role?: string; content?: unknown });
  const users = stored.filter(({ role }) => role === "user").map((message) => textOf(message));
  assert.deepEqual(users.filter((text) => text !== HEARTBEAT).map(beginning), story.said.map(beginning));
  if (process.platform === "linux") await until(() => processesOf(story.folder).length === 0, "all processes to end");
});

/** The conversation in a request: roles, texts and number of calls. */
function received(request: ChatRequest | undefined) {
  const spoken = (request?.messages ?? []).filter(({ role }) => role !== "system");
  return spoken
    .map((message: ChatMessage) => ({
      role: message.role,
      text: undecorated(textOf({ content: message.content ?? "" })),
      calls: message.tool_calls?.length ?? 0,
    }))
    .filter(({ text }) => !text.includes("BEGIN_OPENCLAW_INTERNAL_CONTEXT"));
}

/** Turns that were committed to sessions of this key. */
function commits(key: string): Record<string, unknown>[] {
  return story.tap.asked("context/commitTurn").filter(({ sessionKey }) => sessionKey === key);
}

function beginning(text: string): string {
  return text.slice(0, 60);
}
