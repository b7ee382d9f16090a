// What a Node author would write: vscode-jsonrpc on standard streams, node:sqlite for what must last.
// Usage: node server.mjs [DATABASE single|group]
import { createMessageConnection, StreamMessageReader, StreamMessageWriter } from "vscode-jsonrpc/node";

const [path, mode] = process.argv.slice(2);
const connection = createMessageConnection(
  new StreamMessageReader(process.stdin),
  new StreamMessageWriter(process.stdout),
);

connection.onRequest("initialize", () => ({ capabilities: {}, serverInfo: { name: "node" } }));
connection.onRequest("bench/echo", (params) => params);
connection.onRequest("bench/messages", (params) => params);

if (path) {
  const { DatabaseSync } = await import("node:sqlite");
  const database = new DatabaseSync(path);
  database.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;");
  database.exec("CREATE TABLE message (session TEXT, n INTEGER, body TEXT, PRIMARY KEY (session, n))");
  const insert = database.prepare("INSERT INTO message VALUES (?, ?, ?)");
  const counts = new Map();
  const store = ({ sessionId, message }) => {
    const n = (counts.get(sessionId) ?? 0) + 1;
    counts.set(sessionId, n);
    insert.run(sessionId, n, JSON.stringify(message));
    return { ingested: true, messageId: `m${n}`, turnId: `t${n}` };
  };
  if (mode === "single") {
    connection.onRequest("context/ingest", store);
  } else {
    let waiting = [];
    const commit = () => {
      const batch = waiting;
      waiting = [];
      database.exec("BEGIN");
      const results = batch.map(({ params }) => store(params));
      database.exec("COMMIT");
      batch.forEach(({ resolve }, index) => resolve(results[index]));
    };
    connection.onRequest(
      "context/ingest",
      (params) =>
        new Promise((resolve) => {
          // The library handles one message a turn, so that only a timer gathers several.
          if (waiting.length === 0) setTimeout(commit, 1);
          waiting.push({ params, resolve });
        }),
    );
  }
}

connection.onClose(() => process.exit(0));
connection.listen();
