"""Injected text that comes back is not stored as a fact, not found again and not injected again."""

from pathlib import Path

from tests.e2e.memory_host import MemoryHost, appended

FACT = "The sister of the user is called Ragnhild Skjelbred."


def test_a_fact_is_injected_once_in_fifty_turns_in_which_it_is_quoted(tmp_path: Path) -> None:
    with MemoryHost(tmp_path, engine="full") as host:
        host.offer("facts", {"id": "sister", "content": FACT, "priority": 90})
        seen: list[str] = []
        for n in range(50):
            answer = host.ask(f"question {n}")
            text = appended(answer)
            seen.append(text)
            quote = f"As I know: {FACT}"
            if text:
                quote = f"{quote}\n{text}"
            host.commit(f"question {n}", answer, quote)
        assert [n for n, text in enumerate(seen) if FACT in text] == [0]
        assert sum(FACT in told["finalContent"] for told in host.injected()) == 1


def test_injected_text_is_not_found_by_searches(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("facts", {"id": "sister", "content": FACT})
        host.say("Who is my sister?", "I can tell you.")
        assert FACT in str(host.call("session/export", **host.about()))
        for mode in ("search", "relevant"):
            found = host.call(
                "tools/call",
                **host.about(),
                name="context_search",
                arguments={"mode": mode, "query": "Skjelbred"},
            )
            assert "Ragnhild" not in found["content"][0]["text"]


def test_a_prompt_that_carries_injected_text_is_asked_for_by_its_own_words(tmp_path: Path) -> None:
    with MemoryHost(tmp_path) as host:
        host.offer("facts", {"id": "sister", "content": FACT})
        text = appended(host.ask("Who is she?"))
        host.answerers["memory/getContext"] = None
        again = host.ask(f"Who is she?\n\n{text}")
        assert appended(again) == text


def test_what_is_recalled_and_quoted_in_fifty_turns_is_recalled_once_a_session(tmp_path: Path) -> None:
    config = {"plugins": {"slots": {"memory": ["history"]}}}
    with MemoryHost(tmp_path, engine="full", config=config, session="first") as host:
        host.say(FACT, "Noted.")
        for session in ("second", "third"):
            host.session, host.transcript = session, []
            seen: list[str] = []
            for n in range(25):
                answer = host.ask(f"Once more, {n}: what is the sister of the user called?")
                seen.append(appended(answer))
                host.commit(
                    f"Once more, {n}: what is the sister of the user called?", answer, f"It is known. {FACT}"
                )
            assert sum(text.count("Ragnhild Skjelbred") for text in seen) == 1
