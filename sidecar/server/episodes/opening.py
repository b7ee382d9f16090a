"""Makes the desk for episodes that the settings ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from sidecar.episodes.courier import Courier
from sidecar.server.episodes.desk import PLACE, EpisodeDesk
from sidecar.store import open_buffer

if TYPE_CHECKING:
    from sidecar.episodes.contract import EpisodeBackend
    from sidecar.server.configuration.settings import EpisodeSettings
    from sidecar.store.buffering import HoldsBuffers
    from sidecar.store.contract import SessionStore


def open_desk(settings: EpisodeSettings, store: SessionStore, namespace: str) -> EpisodeDesk:
    """The desk of one namespace, with a courier that rests until it is started."""
    buffers = cast("HoldsBuffers", store)
    courier = Courier(open_buffer(buffers, namespace, PLACE), _backend(settings))
    return EpisodeDesk(store, open_buffer(buffers, namespace, PLACE), courier)


def _backend(settings: EpisodeSettings) -> EpisodeBackend:
    if settings.url is None:
        from sidecar.episodes.file import FileBackend

        return FileBackend(settings.path)
    from sidecar.episodes.webhook import WebhookBackend, WebhookSettings

    return WebhookBackend(
        WebhookSettings(
            url=settings.url,
            secret=settings.secret,
            search_url=settings.search_url,
            timeout_s=settings.timeout_ms / 1000,
            retries=settings.retries,
        )
    )
