/** Measures what a turn costs in OpenClaw: with its own engine, and with the sidecar's, in a session of many messages. */

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PYTHON, ScriptedModel, until } from "context-sidecar-testing";
import { Gateway } from "../tests/host/gateway.js";

const HERE = fileURLToPath(new URL("../../bench/", import.meta.url));
const KEY = "agent:main:bench";
/** The engine of OpenClaw, to which the others are compared. */
const BUILT_IN = "legacy";
const ENGINES = (process.env["ENGINES"] ?? "default full lossless").split(" ").filter((engine) => engine !== BUILT_IN);
const MESSAGES = Number(process.env["MESSAGES"] ?? 10_000);
const TURNS = Number(process.env["TURNS"] ?? 9);
/** So wide that nobody has to shorten anything: all engines send everything. */
const WINDOW = 4_000_000;

/** What the event loop of the gateway did in some time, in milliseconds: how late it was, and how long it was busy. */
interface Loop {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  readonly busy: number;
  readonly cpu: number;
}

interface Figures {
  readonly engine: string;
  /** The first turn after the start of the gateway, in milliseconds. */
  readonly first: number;
  /** Median of the turns after it, in milliseconds. */
  readonly turn: number;
  readonly slowest: number;
  readonly loop: Loop;
  /** Messages in the last request to the model. */
  readonly sent: number;
}

async function measure(engine: string): Promise<Figures> {
  const folder = await mkdtemp(join(tmpdir(), "context-sidecar-bench-"));
  const file = join(folder, "event-loop.json");
  process.env["EVENT_LOOP_FILE"] = file;
  const model = new ScriptedModel();
  const plugin = { engine, command: [PYTHON, "-m", "sidecar.cli.main", "serve"] };
  const gateway = await Gateway.configure(folder, await model.listen(), plugin, {
    builtIn: engine === BUILT_IN,
    contextWindow: WINDOW,
    nodeOptions: ["--import", join(HERE, "event-loop.mjs")],
  });
  try {
    await gateway.start();
    await gateway.turn(KEY, "The conversation begins.");
    await gateway.stop();
    const database = join(folder, "state/agents/main/agent/openclaw-agent.sqlite");
    execFileSync(PYTHON, [join(HERE, "seed.py"), database, String(MESSAGES)], { stdio: "inherit" });
    await gateway.start();
    const first = await duration(gateway, "The first turn on the long conversation.");
    await loop(file);
    const durations: number[] = [];
    for (let turn = 1; turn <= TURNS; turn += 1) durations.push(await duration(gateway, `Measured turn ${turn}.`));
    const sorted = durations.toSorted((a, b) => a - b);
    const turn = sorted[Math.floor(sorted.length / 2)] as number;
    const sent = model.requests.at(-1)?.messages.length ?? 0;
    return { engine, first, turn, slowest: sorted.at(-1) as number, loop: await loop(file), sent };
  } finally {
    await gateway.stop();
    model.close();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** How long the gateway says that a turn took, in milliseconds. */
async function duration(gateway: Gateway, text: string): Promise<number> {
  const out = await gateway.command(["agent", "--session-key", KEY, "-m", text, "--json"]);
  const found = /"durationMs": *(\d+)/.exec(out);
  if (found === null) throw new Error(`no duration in ${out}`);
  return Number(found[1]);
}

/** What the event loop of the gateway did since the last time. */
async function loop(file: string): Promise<Loop> {
  rmSync(file, { force: true });
  writeFileSync(`${file}.ask`, "");
  await until(() => existsSync(file), "the gateway to tell of its event loop");
  return JSON.parse(readFileSync(file, "utf8")) as Loop;
}

function table(rows: readonly Figures[]): string[] {
  const [base] = rows as [Figures, ...Figures[]];
  const ratio = (own: number, other: number) => `${own} (${(own / Math.max(other, 0.1)).toFixed(2)}x)`;
  const cells = rows.map(({ engine, first, turn, slowest, loop: { p50, p99, max, busy, cpu }, sent }) => [
    engine,
    ratio(first, base.first),
    ratio(turn, base.turn),
    String(slowest),
    `${p50} / ${p99} / ${max}`,
    ratio(Math.round(busy / TURNS), Math.round(base.loop.busy / TURNS)),
    ratio(Math.round(cpu / TURNS), Math.round(base.loop.cpu / TURNS)),
    String(sent),
  ]);
  const head = ["engine", "first turn", "turn (median)", "slowest", "loop late p50 / p99 / max", "loop busy a turn", "gateway CPU a turn", "sent"];
  const widths = head.map((title, column) => Math.max(...[head, ...cells].map((row) => (row[column] ?? title).length)));
  return [head, ...cells].map((row) => row.map((cell, column) => cell.padEnd(widths[column] as number)).join("  ").trimEnd());
}

const rows: Figures[] = [];
for (const engine of [BUILT_IN, ...ENGINES]) rows.push(await measure(engine));
console.log(`OpenClaw, a session of ${MESSAGES} messages, ${TURNS} turns; milliseconds, and how many times ${BUILT_IN}`);
for (const line of table(rows)) console.log(line);
