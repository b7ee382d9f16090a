"""Writes the generated files, or tells which of them have drifted from the source."""

from collections.abc import Sequence
from pathlib import Path

from sidecar.codegen.reader import read_protocol
from sidecar.codegen.targets import TARGETS, Target


def generate(root: Path, check: bool, targets: Sequence[Target] = TARGETS) -> list[str]:
    """Paths below `root` whose content was not what the source says, in the order of the targets.

    Without `check` those files are written, so that the same call then answers with an empty list.

    Raises:
        MissingDocstring: a type or a field is not documented.
        OSError: a file cannot be read or written.
    """
    model = read_protocol()
    drifted: list[str] = []
    for target in targets:
        path = root / target.path
        wanted = target.emit(model).encode()
        if path.is_file() and path.read_bytes() == wanted:
            continue
        drifted.append(target.path)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(wanted)
    return drifted
