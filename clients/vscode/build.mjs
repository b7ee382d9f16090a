// Builds dist/extension.cjs: one file with everything but what the editor itself provides. The licence is packaged with it.
import { copyFile, rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL("./", import.meta.url));
await rm(`${here}dist`, { recursive: true, force: true });
await build({
  entryPoints: [`${here}src/extension.ts`],
  outfile: `${here}dist/extension.cjs`,
  bundle: true,
  minify: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode"],
  define: { "import.meta.url": "moduleUrl" },
  banner: { js: 'const moduleUrl = require("node:url").pathToFileURL(__filename).href;' },
  legalComments: "linked",
});
await copyFile(`${here}../../LICENSE`, `${here}LICENSE`);
