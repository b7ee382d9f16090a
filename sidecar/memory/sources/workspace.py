"""Memory out of the Markdown notes of a folder."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from math import log
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from sidecar.engine.signature import digest
from sidecar.memory.contract import Fragment, MemoryRequest, SourceHost
from sidecar.memory.sources.notes import Notes, Section
from sidecar.recall.situations import situation
from sidecar.store.search.terms import document_terms

FLOOR = 0.25
"""Share of the best score below which a section is not offered."""


class WorkspaceSettings(BaseModel):
    """Settings of the source `workspace`."""

    model_config = ConfigDict(extra="forbid")

    path: Path
    """The folder."""
    pattern: str = "**/*.md"
    """Which of its files are notes."""
    sessionStart: list[str] = ["MEMORY.md"]
    """Files that are given at the start of a session, whole; `*` stands for anything."""
    tokenBudget: int | None = Field(default=None, ge=1)
    """Most tokens of this source in one compilation."""
    maxFragments: int = Field(default=8, ge=1, le=100)
    """Most sections that are offered for one prompt."""
    priority: int = Field(default=60, ge=0, le=100)
    """Of the best section; the others follow below it."""


class WorkspaceSource:
    """Offers some files at the start of a session, and of the others the sections that a prompt calls for."""

    name = "workspace"
    injection_points = ("session-start", "per-message")

    def __init__(self, host: SourceHost) -> None:
        self._host = host
        self._settings = host.settings(WorkspaceSettings)
        self._notes = Notes(self._settings.path.expanduser(), self._settings.pattern)

    async def get_context(self, request: MemoryRequest) -> list[Fragment]:
        """See `MemorySource`.

        Raises:
            OSError: the folder cannot be read.
        """
        sections = await self._host.run_blocking(self._notes.sections)
        start = [section for section in sections if self._at_start(section)]
        if request.injection_point == "session-start":
            chosen = start
        else:
            others = [section for section in sections if not self._at_start(section)]
            chosen = ranked(others, request.prompt or "")[: self._settings.maxFragments]
        cites = request.citations_mode != "off"
        return [self._fragment(section, rank, cites=cites) for rank, section in enumerate(chosen)]

    def _at_start(self, section: Section) -> bool:
        return any(fnmatch(section.file, pattern) for pattern in self._settings.sessionStart)

    def _fragment(self, section: Section, rank: int, *, cites: bool) -> Fragment:
        place = f"{section.file}:{section.first}-{section.last}"
        return Fragment(
            content=section.text,
            priority=max(self._settings.priority - rank, 0),
            id=f"{section.file}#{' > '.join(section.headings)}#{digest(section.text)[:12]}",
            label=f"Note {place}" if cites else "Note",
        )


def ranked(sections: Sequence[Section], prompt: str) -> list[Section]:
    """The sections that have what a prompt asks for, best first; rare words count more."""
    terms = dict.fromkeys(situation(prompt, ()).terms)
    found = [document_terms(f"{section.file} {section.text}").counts for section in sections]
    worth: dict[str, float] = {}
    for term in terms:
        having = sum(term in counts for counts in found)
        if having:
            worth[term] = log(1 + (len(found) - having + 0.5) / (having + 0.5))
    scores = [sum(value for term, value in worth.items() if term in counts) for counts in found]
    least = max(scores, default=0.0) * FLOOR
    order = sorted(range(len(sections)), key=lambda n: (-scores[n], len(sections[n].text), n))
    return [sections[n] for n in order if scores[n] > 0 and scores[n] >= least]
