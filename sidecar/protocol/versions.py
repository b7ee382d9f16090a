"""The versions of the protocol that this package knows.

A version is `MAJOR.MINOR`. A minor version only adds: members, methods, enumeration values, error codes.
Whatever would change the meaning of something that is there already takes a new major version.
"""

from typing import NamedTuple


class ProtocolVersion(NamedTuple):
    """One version of the protocol."""

    name: str
    summary: str
    """What it brought, in one sentence."""


VERSIONS = (ProtocolVersion("1.0", "The first version."),)
"""Every version that is spoken, oldest first."""

SUPPORTED = tuple(version.name for version in VERSIONS)
"""Names of the versions that a host may ask for, oldest first."""

LATEST = SUPPORTED[-1]
"""The version that is spoken with a host that names none."""
