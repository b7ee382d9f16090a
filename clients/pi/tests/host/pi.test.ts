/** One story per release of the real pi: every test goes on where the one before has ended. */

import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  assertOnce,
  assertPaired,
  doctor,
  gone,
  processesOf,
  ScriptedModel,
  sizeOf,
  storedSessions,
  textOf,
  texts,
  toolOnce,
  toolResults,
  until,
} from "context-sidecar-testing";
import type { ChatRequest, Script } from "context-sidecar-testing";
import { RELEASES } from "./install.js";
import { Pi } from "./pi.js";

const REPLY = "The model has answered";

for (const { release, lendsModel } of RELEASES) describe(`pi ${release}`, () => story(release, lendsModel));

function story(release: string, lendsModel: boolean): void {
  const model = new ScriptedModel();
  const said: string[] = [];
  let folder: string;
  let pi: Pi;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "context-sidecar-pi-"));
    pi = await Pi.configure(release, folder, await model.listen(), { settings: { summaryTokens: 200 } });
    // So that a conversation of this length is worth a compaction.
    await writeFile(join(folder, "agent/settings.json"), '{"compaction": {"keepRecentTokens": 500}}');
    await pi.start();
  });

  after(async () => {
    await pi?.stop();
    model.close();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  /** One prompt of the story; the requests that reached the model. */
  async function turn(text: string, script: Script = () => ({ say: `${REPLY} (${said.length}).` })): Promise<ChatRequest[]> {
    const first = model.requests.length;
    model.script = script;
    said.push(text.trim());
    await pi.prompt(text);
    const requests = model.requests.slice(first).filter((request) => texts(request).includes(text.trim()));
    assert.ok(requests.length > 0, "the model was not asked");
    return requests;
  }

  function settingsFile(): string {
    return join(folder, "agent/context-sidecar.json");
  }

  /** Ends pi and the sidecar with it, and resumes the session. */
  async function restart(): Promise<void> {
    const { pid } = pi.tap;
    await pi.stop();
    await gone(pid);
    await pi.start(["--continue"]);
  }

  test("later turns show the model every earlier one, once and in order", async () => {
    for (const text of ["The code word is heliotrope.", "Second message, about granite."]) await turn(text);
    const [request] = await turn("Third message, about basalt.");
    const expected = said.flatMap((text, index) => [text, `${REPLY} (${index + 1}).`]).slice(0, -1);
    assert.deepEqual(texts(request), expected);
    assert.equal(pi.tap.answersTo("context/commitTurn").length, 3);
  });

  test("a tool of pi is called, and its result is there in the same turn and in the next one", async () => {
    const echo = toolOnce("bash", { command: "echo from-the-shell" }, `${REPLY} with bash.`);
    const requests = await turn("Fourth message: run something.", echo);
    assert.match(textOf(toolResults(requests[1])[0] ?? {}), /from-the-shell/);
    const [next] = await turn("Fifth message, after the tool.");
    assert.equal(toolResults(next).length, 1);
    assertPaired(next);
  });

  test("the recall tool finds what was said earlier", async () => {
    const recall = toolOnce("context_search", { mode: "search", query: "heliotrope" }, `${REPLY} with a code word.`);
    const requests = await turn("Sixth message: what was the code word?", recall);
    assert.match(textOf(toolResults(requests[1]).at(-1) ?? {}), /\[user t1\] The code word is heliotrope/);
  });

  test("what the model gets is what the sidecar answered, and no secret goes the other way", async () => {
    const [request] = await turn("Here everything is compared.");
    const answered = (pi.tap.assembled().at(-1) as { role: string; content?: unknown }[]).map(
      ({ role, content }) => ({ role: role === "toolResult" ? "tool" : role, text: textOf({ content: parts(content) }) }),
    );
    const got = (request?.messages ?? []).slice(1).map((message) => ({ role: message.role, text: textOf({ content: message.content ?? "" }) }));
    assert.deepEqual(got, answered);
    assert.ok(got.length >= 14);
    assert.doesNotMatch(pi.tap.sent, /secret-of-the/);
  });

  test("the command shows what the context is made of", async () => {
    await pi.command({ type: "prompt", message: "/context" });
    await until(() => pi.notices.some((text) => /^Context: engine default/.test(text)), "the notice");
    assert.match(pi.notices.join("\n"), /recent +\S+ +[\d,]+ tokens, [\d,]+ messages/);
  });

  test("a compaction by hand is the sidecar's, and its summary takes the place of old turns", async () => {
    for (const stone of ["gneiss", "schist", "marble"]) await turn(`About ${stone}: ${"word ".repeat(3000)}`);
    const before = sizeOf(model.requests.at(-1));
    model.script = () => ({ say: "The user named stones." });
    await pi.command({ type: "compact" });
    const compaction = pi.tap.answersTo("context/compact").at(-1);
    assert.equal(compaction?.result?.["compacted"], true, JSON.stringify(compaction));
    const [request] = await turn("Seventh message, after the compaction.");
    assert.ok(sizeOf(request) < before);
    assertOnce(said, texts(request));
    assertPaired(request);
    assert.equal(texts(request).some((text) => text.includes("The user named stones.")), lendsModel);
    assert.doesNotMatch(JSON.stringify(request?.messages.slice(1)), /kept by context-sidecar/);
  });

  test("an overflow that the provider reports is compacted away, and the turn gets its answer", async () => {
    await turn(`Something long: ${"sentence ".repeat(2000)}`);
    let refused = false;
    const requests = await turn("Eighth message, which overflows.", () => {
      if (refused) return { say: `${REPLY} after the overflow.` };
      refused = true;
      return { overflow: true };
    });
    assert.ok(requests.length >= 2);
    const [last] = await turn("Ninth message.");
    assert.ok(texts(last).includes(`${REPLY} after the overflow.`));
    assertOnce(said, texts(last));
  });

  test("a sidecar that is killed between two turns costs nothing", async () => {
    const { pid } = pi.tap;
    process.kill(pid, "SIGKILL");
    await gone(pid);
    const [request] = await turn("Tenth message, after the kill.");
    assert.notEqual(pi.tap.pid, pid);
    assert.ok(texts(request).includes("Ninth message."));
    assertOnce(said, texts(request));
  });

  test("a resumed session goes on where it was left", async () => {
    await restart();
    const [request] = await turn("Eleventh message, after the restart.");
    assert.ok(texts(request).includes("Tenth message, after the kill."));
    assertOnce(said, texts(request));
  });

  test("a sidecar that is killed in the middle of a turn costs nothing either", async () => {
    const recall = toolOnce("context_search", { mode: "tail", last: 2 }, `${REPLY} in spite of all.`);
    let killed = false;
    const requests = await turn("Twelfth message, with a kill in its middle.", (request) => {
      if (!killed) process.kill(pi.tap.pid, "SIGKILL");
      killed = true;
      return recall(request);
    });
    assert.equal(requests.length, 2);
    assertPaired(requests[1]);
    const [next] = await turn("Thirteenth message.");
    assert.ok(texts(next).includes(`${REPLY} in spite of all.`));
    assertOnce(said, texts(next));
  });

  test("a hung sidecar does not take the turn down, and the next turn has everything", async () => {
    await restart(); // A client that has seen two crashes within half a minute pauses.
    await turn("Fourteenth message, to a sidecar that works.");
    const { pid } = pi.tap;
    process.kill(pid, "SIGSTOP");
    const [request] = await turn("Fifteenth message, to a sidecar that hangs.");
    assert.ok(texts(request).includes("Fourteenth message, to a sidecar that works."));
    await gone(pid);
    const [next] = await turn("Sixteenth message, to a new sidecar.");
    assert.ok(texts(next).includes("Fifteenth message, to a sidecar that hangs."));
    assertOnce(said, texts(next));
  });

  test("in the end everything is stored once and in order, nothing runs on, and the doctor is content", async () => {
    await pi.stop();
    const stateDir = join(folder, "agent/context-sidecar");
    doctor(stateDir, "pi");
    const sessions = await storedSessions(stateDir, "pi");
    assert.equal(sessions.length, 1);
    const stored = (sessions[0]?.messages ?? []).map(({ message }) => message as { role?: string; content?: unknown });
    const users = stored.filter(({ role }) => role === "user").map((message) => textOf(message));
    assert.deepEqual(users.map(beginning), said.map(beginning));
    if (process.platform === "linux") await until(() => processesOf(folder).length === 0, "all processes to end");
  });

  test("a session that the user does not keep leaves nothing in the store", async () => {
    await pi.start(["--no-session"]);
    model.script = () => ({ say: "noted" });
    await pi.prompt("This is between us.");
    await pi.stop();
    assert.equal((await storedSessions(join(folder, "agent/context-sidecar"), "pi")).length, 1);
  });

  test("the model asks how much room is left, makes some, and what it keeps stays in view", async () => {
    await writeFile(settingsFile(), JSON.stringify({ command: pi.tap.command }));
    await pi.start(["--no-session"]);
    for (const stone of ["flint", "slate", "chalk"]) await turn(`About ${stone}: ${"word ".repeat(1000)}`);
    const asked = await turn("How much room is left?", toolOnce("context_status", {}, `${REPLY} with a number.`));
    assert.match(textOf(toolResults(asked[1]).at(-1) ?? {}), /Sent last: \d+ of \d+ tokens\. \d+ tokens are left/);
    const keep = "Task: count the stones. Left to do: basalt, in quarry/list.md.";
    const compact = toolOnce("context_compact", { keep }, `${REPLY} with room.`);
    const requests = await turn("Make room, and keep the task.", compact);
    assert.match(textOf(toolResults(requests[1]).at(-1) ?? {}), /Compacted from \d+ to \d+ tokens/);
    const [next] = await turn("What is left to do?");
    assert.ok(sizeOf(next) < sizeOf(requests[0]), "the prompt is no smaller");
    assert.match(JSON.stringify(next?.messages), /Pinned, to be kept in mind: Task: count the stones/);
    assertPaired(next);
    await pi.stop();
  });

  test("the engine terse teaches its tags, and shows old turns as a log", async () => {
    await writeFile(settingsFile(), JSON.stringify({ command: pi.tap.command, engine: "terse", settings: { recentTurns: 1 } }));
    await pi.start(["--no-session"]);
    const first = model.requests.length;
    model.script = () => ({ say: "Done. <terse>Counted the stones</terse>" });
    for (const text of ["Count the stones.", "And again.", "And once more."]) await pi.prompt(text);
    await pi.stop();
    const last = model.requests.slice(first).at(-1);
    assert.match(JSON.stringify(last?.messages[0]), /<terse>/);
    assert.match(texts(last)[0] ?? "", /Activity Log[^]*assistant: Counted the stones/);
    assert.ok(!texts(last).includes("Count the stones."));
  });

  test("without a sidecar pi works as it does without the extension, and says so", async () => {
    await writeFile(settingsFile(), '{"command": "/no/such/sidecar"}');
    await pi.start(["--no-session"]);
    const first = model.requests.length;
    await pi.prompt("Anybody there?");
    assert.deepEqual(texts(model.requests[first]), ["Anybody there?"]);
    assert.ok(pi.notices.some((text) => text.includes("pi works without it")), pi.notices.join("\n"));
  });
}

/** Only the text of a message of pi; calls of tools travel beside it. */
function parts(content: unknown): unknown {
  return Array.isArray(content) ? (content as { type: string }[]).filter(({ type }) => type === "text") : content;
}

function beginning(text: string): string {
  return text.slice(0, 60);
}
