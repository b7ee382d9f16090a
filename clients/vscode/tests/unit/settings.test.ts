import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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

test("a launcher of npm gives way to its program, which needs no Node in the editor's PATH", (context) => {
  const home = mkdtempSync(join(tmpdir(), "context-sidecar-npm-"));
  context.after(() => rmSync(home, { recursive: true }));
  const put = (path: string): string => {
    const file = join(home, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, "{}");
    chmodSync(file, 0o755);
    return file;
  };
  const platform = `node_modules/@context-sidecar/${process.platform}-${process.arch}`;
  const launcher = put("node_modules/context-sidecar/launcher.cjs");
  put(`${platform}/package.json`);
  const program = put(`${platform}/context-sidecar/context-sidecar`);
  mkdirSync(join(home, "bin"));
  symlinkSync(launcher, join(home, "bin/context-sidecar"));
  assert.deepEqual(located(undefined, { PATH: join(home, "bin") }, home), [program, "serve"]);
});
