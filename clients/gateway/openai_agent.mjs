// An agent on OpenAI's SDK for Node, with the Responses API. It keeps its whole history.
import OpenAI from "openai";

const steps = Number(process.argv[2] ?? 20);
const tool = {
  type: "function",
  name: "read_page",
  description: "Read one page of the report.",
  parameters: { type: "object", properties: { page: { type: "integer" } }, required: ["page"] },
};

/** A page of some 800 tokens. */
function readPage({ page }) {
  const rows = Array.from({ length: 90 }, (_, row) => `Row ${page}.${row} has ${row * page} units.`);
  return `Page ${page}. ${rows.join(" ")}`;
}

const client = new OpenAI();
const history = [
  { role: "developer", content: "You audit reports page by page." },
  { role: "user", content: `Read ${steps} pages and say what you found.` },
];
for (;;) {
  const stream = client.responses.stream({ model: "gpt-5", input: history, tools: [tool], store: false });
  const answer = await stream.finalResponse();
  // The SDK adds what it has parsed, which the API does not take back.
  history.push(...answer.output.map(({ parsed_arguments, ...item }) => item));
  const calls = answer.output.filter((item) => item.type === "function_call");
  if (calls.length === 0) {
    console.log(answer.output_text);
    break;
  }
  for (const call of calls) {
    const output = readPage(JSON.parse(call.arguments));
    history.push({ type: "function_call_output", call_id: call.call_id, output });
  }
}
