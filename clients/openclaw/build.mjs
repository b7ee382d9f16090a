import { build } from "esbuild";
import { bundle } from "../typescript/bundle.mjs";

const members = ["name", "version", "description", "license", "type", "engines", "openclaw"];
await bundle(build, new URL("./", import.meta.url), members, ["openclaw.plugin.json"]);
