"""Masks secrets in what is shown: in settings by the names of their members, in texts by their form.

One place for all that people read: `config show`, the doctor, the log, and errors.
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
"""Last words of the names of members, and whole names of parameters, that hold secrets."""
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
"""Keys that tell themselves by how they begin."""
_RANDOM = re.compile(r"(?=[^/]*\d)(?=[^/]*[A-Za-z])[\w-]{24,}")
"""A step of a path that is a key, as the addresses of webhooks have it."""


_VARIABLE = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS)$")
"""Variables of the environment that hold a secret, as far as their words do not say so."""
_SHORTEST = 6
"""Characters of a secret; what is shorter may stand anywhere."""


def masked_settings(value: object, name: str = "") -> object:
    """The settings without what nobody else is to see, whatever their shape."""
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
    """The text without keys, passwords, what addresses hold of them, and secrets of the environment."""
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST and value in text and _is_secret_variable(name, value):
            text = text.replace(value, MASK)
    if "://" in text:
        text = _URL.sub(lambda found: found["scheme"] + _masked_address(found["rest"]), text)
    if "=" in text or ":" in text:
        text = _PAIR.sub(lambda found: f"{found['name']}{found['mark']}{MASK}", text)
    return _FORMS.sub(MASK, text)


def _is_secret_variable(name: str, value: str) -> bool:
    # The shell names the working directory PWD, and a variable such as SSH_KEY may name a file.
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
"""Parameters of addresses that are shown; any other may be a key."""


def is_secret(name: str) -> bool:
    """Whether a setting or variable of that name holds a secret."""
    words = _WORDS.findall(name)
    return bool(words) and (words[-1].lower() in _SECRET_WORDS or name.lower() in _SECRET_WORDS)
