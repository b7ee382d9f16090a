"""A host with the gallery of broken engines, which run in the sidecar's process or in one of their own."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e.judge import problems
from tests.e2e.sidecar_host import Host
from tests.e2e.talk import Talk, turns

GALLERY = Path(__file__).parent / "engines" / "gallery"
BUDGET = 600
OTHER = "served by another engine"


def configured(
    folder: Path,
    isolation: str,
    limits: str = "compact = 5000",
    environment: dict[str, str] | None = None,
    more: str = "",
    **options: Any,
) -> Host:
    """A host whose sidecar has the engines of the gallery; `limits` are of the time of their calls.

    `more` stands at the end of the configuration.
    """
    config = folder / "config.toml"
    config.write_text(
        f'[plugins.load]\npaths = ["{GALLERY}"]\n'
        f'[plugins.entries.gallery]\nisolation = "{isolation}"\nmemoryLimitMb = 256\n'
        f"[plugins.entries.gallery.timeoutsMs]\n{limits}\n{more}",
        encoding="utf-8",
    )
    found = {"CONTEXT_SIDECAR_CONFIG": str(config), **(environment or {})}
    return Host(folder / "state", environment=found, **{"engine": "gallery", **options})


def tell(host: Host, session: str, numbers: Sequence[int] = range(1, 9)) -> None:
    """Store some turns in a session."""
    host.call("context/ingestBatch", sessionId=session, messages=turns(Talk("openai"), *numbers))


def assemble(host: Host, session: str) -> list[Any]:
    """The messages of an answer that keeps all rules.

    Raises:
        Refused: the sidecar refused.
    """
    answer = host.call("context/assemble", sessionId=session, tokenBudget=BUDGET)
    assert answer["estimatedTokens"] <= BUDGET
    assert not problems("openai", answer["messages"])
    return answer["messages"]


def is_served(host: Host, session: str) -> None:
    """The session is answered as it should be."""
    tell(host, session)
    said = [message["content"] for message in assemble(host, session)]
    assert said[-1] == "answer 8: it is 16."
