from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msched.config import load
from msched.study.records import Names

FAKES = "tests.study.fakes"


@pytest.fixture
def config() -> dict[str, Any]:
    """A resolved config of a fork of three branches on four streams."""
    return {
        "workload": {"_target_": f"{FAKES}.fork", "branches": 3},
        "device": load("device", "atlas_800i_a2"),
        "solver": {"_target_": f"{FAKES}.OneStream"},
        "simulator": {"dispatch": "arrival", "fidelity": "fixed"},
        "objective": {"order": ["makespan_ns", "peak_bytes", "waits", "streams"]},
        "streams": 4,
        "binding": "free",
        "parallelism": "full",
        "slices": 1,
        "slice_choices": [1, 2],
        "slice_along": "auto",
        "slice_around": "collectives",
        "memory_bytes": None,
        "collective": "hccl",
        "placement": {},
        "time_limit": 10.0,
        "workers": 1,
        "seed": 0,
        "deterministic": False,
        "study": "test",
        "output": "runs/test",
        "force": False,
    }


@pytest.fixture
def names() -> Names:
    return Names(workload="fork", device="atlas_800i_a2", solver="single", simulator="arrival", objective="makespan")


@pytest.fixture
def search_path(tmp_path: Path) -> Callable[..., Path]:
    """Writes a folder of Hydra configs that the shipped ones are searched after: `group/name` to its text."""

    def written(**extra: str) -> Path:
        files = {
            "workload/fork": f"_target_: {FAKES}.fork\nbranches: 3\n",
            "workload/broken": f"_target_: {FAKES}.broken\n",
            "solver/one": f"_target_: {FAKES}.OneStream\n",
            **{name.replace("__", "/"): text for name, text in extra.items()},
        }
        for name, text in files.items():
            path = tmp_path / "conf" / f"{name}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path / "conf"

    return written
