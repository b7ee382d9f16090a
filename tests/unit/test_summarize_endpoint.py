"""A model behind an endpoint that answers, stumbles, refuses, or stays silent."""

import asyncio
import logging

import pytest
from aiohttp import web

from sidecar.summarize.endpoint import EndpointModel, EndpointSettings, ModelFailed
from sidecar.summarize.limits import CircuitBreaker, SpendGuard
from tests.model_server import ModelServer, Script

KEY = "a-key-that-nobody-may-see"


def _settings(url: str, **members: object) -> EndpointSettings:
    return EndpointSettings(base_url=url, model="small-1", api_key=KEY, **members)  # pyright: ignore


def _asked(server: ModelServer, times: int = 1, **members: object) -> list[str]:
    """The model's text of each call, or the reason for its failure."""
    limits = {name: members.pop(name) for name in ("guard", "breaker") if name in members}

    async def ask() -> list[str]:
        model = EndpointModel(_settings(server.url, **members), **limits)  # pyright: ignore
        said: list[str] = []
        for _ in range(times):
            try:
                said.append(await model("summary", [("user", "Shorten this.")], "Be brief.", 50))
            except ModelFailed as error:
                said.append(f"failed: {error}")
        await model.close()
        return said

    return asyncio.run(ask())


def test_a_question_is_a_chat_completion_with_the_key() -> None:
    with ModelServer(lambda body, number: "Short.") as server:
        assert _asked(server) == ["Short."]
    assert server.requests[0] == {
        "model": "small-1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Shorten this."},
        ],
        "max_tokens": 50,
    }
    assert server.keys == [f"Bearer {KEY}"]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failure_that_may_pass_is_tried_again(status: int) -> None:
    def script(body: object, number: int) -> str | web.Response:
        return web.Response(status=status) if number == 1 else "Short."

    with ModelServer(script) as server:
        assert _asked(server) == ["Short."]
    assert len(server.requests) == 2


@pytest.mark.parametrize("status", [400, 401, 404])
def test_a_refusal_is_not_tried_again(status: int) -> None:
    with ModelServer(lambda body, number: web.Response(status=status, text=KEY)) as server:
        (said,) = _asked(server)
    assert len(server.requests) == 1 and str(status) in said and KEY not in said


def test_tries_are_bounded() -> None:
    with ModelServer(lambda body, number: web.Response(status=503)) as server:
        (said,) = _asked(server, retries=1)
    assert said.startswith("failed") and len(server.requests) == 2


def test_a_pause_that_the_endpoint_asks_for_ends_with_the_time_limit() -> None:
    def script(body: object, number: int) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": "3600"})

    with ModelServer(script) as server:
        (said,) = _asked(server, timeout_seconds=0.2)
    assert "no answer within 0.2 s" in said and len(server.requests) == 1


def test_a_model_that_never_answers_is_not_waited_for() -> None:
    with ModelServer(lambda body, number: None) as server:
        (said,) = _asked(server, timeout_seconds=0.2)
    assert "no answer within 0.2 s" in said


@pytest.mark.parametrize("answer", ["no JSON", "[]", '{"choices":[]}', '{"choices":[{"message":{}}]}'])
def test_an_answer_that_says_nothing_is_empty_or_a_failure(answer: str) -> None:
    with ModelServer(lambda body, number: web.Response(text=answer)) as server:
        (said,) = _asked(server, retries=0)
    assert said == "" or said.startswith("failed")


def test_a_redirect_is_not_followed() -> None:
    with ModelServer(lambda body, number: "Short.") as other:

        def script(body: object, number: int) -> web.Response:
            return web.Response(status=307, headers={"Location": f"{other.url}/chat/completions"})

        with ModelServer(script) as server:
            (said,) = _asked(server)
    assert "307" in said and not other.requests


def test_an_endpoint_that_wants_the_newer_limit_gets_it() -> None:
    def script(body: dict[str, object], number: int) -> str | web.Response:
        if "max_tokens" in body:
            return web.Response(status=400, text="use max_completion_tokens")
        return f"At most {body['max_completion_tokens']}."

    with ModelServer(script) as server:
        assert _asked(server, times=2) == ["At most 50.", "At most 50."]
    assert len(server.requests) == 3


def test_no_endpoint_at_all_is_a_failure() -> None:
    with ModelServer(lambda body, number: "Short.") as server:
        pass
    (said,) = _asked(server, retries=0)
    assert "cannot be reached" in said


def test_consecutive_failures_pause_the_model_until_a_later_trial(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    script: Script = lambda body, number: web.Response(status=400) if number <= 3 else "Short."  # noqa: E731
    with ModelServer(script) as server, caplog.at_level(logging.WARNING):
        breaker = CircuitBreaker(open_seconds=60, clock=lambda: now[0])
        said = _asked(server, times=5, breaker=breaker)
        assert len(server.requests) == 3 and "paused" in said[4]
        now[0] = 61
        assert _asked(server, breaker=breaker) == ["Short."]
    assert "too many consecutive failures" in caplog.text
    assert KEY not in caplog.text and "Shorten" not in caplog.text


def test_calls_within_a_window_are_limited(caplog: pytest.LogCaptureFixture) -> None:
    with ModelServer(lambda body, number: "Short.") as server:
        said = _asked(server, times=4, guard=SpendGuard(2, 600, clock=lambda: 0.0))
    assert said[:2] == ["Short.", "Short."] and all("limit on calls" in text for text in said[2:])
    assert len(server.requests) == 2 and "limit on calls" in caplog.text


def test_the_key_is_in_no_representation() -> None:
    assert KEY not in repr(_settings("http://127.0.0.1/v1"))
