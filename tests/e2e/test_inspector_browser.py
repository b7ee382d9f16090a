"""The inspector's pages in a real browser: legible, usable by keyboard, live, safe from what they show."""

from __future__ import annotations

import json
import shutil
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import pytest

from sidecar.cli.inspector.pages import PAGE
from sidecar.client import SidecarClient
from tests.client_kit import (
    SERVE,
    Message,
    assistant,
    conversation,
    user,
    with_sidecar,
    within_limit,
    write_lines,
)
from tests.e2e.inspector_process import Inspector
from tests.npm_packages import installed

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]

T = TypeVar("T")

WIDTHS = (320, 1280, 2560)
THEMES = ("light", "dark")
BUDGET = 6000
DEMO = Path("sidecar/cli/demo_session.jsonl").absolute()
TALK = urlencode({"source": "session/talk", "engine": "default", "budget": BUDGET})
HOSTILE = (
    "<script>document.title = 'owned'</script> [link](javascript:alert(1)) ![x](http://evil.example/x.png) "
    "<img src=x onerror=\"document.title = 'owned'\"> <style>* { display: none }</style> \u202edesrever"
)
HUGE = "x" * 1_000_000
RESULT = "A line of output.\n" * 350_000
"""Some 6 MB."""
BACKWARDS = "שלום עולם, زندگی زیباست."


def in_browser(work: Callable[[Page], Awaitable[T]], theme: str = "light", width: int = 1280) -> T:
    """What `work` makes with a page of Debian's Chromium."""
    from playwright.async_api import async_playwright

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))

    async def inside() -> T:
        async with AsyncExitStack() as stack:
            playwright = await stack.enter_async_context(async_playwright())
            browser = await playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            stack.push_async_callback(browser.close)
            size = {"width": width, "height": 900}
            context = await browser.new_context(viewport=size, color_scheme=theme)  # pyright: ignore
            return await work(await context.new_page())

    return within_limit(inside())


def called(text: str, arguments: str) -> Message:
    function = {"name": "look<script>", "arguments": arguments}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Inspector, Path]]:
    """An inspector of a store with a session of long and of hostile messages."""
    state = tmp_path_factory.mktemp("state")

    async def tell(client: SidecarClient) -> None:
        for message in conversation(12, 400):
            await client.ingest("talk", message)
        hostile = [
            user(HOSTILE),
            called(BACKWARDS, json.dumps({"code": HOSTILE, "line": HUGE})),
            {"role": "tool", "tool_call_id": "c1", "content": RESULT},
            assistant(HUGE),
        ]
        for message in hostile:
            await client.ingest("hostile", message)

    with_sidecar(state, tell, engine="default")
    found = Inspector(state, "--engine", "default", "--budget", str(BUDGET))
    yield found, state
    assert found.close() == 0


def views(inspector: Inspector) -> dict[str, str]:
    """The address of every page, by its name."""
    turn = f"{TALK}&turn=12"
    ref = inspector.page("turn", source="session/talk", engine="default", budget=BUDGET, turn=12)
    opened = ref.split('href="summary?', 1)[1].split('"', 1)[0].replace("&amp;", "&")
    return {
        "sessions": "",
        "session": f"session?{TALK}",
        "turn": f"turn?{turn}",
        "summary": f"summary?{opened}",
        "compare": f"compare?{turn}&otherEngine=full",
        "messages": f"messages?{TALK}",
        "search": "search?q=river",
        "problem": "session?source=session/nowhere",
    }


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_is_accessible_and_fits_its_window(
    stored: tuple[Inspector, Path], theme: str, width: int
) -> None:
    inspector, _ = stored
    axe = (installed(Path(__file__).parent / "browser-scripts") / "axe-core" / "axe.min.js").read_text(
        "utf-8"
    )
    pages = views(inspector)

    async def look(page: Page) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, path in pages.items():
            await page.goto(inspector.address + path, wait_until="load")
            for details in await page.query_selector_all("details"):
                await details.evaluate("details => details.open = true")
            await page.evaluate(axe)
            result = await page.evaluate("axe.run()")
            wrong = [f"{one['id']}: {one['nodes'][0]['html']}" for one in result["violations"]]
            wide = await page.evaluate("document.documentElement.scrollWidth")
            found[name] = wrong + ([f"{wide} pixels wide"] if wide > width else [])
        return found

    assert in_browser(look, theme, width) == {name: [] for name in pages}


