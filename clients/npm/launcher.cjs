#!/usr/bin/env node
"use strict";
/**
 * Starts the program in place of this process, or, where Node cannot do that, as a child that inherits the three standard
 * descriptors. No byte that passes is read here.
 */

const { spawn } = require("node:child_process");
const { isatty } = require("node:tty");
const { program, ProgramMissing } = require("./index.cjs");

const SIGNALS = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGUSR2"];

function main() {
  const path = program();
  const args = process.argv.slice(2);
  // Node 22.15 and newer, but for Windows.
  if (typeof process.execve === "function" && process.platform !== "win32") process.execve(path, [path, ...args], process.env);
  const child = spawn(path, args, { stdio: "inherit", windowsHide: true });
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      // A terminal interrupts the whole group, the child among it.
      if (!((signal === "SIGINT" || signal === "SIGQUIT") && isatty(0))) child.kill(signal);
    });
  }
  child.on("error", (error) => fail(`${path} does not start: ${error.message}`));
  child.on("exit", (code, signal) => {
    if (signal === null) process.exit(code);
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

function fail(message) {
  process.stderr.write(`context-sidecar: ${message}\n`);
  process.exitCode = 1;
}

try {
  main();
} catch (error) {
  if (!(error instanceof ProgramMissing)) throw error;
  fail(error.message);
}
