// Preloaded into a process: whenever the file named by EVENT_LOOP_FILE with `.ask` behind it is there, tells in the file
// itself how late the event loop was since the time before, and how long it was busy, in milliseconds.
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { monitorEventLoopDelay, performance } from "node:perf_hooks";

const RESOLUTION_MS = 5;
const file = process.env.EVENT_LOOP_FILE;
const delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
let since = performance.eventLoopUtilization();
let cpu = process.cpuUsage();

function tell() {
  if (!existsSync(`${file}.ask`)) return;
  const late = (nanoseconds) => Math.max(0, Math.round((nanoseconds / 1e6 - RESOLUTION_MS) * 10) / 10);
  const now = performance.eventLoopUtilization();
  const used = process.cpuUsage(cpu);
  const told = {
    p50: late(delays.percentile(50)),
    p99: late(delays.percentile(99)),
    max: late(delays.max),
    busy: Math.round(performance.eventLoopUtilization(now, since).active),
    cpu: Math.round((used.user + used.system) / 1000),
  };
  writeFileSync(`${file}.new`, JSON.stringify(told));
  rmSync(`${file}.ask`);
  renameSync(`${file}.new`, file);
  since = now;
  cpu = process.cpuUsage();
  delays.reset();
}

// Node preloads into worker threads too; the loop that is measured is the main one.
const { isMainThread } = await import("node:worker_threads");
if (file !== undefined && isMainThread) {
  delays.enable();
  setInterval(tell, 100).unref();
}
