import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { stripTerse, TerseStripper } from "../src/index.js";

const FOLDER = new URL("../../../../spec/vectors/terse/", import.meta.url);

interface WholeText {
  readonly title: string;
  readonly text: string;
  readonly shown: string;
}

interface Stream {
  readonly title: string;
  readonly chunks: readonly string[];
  readonly shown: readonly string[];
  readonly rest: string;
}

const names = readdirSync(FOLDER).filter((name) => name.endsWith(".json"));

test("there are vectors of both kinds", () => {
  assert.ok(names.some((name) => name.startsWith("stream-")));
  assert.ok(names.some((name) => !name.startsWith("stream-")));
});

for (const name of names) {
  const vector = JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")) as WholeText | Stream;
  test(`${name}: ${vector.title}`, () => {
    if ("chunks" in vector) checkStream(vector);
    else checkText(vector);
  });
}

function checkStream({ chunks, shown, rest }: Stream): void {
  const stripper = new TerseStripper();
  assert.deepEqual(chunks.map((chunk) => stripper.feed(chunk)), shown);
  assert.equal(stripper.close(), rest);
}

/** As a whole, letter by letter, and cut in two at every place. */
function checkText({ text, shown }: WholeText): void {
  assert.equal(stripTerse(text), shown);
  for (let at = 0; at <= text.length; at += 1) assert.equal(inPieces([text.slice(0, at), text.slice(at)]), shown);
  assert.equal(inPieces([...text]), shown);
}

function inPieces(chunks: readonly string[]): string {
  const stripper = new TerseStripper();
  return chunks.map((chunk) => stripper.feed(chunk)).join("") + stripper.close();
}
