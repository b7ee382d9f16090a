"""`python -m tests.bench.inspector`: the inspector's pages of 10,000 messages, by the trace of Chromium.

The first paint counts from the request of the page; tasks are those of the page's main thread, while it loads
and while it is scrolled down.
"""

import asyncio
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.async_api import Browser, async_playwright

from tests.client_kit import Message, assistant, user, write_lines
from tests.e2e.inspector_process import Inspector

TURNS = 2_500
BUDGET = 32_000
FIRST_PAINT = """new Promise(done => new PerformanceObserver(list => {
    const [paint] = list.getEntriesByName("first-contentful-paint");
    if (paint) done(paint.startTime);
}).observe({ type: "paint", buffered: true }))"""
CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]
QUERY = urlencode({"source": "transcript", "engine": "default", "budget": BUDGET})
PAGES = {
    "session, first look": f"session?{QUERY}",
    "turn 5": f"turn?{QUERY}&turn=5",
    "session, all played": f"session?{QUERY}",
    "newest turn": f"turn?{QUERY}",
    "messages": f"messages?{QUERY}",
    "compare": f"compare?{QUERY}&other=2400",
}


def agent(turns: int) -> list[Message]:
    """Turns of a question, a call, its result and an answer."""
    rows: list[Message] = []
    for turn in range(turns):
        function = {"name": "read", "arguments": json.dumps({"path": f"src/part{turn}/file.py"})}
        calls = [{"id": f"c{turn}", "type": "function", "function": function}]
        rows += [
            user(f"Question {turn}: what does `part{turn}` do, and **why** does it fail on Tuesdays?"),
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{turn}", "content": f"def part{turn}(): ...\n" * 60},
            assistant(f"`part{turn}` reads the wrong day:\n\n- one\n- two\n\n```py\nx = 1\n```"),
        ]
    return rows


async def look(browser: Browser, address: str) -> tuple[float, float, float]:
    """Milliseconds to the first paint, of the longest task while it loads, and while it is scrolled."""
    page = await browser.new_page(viewport={"width": 1280, "height": 900})
    await browser.start_tracing(page=page, categories=CATEGORIES)
    await page.goto(address, wait_until="load")
    paint = await page.evaluate(FIRST_PAINT)
    loading = longest_task(await browser.stop_tracing())
    await browser.start_tracing(page=page, categories=CATEGORIES)
    await page.mouse.move(600, 400)
    height = await page.evaluate("document.documentElement.scrollHeight")
    for _ in range(min(200, height // 400 + 1)):
        await page.mouse.wheel(0, 400)
        await page.evaluate("new Promise(requestAnimationFrame)")
    scrolling = longest_task(await browser.stop_tracing())
    await page.close()
    return paint, loading, scrolling


def longest_task(trace: bytes) -> float:
    """Milliseconds of the longest task on a renderer's main thread."""
    events: list[dict[str, Any]] = json.loads(trace)["traceEvents"]
    mains = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"]["name"] == "CrRendererMain"
    }
    tasks = (
        event["dur"] / 1000
        for event in events
        if event["name"].endswith("RunTask") and (event["pid"], event["tid"]) in mains and "dur" in event
    )
    return max(tasks, default=0.0)


async def measure(inspector: Inspector) -> None:
    """Print a row for every page."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    print(f"{'page':22} {'paint ms':>9} {'load task':>10} {'scroll task':>12}")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for name, path in PAGES.items():
            if name == "session, all played":
                began = time.monotonic()
                await asyncio.to_thread(inspector.ask, f"{inspector.below}turn?{QUERY}", patience_s=600)
                print(f"({4 * TURNS:,} messages are played within {time.monotonic() - began:.0f} s more)")
            paint, loading, scrolling = await look(browser, inspector.address + path)
            print(f"{name:22} {paint:9.0f} {loading:10.1f} {scrolling:12.1f}", flush=True)
        await browser.close()


def main() -> int:
    """Measure; returns the exit code."""
    with tempfile.TemporaryDirectory() as home:
        file = write_lines(Path(home) / "long.jsonl", agent(TURNS))
        inspector = Inspector(Path(home), str(file), "--engine", "default", "--budget", str(BUDGET))
        try:
            asyncio.run(measure(inspector))
        finally:
            inspector.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
