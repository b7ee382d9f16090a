"""Where the configuration file and the state directory are."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

APPLICATION = "context-sidecar"
ENV_STATE_DIR = "CONTEXT_SIDECAR_STATE_DIR"
ENV_CONFIG = "CONTEXT_SIDECAR_CONFIG"


def config_file(file: Path | None, environ: Mapping[str, str]) -> Path:
    """Where the configuration file is looked for."""
    if file is not None:
        return file
    if named := environ.get(ENV_CONFIG):
        return Path(named)
    if sys.platform == "linux":
        return _xdg(environ, "XDG_CONFIG_HOME", ".config") / "config.toml"
    from platformdirs import user_config_path

    return user_config_path(APPLICATION, appauthor=False) / "config.toml"


def state_directory(environ: Mapping[str, str], host: str | None, file: str | None) -> Path:
    """Where state is kept, as host, environment or file say, in this order, else by the platform's rules."""
    chosen = host or environ.get(ENV_STATE_DIR) or file
    if chosen:
        return Path(chosen).expanduser()
    if sys.platform == "linux":
        return _xdg(environ, "XDG_STATE_HOME", ".local/state")
    from platformdirs import user_state_path

    return user_state_path(APPLICATION, appauthor=False)


def _xdg(environ: Mapping[str, str], variable: str, default: str) -> Path:
    """The directory that the XDG rules give; the library for all platforms takes 10 ms to load."""
    base = environ.get(variable, "")
    return (Path(base) if base.startswith("/") else Path.home() / default) / APPLICATION
