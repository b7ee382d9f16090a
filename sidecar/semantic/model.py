"""Computes vectors of texts from a table of word embeddings in an installed package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Floats = NDArray[numpy.float32]

MODEL_ID = "wordllama-l2-supercat-256"
"""Stored with vectors, because vectors of another model cannot be used."""
DIMENSIONS = 256

_RUNTIME = ("numpy", "tokenizers")
_PACKAGE = "wordllama"
_WEIGHTS = "weights/l2_supercat_256.safetensors"
_VOCABULARY = "tokenizers/l2_supercat_tokenizer_config.json"
_HASHES = {
    _WEIGHTS: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
    _VOCABULARY: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
}
"""SHA-256 of the files; vectors from other files could not be compared with stored ones."""


class ModelUnavailable(Exception):
    """Raised if packages of the extra `semantic` are missing or have unexpected files."""


def missing() -> str | None:
    """The missing part of the extra, or `None` if it is complete; imports nothing."""
    for name in (*_RUNTIME, _PACKAGE):
        if find_spec(name) is None:
            return name
    return next((f"{file} of {_PACKAGE}" for file in _HASHES if not _path(file).is_file()), None)


class EmbeddingModel:
    """The loaded table of embeddings; thread-safe.

    Only two files of the package are read. Importing it would configure logging and load code that downloads
    other models.
    """

    def __init__(self) -> None:
        """Load the table, which takes a tenth of a second.

        Raises:
            ModelUnavailable: a part of the extra is missing, or a file has changed.
        """
        if lacking := missing():
            raise ModelUnavailable(f"{lacking} is not installed")
        import numpy
        from tokenizers import Tokenizer

        weights = _checked(_WEIGHTS)
        # Format: length of the header, header, and one matrix of half-precision floats with a row per token.
        start = 8 + int.from_bytes(weights[:8], "little")
        self._table = numpy.frombuffer(weights, numpy.float16, offset=start).reshape(-1, DIMENSIONS)
        self._tokenizer: Any = Tokenizer.from_buffer(_checked(_VOCABULARY))

    def embed(self, text: str) -> Floats:
        """The vector of a text, of length 1: the direction of the mean of its tokens."""
        import numpy

        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        if not ids:
            return numpy.zeros(DIMENSIONS, numpy.float32)
        mean = self._table[ids].mean(axis=0, dtype=numpy.float32)
        return (mean / (float(numpy.linalg.norm(mean)) or 1.0)).astype(numpy.float32)


def _checked(file: str) -> bytes:
    """The content of a file of the package.

    Raises:
        ModelUnavailable: the hash of the file differs.
    """
    from hashlib import sha256

    content = _path(file).read_bytes()
    if sha256(content).hexdigest() != _HASHES[file]:
        raise ModelUnavailable(f"{file} of {_PACKAGE} differs from the file that this version supports")
    return content


def _path(file: str) -> Path:
    """The path of a file in the package, found without importing it."""
    spec = find_spec(_PACKAGE)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) / file if places else Path(file)
