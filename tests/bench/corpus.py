"""A long conversation of a coding agent: question, tool call, result, answer, 600 characters each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

PLACES = ("Bergen", "Lisbon", "Osaka", "Quito", "Tallinn", "Nairobi", "Perth", "Zagreb", "Hanoi", "Cusco")
PEOPLE = ("Marta", "Jonas", "Aiko", "Pablo", "Ilse", "Tariq", "Noor", "Chidi", "Elena", "Sven", "Yusuf")
PARTS = ("parser", "scheduler", "ledger", "gateway", "indexer", "notifier", "importer", "renderer", "planner")
TEXT = """the a of to and in that for with on this from by it is was be are as at we you have will when then
there which their about into than them some could other after first over only also back two even because any
these give most us work part take place good new long great way day man thing think say help line turn cause
much mean before move right boy old too same she all home read hand port large spell add land here must big
high such follow act why ask men change went light kind off need house picture try again animal point"""
PLAIN = TEXT.split()
CHINESE = "数据库连接超时已经解决部署脚本需要检查权限请确认计划明天开始测试接口返回错误日志文件路径".strip()


def needle(number: int) -> str:
    """A word that occurs in one message only."""
    return f"needle-{number:06d}-{number * 7919 % 9973}"


def conversation(turns: int, seed: int = 0) -> Iterator[list[bytes]]:
    """Turns of four messages in the dialect `openai`.

    Every fiftieth turn holds needles: one in a message, one in the arguments of a call, one in Chinese.
    """
    random = Random(seed)
    for turn in range(turns):
        yield _turn(random, turn)


def chinese_needle(number: int) -> str:
    """A run of Chinese characters that occurs in one message only."""
    random = Random(number + 1)
    return "".join(random.choice(CHINESE) for _ in range(9)) + "".join(
        chr(0x4E00 + 97 * (number + k) % 8000) for k in (1, 5)
    )


def _turn(random: Random, turn: int) -> list[bytes]:
    part, person, place = random.choice(PARTS), random.choice(PEOPLE), random.choice(PLACES)
    path = f"src/{part}/module_{turn % 977}.py"
    hides = turn % 50 == 0
    question = f"{person} from {place} asks: please fix the {part} in {path}, ticket OPS-{turn}. "
    if hides:
        question += f"Remember {needle(turn)}. {chinese_needle(turn)}。 "
    arguments = {"path": path, "pattern": f"def {part}_{turn}"}
    if hides:
        arguments["token"] = needle(turn + 1_000_000)
    call = {
        "id": f"call_{turn}",
        "type": "function",
        "function": {
            "name": random.choice(("read_file", "run_tests", "grep")),
            "arguments": json.dumps(arguments),
        },
    }
    result = f"{path}:{turn % 400}: error: {part} returned {turn * 37 % 1009} rows, expected {turn % 89}\n"
    answer = f"I changed {path} so that the {part} handles {place}; decision {turn}: keep the old format. "
    return [
        _message("user", question + _words(random, 600 - len(question))),
        _message("assistant", _words(random, 420), tool_calls=[call]),
        _message("tool", result + _words(random, 600 - len(result)), tool_call_id=f"call_{turn}"),
        _message("assistant", answer + _words(random, 600 - len(answer))),
    ]


def _words(random: Random, length: int) -> str:
    text = " ".join(random.choices(PLAIN, k=length // 4))
    return text[:length].rstrip() + "."


def _message(role: str, content: str, **members: object) -> bytes:
    return json.dumps({"role": role, "content": content, **members}, ensure_ascii=False).encode()
