"""Text of any kind in columns that cannot hold every code point.

PostgreSQL keeps no NUL and no lone surrogate. Both are spelled out behind an escape sign, which is spelled
out itself, so that different texts stay different and every text comes back as it was.
"""

import hashlib
import re

from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Dumper, Loader
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper

ESCAPE = "\x1a"
_UNFIT = re.compile("[\0\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")
_TEXT_OID = 25
_SHORT = 200
"""Characters of a key that are kept as they are; an index entry must stay below 2,704 bytes."""


def escape(text: str) -> str:
    """The text as a column can hold it."""
    return _UNFIT.sub(lambda found: f"{ESCAPE}{ord(found[0]):04x}", text)


def unescape(text: str) -> str:
    """The text that was escaped."""
    if ESCAPE not in text:
        return text
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def short(key: str) -> str:
    """A key that fits into an index and is never read back; long ones end in their SHA-256."""
    if len(key) <= _SHORT:
        return key
    return f"{key[:100]}~{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()}"


class _TextDumper(Dumper):
    oid = _TEXT_OID

    def dump(self, obj: str) -> bytes:
        return escape(obj).encode()


class _BinaryTextDumper(_TextDumper):
    format = Format.BINARY


class _TextLoader(Loader):
    def load(self, data: Buffer) -> str:
        return unescape(bytes(data).decode())


class _BinaryTextLoader(_TextLoader):
    format = Format.BINARY


def adapt(adapters: AdaptersMap) -> None:
    """Let a connection escape all text, and send all numbers in one width."""
    adapters.register_dumper(str, _TextDumper)
    adapters.register_dumper(str, _BinaryTextDumper)
    adapters.register_loader(_TEXT_OID, _TextLoader)
    adapters.register_loader(_TEXT_OID, _BinaryTextLoader)
    adapters.register_dumper(int, Int8BinaryDumper)