def test_what_messages_say_is_inert_and_legible(stored: tuple[Inspector, Path]) -> None:
    inspector, _ = stored
    query = urlencode({"source": "session/hostile", "engine": "full", "budget": 10_000_000})

    async def look(page: Page) -> None:
        asked: list[str] = []
        complaints: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        for name in ("messages", "turn", "compare", "session"):
            await page.goto(f"{inspector.address}{name}?{query}", wait_until="load")
            assert "owned" not in await page.title()
            assert (
                await page.locator(
                    "main script, main style, main article img, main article a[href^=java]"
                ).count()
                == 0
            )
        await page.goto(f"{inspector.address}messages?{query}")
        said = page.locator("#m1 .body")
        assert await said.is_visible()
        text = await said.inner_text()
        assert "<script>document.title = 'owned'</script>" in text
        assert "⟨U+202E⟩desrever" in text
        backwards = page.locator("#m2 > .body")
        assert await backwards.inner_text() == BACKWARDS
        assert await backwards.evaluate("one => getComputedStyle(one).direction") == "rtl"
        await page.locator("#m2 summary").click()
        assert HOSTILE[:40] in await page.locator("#m2 details .body").inner_text()
        await page.locator("#m3 summary").click()
        assert "A line of output." in await page.locator("#m3 details .body").inner_text()
        assert (await page.locator("#m3").inner_text()).count("more characters") == 1
        for number in (1, 2, 3, 4):
            box = await page.locator(f"#m{number}").bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= 1280
        whole = await page.request.get(f"{inspector.address}message?{query}&at=3")
        assert json.loads(await whole.body())["content"] == RESULT
        assert all(url.startswith(inspector.address) for url in asked), asked
        assert complaints == []

    in_browser(look)


def test_a_page_follows_a_session_that_grows_and_keeps_the_focus(stored: tuple[Inspector, Path]) -> None:
    inspector, state = stored
    query = urlencode({"source": "session/live", "engine": "full", "budget": BUDGET})

    async def look(page: Page) -> None:
        async with SidecarClient.start(SERVE, state_dir=state, engine="full") as client:
            await client.ingest("live", user("First question"))
            await page.goto(f"{inspector.address}session?{query}")
            await page.get_by_role("link", name="t1").focus()
            await page.evaluate("window.sameDocument = true")
            await client.ingest("live", assistant("First answer"))
            await client.ingest("live", user("Second question"))
            await page.get_by_role("link", name="t2").wait_for()
            assert await page.evaluate("window.sameDocument")
            assert await page.evaluate("document.activeElement.tagName") == "A"
            assert await page.locator("#said").inner_text() == "The page has been updated."
            await client.ingest("live", assistant("Second answer"))
            row = page.locator("tbody tr").first
            await row.get_by_role("cell", name="2", exact=True).first.wait_for()

    in_browser(look)


def test_the_pages_are_used_with_the_keyboard_alone(stored: tuple[Inspector, Path]) -> None:
    inspector, _ = stored

    async def look(page: Page) -> None:
        await page.goto(f"{inspector.address}turn?{TALK}&turn=12", wait_until="load")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == "Skip to content"
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == "previous turn"
        await page.keyboard.press("Enter")
        await page.wait_for_url("**turn=11**")
        opens = page.get_by_role("link", name="open", exact=True).first
        await opens.focus()
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/summary?**")
        assert await page.locator("article").count() > 1

    in_browser(look)


def test_pins_forks_and_prices_are_set_on_the_page(stored: tuple[Inspector, Path]) -> None:
    inspector, _ = stored

    async def look(page: Page) -> None:
        await page.goto(f"{inspector.address}turn?{TALK}&turn=12")
        await page.get_by_role("button", name="Pin message").first.click()
        await page.get_by_role("button", name="Unpin").click()
        await page.wait_for_load_state()
        assert await page.get_by_role("button", name="Unpin").count() == 0
        await page.get_by_text("Prices", exact=True).click()
        cost = page.locator(".costs strong").first
        before = float((await cost.inner_text()).strip("$"))
        new, cached = page.get_by_label("New", exact=True), page.get_by_label("Cached", exact=True)
        await new.fill("7.5")
        await cached.fill("0.6")
        await page.get_by_role("button", name="Use these").click()
        await page.wait_for_load_state()
        assert float((await cost.inner_text()).strip("$")) == pytest.approx(2 * before, abs=0.0002)
        await page.get_by_label("Fork as").fill("twin")
        await page.get_by_role("button", name="Fork").click()
        await page.goto(inspector.address)
        await page.get_by_role("link", name="twin").click()
        await page.wait_for_url("**session%2Ftwin**")

    in_browser(look)


def test_a_page_of_a_conversation_of_ten_thousand_messages_stays_small(tmp_path: Path) -> None:
    rows = conversation(5000, 40)
    inspector = Inspector(
        tmp_path / "state", str(write_lines(tmp_path / "long.jsonl", rows)), "--engine", "full"
    )

    async def look(page: Page) -> None:
        for name in ("session", "messages", "turn?turn=50&"):
            path = name if "?" in name else f"{name}?"
            query = urlencode({"source": "transcript", "engine": "full", "budget": 8000})
            await page.goto(inspector.address + path + query, wait_until="load")
            assert await page.locator("tbody tr, article").count() <= PAGE, name
            assert await page.evaluate("document.querySelectorAll('*').length") < 40 * PAGE, name

    try:
        in_browser(look)
    finally:
        assert inspector.close() == 0
