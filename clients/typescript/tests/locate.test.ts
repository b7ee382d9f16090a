import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { locateSidecar } from "context-sidecar-client";

const PLATFORM = `${process.platform}-${process.arch}`;

/** A folder in which npm has installed the launcher, and the package for a platform if one is named. */
function installed(t: TestContext, platform?: string): { root: string; plugin: string; bin: string; program: string } {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "locate-")));
  t.after(() => rmSync(root, { recursive: true }));
  const put = (path: string, text: string): string => {
    const file = join(root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    chmodSync(file, 0o755);
    return file;
  };
  put("node_modules/context-sidecar/package.json", "{}");
  const launcher = put("node_modules/context-sidecar/launcher.cjs", "");
  if (platform !== undefined) put(`node_modules/@context-sidecar/${platform}/package.json`, "{}");
  const program = put(`node_modules/@context-sidecar/${platform ?? "none"}/context-sidecar/context-sidecar`, "");
  const bin = join(root, "bin");
  mkdirSync(bin);
  symlinkSync(launcher, join(bin, "context-sidecar"));
  return { root, plugin: put("node_modules/some-plugin/index.js", ""), bin, program };
}

test("a plugin finds the build that npm has installed beside it, before one in PATH", (t) => {
  const { plugin, program } = installed(t, PLATFORM);
  const { bin } = installed(t, PLATFORM);
  assert.deepEqual(locateSidecar(undefined, { PATH: bin }, plugin), [program, "serve"]);
});

test("a plugin finds the build for musl where npm has installed that one", (t) => {
  const { plugin, program } = installed(t, `${PLATFORM}-musl`);
  assert.deepEqual(locateSidecar(undefined, { PATH: "" }, plugin), [program, "serve"]);
});

test("a launcher in PATH gives way to the program that it would start", (t) => {
  const { bin, program } = installed(t, PLATFORM);
  assert.deepEqual(locateSidecar(undefined, { PATH: bin }, "/nowhere/index.js"), [program, "serve"]);
});

test("a launcher without a build for this platform is started as it is, and says itself what is missing", (t) => {
  const { bin, plugin } = installed(t, "plan9-vax");
  assert.deepEqual(locateSidecar(undefined, { PATH: bin }, plugin), [join(bin, "context-sidecar"), "serve"]);
});

test("nothing of the working directory is taken", (t) => {
  const { root } = installed(t, PLATFORM);
  const before = process.cwd();
  t.after(() => process.chdir(before));
  process.chdir(root);
  const nowhere = join(tmpdir(), "elsewhere", "index.js");
  assert.throws(() => locateSidecar(undefined, { PATH: "" }, nowhere), { name: "SidecarNotFound" });
});

test("where there is none, the error says how to install it with Python and without", () => {
  assert.throws(
    () => locateSidecar(undefined, { PATH: "/nowhere" }, "/nowhere/index.js"),
    (error: Error) => error.message.includes("npm install --global") && error.message.includes("uv tool install"),
  );
});
