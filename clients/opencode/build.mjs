// Builds the installable package into dist/: one plain JavaScript file without dependencies, package file, README.
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = fileURLToPath(new URL("./", import.meta.url));
await rm(`${here}dist`, { recursive: true, force: true });
await mkdir(`${here}dist`, { recursive: true });
await build({
  entryPoints: [`${here}src/index.ts`],
  outfile: `${here}dist/index.js`,
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
  legalComments: "inline",
  // The bundled JSON-RPC library asks for node's own modules by `require`.
  banner: { js: 'import { createRequire as requireFrom } from "node:module";\nconst require = requireFrom(import.meta.url);' },
});
const { name, version, description, license, type, keywords, engines, main } = JSON.parse(
  await readFile(`${here}package.json`, "utf8"),
);
const published = { name, version, description, license, type, keywords, engines, main };
await writeFile(`${here}dist/package.json`, `${JSON.stringify(published, null, 2)}\n`);
await cp(`${here}README.md`, `${here}dist/README.md`);
