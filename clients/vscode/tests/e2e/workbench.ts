/** What a user does with the editor, by what can be seen of it. */

import assert from "node:assert/strict";
import { basename } from "node:path";
import type { FrameLocator, Locator, Page } from "playwright-core";

/** Everything is waited for; CI machines are slow. */
export const LIMIT_MS = 120_000;

export class Workbench {
  constructor(readonly page: Page) {
    page.setDefaultTimeout(LIMIT_MS);
  }

  /** Opens the view of sessions. */
  async openView(): Promise<void> {
    await this.page.locator('.activitybar a[aria-label^="Context Sidecar"]').click();
    await this.page.locator(".composite.viewlet").waitFor();
  }

  /** A row of a view, by text that it has. */
  row(text: string | RegExp): Locator {
    return this.page.locator('.sidebar [role="treeitem"]', { hasText: text }).first();
  }

  /** Unfolds a row unless it is unfolded. */
  async unfold(text: string | RegExp): Promise<void> {
    const row = this.row(text);
    const unfolded = this.page.locator('.sidebar [role="treeitem"][aria-expanded="true"]', { hasText: text }).first();
    await row.waitFor();
    // A view that is drawn anew at this moment takes no notice of the click.
    for (let tries = 0; tries < 10 && !(await unfolded.isVisible()); tries += 1) {
      await row.locator(".monaco-tl-twistie").click();
      await unfolded.waitFor({ timeout: 10_000 }).catch(() => undefined);
    }
    await unfolded.waitFor();
  }

  /** Folds everything in the view. */
  async foldAll(): Promise<void> {
    await this.page.locator(".sidebar .pane-body, .sidebar .composite.viewlet").first().hover();
    await this.page.locator('.sidebar .action-label[aria-label="Collapse All"]').first().click();
    await this.page.locator('.sidebar [role="treeitem"][aria-level="2"]').first().waitFor({ state: "detached" });
  }

  /** Opens a file by its whole path; searching for files would need a program that npm does not bring. */
  async openFile(path: string): Promise<void> {
    await this.page.keyboard.press("Control+P");
    await this.input.fill(path);
    await this.pick(basename(path));
    await this.tab(basename(path)).waitFor();
  }

  /** The first lens of the document in front, wherever its first turn begins. */
  async firstLens(): Promise<Locator> {
    const lens = this.page.locator(".codelens-decoration a", { hasText: /^t\d+: / }).first();
    await lens.waitFor({ timeout: 15_000 }).catch(() => undefined);
    for (let pages = 0; pages < 100 && !(await lens.isVisible()); pages += 1) {
      await this.page.keyboard.press("PageDown");
      await lens.waitFor({ timeout: 1_000 }).catch(() => undefined);
    }
    await lens.waitFor();
    return lens;
  }

  /** Waits until a locator says something else than before. */
  async changes(locator: Locator, before: string | null): Promise<void> {
    const deadline = Date.now() + LIMIT_MS;
    while ((await locator.textContent()) === before) {
      if (Date.now() > deadline) assert.fail(`waited in vain for something else than ${before}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Runs a command by its name in the palette. */
  async command(title: string): Promise<void> {
    await this.page.keyboard.press("F1");
    await this.input.fill(`>${title}`);
    const row = this.picks.filter({ hasText: title }).first();
    await row.waitFor();
    await row.click();
  }

  /** Chooses an entry of the context menu of a row. */
  async menu(row: Locator, entry: string): Promise<void> {
    await row.click({ button: "right" });
    const found = this.page.locator(".context-view .action-label", { hasText: entry }).first();
    await found.waitFor();
    // A menu that has just come takes a click for the end of the one that opened it.
    while (await found.isVisible()) await found.click({ timeout: 1_000 }).catch(() => undefined);
  }

  get input(): Locator {
    return this.page.locator(".quick-input-widget input[type=text]").first();
  }

  get picks(): Locator {
    return this.page.locator(".quick-input-widget .monaco-list-row");
  }

  /** Waits until the input of a dialog has a value. */
  async holds(value: string): Promise<void> {
    const deadline = Date.now() + LIMIT_MS;
    while ((await this.input.inputValue()) !== value) {
      if (Date.now() > deadline) assert.fail(`waited in vain for ${value}; it is ${await this.input.inputValue()}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async pick(text: string): Promise<void> {
    const row = this.picks.filter({ hasText: text }).first();
    await row.waitFor();
    await row.click();
  }

  get status(): Locator {
    return this.page.locator('.statusbar-item[id*="contextSidecar.fill"]');
  }

  /** A message of the editor to the user. */
  notice(text: string | RegExp): Locator {
    return this.page.locator(".notification-list-item", { hasText: text }).first();
  }

  /** The tab with this name. */
  tab(text: string | RegExp): Locator {
    return this.page.locator(".tabs-container .tab", { hasText: text }).first();
  }

  /** What the panel shows. */
  get panel(): FrameLocator {
    return this.page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
  }

  /** The lines of the editor in front, as far as they are drawn. */
  get lines(): Locator {
    return this.page.locator(".editor-instance .view-lines").last();
  }

  async closeAll(): Promise<void> {
    await this.command("View: Close All Editors");
    await this.page.locator(".tabs-container .tab").first().waitFor({ state: "detached" });
  }

  async dismissNotices(): Promise<void> {
    await this.command("Notifications: Clear All Notifications");
  }

  /** Waits until a locator says something. */
  async says(locator: Locator, text: RegExp): Promise<string> {
    const deadline = Date.now() + LIMIT_MS;
    for (;;) {
      const said = (await locator.textContent().catch(() => null)) ?? "";
      // Editors draw blanks as no-break spaces.
      if (text.test(said.replace(/\u00a0/g, " "))) return said;
      if (Date.now() > deadline) assert.fail(`waited in vain for ${text}; it says: ${said.slice(0, 500)}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
