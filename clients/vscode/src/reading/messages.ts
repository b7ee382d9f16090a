/** What a message of any dialect says, for people. */

/** Who speaks, in words that all dialects share. */
export type Speaker = "system" | "user" | "assistant" | "tool" | "unknown";

export interface Spoken {
  readonly speaker: Speaker;
  readonly text: string;
}

type Members = Readonly<Record<string, unknown>>;

const SPEAKERS: Readonly<Record<string, Speaker>> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
  tool: "tool",
  function: "tool",
  toolResult: "tool",
};

/** What the message says; never fails, whatever the message is. */
export function spoken(message: unknown): Spoken {
  if (!isMembers(message)) return { speaker: "unknown", text: written(message) };
  const item = responsesItem(message);
  if (item !== undefined) return item;
  const parts = [content(message["content"]), ...toolCalls(message["tool_calls"])];
  const text = parts.filter((part) => part !== "").join("\n");
  const speaker = carriesResultsOnly(message["content"]) ? "tool" : SPEAKERS[String(message["role"])];
  return { speaker: speaker ?? "unknown", text };
}

/** The beginning of a text on one line, of at most so many characters. */
export function excerpt(text: string, most: number): string {
  // What is cut off needs no tidying: a message may have megabytes.
  const line = text.slice(0, most * 4).replace(/\s+/gu, " ").trim();
  const letters = [...line];
  return letters.length <= most ? line : `${letters.slice(0, most - 1).join("").trimEnd()}…`;
}

/** Items of the Responses dialect that are no messages. */
function responsesItem(item: Members): Spoken | undefined {
  switch (item["type"]) {
    case "function_call":
    case "custom_tool_call":
      return { speaker: "assistant", text: call(item["name"], item["arguments"] ?? item["input"]) };
    case "function_call_output":
    case "custom_tool_call_output":
      return { speaker: "tool", text: content(item["output"]) };
    case "reasoning":
      return { speaker: "assistant", text: content(item["summary"]) || "(reasoning)" };
    default:
      return undefined;
  }
}

function content(value: unknown): string {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return value === undefined || value === null ? "" : written(value);
  return value.map(part).filter((text) => text !== "").join("\n");
}

function part(value: unknown): string {
  if (!isMembers(value)) return written(value);
  switch (value["type"]) {
    case "tool_use":
      return call(value["name"], value["input"]);
    case "toolCall":
      return call(value["name"], value["arguments"]);
    case "tool_result":
      return content(value["content"]);
    case "thinking":
      return `(thinking) ${content(value["thinking"])}`;
    case "image":
    case "image_url":
    case "input_image":
      return "(image)";
    default:
      return typeof value["text"] === "string" ? value["text"] : written(value);
  }
}

function toolCalls(value: unknown): string[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isMembers).map((made) => {
    const called = isMembers(made["function"]) ? made["function"] : made;
    return call(called["name"], called["arguments"]);
  });
}

function call(name: unknown, given: unknown): string {
  return `→ ${typeof name === "string" ? name : "tool"}(${typeof given === "string" ? given : written(given ?? {})})`;
}

function carriesResultsOnly(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.every((one) => isMembers(one) && one["type"] === "tool_result");
}

function written(value: unknown): string {
  return JSON.stringify(value) ?? "";
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
