/** Pictures for the documentation. */

import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import type { Page } from "playwright-core";

const KEPT = fileURLToPath(new URL("../../../images/", import.meta.url));
const PASSING = fileURLToPath(new URL("../../pictures/", import.meta.url));

/** Takes a picture of the editor where `PICTURES` is set, which the README shows; otherwise into the build folder. */
export async function picture(page: Page, name: string): Promise<void> {
  const folder = process.env["PICTURES"] ? KEPT : PASSING;
  await mkdir(folder, { recursive: true });
  // The pointer leaves marks on what it stands on.
  await page.mouse.move(700, 815);
  await page.screenshot({ path: `${folder}${name}.png`, animations: "disabled" });
}

/** Takes a picture of what a test has failed at. */
export async function failure(page: Page, name: string): Promise<void> {
  await mkdir(PASSING, { recursive: true });
  await page.screenshot({ path: `${PASSING}failed ${name.replace(/\W+/g, " ").slice(0, 60)}.png` });
}
