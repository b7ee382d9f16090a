"""The program that the suite for clients takes for a driver: ours, with one thing spoilt."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from tests.conformance.spoiling.clients import BROKEN, Untrue
from tests.conformance.spoiling.proxy import Proxy, Spoilt

DRIVER = (sys.executable, "-m", "tests.conformance.client_driver")


def main(name: str, folder: Path) -> None:
    """Run the driver; a broken wire is put between its client and the sidecar that it starts."""
    broken = BROKEN[name]
    if isinstance(broken, Spoilt):
        note = folder / "name"
        note.write_text(name)
        proxy = [sys.executable, "-S", "-m", "tests.conformance.spoiling.client_driver", "--wire", str(note)]
        os.environ["CEP_SIDECAR"] = json.dumps([*proxy, *json.loads(os.environ["CEP_SIDECAR"])])
        os.execv(sys.executable, DRIVER)
    retell(broken)


def retell(broken: Untrue) -> None:
    """Pass lines on in both directions, the untrue ones changed."""
    driver = subprocess.Popen(DRIVER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert driver.stdin is not None and driver.stdout is not None
    sink = driver.stdin

    def instruct() -> None:
        for line in sys.stdin.buffer:
            if (early := broken.early(json.loads(line))) is not None:
                print(json.dumps(early), flush=True)
            sink.write(line)
            sink.flush()
        sink.close()

    threading.Thread(target=instruct, daemon=True).start()
    for line in driver.stdout:
        told = broken.told(json.loads(line))
        if told is not None:
            print(json.dumps(told), flush=True)
    os._exit(driver.wait())


if __name__ == "__main__":
    if sys.argv[1] == "--wire":
        table = {name: broken for name, broken in BROKEN.items() if isinstance(broken, Spoilt)}
        Proxy(table, Path(sys.argv[2]).read_text(), sys.argv[3:]).run()
    main(sys.argv[1], Path(sys.argv[2]))
