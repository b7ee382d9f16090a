"""The `engine/*` requests."""

from __future__ import annotations

from sidecar.client.areas.requesting import Requesting
from sidecar.protocol.engine import (
    DoctorEngineParams,
    DoctorEngineResult,
    EngineListing,
    ListEngineParams,
    ListEngineResult,
)


class EngineRequests(Requesting):
    """Engines that are installed, and their health."""

    async def engines(self) -> list[EngineListing]:
        """Every engine that the sidecar knows."""
        return (await self.request("engine/list", ListEngineParams(), ListEngineResult)).engines

    async def doctor(self) -> DoctorEngineResult:
        """What is wrong, and what to do about it."""
        return await self.request("engine/doctor", DoctorEngineParams(), DoctorEngineResult)
