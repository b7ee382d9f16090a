"""The SDKs of OpenAI and Anthropic behind the gateway, as the examples use them."""

import itertools
import os
import subprocess
import sys
from hashlib import blake2b
from pathlib import Path

import pytest

from tests.e2e.gateway_process import PATIENT
from tests.model_api import Body, ModelApis, Use, prompt_tokens

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(600)]

LIMIT_S = 300.0
COMMAND = str(Path(sys.executable).with_name("context-sidecar"))
EXAMPLES = Path(__file__).parents[2] / "clients" / "gateway"
LOCKED = Path(__file__).parent / "gateway-sdks"
PAGES = 40
WINDOW = 24_000


@pytest.fixture(scope="session")
def sdks() -> Path:
    """A folder with a virtual environment and Node's packages, made once, outside of the tree."""
    files = ("requirements.lock", "package.json", "package-lock.json")
    name = blake2b(b"".join((LOCKED / file).read_bytes() for file in files), digest_size=6).hexdigest()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "context-sidecar-tests" / f"gateway-sdks-{name}"
    done = folder / "installed"
    if not done.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for file in files:
            (folder / file).write_bytes((LOCKED / file).read_bytes())
        subprocess.run([sys.executable, "-m", "venv", folder / "python"], check=True, timeout=300)
        pip = [folder / "python" / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps"]
        subprocess.run(
            [*pip, "--require-hashes", "-r", folder / "requirements.lock"], check=True, timeout=300
        )
        npm = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(npm, cwd=folder, check=True, timeout=300)
        done.touch()
    return folder


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*_agent.*")))
def test_an_agent_on_an_sdk_goes_on_past_its_window_without_a_change(
    example: str, sdks: Path, upstream: ModelApis, tmp_path: Path
) -> None:
    taken = itertools.count(1)

    def read(body: Body, _number: int) -> Use | str:
        page = next(taken)
        return Use(f"call_{page:03}", "read_page", {"page": page}) if page <= PAGES else "All is well."

    upstream.script = read
    if example.endswith(".py"):
        program = [str(sdks / "python" / "bin" / "python"), str(EXAMPLES / example)]
    else:  # imports are looked for beside the file
        copy = sdks / example
        copy.write_bytes((EXAMPLES / example).read_bytes())
        program = ["node", str(copy)]
    command = [COMMAND, "run", "--state-dir", str(tmp_path / "state"), "--window", str(WINDOW), *PATIENT]
    command += ["--upstream-anthropic", upstream.url, "--upstream-openai", upstream.url, "--"]
    done = subprocess.run(
        [*command, *program, str(PAGES)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        cwd=tmp_path,
        env={**os.environ, "OPENAI_API_KEY": "none", "ANTHROPIC_API_KEY": "none", "HOME": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "All is well."
    assert upstream.faults == []
    assert len(upstream.bodies) == PAGES + 1
    assert all(prompt_tokens(body) < WINDOW for body in upstream.requests)
