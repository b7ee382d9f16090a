import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { COMMAND } from "./real-sidecar.js";

const DRIVER = fileURLToPath(new URL("conformance-driver.js", import.meta.url));
const AREAS = ["handshake", "reading", "answering", "waiting", "deltas", "ending", "schema"];

type Result = { readonly name: string; readonly level: string; readonly outcome: string; readonly message?: string };

describe("the client keeps the rules of the suite for clients", { concurrency: true }, () => {
  for (const area of AREAS) {
    test(area, async () => {
      const only = ["--only", `${area}/`, "--limit", "15", "--json"];
      const command = ["conformance", "client", ...only, "--", process.execPath, DRIVER];
      const { stdout } = await promisify(execFile)(COMMAND[0], command);
      const { results } = JSON.parse(stdout) as { readonly results: readonly Result[] };
      assert.deepEqual(results.filter(({ level, outcome }) => level === "must" && outcome !== "passed"), []);
    });
  }
});
