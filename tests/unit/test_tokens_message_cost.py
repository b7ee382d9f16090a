import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.messages.contract import Media, Reading, ToolCall, ToolResult
from sidecar.tokens.contract import TokenCounter
from sidecar.tokens.estimate import EstimateCounter
from sidecar.tokens.exact import ExactCounter
from sidecar.tokens.message_cost import IMAGE_TOKENS, MESSAGE_OVERHEAD, message_tokens

COUNTER = EstimateCounter()
TEXT = st.text(max_size=80)
CALLS = st.lists(st.builds(ToolCall, id=TEXT, name=TEXT, arguments=TEXT), max_size=3).map(tuple)


def message(**content: object) -> Reading:
    return Reading(role="assistant", wire_role="assistant", **content)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("counter", [COUNTER, ExactCounter("o200k_base")], ids=lambda counter: counter.name)
@given(text=TEXT, calls=CALLS)
def test_a_message_costs_no_less_than_an_independent_count(
    counter: TokenCounter, text: str, calls: tuple[ToolCall, ...]
) -> None:
    parts = [text, *(f"{call.name}({call.arguments})" for call in calls)]
    independent = 4 + counter.count("\n".join(part for part in parts if part))
    assert message_tokens(message(text=text, calls=calls), counter) >= independent


def test_an_empty_message_costs_its_wrapping() -> None:
    assert message_tokens(message(), COUNTER) == MESSAGE_OVERHEAD


def test_reasoning_that_goes_back_to_the_provider_costs_tokens() -> None:
    thought = "First I look at the log, then at the configuration."
    plain = message_tokens(message(text="Done."), COUNTER)
    assert message_tokens(message(text="Done.", reasoning=thought), COUNTER) == plain + COUNTER.count(thought)


def test_every_call_costs_more_than_its_text() -> None:
    call = ToolCall("call_1", "read_file", '{"path": "a.txt"}')
    one = message_tokens(message(calls=(call,)), COUNTER)
    assert one > MESSAGE_OVERHEAD + COUNTER.count('read_file({"path": "a.txt"})')
    assert message_tokens(message(calls=(call, call)), COUNTER) > 2 * (one - MESSAGE_OVERHEAD)


def test_a_result_that_a_dialect_reads_as_text_too_is_counted_once() -> None:
    output = "total 48\ndrwxr-xr-x 2 root root 4096 notes\n" * 20
    once = message_tokens(message(results=(ToolResult("call_1", "ls", output, False),)), COUNTER)
    both = message_tokens(message(text=output, results=(ToolResult("call_1", "ls", output, False),)), COUNTER)
    assert both == once > COUNTER.count(output)


def test_an_image_costs_the_same_whatever_its_size() -> None:
    small = message_tokens(message(media=(Media("image", 10),)), COUNTER)
    assert small == message_tokens(message(media=(Media("image", 5_000_000),)), COUNTER)
    assert small == MESSAGE_OVERHEAD + IMAGE_TOKENS


def test_a_large_file_costs_more_than_a_small_one() -> None:
    large = message_tokens(message(media=(Media("file", 3_200_000),)), COUNTER)
    assert large == MESSAGE_OVERHEAD + 100_000
    assert message_tokens(message(media=(Media("file", 0),)), COUNTER) > MESSAGE_OVERHEAD
