/** What the tests of one editor share. */

import { join } from "node:path";
import { test as run } from "node:test";
import type { Agent } from "./agent.js";
import { failure, picture } from "./pictures.js";
import type { Stage } from "./stage.js";
import type { Workbench } from "./workbench.js";

/** The session that comes with the sidecar, of the engine lossless. */
export const SESSION = "one-hour-early";
/** A session whose id would be something else as a path, a query, or markup. */
export const ODD = "odd/../name?#%41 <b>&";
export const ODD_NAME = "潮汐表 北京时间";
export const ANTHROPIC = "station-list";

export class Scene {
  stage!: Stage;
  bench!: Workbench;
  agent!: Agent;

  /** The transcript file of the workspace. */
  get transcript(): string {
    return join(this.stage.workspace, "transcript.jsonl");
  }

  /** @param pictured Whether pictures may be taken: only of our own examples. */
  constructor(private readonly pictured: boolean) {}

  /** A test that leaves a picture of the editor where it fails. */
  test(name: string, work: () => Promise<void>): void {
    void run(name, async () => {
      try {
        await work();
      } catch (error) {
        await failure(this.stage.page, name);
        throw error;
      }
    });
  }

  /** @param pointing Whether what the pointer stands on belongs to the picture. */
  async picture(name: string, pointing = false): Promise<void> {
    if (this.pictured) await picture(this.stage.page, name, pointing);
  }
}
