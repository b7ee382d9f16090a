"""Whatever becomes of an engine's process, nothing hangs, and nothing of it is left."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.server.engines.proxy.confinement import landlock_version
from tests.e2e.processes_of import child, children, descriptors, group, is_gone, until
from tests.e2e.sidecar_host import Host
from tests.engine_gallery import configured, is_served, tell

ENGINE_FAILED = 1005


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    """A sidecar whose engine runs in a process of its own."""
    with configured(tmp_path, "process", "compact = 3000") as host:
        host.call("session/configure", sessionId="other", engine="full")
        yield host


def ended(host: Host) -> None:
    """The sidecar ends in order and leaves no process behind."""
    known = children(host)
    host.stop()
    for pid in known:
        until(lambda pid=pid: is_gone(pid) and not group(pid), "a process is left")


def test_killed_while_it_does_nothing(host: Host) -> None:
    is_served(host, "before")
    os.kill(child(host), signal.SIGKILL)
    is_served(host, "after")
    ended(host)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_call(number: signal.Signals, host: Host) -> None:
    tell(host, "bad hangs 1")
    id = host.send("context/compact", sessionId="bad hangs 1")
    is_served(host, "another one of it")
    os.kill(child(host), number)
    (refused,) = host.wait_all([id])
    assert refused.code == ENGINE_FAILED
    is_served(host, "after")
    ended(host)


def test_killed_while_it_is_made_anew(host: Host) -> None:
    is_served(host, "before")
    host.call("context/dispose")
    tell(host, "s")
    id = host.send("context/assemble", sessionId="s", tokenBudget=600)
    host.until(lambda: bool(children(host)) or id in host.answers, "no process is started")
    for pid in children(host):
        os.kill(pid, signal.SIGKILL)
    host.wait_all([id])
    is_served(host, "after")
    ended(host)


def test_killed_when_the_sidecar_ends(host: Host) -> None:
    is_served(host, "before")
    pid = child(host)
    id = host.send("shutdown")
    os.kill(pid, signal.SIGKILL)
    host.wait(id)
    host.write({"jsonrpc": "2.0", "method": "exit"})
    assert host.drain() == 0
    until(lambda: is_gone(pid), "the process is left")


def test_an_engine_that_stops_itself_is_ended(host: Host) -> None:
    tell(host, "bad stops_itself 1")
    pid = child(host)
    assert host.refusal("context/compact", sessionId="bad stops_itself 1").code == ENGINE_FAILED
    until(lambda: is_gone(pid), "the process is left")
    is_served(host, "after")
    ended(host)


def test_what_an_engine_has_started_ends_with_it(host: Host) -> None:
    tell(host, "bad starts_others 1")
    pid = child(host)
    assert host.refusal("context/compact", sessionId="bad starts_others 1").code == ENGINE_FAILED
    is_served(host, "after")
    until(lambda: not group(pid), "what it started is left")
    ended(host)


def test_copies_that_take_memory_end_with_it(host: Host) -> None:
    tell(host, "bad allocates_in_copies 1")
    pid = child(host)
    assert host.refusal("context/compact", sessionId="bad allocates_in_copies 1").code == ENGINE_FAILED
    is_served(host, "other")
    ended(host)
    assert not group(pid)


def test_a_flood_on_standard_error_holds_up_nobody(host: Host) -> None:
    tell(host, "bad floods_stderr 1")
    flood = host.send("context/compact", sessionId="bad floods_stderr 1")
    is_served(host, "other")
    host.wait_all([flood])
    is_served(host, "after")
    assert host.log.stat().st_size < 1 << 20
    ended(host)


def test_garbage_on_every_descriptor_costs_the_process_alone(host: Host) -> None:
    tell(host, "bad floods_every_descriptor 1")
    refused = host.refusal("context/compact", sessionId="bad floods_every_descriptor 1")
    assert refused.code == ENGINE_FAILED
    is_served(host, "other")
    is_served(host, "after")
    ended(host)


def _restarts(host: Host, times: int) -> None:
    is_served(host, "first")
    host.call("context/dispose")
    before = descriptors(host)
    for number in range(times):
        is_served(host, f"number {number}")
        host.call("context/dispose")
        assert not children(host)
    assert descriptors(host) <= before
    ended(host)


def test_a_few_processes_leave_no_descriptor_behind(host: Host) -> None:
    _restarts(host, 4)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_many_processes_leave_no_descriptor_behind(host: Host) -> None:
    _restarts(host, 200)


def test_an_engine_reaches_nothing_that_is_the_sidecars_alone(tmp_path: Path) -> None:
    environment = {"GALLERY_SECRET": "heron-of-the-north", "TMPDIR": "/var/tmp"}
    with configured(tmp_path, "process", environment=environment) as host:
        tell(host, "bad looks_around 1")
        places = [tmp_path / "config.toml", *(tmp_path / "state").iterdir()]
        told = {"role": "user", "content": "\n".join(map(str, places))}
        host.call("context/ingest", sessionId="bad looks_around 1", message=told)
        reached = host.call("context/compact", sessionId="bad looks_around 1")["reason"].split()
    assert "GALLERY_SECRET" not in reached
    assert reached == ["nothing"] or not landlock_version()


def test_an_engine_reaches_no_replaced_store_beside_one_that_lies_elsewhere(tmp_path: Path) -> None:
    store = tmp_path / "elsewhere" / "my.db"
    store.parent.mkdir()
    kept = store.with_name("my.db.replaced-20260101")
    kept.write_bytes(b"what was said")
    with configured(tmp_path, "process", more=f'[store]\npath = "{store}"\n') as host:
        tell(host, "bad looks_around 1")
        told = {"role": "user", "content": f"{store}\n{kept}"}
        host.call("context/ingest", sessionId="bad looks_around 1", message=told)
        reached = host.call("context/compact", sessionId="bad looks_around 1")["reason"].split()
    assert store.exists()
    assert reached == ["nothing"] or not landlock_version()


def test_the_doctor_says_what_keeps_an_engine_from_the_store(host: Host) -> None:
    said = next(c["message"] for c in host.call("engine/doctor")["checks"] if c["name"] == "engine")
    assert ("cannot open the store" if landlock_version() else "is not confined") in said


@pytest.mark.parametrize("isolation", ["inline", "process"])
def test_what_an_engine_raises_is_cut_and_has_no_secrets(tmp_path: Path, isolation: str) -> None:
    environment = {"GALLERY_SECRET": "heron-of-the-north"}
    with configured(tmp_path, isolation, environment=environment) as host:
        tell(host, "bad tells_secrets 1")
        refused = host.refusal("context/compact", sessionId="bad tells_secrets 1")
    assert refused.code == ENGINE_FAILED and len(str(refused)) < 2000
    assert "heron-of" not in str(refused) and "heron-of" not in host.log.read_text(encoding="utf-8")
