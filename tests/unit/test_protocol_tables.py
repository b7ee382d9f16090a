import subprocess
import sys
from importlib import import_module

import pytest
from msgspec import inspect

from sidecar.protocol.base import Wire
from sidecar.protocol.errors import ERRORS, ErrorData
from sidecar.protocol.lifecycle import LATEST, SUPPORTED
from sidecar.protocol.methods import COMMON_ERRORS, METHODS, type_stem

AREAS = {
    "base",
    "context",
    "assemble",
    "session",
    "engine",
    "runtime",
    "memory",
    "lifecycle",
}


@pytest.mark.parametrize(
    ("method", "stem"),
    [
        ("context/ingest", "IngestContext"),
        ("context/ingestBatch", "IngestBatchContext"),
        ("tools/call", "CallTools"),
        ("memory/getContext", "GetContextMemory"),
        ("initialize", "Initialize"),
        ("$/cancelRequest", "CancelRequest"),
        ("window/workDoneProgress/create", "CreateWindowWorkDoneProgress"),
    ],
)
def test_the_names_of_types_follow_from_the_name_of_the_method(method: str, stem: str) -> None:
    assert type_stem(method) == stem


def test_every_method_has_its_types() -> None:
    for method in METHODS:
        for name in filter(None, (method.params, method.result)):
            assert issubclass(method.load(name), Wire), name


def test_no_method_is_named_twice() -> None:
    names = [method.name for method in METHODS]
    assert sorted(set(names)) == sorted(names)


def test_every_params_and_result_type_belongs_to_a_method() -> None:
    used = {name for method in METHODS for name in (method.params, method.result)}
    for area in AREAS - {"base"}:
        module = import_module(f"sidecar.protocol.{area}")
        for name, item in vars(module).items():
            if getattr(item, "__module__", "") == module.__name__ and name.endswith(("Params", "Result")):
                assert name in used or name == "CompactionResult"


def test_methods_name_only_errors_that_exist() -> None:
    known = {entry.name for entry in ERRORS}
    assert known >= {*COMMON_ERRORS, *(name for method in METHODS for name in method.errors)}


def test_codes_and_names_of_errors_are_unique() -> None:
    assert len({entry.code for entry in ERRORS}) == len({entry.name for entry in ERRORS}) == len(ERRORS)


def test_own_error_codes_lie_outside_the_reserved_ranges() -> None:
    own = [entry.code for entry in ERRORS if entry.code > 0]
    assert own == list(range(1001, 1001 + len(own)))


def test_every_error_says_whether_to_retry_and_what_to_do() -> None:
    for entry in ERRORS:
        assert issubclass(entry.data, ErrorData), entry.name
        required = {field.encode_name for field in inspect.type_info(entry.data).fields if field.required}
        assert required >= {"retryable", "hint"}, entry.name


def test_the_newest_version_is_the_last_one() -> None:
    assert SUPPORTED[-1] == LATEST == "1.0"


def loaded_by(statement: str) -> set[str]:
    script = f"import sys, msgspec\n{statement}\nprint('\\n'.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stdout.split())


def test_importing_one_area_loads_no_other_area() -> None:
    loaded = {
        name.removeprefix("sidecar.protocol.") for name in loaded_by("import sidecar.protocol.lifecycle")
    }
    assert loaded & AREAS == {"base", "lifecycle"}


def test_importing_the_method_table_loads_no_area() -> None:
    loaded = {name.removeprefix("sidecar.protocol.") for name in loaded_by("import sidecar.protocol.methods")}
    assert loaded & AREAS == {"base"}


def test_the_wire_types_need_nothing_of_the_project() -> None:
    every = "; ".join(
        f"import sidecar.protocol.{area}" for area in (*sorted(AREAS), "errors", "methods", "times")
    )
    own = {name for name in loaded_by(every) if name.startswith("sidecar.")}
    assert all(name.startswith("sidecar.protocol") for name in own)
