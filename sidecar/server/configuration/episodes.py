"""Resolves where episodes go, which is nowhere unless somebody asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sidecar.server.configuration.settings import EpisodeSettings

if TYPE_CHECKING:
    from sidecar.server.configuration.model import Configuration

ENV_SECRET = "CONTEXT_SIDECAR_EPISODES_SECRET"
FILE = "episodes.jsonl"


class EpisodesWithoutUrl(Exception):
    """Raised when a webhook is asked for whose address is not known."""


def episode_settings(
    merged: Configuration,
    from_file: Mapping[str, Any],
    overrides: Mapping[str, Any],
    environ: Mapping[str, str],
    state_dir: Path,
) -> EpisodeSettings | None:
    """Where episodes go, `None` where they are not kept.

    A file that says `enabled = false` is heeded whatever the host wants. The secret of the file or the
    environment signs nothing that goes to an address which the host has named, and the host names no file.

    Raises:
        EpisodesWithoutUrl: the back end is a webhook, but there is no address.
    """
    episodes = merged.episodes
    operators: dict[str, Any] = from_file.get("episodes") or {}
    hosts: dict[str, Any] = overrides.get("episodes") or {}
    if not episodes.enabled or operators.get("enabled") is False:
        return None
    path = operators.get("path")
    settings = EpisodeSettings(path=Path(path).expanduser() if path else state_dir / FILE)
    if episodes.backend == "file":
        return settings
    if episodes.url is None:
        raise EpisodesWithoutUrl
    named_by_host = bool(hosts.get("url") or hosts.get("searchUrl"))
    secret = hosts.get("secret") if named_by_host else episodes.secret or environ.get(ENV_SECRET)
    return EpisodeSettings(
        path=settings.path,
        url=episodes.url,
        search_url=episodes.searchUrl,
        secret=secret or "",
        timeout_ms=episodes.timeoutMs,
        retries=episodes.retries,
    )
