// Bundles a plugin for a host into its dist/: one plain JavaScript file without dependencies, package file, README.
import { cp, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

/** `build` is the plugin's own esbuild; `members` of its package.json are published, and `files` with them. */
export async function bundle(build, folder, members, files = []) {
  const here = fileURLToPath(folder);
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
  const own = JSON.parse(await readFile(`${here}package.json`, "utf8"));
  const published = Object.fromEntries(members.map((member) => [member, own[member]]));
  await writeFile(`${here}dist/package.json`, `${JSON.stringify(published, null, 2)}\n`);
  for (const file of [...files, "README.md"]) await cp(`${here}${file}`, `${here}dist/${file}`);
}
