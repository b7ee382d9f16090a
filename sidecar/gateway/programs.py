"""How a program is started so that its requests go through the gateway."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from msgspec import Struct

from sidecar.gateway.server import Upstreams
from sidecar.secrecy import is_secret

PROVIDER = "context-sidecar"
"""Name of the provider that Codex is given, and of the MCP server that both get."""
OTHER_CLOUDS = ("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY")
"""Settings with which Claude Code speaks to another API than the Messages API."""
PROJECT_SETTINGS = (Path(".claude/settings.json"), Path(".claude/settings.local.json"))
"""Settings of Claude Code that come with a folder, whoever wrote them."""
MOST_SETTINGS = 1 << 20
HEADER_VARIABLE = "CONTEXT_SIDECAR_HEADER_{}_KEY"
"""Holds a header of Codex's provider, out of sight of other users. Codex keeps variables that end like this
from the commands that it runs."""
_COPIED = ("env_key", "http_headers", "env_http_headers", "query_params", "requires_openai_auth")


class CannotRun(Exception):
    """Raised where a program would go past the gateway, or could not use it; the text says why."""


class Launch(Struct, frozen=True):
    """What a program is started with."""

    command: list[str]
    environment: dict[str, str]


def upstreams(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    anthropic: str | None = None,
    openai: str | None = None,
) -> Upstreams:
    """Where the requests of a program would have gone; `anthropic` and `openai` are without a path.

    Raises:
        CannotRun: a file of the project names the address: Claude Code asks whether a folder is to be trusted
            before it reads such a file, and is not asked to by us.
    """
    defaults = Upstreams()
    if _name(arguments) == "claude" and anthropic is None:
        for place in PROJECT_SETTINGS:
            if "ANTHROPIC_BASE_URL" in _settings_in(place):
                raise CannotRun(
                    f"{place} of this folder sets ANTHROPIC_BASE_URL: whoever wrote it would get your key. "
                    "Say with --upstream-anthropic where requests are to go."
                )
    if openai is not None:
        openai_v1 = f"{openai.rstrip('/')}/v1"
    elif _name(arguments) == "codex":
        provider = _codex_provider(arguments, environment)
        openai_v1 = str(provider.get("base_url") or environment.get("OPENAI_BASE_URL") or defaults.openai)
    else:
        openai_v1 = environment.get("OPENAI_BASE_URL") or defaults.openai
    settings = _claude_settings(environment) if _name(arguments) == "claude" else {}
    own = settings.get("ANTHROPIC_BASE_URL") or environment.get("ANTHROPIC_BASE_URL")
    return Upstreams(anthropic=anthropic or own or defaults.anthropic, openai=openai_v1)


def launch(
    arguments: Sequence[str], environment: Mapping[str, str], port: int, recall: Sequence[str] | None = None
) -> Launch:
    """The command and environment with which a program uses the gateway on `port`.

    `recall` is the command of the MCP server with the recall tools, for programs that take one.

    Raises:
        CannotRun: a login or a setting of the program would go past the gateway.
    """
    address = f"http://127.0.0.1:{port}"
    changed = {
        **environment,
        "NO_PROXY": _without_proxy(environment),
        "no_proxy": _without_proxy(environment),
    }
    name = _name(arguments)
    if name == "claude":
        return _claude(arguments, changed, address, recall)
    if name == "codex":
        return _codex(arguments, changed, address, recall)
    changed |= {"ANTHROPIC_BASE_URL": address, "OPENAI_BASE_URL": f"{address}/v1"}
    return Launch(list(arguments), changed)


def _name(arguments: Sequence[str]) -> str:
    return Path(arguments[0]).name.partition(".")[0] if arguments else ""


def _without_proxy(environment: Mapping[str, str]) -> str:
    known = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    return ",".join(filter(None, [known, "127.0.0.1", "localhost"]))


def _claude(
    arguments: Sequence[str], environment: dict[str, str], address: str, recall: Sequence[str] | None
) -> Launch:
    settings = _claude_settings(environment)
    for name in OTHER_CLOUDS:
        if (settings.get(name) or environment.get(name, "")).lower() not in ("", "0", "false"):
            raise CannotRun(
                f"{name} is set: Claude Code would not use the Messages API that the gateway speaks."
            )
    # Settings on the command line win over files, which win over the environment.
    own = json.dumps({"env": {"ANTHROPIC_BASE_URL": address}}) if "ANTHROPIC_BASE_URL" in settings else None
    if own is not None and any(each.partition("=")[0] == "--settings" for each in arguments):
        raise CannotRun(
            "ANTHROPIC_BASE_URL is set in Claude Code's settings. Remove it there, or leave --settings out."
        )
    extra = [] if own is None else ["--settings", own]
    if recall:
        server = {"type": "stdio", "command": recall[0], "args": list(recall[1:])}
        # With `=`, as the option takes several values and would take the prompt for one.
        extra.append("--mcp-config=" + json.dumps({"mcpServers": {PROVIDER: server}}))
    return Launch([arguments[0], *extra, *arguments[1:]], {**environment, "ANTHROPIC_BASE_URL": address})


def _claude_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment that Claude Code's settings files make, the strongest last."""
    home = Path(environment.get("HOME") or Path.home())
    folder = Path(environment.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    found: dict[str, str] = {}
    for place in (folder / "settings.json", *PROJECT_SETTINGS):
        found |= _settings_in(place)
    return found


def _settings_in(place: Path) -> dict[str, str]:
    """The environment that one settings file makes; whatever lies there is no reason to hang or to fail."""
    try:
        if not place.is_file():
            return {}
        with place.open("rb") as file:
            settings = json.loads(file.read(MOST_SETTINGS))
    except (OSError, ValueError, RecursionError):
        return {}
    values = cast("dict[str, object]", settings).get("env") if isinstance(settings, dict) else None
    if not isinstance(values, dict):
        return {}
    return {str(key): str(value) for key, value in cast("dict[object, object]", values).items()}


def _codex(
    arguments: Sequence[str], environment: dict[str, str], address: str, recall: Sequence[str] | None
) -> Launch:
    provider = _codex_provider(arguments, environment)
    options: dict[str, object] = {
        # A provider of this name is asked for compaction by an item, which the gateway answers.
        "name": "Azure",
        "base_url": f"{address}/v1",
        "wire_api": "responses",
        **{name: provider[name] for name in _COPIED if name in provider},
    }
    if provider.get("wire_api", "responses") != "responses":
        raise CannotRun(
            'Codex\'s provider does not use the Responses API. Set wire_api = "responses" for it.'
        )
    if "env_key" not in options and "http_headers" not in options:
        options |= _codex_login(environment)
    if secrets := [name for name in _table(options, "query_params") if is_secret(name)]:
        raise CannotRun(
            f"The query parameter {secrets[0]} of Codex's provider would be seen in the list of processes. "
            "Send it as a header (http_headers, env_http_headers)."
        )
    # Everybody on this machine can read the arguments of a program, but not its environment.
    named = _table(options, "env_http_headers")
    for number, (name, value) in enumerate(_table(options, "http_headers").items(), 1):
        named[name] = HEADER_VARIABLE.format(number)
        environment[HEADER_VARIABLE.format(number)] = str(value)
    options.pop("http_headers", None)
    if named:
        options["env_http_headers"] = named
    given = [f"model_provider={_toml(PROVIDER)}"]
    given += [f"model_providers.{PROVIDER}.{name}={_toml(value)}" for name, value in options.items()]
    if recall:
        given.append(f"mcp_servers.{PROVIDER}.command={_toml(recall[0])}")
        given.append(f"mcp_servers.{PROVIDER}.args={_toml(list(recall[1:]))}")
    return Launch(
        [arguments[0], *(part for each in given for part in ("-c", each)), *arguments[1:]], environment
    )


def _table(options: Mapping[str, object], name: str) -> dict[str, object]:
    found = options.get(name)
    return dict(cast("dict[str, object]", found)) if isinstance(found, dict) else {}


def _codex_login(environment: Mapping[str, str]) -> dict[str, object]:
    """How Codex proves who asks; a subscription's tokens are good for one address only."""
    if environment.get("OPENAI_API_KEY"):
        return {"env_key": "OPENAI_API_KEY"}
    try:
        login = json.loads((_codex_home(environment) / "auth.json").read_text())
    except (OSError, ValueError):
        login = None
    if isinstance(login, dict) and cast("dict[str, object]", login).get("OPENAI_API_KEY"):
        return {"requires_openai_auth": True}
    raise CannotRun(
        "Codex has no API key. A ChatGPT login does not work through another address: set OPENAI_API_KEY, "
        "or configure a provider of your own in Codex's config.toml."
    )


def _codex_home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("CODEX_HOME") or Path(environment.get("HOME") or Path.home()) / ".codex")


