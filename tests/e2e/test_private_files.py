"""What the program writes is for its owner alone, whatever the umask, and goes through nobody's link."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sidecar.private_files import replacing, write
from tests.client_kit import LIMIT_S, PROGRAM, SidecarClient, assistant, user, with_sidecar

FULL = "sidecar.engines.full:FullEngine"


@pytest.fixture(autouse=True)
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a stored session in `state`."""

    async def tell(client: SidecarClient) -> None:
        await client.ingest("talk", user("hello"), message_id="m1")
        await client.ingest("talk", assistant("<terse>greeted</terse> hi"), message_id="m2")

    with_sidecar(tmp_path / "state", tell, engine="full")
    return tmp_path


def typed(home: Path, *arguments: str, code: int = 0) -> str:
    environment = {
        **os.environ,
        "HOME": str(home),
        "CONTEXT_SIDECAR_STATE_DIR": str(home / "state"),
        "XDG_CONFIG_HOME": str(home / "new" / "config"),
    }
    environment.pop("CONTEXT_SIDECAR_CONFIG", None)
    done = subprocess.run(
        [PROGRAM, *arguments],
        cwd=home,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done.stdout


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def open_ones(folder: Path) -> list[str]:
    """What below the folder others than its owner may use."""
    return [str(path) for path in folder.rglob("*") if mode(path) & 0o077]


@pytest.mark.parametrize(
    "arguments",
    [
        ("engines", "use", "full"),
        ("engines", "new", "mine", "--into", "new"),
        ("sessions", "export", "talk", "--out", "new/deep/talk.jsonl"),
        ("sessions", "export", "talk", "--format", "flo", "--out", "new/deep/flo"),
        ("conformance", "engine", FULL, "--only", "names_itself", "--junit", "new/report.xml"),
        ("db", "recover", "--out", "new/saved.jsonl"),
        ("db", "recover", "--to", "new/deep/saved.db"),
        ("db", "prune", "--older-than", "0.000000001", "--min-idle", "0", "--archive", "new/deep/old"),
    ],
    ids=" ".join,
)
def test_new_files_and_folders_are_for_their_owner_alone(arguments: tuple[str, ...], home: Path) -> None:
    (home / "new").mkdir(mode=0o700)
    typed(home, *arguments)
    assert list((home / "new").rglob("*"))
    assert open_ones(home / "new") == []


def test_the_state_folder_and_all_in_it_are_for_their_owner_alone(home: Path) -> None:
    assert mode(home / "state") == 0o700
    assert open_ones(home / "state") == []


def test_a_backup_and_what_is_restored_from_it_are_for_their_owner_alone(home: Path) -> None:
    typed(home, "db", "backup", "copy.db")
    typed(home, "db", "restore", "copy.db", "--state-dir", "new/deep/state")
    assert mode(home / "copy.db") == 0o600
    assert mode(home / "new") == mode(home / "new" / "deep") == 0o700
    assert open_ones(home / "new") == []


def test_a_file_of_episodes_and_its_folders_are_for_their_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "new" / "deep" / "episodes.jsonl"
    config = tmp_path / "config.toml"
    config.write_text(f'[episodes]\nenabled = true\npath = "{file}"\n', encoding="utf-8")

    async def tell(client: SidecarClient) -> None:
        for n in range(3):
            await client.commit_turn("talk", f"t{n}", [user(f"hello {n}"), assistant("hi")])

    with_sidecar(tmp_path / "state", tell, engine="terse", env={"CONTEXT_SIDECAR_CONFIG": str(config)})
    assert open_ones(tmp_path / "new") == []


@pytest.mark.parametrize("bits", [0o600, 0o640, 0o644])
def test_a_configuration_keeps_its_mode_and_the_link_that_leads_to_it(bits: int, home: Path) -> None:
    folder = home / "new" / "config" / "context-sidecar"
    folder.mkdir(parents=True)
    real, link = home / "dotfiles.toml", folder / "config.toml"
    real.write_text("# mine\n")
    real.chmod(bits)
    link.symlink_to(real)
    typed(home, "engines", "use", "full")
    assert link.is_symlink()
    assert (mode(real), "# mine" in real.read_text(), '"full"' in real.read_text()) == (bits, True, True)
    assert list(home.glob(".*.part")) == []


def test_a_link_laid_where_a_new_file_goes_is_not_followed(home: Path) -> None:
    secret = home / "secret"
    (home / "mine").mkdir()
    (home / "copy.db.part").symlink_to(secret)
    typed(home, "db", "backup", "copy.db")
    assert not secret.exists()


def test_an_export_may_go_to_a_device(home: Path) -> None:
    assert "hello" in typed(home, "sessions", "export", "talk", "--out", "/dev/stdout")


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write(file, b"before")
    with pytest.raises(RuntimeError), replacing(file) as out:
        out.write(b"half of it")
        raise RuntimeError
    assert file.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_a_file_of_somebody_else_stays_theirs(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"before")
    os.chown(file, 12345, 23456)
    write(file, b"after")
    assert (file.stat().st_uid, file.stat().st_gid, file.read_bytes()) == (12345, 23456, b"after")


def test_an_export_has_what_was_stored(home: Path) -> None:
    typed(home, "sessions", "export", "talk", "--json", "--out", "talk.json")
    assert len(json.loads((home / "talk.json").read_text())["messages"]) == 2
