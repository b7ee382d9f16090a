import assert from "node:assert/strict";
import { test } from "node:test";
import { html, Html } from "../../src/panel/escaping.js";
import { page } from "../../src/panel/page.js";
import { contextText } from "../../src/reading/context-text.js";
import type { Openings } from "../../src/sessions/history.js";
import type { Preview } from "../../src/sessions/previews.js";

const NONCE = "0123456789abcdef";
const HOSTILE = `</pre><script>alert(1)</script><img src=x onerror=alert(2)>"'&`;

function preview(changes: Partial<Preview> = {}): Preview {
  return {
    messages: [{ role: "user", content: "hello" }],
    composition: [{ kind: "recent", tokens: 400, messageCount: 1 }],
    tokens: 400,
    tokenBudget: 1_000,
    systemPromptAddition: undefined,
    userMessageAppend: undefined,
    decisions: [],
    injected: [],
    ...changes,
  };
}

function shown(changes: Partial<Preview> = {}, title = "s", openings: Openings = new Map()): string {
  return page({ title, about: "", preview: preview(changes), openings, hasPrevious: true, hasNext: false }, NONCE);
}

test("text is escaped wherever it is put in", () => {
  assert.equal(html`<b title="${'"<'}">${"&'>"}</b>`.markup, '<b title="&quot;&lt;">&amp;&#39;&gt;</b>');
  assert.equal(html`${[new Html("<i></i>"), html`${"<"}`]}${undefined}${3}`.markup, "<i></i>&lt;3");
});

test("nothing that anybody has said becomes markup", () => {
  const document = shown(
    {
      messages: [{ role: HOSTILE, content: HOSTILE }, { role: "user", content: [{ type: HOSTILE }] }],
      systemPromptAddition: HOSTILE,
      userMessageAppend: HOSTILE,
      decisions: [{ messageId: HOSTILE, turnId: HOSTILE, tokens: 1, decision: "sent", reason: HOSTILE }],
      injected: [{ pluginName: HOSTILE, injectionPoint: "per-message", tokens: 1, content: HOSTILE }],
    },
    HOSTILE,
    new Map([[HOSTILE, { speaker: "user", text: HOSTILE }]]),
  );
  assert.equal(document.match(/<script/g)?.length, 1);
  assert.ok(!document.includes("<img"));
  assert.ok(!document.includes("</pre><script"), "no message ends the element that it stands in");
});

test("only the page's own script and style may run, and nothing is loaded", () => {
  const document = shown().replaceAll("&#39;", "'");
  assert.ok(document.includes(`default-src 'none'; style-src 'nonce-${NONCE}'; script-src 'nonce-${NONCE}'`));
  assert.ok(!/ (style|on\w+)="/.test(document), "no attribute needs a weaker policy");
  assert.ok(!/https?:|url\(|@import/.test(document), "there is nothing to load");
});

test("the bar has a piece for each kind, as long as its share", () => {
  const document = shown({
    composition: [
      { kind: "recent", tokens: 250, messageCount: 3 },
      { kind: "summary", tokens: 100, messageCount: 1 },
      { kind: "memory", tokens: 0, messageCount: 0 },
    ],
  });
  const widths = [...document.matchAll(/<rect class="kind-(\w+)" x="([\d.]+)" y="0" width="([\d.]+)"/g)].map(([, ...found]) => found);
  assert.deepEqual(widths, [["summary", "0.000", "10.000"], ["recent", "10.000", "25.000"]]);
});

test("a page stays small, however long the context is", () => {
  const long = { role: "user", content: "x".repeat(5_000_000) };
  const many = Array.from({ length: 20_000 }, (_, number) => ({ role: "user", content: `message ${number}` }));
  assert.ok(shown({ messages: [long] }).length < 200_000);
  const document = shown({ messages: many });
  assert.ok(document.length < 400_000);
  assert.ok(document.includes("message 19999") && document.includes("19,000 earlier messages"));
});

test("the last turn has no later one to go to", () => {
  assert.match(shown(), /<button data-ask="next"[^>]* disabled>/);
  assert.match(shown(), /<button data-ask="previous" title="[^"]*" >/);
});

test("what became of a message is told with how it begins", () => {
  const decided = { turnId: "t1", tokens: 1, decision: "sent", reason: "newest" } as const;
  const decisions = [{ ...decided, messageId: "m-1" }, { ...decided, messageId: "m-2" }];
  const document = shown({ decisions }, "s", new Map([["m-1", { speaker: "tool", text: "42 files" }]]));
  assert.match(document, /<td title="m-1"><span class="speaker speaker-tool">tool<\/span> 42 files<\/td>/);
  assert.match(document, /<td title="m-2">m-2<\/td>/);
});

test("a summary is named and coloured as one, without its fence", () => {
  const fenced = "[ctx:summary:n1:123456789012345678]\nThe user asked for \u2018a\u2019. [\\ctx:note]\n[/ctx]";
  const document = shown({ messages: [{ role: "user", content: fenced }] });
  assert.match(document, /<article class="message made kind-summary"><h2>summary of earlier messages<\/h2>/);
  assert.ok(document.includes("The user asked for \u2018a\u2019. [ctx:note]"));
  assert.ok(!document.includes("[ctx:summary"));
  const text = contextText(preview({ messages: [{ role: "user", content: fenced }] }));
  assert.match(text, /─── summary of earlier messages ───\n\nThe user asked/);
});

test("a text that only mentions a fence is its author's", () => {
  const said = "Look: [ctx:summary:n1:123456789012345678]\nx\n[/ctx]";
  for (const content of [said, `${said.slice(6)} and more`, "[ctx:summary:n1:12]\nx\n[/ctx]", "[ctx:odd:n1:123456789012345678]\nx\n[/ctx]"]) {
    assert.match(shown({ messages: [{ role: "user", content }] }), /<article class="message speaker-user">/);
  }
});
