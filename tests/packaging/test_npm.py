"""With Node alone, npm's tarballs bring the sidecar, and no registry is asked for anything."""

import json
import os
import signal
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.e2e.sidecar_host import Host
from tests.packaging.conftest import LIMIT_S, Bare, built

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(300)]

NOWHERE = "--registry=http://127.0.0.1:9"
"""Where nobody listens: whatever npm would fetch makes it fail."""
TARBALLS = ("context-sidecar-[0-9]*.tgz", "context-sidecar-linux-x64-[0-9]*.tgz")


@pytest.fixture
def node(bare: Bare) -> Bare:
    """A home with Node and npm, and the shell that npm runs programs with."""
    bare.offer("node", "npm", "npx", "sh")
    return bare


@pytest.fixture
def prefix(node: Bare) -> Path:
    """Where both packages are installed."""
    folder = node.folder / "prefix"
    tarballs = [str(built(pattern)) for pattern in TARBALLS]
    node.run(
        "npm", "install", "--no-audit", "--no-fund", NOWHERE, "--global", f"--prefix={folder}", *tarballs
    )
    return folder


def test_npx_runs_the_demo_from_the_tarballs(node: Bare) -> None:
    packages = [f"--package={built(pattern)}" for pattern in TARBALLS]
    said = node.run("npx", "--yes", NOWHERE, *packages, "context-sidecar", "demo")
    assert "What to type next" in said


def test_a_host_speaks_with_the_sidecar_through_the_launcher(
    node: Bare, prefix: Path, tmp_path: Path
) -> None:
    launcher = (str(prefix / "bin/context-sidecar"), "serve")
    with Host(tmp_path / "state", command=launcher, environment=node.environment) as host:
        long = "x" * 2_000_000
        host.call("context/ingest", sessionId="s", message={"role": "user", "content": long})
        answer = host.call("context/assemble", sessionId="s", tokenBudget=4_000_000)
        assert answer["messages"] == [{"role": "user", "content": long}]


def test_exit_codes_and_signals_pass_through_the_launcher(node: Bare, prefix: Path) -> None:
    launcher = prefix / "bin/context-sidecar"
    assert "No such command" in node.run(launcher, "no-such-command", code=2)
    for sent, code in ((signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)):
        with subprocess.Popen(
            [launcher, "serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=node.environment,
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write(
                b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}\n'
            )
            process.stdin.flush()
            assert b'"result"' in process.stdout.readline()
            target = process.pid if sent != signal.SIGKILL else serving(process.pid)
            os.kill(target, sent)
            process.stdin.close()
            assert process.wait(LIMIT_S) == code


def serving(launcher: int) -> int:
    """The process that serves: the launcher itself, or its child where Node cannot be replaced."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return int(children[0]) if Path(f"/proc/{launcher}/comm").read_text().startswith("node") else launcher


def test_without_the_package_of_the_platform_the_launcher_says_what_is_missing(node: Bare) -> None:
    folder = node.folder / "prefix"
    tarball = str(built(TARBALLS[0]))
    node.run("npm", "install", "--no-audit", "--no-fund", NOWHERE, "--global", f"--prefix={folder}", tarball)
    said = node.run(folder / "bin/context-sidecar", "serve", code=1)
    assert "@context-sidecar/linux-x64" in said and "is not installed" in said


def test_builds_of_another_version_are_refused(node: Bare, prefix: Path) -> None:
    manifest = prefix / "lib/node_modules/@context-sidecar/linux-x64/package.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"version": "9.9.9"}))
    assert "install the same version of both" in node.run(prefix / "bin/context-sidecar", "serve", code=1)


def test_a_program_of_node_finds_the_build_by_the_package(node: Bare, prefix: Path) -> None:
    script = f"console.log(require({str(prefix / 'lib/node_modules/context-sidecar')!r}).program())"
    found = Path(node.run("node", "-e", script).strip())
    assert found.is_relative_to(prefix) and "context-sidecar" in node.run(found, "--version")


def test_the_packages_run_no_script_and_name_nothing_to_fetch() -> None:
    for pattern in TARBALLS:
        with tarfile.open(built(pattern)) as archive:
            content = archive.extractfile("package/package.json")
            assert content is not None
            manifest = json.load(content)
        assert not {key for key in manifest if key.endswith("ependencies") or key == "scripts"}
