import assert from "node:assert/strict";
import { test } from "node:test";
import { History } from "../../src/sessions/history.js";
import { PagedStore } from "./store.js";

function filled(turns: number, pageSize: number): PagedStore {
  const store = new PagedStore(pageSize);
  for (let number = 1; number <= turns; number += 1) talk(store, number);
  return store;
}

function talk(store: PagedStore, number: number): void {
  store.say(`t${number}`, "user", `question ${number}`);
  store.say(`t${number}`, "tool", "result");
  store.say(`t${number}`, "assistant", "answer");
}

const ids = (history: History) => history.turns.list.map(({ turnId }) => turnId);

test("turns are gathered over all pages", async () => {
  const history = new History(filled(5, 4), "s");
  await history.refresh();
  assert.deepEqual(ids(history), ["t1", "t2", "t3", "t4", "t5"]);
  assert.deepEqual(history.turns.get("t4")?.title, "question 4");
  assert.equal(history.turns.get("t4")?.messageCount, 3);
});

test("what the model saw of a turn ends before its last answer", async () => {
  const history = new History(filled(2, 10), "s");
  await history.refresh();
  assert.equal(history.turns.get("t2")?.seenThrough, "m5");
});

test("what was added is read at the price of one page", async () => {
  const store = filled(50, 10);
  const history = new History(store, "s");
  await history.refresh();
  const before = store.asked.length;
  talk(store, 51);
  await history.refresh();
  assert.equal(history.turns.list.length, 51);
  assert.equal(history.turns.messageCount, 153);
  assert.ok(store.asked.length - before <= 2, `${store.asked.length - before} pages were read`);
});

test("a refresh with nothing new leaves everything as it is, however full the last page is", async () => {
  for (const turns of [1, 2, 3, 4]) {
    const history = new History(filled(turns, 6), "s");
    await history.refresh();
    await history.refresh();
    assert.equal(history.turns.messageCount, 3 * turns);
  }
});

test("a history that was rewound is read anew", async () => {
  const store = filled(6, 4);
  const history = new History(store, "s");
  await history.refresh();
  store.messages.length = 9;
  store.revision += 1;
  await history.refresh();
  assert.deepEqual(ids(history), ["t1", "t2", "t3"]);
});

test("a short history that was rewound is read anew too", async () => {
  const store = filled(3, 100);
  const history = new History(store, "s");
  await history.refresh();
  store.messages.length = 3;
  store.revision += 1;
  await history.refresh();
  assert.deepEqual(ids(history), ["t1"]);
});

test("the messages of a turn are found wherever pages end", async () => {
  for (const pageSize of [1, 2, 3, 4, 7, 100]) {
    const history = new History(filled(6, pageSize), "s");
    await history.refresh();
    for (const turn of history.turns.list) {
      const messages = await history.messagesOf(turn);
      assert.deepEqual(messages.map(({ turnId }) => turnId), [turn.turnId, turn.turnId, turn.turnId]);
      assert.equal(messages[0]?.messageId, `m${turn.first + 1}`);
    }
  }
});

test("a position leads to its turn", async () => {
  const history = new History(filled(4, 5), "s");
  await history.refresh();
  for (let position = 0; position < 12; position += 1) {
    assert.equal(history.turns.at(position)?.turnId, `t${1 + Math.floor(position / 3)}`);
  }
});

test("one refresh at a time reads the pages, for all who wait", async () => {
  const store = filled(4, 100);
  const history = new History(store, "s");
  await Promise.all([history.refresh(), history.refresh(), history.refresh()]);
  assert.equal(store.asked.length, 1);
  assert.equal(history.turns.messageCount, 12);
});

test("how messages begin is read of the pages that have their turns, and of no others", async () => {
  const store = filled(20, 6);
  store.messages[32] = { ...store.messages[32]!, message: { role: "user", content: `long ${"x".repeat(500)}` } as never };
  const history = new History(store, "s");
  await history.refresh();
  const before = store.asked.length;
  const found = await history.openings(new Set(["t11", "t12", "nowhere"]));
  assert.deepEqual([...found.keys()], ["m31", "m32", "m33", "m34", "m35", "m36"]);
  assert.deepEqual(found.get("m34"), { speaker: "user", text: "question 12" });
  assert.equal(found.get("m33")?.text.length, 120);
  // One page more, or less, is the look whether the session has grown.
  assert.ok(store.asked.length - before <= 2, `${store.asked.length - before} pages were read`);
  assert.equal((await history.openings(new Set())).size, 0);
});
