/** Reads what a tapped sidecar has written down about the messages on its pipes. */

import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { applyEdits } from "../../typescript/dist/index.js";
import type { AssembleContextResult } from "../../typescript/dist/index.js";
import { PYTHON } from "./sidecar.js";

const PROGRAM = fileURLToPath(new URL("../tapped_sidecar.py", import.meta.url));

/** One message on the pipes between host and sidecar. */
export interface Tapped {
  readonly to: "sidecar" | "host";
  readonly body: {
    readonly id?: number | string;
    readonly method?: string;
    readonly params?: Record<string, unknown>;
    readonly result?: Record<string, unknown>;
    readonly error?: { readonly code: number; readonly message: string };
  };
}

export class Tap {
  /** `path` is the file that the sidecar writes to. */
  constructor(private readonly path: string) {}

  /** The command that starts a sidecar with this tap. */
  get command(): [string, ...string[]] {
    return [PYTHON, PROGRAM, this.path, "serve"];
  }

  /** Everything so far, oldest first. */
  get lines(): Tapped[] {
    if (!existsSync(this.path)) return [];
    return readFileSync(this.path, "utf8").split("\n").slice(0, -1).map((line) => JSON.parse(line) as Tapped);
  }

  /** Process id of the sidecar that was started last. */
  get pid(): number {
    return Number(readFileSync(`${this.path}.pid`, "ascii"));
  }

  /** Everything that the host has sent, as text. */
  get sent(): string {
    return JSON.stringify(this.lines.filter(({ to }) => to === "sidecar"));
  }

  /** Requests and notifications of the host by one method. */
  asked(method: string): Record<string, unknown>[] {
    return this.lines.filter(({ to, body }) => to === "sidecar" && body.method === method).map(({ body }) => body.params ?? {});
  }

  /** Answers of the sidecar to one method. Ids begin anew with each process; the tap is in order. */
  answersTo(method: string): Tapped["body"][] {
    const open = new Set<number | string | undefined>();
    const answers = this.lines.filter(({ to, body }) => {
      if (to === "sidecar" && body.method !== undefined && body.id !== undefined) {
        if (body.method === method) open.add(body.id);
        else open.delete(body.id);
      }
      return to === "host" && body.method === undefined && open.delete(body.id);
    });
    return answers.map(({ body }) => body);
  }

  /** The lists that the sidecar has answered with, whole although changes travel. */
  assembled(): object[][] {
    const known = new Map<unknown, object[]>();
    const asked = new Map<unknown, unknown>();
    const lists: object[][] = [];
    for (const { to, body } of this.lines) {
      if (to === "sidecar" && body.method === "context/assemble") asked.set(body.id, body.params?.["previousResultId"]);
      if (to === "sidecar" || !asked.has(body.id) || body.result?.["resultId"] === undefined) continue;
      const { messages, edits, resultId } = body.result as unknown as AssembleContextResult;
      const list = messages ?? applyEdits(known.get(asked.get(body.id)) ?? [], edits ?? []);
      known.set(resultId, [...list]);
      lists.push([...list]);
      asked.delete(body.id);
    }
    return lists;
  }
}
