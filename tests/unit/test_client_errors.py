import pytest

from sidecar.client import errors as client_errors
from sidecar.client.errors import ContextOverflow, RequestFailed, request_failure
from sidecar.protocol.errors import ERRORS, ErrorEntry
from sidecar.rpc.errors import RemoteError


@pytest.mark.parametrize("entry", ERRORS, ids=lambda entry: entry.name)
def test_every_error_of_the_protocol_has_its_exception(entry: ErrorEntry) -> None:
    data = {
        "retryable": entry.retryable,
        "hint": entry.hint,
        "required": 10,
        "tokenBudget": 5,
        "capability": "runtime/compact",
        "engineId": "full",
        "method": "context/assemble",
        "message": "it fell over",
    }
    error = request_failure(RemoteError(entry.code, "what happened", data))
    assert type(error) is getattr(client_errors, entry.name)
    assert type(error.data) is entry.data
    assert (error.code, error.message, error.hint) == (entry.code, "what happened", entry.hint)
    assert error.retryable is entry.retryable


def test_the_data_of_an_overflow_is_at_hand() -> None:
    data = {"retryable": False, "hint": "", "required": 10, "tokenBudget": 5}
    error = request_failure(RemoteError(1002, "too much", data))
    assert isinstance(error, ContextOverflow)
    assert (error.required, error.token_budget) == (10, 5)


def test_an_unknown_code_is_a_plain_failure() -> None:
    error = request_failure(RemoteError(4711, "odd", {"retryable": True, "hint": "wait"}))
    assert type(error) is RequestFailed
    assert (error.code, error.retryable, error.hint) == (4711, True, "wait")


def test_data_that_does_not_fit_its_code_gives_a_plain_failure() -> None:
    error = request_failure(RemoteError(1002, "too much", {"required": "many"}))
    assert type(error) is RequestFailed
    assert error.code == 1002
