import assert from "node:assert/strict";
import { test } from "node:test";
import { html, Html } from "../../src/panel/escaping.js";
import { page } from "../../src/panel/page.js";
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

function shown(changes: Partial<Preview> = {}, title = "s"): string {
  return page({ title, about: "", preview: preview(changes), hasPrevious: true, hasNext: false }, NONCE);
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
