"""What the one-folder build is made of: a CycloneDX bill of materials of every file, and licences."""

import hashlib
import json
import re
import shutil
import ssl
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.machinery import SourceFileLoader
from importlib.metadata import Distribution, distributions
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any, NamedTuple

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from PyInstaller import __version__ as bootloader_version
from PyInstaller.archive.readers import CArchiveReader

NAME = "context-sidecar"
LICENCES = "licences"
LICENCE_FILE = re.compile(r"(?i)(licen[cs]e|copying|notice|copyright)[^/]*$")
EXPRESSION = re.compile(r"[\w.+-]+(?: (?:AND|OR|WITH) [\w.+-]+)*")


class Part(NamedTuple):
    """Something that comes from one publisher under one licence."""

    name: str
    version: str
    licence: str
    purl: str | None = None


PYTHON = Part("python", sys.version.split()[0], "Python-2.0", f"pkg:generic/python@{sys.version.split()[0]}")
BOOTLOADER = Part(
    "pyinstaller-bootloader",
    bootloader_version,
    "GPL-2.0-or-later WITH Bootloader-exception",
    f"pkg:pypi/pyinstaller@{bootloader_version}",
)
LIBRARIES = {
    "libbz2": "bzip2-1.0.6",
    "libcrypto": "Apache-2.0",
    "libexpat": "MIT",
    "libffi": "MIT",
    "libgcc_s": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "liblzma": "0BSD",
    "libmpdec": "BSD-2-Clause",
    "libssl": "Apache-2.0",
    "libstdc++": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libuuid": "BSD-3-Clause",
    "libz": "Zlib",
    "vcruntime140": "LicenseRef-Microsoft-Visual-C-Runtime",
    "ucrtbase": "LicenseRef-Microsoft-Visual-C-Runtime",
    "api-ms-win": "LicenseRef-Microsoft-Visual-C-Runtime",
}
"""Licences of the libraries of the system that Python and compiled packages are linked with."""


class NotNamed(Exception):
    """Raised where it is not known what a file of the build is: it must not be published then."""


class Owners:
    """Tells to which part a file or a module of the build belongs."""

    def __init__(self, unpacked: Path) -> None:
        self._parts: dict[str, Part] = {PYTHON.name: PYTHON}
        self._files: dict[str, str] = {}
        self.installed: dict[str, Distribution] = {}
        for found in distributions(path=[str(unpacked), *sys.path]):
            name = re.sub(r"[-_.]+", "-", found.name).lower()
            if name in self.installed:
                continue
            self.installed[name] = found
            self._parts[name] = Part(
                name, found.version, licence_of(found), f"pkg:pypi/{name}@{found.version}"
            )
            self._files.update((file.as_posix(), name) for file in found.files or ())

    def of_file(self, path: str) -> Part:
        """The part that a file belongs to, by its path in the folder."""
        inside = path.removeprefix("_internal/")
        name = inside.rpartition("/")[2]
        if owner := self._files.get(inside):
            return self._parts[owner]
        if inside.startswith(f"{LICENCES}/"):
            return self._parts[inside.split("/")[1]]
        if re.match(r"(lib)?python3|base_library\.zip|Python$", inside):
            return PYTHON
        if inside in (NAME, f"{NAME}.exe"):
            mine = self._parts[NAME]
            return mine._replace(licence=f"{mine.licence} AND {BOOTLOADER.licence}")
        found = library(name)
        return self._parts.setdefault(found.name, found)

    def of_module(self, name: str) -> Part | None:
        """The part that a module inside of the program belongs to; nothing where it is a mere folder."""
        path = name.replace(".", "/")
        for file in (f"{path}.py", f"{path}/__init__.py"):
            if owner := self._files.get(file):
                return self._parts[owner]
        return PYTHON if name.partition(".")[0] in sys.stdlib_module_names else None


def library(file: str) -> Part:
    """A library of the system."""
    for name, licence in LIBRARIES.items():
        if file == name or re.match(rf"{re.escape(name)}[-.\d]", file):
            return Part(name, _version(name, file), licence, f"pkg:generic/{name}")
    raise NotNamed(
        f"{file}: from where is it, and under which licence? Say so in .ci/materials.py, or exclude it"
    )


def _version(name: str, file: str) -> str:
    if name in ("libssl", "libcrypto"):
        return ssl.OPENSSL_VERSION.split()[1]
    package = _debian_package(file)
    return package[1] if package else "unknown"


def _debian_package(file: str) -> tuple[str, str] | None:
    """Debian's package with a library, and its version, where this is Debian."""
    if not shutil.which("dpkg-query") or ".so" not in file:
        return None
    found = subprocess.run(["dpkg-query", "-S", f"*/{file}"], capture_output=True, text=True, check=False)
    package = found.stdout.partition(": ")[0].partition(",")[0]
    if not package:
        return None
    command = ["dpkg-query", "-W", "-f", "${Version}", package]
    return package.partition(":")[0], subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout


