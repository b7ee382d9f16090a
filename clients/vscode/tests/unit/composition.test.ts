import assert from "node:assert/strict";
import { test } from "node:test";
import { bar, counted, grouped, percent, shares, short } from "../../src/reading/composition.js";
import { fillTable } from "../../src/reading/fill-table.js";

test("numbers are short, and the same everywhere", () => {
  assert.deepEqual([950, 1_000, 12_400, 128_000, 99_960, 999_600, 1_200_000].map(short), ["950", "1k", "12.4k", "128k", "100k", "1M", "1.2M"]);
  assert.deepEqual([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
  assert.deepEqual([counted(1, "message"), counted(2_000, "message")], ["1 message", "2,000 messages"]);
});

test("little is told from nothing", () => {
  assert.deepEqual([0, 0.2, 1.4, 99.6].map(percent), ["0 %", "<1 %", "1 %", "100 %"]);
  assert.deepEqual([bar(0, 4), bar(0.1, 4), bar(50, 4), bar(250, 4)], ["▱▱▱▱", "▰▱▱▱", "▰▰▱▱", "▰▰▰▰"]);
});

test("shares stand in one order, and kinds without tokens are left out", () => {
  const parts = shares(
    [
      { kind: "recent", tokens: 50, messageCount: 2 },
      { kind: "memory", tokens: 0, messageCount: 0 },
      { kind: "system", tokens: 25, messageCount: 1 },
    ],
    100,
  );
  assert.deepEqual(parts.map(({ kind, percent: share }) => [kind, share]), [["system", 25], ["recent", 50]]);
});

test("the name of a session has no say in the tooltip", () => {
  const preview = { messages: [], composition: [], tokens: 0, tokenBudget: 10, systemPromptAddition: undefined, userMessageAppend: undefined, decisions: [], injected: [] };
  const [first] = fillTable("[a](command:x) <b> | `c`\n# d", preview).split("\n");
  assert.ok(!/[[\]()<>|`]/.test(first ?? ""), first);
});
