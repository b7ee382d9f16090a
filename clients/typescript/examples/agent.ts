/** An agent in one file: answers the lines of standard input, and leaves its memory to the sidecar. */

import { createInterface } from "node:readline/promises";
import { SidecarClient } from "context-sidecar-client";

const env = process.env;
const sessionId = env["SESSION"] ?? "agent";
const tokenBudget = Number(env["TOKEN_BUDGET"] ?? 100_000);
const instructions = "You are a helpful assistant. Answer briefly.";

interface ToolCall {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

interface ChatMessage {
  readonly role: string;
  readonly content: string | null;
  readonly tool_calls?: readonly ToolCall[];
}

const sidecar = new SidecarClient({
  command: env["CONTEXT_SIDECAR"], // Looked for in PATH unless set.
  stateDir: env["CONTEXT_SIDECAR_STATE_DIR"],
  host: { id: "example-agent" },
  engine: env["ENGINE"] ?? "default",
  requests: {
    // The sidecar has its summaries written by the same model.
    "runtime/complete": async ({ messages, systemPrompt, maxTokens }, signal) => {
      const system = systemPrompt ? [{ role: "system", content: systemPrompt }] : [];
      const answer = await ask({ messages: [...system, ...messages], max_tokens: maxTokens }, signal);
      return { text: answer.content ?? "" };
    },
  },
});

const clock = { name: "clock", description: "Tells date and time.", inputSchema: { type: "object", properties: {} } };
const { tools: recall } = await sidecar.request("tools/list", {});
const tools = [clock, ...recall].map(({ name, description, inputSchema }) => {
  return { type: "function", function: { name, description, parameters: inputSchema } };
});

/** One request to the model; what it said. */
async function ask(body: object, signal?: AbortSignal): Promise<ChatMessage> {
  const response = await fetch(`${env["OPENAI_BASE_URL"] ?? "https://api.openai.com/v1"}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${env["OPENAI_API_KEY"] ?? ""}` },
    body: JSON.stringify({ model: env["MODEL"] ?? "gpt-5-mini", ...body }),
    signal: signal ?? null,
  });
  if (!response.ok) throw new Error(`the model answered ${response.status}: ${await response.text()}`);
  return ((await response.json()) as { choices: { message: ChatMessage }[] }).choices[0]!.message;
}

/** Stores a message; what was stored survives everything. */
async function remember(message: object): Promise<void> {
  await sidecar.request("context/ingest", { sessionId, message });
}

/** The result of a tool: of ours, or of the sidecar, by which the model looks up what it no longer sees. */
async function run(call: ToolCall): Promise<string> {
  try {
    if (call.function.name === clock.name) return new Date().toString();
    const args = JSON.parse(call.function.arguments) as Record<string, unknown>;
    const { content } = await sidecar.request("tools/call", { sessionId, name: call.function.name, arguments: args });
    return content.map(({ text }) => text).join("\n");
  } catch (error) {
    return `The tool has failed: ${String(error)}`;
  }
}

/** One turn: from what the user says to what the model answers, with all calls of tools between. */
async function turn(text: string): Promise<string> {
  const { userMessageAppend } = await sidecar.assemble({ sessionId, tokenBudget, prompt: text, messages: [] });
  await remember({ role: "user", content: [text, userMessageAppend].filter(Boolean).join("\n\n") });
  for (;;) {
    const { messages, systemPromptAddition } = await sidecar.assemble({ sessionId, tokenBudget });
    const system = { role: "system", content: [instructions, systemPromptAddition].filter(Boolean).join("\n\n") };
    const answer = await ask({ messages: [system, ...messages], tools });
    await remember(answer);
    if (!answer.tool_calls?.length) return answer.content ?? "";
    for (const call of answer.tool_calls) await remember({ role: "tool", tool_call_id: call.id, content: await run(call) });
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(await turn(line));
  await sidecar.request("context/afterTurn", { sessionId, tokenBudget });
  const { action } = await sidecar.request("context/preflight", { sessionId, tokenBudget });
  if (action === "compact") await sidecar.request("context/compact", { sessionId, tokenBudget });
}
await sidecar.close();
