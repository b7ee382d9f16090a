"""Episodes are signed with any webhook secret that an operator sets."""

import pytest

from sidecar.episodes.webhook import signature


def test_a_secret_in_base64_signs_as_its_decoded_bytes() -> None:
    assert signature("whsec_c2VjcmV0", "k", "1", b"body") == signature("secret", "k", "1", b"body")


@pytest.mark.parametrize("secret", ["whsec_!", "whsec_schlüssel", "whsec_数据", "密钥"])
def test_a_secret_that_is_not_base64_signs_as_its_text(secret: str) -> None:
    assert signature(secret, "k", "1", b"body").startswith("v1,")
    assert signature(secret, "k", "1", b"body") != signature("other", "k", "1", b"body")
