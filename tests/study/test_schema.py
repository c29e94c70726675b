from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from msched.config import conf_directory, options
from msched.study import schema

GROUPS = ("workload", "device", "solver", "simulator", "objective")


def composed(*overrides: str) -> dict[str, Any]:
    schema.register()
    with initialize_config_dir(config_dir=str(conf_directory()), version_base="1.3"):
        config = compose("config", overrides=list(overrides))
    plain: Any = OmegaConf.to_container(config, resolve=True, enum_to_str=True)
    return plain


def test_cell_id_is_what_is_computed_and_not_where_it_goes() -> None:
    config = {"seed": 0, "solver": {"a": 1, "b": 2}, "output": "runs/x", "study": "x", "force": False}
    moved = {"solver": {"b": 2, "a": 1}, "seed": 0, "output": "elsewhere", "study": "y", "force": True}
    assert schema.cell_id(config) == schema.cell_id(moved)
    assert schema.cell_id(config) != schema.cell_id({**config, "seed": 1})
    # SHA-256 of {"seed":0,"solver":{"a":1,"b":2}}, from sha256sum.
    assert schema.cell_id(config) == "b1ce156fbc502ee66b1f49396663072abc2d95de908f5956c38aafd293ca6145"


@pytest.mark.parametrize("group", GROUPS)
def test_every_option_of_every_group_fits_the_schema(group: str) -> None:
    assert options(group)
    for name in options(group):
        assert composed(f"{group}={name}")[group]


def test_defaults_are_complete() -> None:
    config = composed()
    assert config["output"] == "runs/single"
    assert "???" not in str(config)


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("tim_limit=3", "tim_limit"),
        ("time_limit=soon", "time_limit"),
        ("streams=4.5", "streams"),
        ("binding=loose", "free, engine"),
        ("parallelism=3", "single_stream, cc_parallel, engine_parallel, intra_engine, full"),
        ("simulator.dispatch=chance", "arrival, planned, greedy"),
        ("objective.order=[speed]", "makespan_ns, peak_bytes, waits, streams"),
        ("workload.nmae=x", "nmae"),
    ],
)
def test_mistakes_are_named(override: str, says: str) -> None:
    with pytest.raises((HydraException, OmegaConfBaseException)) as caught:
        composed(override)
    assert says in f"{caught.value} {caught.value.__cause__}"


def test_mistakes_in_a_study_file_are_named(search_path: Callable[..., Path]) -> None:
    from msched.errors import OptionError
    from msched.study import sweep

    folder = search_path(wrong="defaults: [config, _self_]\ntim_limit: 3\n")
    with pytest.raises(OptionError, match="tim_limit"):
        sweep.main(["-cd", str(folder), "-cn", "wrong"])
