// Plays a script of requests and notifications through vscode-jsonrpc, and prints what came back.
//
// node client.mjs SCRIPT COMMAND [ARGUMENT...]

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { StreamMessageReader, StreamMessageWriter, createMessageConnection } from 'vscode-jsonrpc/node.js';

const [script, command, ...args] = process.argv.slice(2);
const server = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const ended = once(server, 'exit');
const connection = createMessageConnection(
  new StreamMessageReader(server.stdout),
  new StreamMessageWriter(server.stdin),
);
connection.listen();

const results = [];
for (const step of JSON.parse(readFileSync(script, 'utf-8'))) {
  if (step.kind === 'request') {
    results.push(await connection.sendRequest(step.method, step.params));
  } else {
    await connection.sendNotification(step.method, step.params);
  }
}
const [exitCode] = await ended;
connection.dispose();
process.stdout.write(`${JSON.stringify({ results, exitCode })}\n`);
