import assert from "node:assert/strict";
import { test } from "node:test";
import { Restarts } from "../../src/restarting.js";

test("a process that ends again and again stays off, one that ends now and then does not", () => {
  const often = new Restarts();
  assert.deepEqual([0, 1, 2, 3, 4, 5].map((second) => often.allowed(second * 1_000)), [true, true, true, true, false, false]);
  const seldom = new Restarts();
  assert.ok(Array.from({ length: 20 }, (_, hour) => seldom.allowed(hour * 3_600_000)).every(Boolean));
});
