import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { located } from "../../src/locating.js";
import { readSettings, sameSidecar } from "../../src/settings.js";

const HOME = "/home/somebody";
const read = (values: Record<string, unknown>) => readSettings((key) => values[key], HOME);

test("without settings the sidecar's own configuration decides", () => {
  assert.deepEqual(read({}), { command: undefined, namespace: "default", engine: undefined, config: {}, stateDir: undefined, tokenBudget: undefined, refreshMs: 2_000 });
});

test("values of the wrong type count as absent", () => {
  const wrong = { command: 7, namespace: [], engine: {}, stateDir: 1, configuration: "x", tokenBudget: -5, refreshSeconds: "soon" };
  assert.deepEqual(read(wrong), read({}));
  assert.equal(read({ command: ["a", 1] }).command, undefined);
});

test("the home folder may be written short, in the program and in the store", () => {
  assert.deepEqual(read({ command: ["~/bin/x", "serve", "~"] }).command, [`${HOME}/bin/x`, "serve", "~"]);
  assert.equal(read({ stateDir: "~/.pi" }).stateDir, `${HOME}/.pi`);
});

test("the window that is set is the sidecar's too, beside its other limits", () => {
  const { config, tokenBudget } = read({ tokenBudget: 5, configuration: { limits: { maxInFlight: 9 } } });
  assert.deepEqual([config, tokenBudget], [{ limits: { maxInFlight: 9, defaultTokenBudget: 5 } }, 5]);
});

test("only what the process depends on needs another process", () => {
  assert.ok(sameSidecar(read({}), read({ refreshSeconds: 9 })));
  assert.ok(!sameSidecar(read({}), read({ namespace: "pi" })));
});

test("the program is found in the PATH, and where installers put it", (context) => {
  const home = mkdtempSync(join(tmpdir(), "context-sidecar-home-"));
  context.after(() => rmSync(home, { recursive: true }));
  assert.equal(located(undefined, { PATH: "/nowhere" }, home), undefined);
  const folder = join(home, ".local/bin");
  mkdirSync(folder, { recursive: true });
  const program = join(folder, "context-sidecar");
  writeFileSync(program, "");
  chmodSync(program, 0o755);
  assert.deepEqual(located(undefined, {}, home), [program, "serve"]);
  assert.deepEqual(located("context-sidecar", { PATH: folder }, "/"), [program, "serve"]);
  assert.deepEqual(located([program, "--x"], {}, "/"), [program, "--x"]);
  assert.equal(located([join(folder, "other")], {}, home), undefined);
});
