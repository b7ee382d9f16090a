import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionEntry, SummaryNode } from "context-sidecar-client";
import { positionOf, sessionOf, sessionUri } from "../../src/documents/names.js";
import { changes } from "../../src/sessions/session-list.js";
import { nameOf } from "../../src/sessions/sources.js";
import { SummaryTree } from "../../src/sessions/summaries.js";
import { divided } from "../../src/tree/nodes.js";

const entry = (sessionId: string, messageCount = 1): SessionEntry => ({
  sessionId,
  engine: "default",
  messageFormat: "openai",
  messageCount,
  createdAt: "2026-01-01T00:00:00Z",
  updatedAt: "2026-01-01T00:00:00Z",
});

const summary = (nodeId: string, sources: string[] = []): SummaryNode => ({
  nodeId,
  depth: sources.length > 0 ? 1 : 0,
  text: nodeId,
  tokens: 1,
  quality: "deterministic",
  createdAt: "2026-01-01T00:00:00Z",
  firstMessageId: "a",
  lastMessageId: "b",
  messageCount: 2,
  sources,
});

test("a session that has grown has changed, and the list has not", () => {
  assert.deepEqual(changes([entry("a"), entry("b")], [entry("a"), entry("b", 2)]), { changed: ["b"], list: false });
});

test("sessions that come, go and move change the list", () => {
  assert.deepEqual(changes([entry("a")], [entry("b"), entry("a")]), { changed: ["b"], list: true });
  assert.deepEqual(changes([entry("a"), entry("b")], [entry("a")]), { changed: [], list: true });
  assert.deepEqual(changes([entry("a"), entry("b")], [entry("b"), entry("a")]), { changed: [], list: true });
});

test("summaries stand under what they were condensed into, and under all of it", () => {
  const tree = new SummaryTree([summary("top", ["a", "b"]), summary("other", ["b", "gone"]), summary("a"), summary("b"), summary("c")]);
  const names = (nodes: readonly SummaryNode[]) => nodes.map(({ nodeId }) => nodeId);
  assert.deepEqual(names(tree.roots), ["top", "other", "c"]);
  assert.deepEqual(names(tree.sourcesOf(summary("other", ["b", "gone"]))), ["b"]);
});

test("long lists are divided, and nothing is lost or shown twice", () => {
  for (const count of [0, 1, 100, 101, 200, 201, 1_000, 12_345]) {
    const { ranges, tail } = divided(count, 100);
    const shown = ranges.reduce((sum, [from, to]) => sum + to - from, 0) + (count - tail);
    assert.equal(shown, count);
    assert.ok(count - tail <= 100);
    assert.ok(count === 0 || tail < count, "the newest are seen at once");
  }
});

test("whatever the id of a session is, its document leads back to it", () => {
  for (const id of ["s1", "a/b", "../x", "潮汐", "a#b?c&d", "%41", " ", "a:b", "/", "😀"]) {
    const { pathname, protocol } = new URL(sessionUri(id).replace("..", "%2E%2E"));
    assert.equal(sessionOf(protocol.slice(0, -1), decodeURIComponent(pathname)), id);
  }
});

test("a name leads to a position, if it has a sensible one", () => {
  assert.deepEqual(["", "1", "42", "0", "-1", "x", "1e3"].map(positionOf), [undefined, 1, 42, undefined, undefined, undefined, undefined]);
});

test("a session without a name that can be seen gets one", () => {
  assert.equal(nameOf({ sessionId: " \n", sessionKey: undefined }), '" \\n"');
  assert.equal(nameOf({ sessionId: "id", sessionKey: "key" }), "key");
});
