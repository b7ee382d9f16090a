import assert from "node:assert/strict";
import { test } from "node:test";
import { matchIn } from "../../src/reading/matches.js";
import { excerpt, spoken } from "../../src/reading/messages.js";

test("a message of chat completions says its text and its calls", () => {
  const message = {
    role: "assistant",
    content: "I look.",
    tool_calls: [{ id: "1", type: "function", function: { name: "read", arguments: '{"path":"a"}' } }],
  };
  assert.deepEqual(spoken(message), { speaker: "assistant", text: 'I look.\n→ read({"path":"a"})' });
});

test("a user message that only carries results of tools is one of the tool", () => {
  const message = { role: "user", content: [{ type: "tool_result", tool_use_id: "1", content: [{ type: "text", text: "42" }] }] };
  assert.deepEqual(spoken(message), { speaker: "tool", text: "42" });
});

test("a user message with a result and a text is the user's", () => {
  const message = { role: "user", content: [{ type: "tool_result", content: "42" }, { type: "text", text: "and now?" }] };
  assert.equal(spoken(message).speaker, "user");
});

test("calls of the anthropic and the openclaw dialect are told alike", () => {
  const anthropic = { role: "assistant", content: [{ type: "tool_use", id: "1", name: "ls", input: { path: "." } }] };
  const openclaw = { role: "assistant", content: [{ type: "toolCall", id: "1", name: "ls", arguments: { path: "." } }] };
  assert.equal(spoken(anthropic).text, '→ ls({"path":"."})');
  assert.equal(spoken(openclaw).text, spoken(anthropic).text);
});

test("items of the responses dialect have their speakers", () => {
  assert.equal(spoken({ type: "function_call", name: "ls", arguments: "{}" }).speaker, "assistant");
  assert.deepEqual(spoken({ type: "function_call_output", output: "a.txt" }), { speaker: "tool", text: "a.txt" });
  assert.equal(spoken({ type: "message", role: "user", content: [{ type: "input_text", text: "hi" }] }).text, "hi");
});

test("pictures are told, not written out", () => {
  const message = { role: "user", content: [{ type: "image_url", image_url: { url: `data:${"x".repeat(1_000)}` } }] };
  assert.equal(spoken(message).text, "(image)");
});

test("whatever a message is, something can be shown of it", () => {
  for (const message of [null, 7, "text", [], {}, { role: {} }, { role: "user", content: 5 }, { role: "user", content: [null] }]) {
    assert.equal(typeof spoken(message).text, "string");
  }
});

test("an excerpt has one line, and never half of a letter", () => {
  assert.equal(excerpt("one\n\n two\tthree", 40), "one two three");
  assert.equal(excerpt("😀😀😀😀", 3), "😀😀…");
  assert.equal(excerpt("潮汐表不直接用电脑", 4), "潮汐表…");
});

test("a match is found where all words stand, else where the longest does", () => {
  const line = '{"content":"The tide turned; the clocks went forward."}';
  const at = (words: string): string => line.slice(...matchIn(line, words));
  assert.equal(at("CLOCKS went"), "clocks went");
  assert.equal(at("forward tide"), "forward");
  assert.deepEqual(matchIn(line, "zebra"), [0, 0]);
  assert.deepEqual(matchIn(line, "  "), [0, 0]);
});
