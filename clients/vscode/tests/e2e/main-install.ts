/** Installs what the end-to-end tests need, so that no test waits for it. */

import { programs } from "./install.js";

const { codeServer, chromium, node } = await programs();
console.log(`${codeServer} on ${node}, ${chromium}`);
