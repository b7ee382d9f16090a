"""What is published is complete, checked and the same every time."""

import hashlib
import json
import subprocess
import sys
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.packaging.conftest import DIST, ROOT, Bare, built

pytestmark = pytest.mark.hosts


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_another_build_writes_the_same_wheel_and_source_distribution(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=100)
    again = {path.name: digest(path) for path in tmp_path.iterdir()}
    assert again == {path.name: digest(path) for path in DIST.glob("context_sidecar-*")}


def test_the_source_distribution_builds_the_same_wheel(tmp_path: Path) -> None:
    with tarfile.open(built("context_sidecar-*.tar.gz")) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=source, check=True, capture_output=True, timeout=100)
    (wheel,) = tmp_path.glob("*.whl")
    with ZipFile(wheel) as one, ZipFile(built("*.whl")) as other:
        assert {name: one.read(name) for name in one.namelist()} == {
            name: other.read(name) for name in other.namelist()
        }


def test_every_artifact_has_its_checksum() -> None:
    lines = (DIST / "SHA256SUMS").read_text().splitlines()
    listed = {name: value for value, name in (line.split("  ") for line in lines)}
    assert listed == {path.name: digest(path) for path in DIST.iterdir() if path.name != "SHA256SUMS"}


def test_the_bill_of_materials_names_every_file_with_its_licence(program: Path) -> None:
    bill = json.loads(built("*.cdx.json").read_text(encoding="utf-8"))
    named = {
        file["name"]: file["hashes"][0]["content"]
        for part in bill["components"]
        for file in part.get("components", ())
        if file["licenses"]
    }
    folder = program.parent
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert named == {path.relative_to(folder).as_posix(): digest(path) for path in files}


def test_the_build_holds_nothing_but_what_it_needs(program: Path) -> None:
    bill = json.loads(built("*.cdx.json").read_text(encoding="utf-8"))
    parts = {part["name"] for part in bill["components"]}
    assert parts >= {
        "context-sidecar",
        "python",
        "apsw",
        "msgspec",
        "aiohttp",
        "pygls",
        "pyinstaller-bootloader",
    }
    assert not parts & {
        "twine",
        "hatchling",
        "cyclonedx-python-lib",
        "setuptools",
        "pip",
        "pyinstaller",
        "lark",
    }
    assert not [path for path in program.parent.rglob("*") if path.name.startswith("libreadline")]
    assert not [path for path in program.parent.rglob("*") if path.is_symlink()], "npm leaves links out"


def test_the_licence_of_every_part_with_a_text_is_beside_the_program(program: Path) -> None:
    texts = {folder.name for folder in (program.parent / "licences").iterdir()}
    assert texts >= {"context-sidecar", "python", "apsw", "aiohttp", "msgspec"}


def test_the_wheel_installs_into_an_empty_environment_and_works(tmp_path: Path, bare: Bare) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True, timeout=100)
    python = tmp_path / "venv" / "bin" / "python"
    lock = ROOT / "requirements-runtime.lock"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*pip, "--require-hashes", "-r", str(lock)], check=True, timeout=300)
    subprocess.run([*pip, str(built("*.whl"))], check=True, timeout=100)
    said = bare.run(python.with_name("context-sidecar"), "doctor")
    assert "default answered a turn" in said and "WRONG" not in said
