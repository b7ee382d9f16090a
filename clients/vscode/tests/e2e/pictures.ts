/** Pictures for the documentation. */

import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Page } from "playwright-core";

const KEPT = fileURLToPath(new URL("../../../images/", import.meta.url));
const PASSING = fileURLToPath(new URL("../../pictures/", import.meta.url));

/** Takes a picture of the editor where `PICTURES` is set, which the README shows; otherwise into the build folder. */
export async function picture(page: Page, name: string, pointing = false): Promise<void> {
  const folder = process.env["PICTURES"] ? KEPT : PASSING;
  await mkdir(folder, { recursive: true });
  // The pointer leaves marks on what it stands on.
  if (!pointing) {
    await page.mouse.move(200, 660);
    await page.locator(".workbench-hover").first().waitFor({ state: "hidden" });
  }
  const path = `${folder}${name}.png`;
  await page.screenshot({ path, animations: "disabled" });
  if (folder === KEPT) await promisify(execFile)("pngquant", ["--force", "--strip", "--output", path, "96", path]);
}

/** Takes a picture of what a test has failed at. */
export async function failure(page: Page, name: string): Promise<void> {
  await mkdir(PASSING, { recursive: true });
  await page.screenshot({ path: `${PASSING}failed ${name.replace(/\W+/g, " ").slice(0, 60)}.png` });
}
