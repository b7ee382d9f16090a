"""Secrets are masked by the names of members and by the form of texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from sidecar.secrecy import MASK, masked_settings, masked_text

SESAME = "s3s4me"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://me:{SESAME}@db:5432/x",
        f"postgresql://db/x?user=me&password={SESAME}&sslmode=require",
        f"postgresql:///x?host=/run&sslpassword={SESAME}",
        f"host=db user=me password={SESAME} dbname=x",
        f"host=db password='{SESAME} with \\' quotes' dbname=x",
        f"PASSWORD = {SESAME}",
        f"https://{SESAME}@example.org/v1",
        f"https://example.org/v1?api_key={SESAME}",
        f"https://example.org/v1?anything={SESAME}&version=1",
        f"https://example.org/hooks/{SESAME}00000000000000000000",
        f"Authorization: Bearer {SESAME}",
        f"the key sk-{SESAME}000000 was refused",
        f"whsec_{SESAME}",
        f"connection failed: password={SESAME}, host=db",
    ],
)
def test_a_text_loses_its_secrets_alone(text: str) -> None:
    masked = masked_text(text)
    assert SESAME not in masked
    assert MASK in masked


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://db:5432/x?sslmode=require",
        "host=db user=me dbname=x",
        "https://example.org/v1/chat/completions",
        "limits.defaultTokenBudget: 128000 tokens",
        "the budget is 10 tokens, tokens.counter = o200k",
    ],
)
def test_a_text_without_secrets_stays_unchanged(text: str) -> None:
    assert masked_text(text) == text


@pytest.mark.parametrize(
    "name",
    ["apiKey", "api_key", "secret", "hmacSecret", "password", "headers", "accessToken", "Authorization"],
)
def test_a_member_with_a_telling_name_is_masked_whatever_its_shape(name: str) -> None:
    given = {"deep": [{name: SESAME}, {name: {"X": [SESAME, 3]}}]}
    assert masked_settings(given) == {"deep": [{name: MASK}, {name: {"X": [MASK, 3]}}]}


def test_other_members_are_shown_and_addresses_in_them_masked() -> None:
    given = {
        "tokens": {"counter": "auto"},
        "totalTokenBudget": 5,
        "keepTokens": "many",
        "url": f"https://me:{SESAME}@db",
        "apiKey": "",
        "empty": None,
    }
    assert masked_settings(given) == {**given, "url": f"https://{MASK}@db"}


def test_the_working_directory_is_not_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", str(tmp_path))
    monkeypatch.setenv("DEPLOY_KEY", str(tmp_path))
    assert masked_text(f"{tmp_path}/state") == f"{tmp_path}/state"
    monkeypatch.setenv("DEPLOY_KEY", "/no/such/file")
    assert masked_text("user:/no/such/file") == f"user:{MASK}"
