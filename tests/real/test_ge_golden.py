"""GE's golden cases as the shared collection holds them: the file and the restated cases must tell the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from msched.solvers.assign.ge import EngineRule, allocate

GOLDEN = Path(__file__).resolve().parents[3] / "shared" / "data" / "ge-golden" / "stream_assignment.json"


@pytest.mark.skipif(not GOLDEN.is_file(), reason="../shared/data/ge-golden/stream_assignment.json is not there")
def test_all_cases_of_the_file() -> None:
    cases: dict[str, dict[str, Any]] = {}
    for case in json.loads(GOLDEN.read_text())["cases"]:
        cases[case["name"]] = {**cases.get(case.get("like", ""), {}), **case}
    assert len(cases) == 15
    for name, case in cases.items():
        names, engine, label = zip(*case["order"], strict=True)
        edges = np.array([[names.index(u), names.index(v)] for u, v in case["edges"]])
        flags, most = case.get("conf", {}), case.get("par", {})
        rules = {
            e: EngineRule(*(letter in flags.get(e, "") for letter in "ias"), parallel=most.get(e, 1))  # type: ignore[misc]
            for e in engine
        }
        found = dict(zip(names, allocate(engine, label, edges, np.arange(len(names)), rules).tolist(), strict=True))
        assert {op: found[op] for op in case["expect"]} == case["expect"], name
        assert all(len({found[op] for op in group}) == 1 for group in case.get("same", [])), name
        assert all(len({found[op] for op in group}) == len(group) for group in case.get("diff", [])), name
