// An agent on Anthropic's SDK for Node. It keeps its whole history.
import Anthropic from "@anthropic-ai/sdk";

const steps = Number(process.argv[2] ?? 20);
const tool = {
  name: "read_page",
  description: "Read one page of the report.",
  input_schema: { type: "object", properties: { page: { type: "integer" } }, required: ["page"] },
};

/** A page of some 800 tokens. */
function readPage({ page }) {
  const rows = Array.from({ length: 90 }, (_, row) => `Row ${page}.${row} has ${row * page} units.`);
  return `Page ${page}. ${rows.join(" ")}`;
}

const client = new Anthropic();
const history = [{ role: "user", content: `Read ${steps} pages and say what you found.` }];
for (;;) {
  const request = { model: "claude-sonnet-4-5", max_tokens: 1000, messages: history, tools: [tool] };
  const answer = await client.messages.stream(request).finalMessage();
  history.push({ role: "assistant", content: answer.content });
  const results = answer.content
    .filter((block) => block.type === "tool_use")
    .map((block) => ({ type: "tool_result", tool_use_id: block.id, content: readPage(block.input) }));
  if (results.length === 0) {
    console.log(answer.content.map((block) => block.text ?? "").join(""));
    break;
  }
  history.push({ role: "user", content: results });
}
