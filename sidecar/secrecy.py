"""Masks secrets in output: in settings by member name, in text by form.

Used for everything that people read: `config show`, the doctor, the log and errors.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import cast

MASK = "***"
_SECRET_WORDS = frozenset(
    (
        *("key", "apikey", "secret", "token", "password", "passwd", "pwd", "passphrase", "credential"),
        *("credentials", "authorization", "auth", "bearer", "cookie", "cookies", "header", "headers"),
        *("signature", "sig", "sslpassword", "passfile"),
    )
)
"""Last words of member names, and complete names, that denote secrets."""
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_URL = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)(?P<rest>[^\s'\"<>]+)", re.IGNORECASE)
_USER = re.compile(r"^[^@/?#]*@")
_PAIR = re.compile(
    r"\b(?P<name>[A-Za-z_-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|authorization))"
    r"(?P<mark>\s*[=:]\s*)(?P<value>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|(?:bearer |basic )?[^\s,;'\"&]+)",
    re.IGNORECASE,
)
_FORMS = re.compile(
    r"\b(?:sk-[\w-]{8,}|whsec_[\w+/=-]+|gh[pousr]_\w{16,}|github_pat_\w{16,}|xox[a-z]-[\w-]{8,}"
    r"|AKIA[0-9A-Z]{12,}|AIza[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
"""Keys recognisable by their prefix."""
_RANDOM = re.compile(r"(?=[^/]*\d)(?=[^/]*[A-Za-z])[\w-]{24,}")
"""A path segment that is a key, as in webhook URLs."""


_VARIABLE = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$")
"""Environment variables with secrets, in addition to those recognised by `is_secret`."""
_SHORTEST = 6
"""Minimum characters of a secret; shorter values could match anywhere."""


def masked_settings(value: object, name: str = "") -> object:
    """The settings with secrets masked, whatever their structure."""
    if isinstance(value, Mapping):
        members = cast("Mapping[str, object]", value)
        inside = name if is_secret(name) else ""
        return {member: masked_settings(each, inside or member) for member, each in members.items()}
    if isinstance(value, list):
        return [masked_settings(each, name) for each in cast("list[object]", value)]
    if not isinstance(value, str) or not value:
        return value
    return MASK if is_secret(name) else masked_text(value)


def masked_text(text: str) -> str:
    """The text with keys, passwords, secrets in URLs and secrets from the environment masked."""
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST and value in text and _is_secret_variable(name, value):
            text = text.replace(value, MASK)
    if "://" in text:
        text = _URL.sub(lambda found: found["scheme"] + _masked_address(found["rest"]), text)
    if "=" in text or ":" in text:
        text = _PAIR.sub(lambda found: f"{found['name']}{found['mark']}{MASK}", text)
    return _FORMS.sub(MASK, text)


def _is_secret_variable(name: str, value: str) -> bool:
    # The shell's working directory is in PWD, and a variable such as SSH_KEY may name a file.
    is_path = value.startswith("/") and os.path.exists(value)  # noqa: PTH110
    return not is_path and bool(is_secret(name) or _VARIABLE.search(name))


def _masked_address(rest: str) -> str:
    rest = _USER.sub(f"{MASK}@", rest)
    path, mark, query = rest.partition("?")
    host, slash, steps = path.partition("/")
    path = host + slash + "/".join(MASK if _RANDOM.fullmatch(step) else step for step in steps.split("/"))
    return path + mark + "&".join(_masked_parameter(each) for each in query.split("&"))


def _masked_parameter(parameter: str) -> str:
    name, mark, value = parameter.partition("=")
    return f"{name}={MASK}" if mark and value and name.lower() not in _HARMLESS else parameter


_HARMLESS = frozenset(
    (
        *("sslmode", "host", "hostaddr", "port", "dbname", "user", "connect_timeout", "application_name"),
        *("target_session_attrs", "channel_binding", "sslrootcert", "keepalives", "api-version", "version"),
    )
)
"""URL parameters that are not masked; any other may be a key."""


def is_secret(name: str) -> bool:
    """Whether a setting or variable with that name holds a secret."""
    words = _WORDS.findall(name)
    return bool(words) and (words[-1].lower() in _SECRET_WORDS or name.lower() in _SECRET_WORDS)
