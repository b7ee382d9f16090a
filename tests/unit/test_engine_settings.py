"""Engine settings are used exactly as written, or refused."""

import pytest

from sidecar.engine.loading import import_target, load_engine
from sidecar.engine.sources import BUILT_IN, EngineSources
from sidecar.server.engines.instance import SettingsRefused, validated_settings


def _numbers() -> list[tuple[str, str, int]]:
    """Every whole-number setting of a built-in engine, with its default."""
    found: list[tuple[str, str, int]] = []
    for engine_id in BUILT_IN:
        source = EngineSources().named(engine_id)
        assert source is not None
        model = load_engine(source).settings_model
        if isinstance(model, str):
            model = import_target(model)
        for name, field in model.model_fields.items() if model is not None else ():
            if field.annotation in (int, int | None):
                found.append((engine_id, name, field.default if isinstance(field.default, int) else 5_000))
    return found


@pytest.mark.parametrize(("engine_id", "name", "value"), _numbers())
def test_a_number_is_not_a_string_fraction_or_boolean(engine_id: str, name: str, value: int) -> None:
    source = EngineSources().named(engine_id)
    assert source is not None
    kind = load_engine(source)
    assert getattr(validated_settings(kind, {name: value}), name) == value
    for wrong in (str(value), float(value), True):
        with pytest.raises(SettingsRefused, match=name):
            validated_settings(kind, {name: wrong})
