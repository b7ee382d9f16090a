/** A scripted model on loopback that speaks the chat completions protocol and remembers every request. */

import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface ChatMessage {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly { readonly id: string; readonly function: { readonly name: string } }[];
  readonly tool_call_id?: string;
}

export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
}

/** What the model does: say something, call a tool, or refuse for the length of the prompt. */
export type Reply =
  | { readonly say: string }
  | { readonly call: string; readonly with: Readonly<Record<string, unknown>> }
  | { readonly overflow: true };

/** Tells the reply from the request. */
export type Script = (request: ChatRequest) => Reply;

export class ScriptedModel {
  /** All requests, oldest first. */
  readonly requests: ChatRequest[] = [];
  script: Script = () => ({ say: "ok" });
  #server: Server | undefined;
  #calls = 0;

  /** Listens on a free port of 127.0.0.1; answers with its base URL. */
  async listen(): Promise<string> {
    const server = createServer((request, response) => void this.#serve(request, response));
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  }

  close(): void {
    this.#server?.closeAllConnections();
    this.#server?.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    if (request.method !== "POST") return void response.writeHead(404).end();
    const asked = JSON.parse(body) as ChatRequest;
    this.requests.push(asked);
    this.#calls += 1;
    const reply = this.script(asked);
    if ("overflow" in reply) {
      const error = {
        code: "context_length_exceeded",
        type: "invalid_request_error",
        message: "This model's maximum context length is 8000 tokens. Your messages are longer.",
      };
      response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const chunk of chunks(reply, this.#calls)) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    response.end("data: [DONE]\n\n");
  }
}

function chunks(reply: Exclude<Reply, { overflow: true }>, number: number): unknown[] {
  const common = { id: `chatcmpl-${number}`, object: "chat.completion.chunk", created: 1, model: "scripted-1" };
  const tool = (called: { call: string; with: object }) => ({
    index: 0,
    id: `call_${number}`,
    type: "function",
    function: { name: called.call, arguments: JSON.stringify(called.with) },
  });
  const delta = "call" in reply ? { role: "assistant", tool_calls: [tool(reply)] } : { role: "assistant", content: reply.say };
  const finish_reason = "call" in reply ? "tool_calls" : "stop";
  return [
    { ...common, choices: [{ index: 0, delta, finish_reason: null }] },
    { ...common, choices: [{ index: 0, delta: {}, finish_reason }] },
    { ...common, choices: [], usage: { prompt_tokens: 100, completion_tokens: 5, total_tokens: 105 } },
  ];
}

/** Calls a tool once, then answers. */
export function toolOnce(name: string, args: Readonly<Record<string, unknown>>, answer: string): Script {
  let called = false;
  return () => {
    if (called) return { say: answer };
    called = true;
    return { call: name, with: args };
  };
}
