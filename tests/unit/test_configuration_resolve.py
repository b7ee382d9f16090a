"""Where settings come from, and which of them wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from sidecar.server.configuration.resolve import ConfigurationError, resolve


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(
        'stateDir = "/from/file"\n[plugins.slots]\ncontextEngine = "from-file"\n[limits]\nmaxInFlight = 7\n',
        encoding="utf-8",
    )
    return path


def nowhere(tmp_path: Path) -> dict[str, str]:
    return {
        "XDG_CONFIG_HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "HOME": str(tmp_path),
    }


def test_without_anything_configured_the_defaults_hold(tmp_path: Path) -> None:
    settings = resolve(environ=nowhere(tmp_path))
    assert settings.engine is None
    assert settings.store.kind == "sqlite"
    assert settings.limits.default_token_budget == 128_000


def test_the_file_is_read(file: Path) -> None:
    settings = resolve(file=file, environ={})
    assert (settings.engine, settings.limits.max_in_flight) == ("from-file", 7)
    assert settings.state_dir == Path("/from/file")


def test_the_environment_wins_over_the_file(file: Path) -> None:
    environ = {"CONTEXT_SIDECAR_STATE_DIR": "/from/environment", "CONTEXT_SIDECAR_ENGINE": "from-environment"}
    settings = resolve(file=file, environ=environ)
    assert settings.state_dir == Path("/from/environment")
    assert settings.engine == "from-environment"


def test_the_hosts_config_wins_over_the_environment(file: Path) -> None:
    environ = {"CONTEXT_SIDECAR_STATE_DIR": "/from/environment", "CONTEXT_SIDECAR_ENGINE": "from-environment"}
    overrides = {"stateDir": "host", "plugins": {"slots": {"contextEngine": "from-config"}}}
    settings = resolve(file=file, overrides=overrides, environ=environ)
    assert (settings.state_dir, settings.engine) == (Path("/from/environment/host"), "from-config")
    assert settings.limits.max_in_flight == 7


OF_WORKSPACE = ("plugins", "entries", "workspace", "config")


def nested(path: tuple[str, ...], value: object) -> dict[str, Any]:
    """Overrides with one setting in them."""
    for name in reversed(path):
        value = {name: value}
    return cast("dict[str, Any]", value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("stateDir",), "/etc"),
        (("stateDir",), "../beside"),
        (("stateDir",), "link"),
        (("stateDir",), "~"),
        (("store", "path"), "/etc/passwd"),
        (("store", "path"), "link/context.db"),
        ((*OF_WORKSPACE, "path"), "."),
        ((*OF_WORKSPACE, "pattern"), "*"),
        ((*OF_WORKSPACE, "sessionStart"), ["*"]),
    ],
)
def test_a_host_names_no_place_of_the_operators(tmp_path: Path, path: tuple[str, ...], value: object) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path)
    environ = {"CONTEXT_SIDECAR_STATE_DIR": str(tmp_path / "root")}
    with pytest.raises(ConfigurationError) as refused:
        resolve(overrides=nested(path, value), environ={**environ, "HOME": str(tmp_path)})
    assert (refused.value.source, refused.value.path) == ("config", path)
    assert "configuration file" in str(refused.value) and str(tmp_path) not in str(refused.value)


def test_a_host_keeps_its_state_inside_the_operators_folder(tmp_path: Path) -> None:
    environ = {"CONTEXT_SIDECAR_STATE_DIR": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    for given in (str(tmp_path), str(tmp_path / "mine"), "mine"):
        assert resolve(overrides={"stateDir": given}, environ=environ).state_dir == tmp_path / Path(given)
    store = resolve(overrides={"store": {"path": "mine.db"}}, environ=environ).store
    assert store.path == tmp_path / "mine.db"


def test_the_operator_opens_further_folders_to_hosts_in_the_file_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    opened, given = {"hosts": {"stateDirs": [str(tmp_path / "hosts")]}}, str(tmp_path / "hosts" / "pi")
    file.write_text(f"[hosts]\nstateDirs = [{str(tmp_path / 'hosts')!r}]\n", encoding="utf-8")
    environ = {"CONTEXT_SIDECAR_STATE_DIR": str(tmp_path / "root"), "XDG_CONFIG_HOME": str(tmp_path / "none")}
    assert resolve(file=file, overrides={"stateDir": given}, environ=environ).state_dir == Path(given)
    with pytest.raises(ConfigurationError):
        resolve(overrides={"stateDir": given, **opened}, environ=environ)


def test_secrets_of_a_plugin_do_not_go_where_the_host_wants(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        '[plugins.entries.far.config]\nbaseUrl = "https://ours"\napiToken = "t"\nheaders = {a = "b"}\n'
        "tokenBudget = 9\n",
        encoding="utf-8",
    )

    def config(**of_host: object) -> dict[str, Any]:
        overrides = nested(("plugins", "entries", "far", "config"), of_host)
        return dict(resolve(file=file, overrides=overrides, environ={}).entry("far").config)

    assert config(baseUrl="https://theirs") == {"baseUrl": "https://theirs", "tokenBudget": 9}
    assert config(tokenBudget=3)["apiToken"] == "t"


def test_the_hosts_engine_wins_over_its_config(file: Path) -> None:
    overrides = {"plugins": {"slots": {"contextEngine": "from-config"}}}
    assert resolve(file=file, overrides=overrides, engine="chosen", environ={}).engine == "chosen"


def test_an_unknown_key_is_warned_about(tmp_path: Path) -> None:
    settings = resolve(overrides={"limitz": {}, "limits": {"maxInflight": 3}}, environ=nowhere(tmp_path))
    assert settings.warnings == ("unknown setting limitz", "unknown setting limits.maxInflight")


def test_code_to_load_is_never_taken_from_the_wire(tmp_path: Path) -> None:
    overrides = {"plugins": {"load": {"paths": ["/somewhere"]}}}
    settings = resolve(overrides=overrides, environ=nowhere(tmp_path))
    assert settings.load_paths == ()
    assert any("plugins.load" in warning for warning in settings.warnings)


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        ({"limits": {"maxInFlight": "many"}}, ("limits", "maxInFlight")),
        ({"limits": {"defaultTokenBudget": 0}}, ("limits", "defaultTokenBudget")),
        ({"store": {"kind": "paper"}}, ("store", "kind")),
        ({"plugins": {"entries": {"full": {"enabled": 3}}}}, ("plugins", "entries", "full", "enabled")),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(
    tmp_path: Path, overrides: dict[str, object], path: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        resolve(overrides=overrides, environ=nowhere(tmp_path))
    assert refused.value.path == path
    assert refused.value.source == "config"


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        resolve(file=tmp_path / "missing.toml", environ={})


def test_a_file_that_is_not_toml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("this is = = not toml", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="configuration file"):
        resolve(file=path, environ={})


def test_a_model_gets_its_key_from_the_environment(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[model]\nbaseUrl = "http://127.0.0.1/v1"\nname = "m"\n', encoding="utf-8")
    model = resolve(file=path, environ={"CONTEXT_SIDECAR_MODEL_API_KEY": "k"}).model
    assert model is not None and model.api_key == "k"


def test_a_key_of_the_operator_goes_to_no_address_that_the_host_names(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        '[model]\nbaseUrl = "https://ours/v1"\nname = "m"\napiKey = "file-key"\n', encoding="utf-8"
    )
    environ = {"CONTEXT_SIDECAR_MODEL_API_KEY": "environment-key"}
    ours = resolve(file=path, environ=environ).model
    assert ours is not None and (ours.base_url, ours.api_key) == ("https://ours/v1", "file-key")
    theirs = resolve(file=path, overrides={"model": {"baseUrl": "https://theirs/v1"}}, environ=environ).model
    assert theirs is not None and (theirs.base_url, theirs.api_key) == ("https://theirs/v1", "")
    assert "file-key" not in repr(ours)


def test_an_address_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"model\.name"):
        resolve(overrides={"model": {"baseUrl": "https://x/v1"}}, environ=nowhere(tmp_path))
