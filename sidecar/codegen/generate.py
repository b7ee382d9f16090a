"""Writes the generated files, or tells which of them have drifted from the source."""

from collections.abc import Sequence
from pathlib import Path

from sidecar.codegen.install_commands import corrected, files
from sidecar.codegen.reader import read_protocol
from sidecar.codegen.targets import TARGETS, Target
from sidecar.private_files import write


def generate(root: Path, check: bool, targets: Sequence[Target] = TARGETS) -> list[str]:
    """Paths below `root` whose content was not what the source says, in the order of the targets.

    Without `check` those files are written, so that the same call then answers with an empty list.

    Raises:
        MissingDocstring: a type or a field is not documented.
        OSError: a file cannot be read or written.
    """
    model = read_protocol()
    texts = {root / target.path: target.emit(model) for target in targets}
    texts |= {path: corrected(path.read_text(encoding="utf-8")) for path in files(root) if path not in texts}
    drifted: list[str] = []
    for path, text in texts.items():
        wanted = text.encode()
        if path.is_file() and path.read_bytes() == wanted:
            continue
        drifted.append(path.relative_to(root).as_posix())
        if not check:
            write(path, wanted)
    return drifted
