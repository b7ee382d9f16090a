"""The tables about the suites say what is true."""

from tests.conformance.tables import BROKEN_PEERS, broken_peers


def test_the_page_of_broken_peers_is_up_to_date() -> None:
    assert BROKEN_PEERS.read_text(encoding="utf-8") == broken_peers(), (
        "run `python -m tests.conformance.tables`"
    )
