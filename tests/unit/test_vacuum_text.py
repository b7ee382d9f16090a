"""The report of `db vacuum` about the size of a store."""

from sidecar.cli.db import vacuum_text


def test_a_store_that_has_grown_is_explained() -> None:
    text = vacuum_text(1000, 50_000, on_server=True)
    assert "has grown" in text
    assert "--full" in text
    assert "--full" not in vacuum_text(1000, 50_000, on_server=False)


def test_a_store_that_has_shrunk_needs_no_reason() -> None:
    assert vacuum_text(50_000, 900, on_server=True) == "48.8 KiB before, 900 B now."