def licence_of(found: Distribution) -> str:
    """The licence of an installed package, as SECURITY.md has it."""
    script = str(Path(__file__).with_name("licences"))
    loader = SourceFileLoader("licences", script)
    module = module_from_spec(spec_from_loader("licences", loader))  # type: ignore[arg-type]
    loader.exec_module(module)
    return module.licence(found.metadata)


def files_of(folder: Path) -> Iterable[tuple[str, Path]]:
    """Every file below a folder, by its path in there."""
    return (
        (path.relative_to(folder).as_posix(), path) for path in sorted(folder.rglob("*")) if path.is_file()
    )


def modules_of(program: Path) -> list[str]:
    """Names of the modules inside of the program, packages without a file of their own left out."""
    names: list[str] = []
    reader = CArchiveReader(str(program))
    for name in reader.toc:
        if name.endswith(".pyz"):
            names += [
                module for module, entry in reader.open_embedded_archive(name).toc.items() if entry[0] != 3
            ]
    return names


def copy_licences(folder: Path, unpacked: Path) -> None:
    """Put the licences of everything in the build beside it."""
    owners = Owners(unpacked)
    parts = {owners.of_file(path): path for path, _ in files_of(folder)}
    parts.update((part, "") for name in modules_of(program_of(folder)) if (part := owners.of_module(name)))
    for part, path in parts.items():
        target = folder / LICENCES / part.name
        for source in _licence_files(part, path.rpartition("/")[2], owners):
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target / source.name)


def _licence_files(part: Part, file: str, owners: Owners) -> list[Path]:
    if part == PYTHON:
        found = [Path(sysconfig.get_path("stdlib")) / "LICENSE.txt", Path(sys.base_prefix) / "LICENSE.txt"]
    elif installed := owners.installed.get(part.name):
        listed = [each for each in installed.files or () if ".dist-info/" in each.as_posix()]
        found = [
            Path(str(installed.locate_file(each))) for each in listed if LICENCE_FILE.search(each.as_posix())
        ]
    else:
        package = _debian_package(file)
        found = [Path("/usr/share/doc") / package[0] / "copyright"] if package else []
    return [path for path in found if path.is_file()]


def program_of(folder: Path) -> Path:
    """The program of a one-folder build."""
    return folder / (f"{NAME}.exe" if sys.platform == "win32" else NAME)


def bill_of_materials(folder: Path, unpacked: Path, version: str, time: int) -> dict[str, Any]:
    """The bill of materials of a one-folder build.

    Raises:
        NotNamed: a file is of unknown origin.
    """
    owners = Owners(unpacked)
    files: defaultdict[Part, list[dict[str, Any]]] = defaultdict(list)
    # The folder with the licences comes last: by then every part has been seen.
    for path, place in sorted(files_of(folder), key=lambda each: each[0].startswith(f"{LICENCES}/")):
        part = owners.of_file(path)
        named = part._replace(licence=part.licence.partition(" AND GPL-2.0")[0])
        digest = hashlib.sha256(place.read_bytes()).hexdigest()
        licences = _licences(part.licence)
        hashes = [{"alg": "SHA-256", "content": digest}]
        files[named].append({"type": "file", "name": path, "hashes": hashes, "licenses": licences})
    inside: defaultdict[Part, int] = defaultdict(int)
    for name in modules_of(program_of(folder)):
        if part := owners.of_module(name):
            inside[part] += 1
    components = [
        _component(part, files[part], inside[part]) for part in sorted({*files, *inside, BOOTLOADER})
    ]
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(time, UTC).isoformat(),
            "component": {
                "type": "application",
                "name": NAME,
                "version": version,
                "licenses": _licences("MIT"),
            },
        },
        "components": components,
    }
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(bill))
    if wrong:
        raise NotNamed(f"the bill of materials is not valid: {wrong}")
    return bill


def _component(part: Part, files: list[dict[str, Any]], modules: int) -> dict[str, Any]:
    kind = "library" if part.purl else "application"
    component: dict[str, Any] = {"type": kind, "bom-ref": f"{part.name}@{part.version}", "name": part.name}
    component |= {"version": part.version, "licenses": _licences(part.licence)}
    if part.purl:
        component["purl"] = part.purl
    if modules:
        component["properties"] = [{"name": f"{NAME}:modules-inside-the-program", "value": str(modules)}]
    if files:
        component["components"] = files
    return component


def _licences(licence: str) -> list[dict[str, Any]]:
    if EXPRESSION.fullmatch(licence):
        return [{"expression": licence}]
    return [{"license": {"name": licence}}]
