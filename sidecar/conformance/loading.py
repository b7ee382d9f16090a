"""Finds what is to be checked by a name of the form MODULE:ATTRIBUTE."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any


class SubjectNotFound(Exception):
    """Raised when a name leads to nothing; the text says why."""


def load(name: str) -> Any:
    """What the name stands for; modules in the working directory are found too.

    Raises:
        SubjectNotFound: it is no such name, or there is nothing under it.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon or not module_name or not attribute:
        raise SubjectNotFound(f"{name!r} is not of the form MODULE:NAME, such as my_package.places:MyPlace")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = import_module(module_name)
        for part in attribute.split("."):
            found = getattr(found, part)
    except ImportError as error:
        raise SubjectNotFound(f"{module_name} cannot be imported: {error}") from error
    except AttributeError as error:
        raise SubjectNotFound(f"{module_name} has no {attribute}") from error
    return found