def _codex_provider(arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, object]:
    """The provider that Codex's configuration selects; empty for the one that is built in."""
    try:
        config = tomllib.loads((_codex_home(environment) / "config.toml").read_text())
    except (OSError, ValueError):
        return {}
    profiles = cast("dict[str, dict[str, object]]", config.get("profiles", {}))
    profile = _option(arguments, "-p", "--profile") or config.get("profile")
    chosen = profiles.get(str(profile), {}).get("model_provider") or config.get("model_provider")
    providers = cast("dict[str, dict[str, object]]", config.get("model_providers", {}))
    return providers.get(str(chosen), {})


def _option(arguments: Sequence[str], *names: str) -> str | None:
    for place, argument in enumerate(arguments):
        name, _, value = argument.partition("=")
        if name in names:
            return value or next(iter(arguments[place + 1 : place + 2]), None)
    return None


def _toml(value: object) -> str:
    if isinstance(value, dict):
        pairs = (f"{json.dumps(str(k))} = {_toml(v)}" for k, v in cast("dict[object, object]", value).items())
        return "{ " + ", ".join(pairs) + " }"
    return json.dumps(value)


def folder_of(directory: str | os.PathLike[str] | None = None) -> str:
    """The folder that sessions are found by: where the program was started."""
    return str(Path(directory or ".").resolve())
