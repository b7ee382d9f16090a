"""An engine whose module takes its time."""

import time

from broken_gallery import Gallery

from sidecar.engine import EngineInfo

time.sleep(6)


class Slow(Gallery):
    """Works, once it is there."""

    info = EngineInfo(id="slow-import", name="Slow import", version="1")
