import base64
import random
import sys
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.tokens.estimate import REMEMBERED_PIECES, EstimateCounter, PieceCosts, chunks, pieces
from sidecar.tokens.exact import ExactCounter

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=300)
"""Any code points, lone surrogates included."""

KINDS = {
    "prose": """The harbour froze early that year, and the ferries that usually ran until Christmas were tied
up in November. Nobody in the village complained; they had stocked their cellars in time, and the post came
over the ice twice a week. What they missed was the newspaper, because the editor refused to travel by sledge.
""",
    "code": """def merge_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
""",
    "json": """{"orderId": "A-20931", "items": [{"sku": "BX-77", "quantity": 3, "price": 19.95}, {"sku":
"QT-12", "quantity": 1, "price": 240.0, "gift": true}], "shipTo": {"city": "Lyon", "zip": "69003"},
"notes": null, "createdAt": "2026-03-14T09:26:53Z"}""",
    "digits": "2026-03-14 09:26:53 17 204 99 3.14159 1000000 42,7 0x1f 192.168.0.17 +49 30 901820",
    "blanks": "if a:\n        if b:\n            if c:\n                return\n\n\n\t\t\tx = 1\n" * 3,
    "hexadecimal": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08" * 4,
    "base64": base64.b64encode(random.Random(7).randbytes(600)).decode(),
}
LANGUAGES = {
    "chinese": "昨天我们讨论了新的发布计划，决定先完成数据库迁移，再开放测试环境。王敏负责联系供应商，"
    "如果下周三之前没有答复，就改用备用方案。请大家把遇到的问题记录在共享文档里。",
    "japanese": "昨日の会議では、来月の出荷計画について話し合いました。"
    "在庫が足りない場合は、大阪の倉庫から取り寄せることにします。",
    "russian": "Вчера мы обсудили план выпуска и решили сначала закончить перенос базы данных, "
    "а потом открыть тестовую среду для всех участников проекта.",
    "french": "Hier, nous avons discuté du calendrier de livraison et décidé de terminer d'abord la "
    "migration de la base de données, avant d'ouvrir l'environnement de test à toute l'équipe.",
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_estimate_is_within_fifteen_percent_of_o200k(kind: str) -> None:
    exact = ExactCounter("o200k_base").count(KINDS[kind])
    assert EstimateCounter().count(KINDS[kind]) == pytest.approx(exact, rel=0.15)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_few_words_of_another_language_are_estimated_high_rather_than_low(language: str) -> None:
    exact = ExactCounter("o200k_base").count(LANGUAGES[language])
    assert 0.95 * exact < EstimateCounter().count(LANGUAGES[language]) < 1.4 * exact


def test_over_a_mixture_of_kinds_the_estimate_is_within_five_percent() -> None:
    text = "\n\n".join([*KINDS.values(), *LANGUAGES.values()])
    assert EstimateCounter().count(text) == pytest.approx(ExactCounter("o200k_base").count(text), rel=0.05)


def test_empty_text_has_no_tokens() -> None:
    assert EstimateCounter().count("") == 0


@given(ANY_TEXT)
def test_any_text_but_the_empty_one_has_tokens(text: str) -> None:
    assert EstimateCounter().count(text) >= bool(text)


@given(ANY_TEXT)
def test_a_text_never_has_more_tokens_than_twice_its_bytes(text: str) -> None:
    size = len(text.encode("utf-8", "surrogatepass"))
    assert EstimateCounter().count(text) <= 2 * size + 1


@given(ANY_TEXT, ANY_TEXT)
def test_appending_text_takes_away_no_more_than_the_pieces_at_the_seam(before: str, after: str) -> None:
    count = EstimateCounter().count
    seam = before[-64:] + after[:64]
    slack = 2 + 2 * len(seam.encode("utf-8", "surrogatepass")) // 4
    assert count(before + after) >= max(count(before), count(after)) - slack


@given(st.text(max_size=300))
def test_counting_twice_gives_the_same(text: str) -> None:
    counter = EstimateCounter()
    assert counter.count(text) == counter.count(text) == EstimateCounter().count(text)


@given(ANY_TEXT)
def test_pieces_join_to_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text


@given(ANY_TEXT, st.integers(min_value=1, max_value=40))
def test_chunks_join_to_the_text_and_keep_the_limit(text: str, size: int) -> None:
    slices = list(chunks(text, size))
    assert "".join(slices) == text
    assert all(0 < len(part) <= size for part in slices)


def test_a_chunk_ends_at_the_last_line_break() -> None:
    assert list(chunks("first line\nsecond line", 16)) == ["first line\n", "second line"]


def test_a_chunk_without_line_break_ends_before_a_blank() -> None:
    assert list(chunks("alpha beta gamma", 12)) == ["alpha beta", " gamma"]


def test_the_memory_for_pieces_is_bounded() -> None:
    costs = PieceCosts(lambda piece: 1.0)
    for number in range(2 * REMEMBERED_PIECES + 1):
        assert costs[str(number)] == 1.0
    assert len(costs) <= REMEMBERED_PIECES


def test_a_piece_that_is_very_long_is_not_remembered() -> None:
    costs = PieceCosts(lambda piece: 9.0)
    assert costs["=" * 1000] == 9.0
    assert not costs


def test_threads_that_share_a_counter_get_the_same_counts() -> None:
    words = [f"{word}{number}" for number in range(60_000) for word in ("alpha", "Beta")]
    text, counter = " ".join(words), EstimateCounter()
    expected = EstimateCounter().count(text)
    counts: list[int] = []
    threads = [Thread(target=lambda: counts.append(counter.count(text))) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert counts == [expected] * 4
