"""The models that write for engines: the one that is configured, the host's, or none but rules."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sidecar.server.configuration.settings import Settings
    from sidecar.summarize.contract import Summariser
    from sidecar.summarize.endpoint import EndpointModel
    from sidecar.summarize.host_model import Complete
    from sidecar.summarize.limits import CircuitBreaker, SpendGuard
    from sidecar.tokens.contract import TokenCounter


class Models:
    """What there is to ask; each part is made when it is first used."""

    def __init__(self, settings: Settings, host_capabilities: frozenset[str], counter: TokenCounter) -> None:
        self._settings = settings
        self._counter = counter
        self.exist = settings.model is not None or "runtime/complete" in host_capabilities
        """Whether there is a model to ask: a configured one, or the host's."""

    @cached_property
    def extractive(self) -> Summariser:
        """The summariser that needs no model."""
        from sidecar.summarize.deterministic import DeterministicSummariser

        return DeterministicSummariser(self._counter)

    @cached_property
    def bounds(self) -> tuple[SpendGuard, CircuitBreaker]:
        """One bound on calls to the host's model, whichever engine makes them."""
        from sidecar.summarize.limits import CircuitBreaker, SpendGuard

        return SpendGuard(), CircuitBreaker()

    @cached_property
    def endpoint(self) -> EndpointModel | None:
        """The model behind the configured endpoint, `None` where none is configured."""
        model = self._settings.model
        if model is None:
            return None
        from sidecar.summarize.endpoint import EndpointModel, EndpointSettings
        from sidecar.summarize.limits import CircuitBreaker

        settings = EndpointSettings(
            base_url=model.base_url,
            model=model.name,
            api_key=model.api_key,
            timeout_seconds=model.timeout_ms / 1000,
            retries=model.retries,
            most_calls=model.max_calls,
            window_seconds=model.window_ms / 1000,
        )
        return EndpointModel(settings, breaker=CircuitBreaker(open_seconds=model.pause_ms / 1000))

    def summariser(
        self,
        complete: Complete,
        guard: SpendGuard | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> Summariser:
        """The best summariser there is: by a model (`complete`) where there is one.

        `guard` and `breaker` bound its calls; without them they are bounded for all engines together.
        """
        if not self.exist:
            return self.extractive
        model = self.endpoint
        from sidecar.summarize.host_model import SECONDS_FOR_A_CALL, HostModelSummariser

        bounds = self.bounds
        return HostModelSummariser(
            complete,
            self._counter,
            self.extractive,
            guard=guard or bounds[0],
            breaker=breaker or bounds[1],
            model=model.settings.model if model else "",
            timeout_seconds=model.settings.timeout_seconds + 1 if model else SECONDS_FOR_A_CALL,
        )

    async def close(self) -> None:
        """Close what is connected."""
        if (model := self.__dict__.get("endpoint")) is not None:
            await model.close()
