from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from msched.study.records import Input, Machine, Names, Proof, Record, Score, Size


def made(
    solver: str = "heft",
    makespan_ns: int | None = 1000,
    bound_ns: int = 500,
    *,
    workload: str = "net",
    device: str = "chip",
    problem: str = "p",
    status: Any = "feasible",
    state: Any = "done",
    objective_name: str = "",
    exact: bool = False,
    peak_bytes: int = 2**20,
    waits: int = 3,
    **config: Any,
) -> Record:
    """A record as a job would have written it."""
    score = None
    if makespan_ns is not None:
        score = Score(
            makespan_ns=makespan_ns, peak_bytes=peak_bytes, streams=2, waits=waits, fences=1,
            utilisation={"core": 0.5}, exposed_communication_ns=0,
        )  # fmt: skip
    target = "msched.solvers.exact.cpsat.CpSat" if exact else "msched.solvers.joint.heft.Heft"
    failed = state == "failed"
    return Record(
        cell=f"{workload} {device} {solver} {sorted(config.items())}",
        names=Names(workload=workload, device=device, solver=solver, objective=objective_name),
        config={
            "workload": {"name": workload},
            "device": {"name": device},
            "solver": {"_target_": target},
            "objective": {"order": ["makespan_ns", "peak_bytes", "waits", "streams"]},
            "study": f"study of {solver}",
            **config,
        },
        seed=0,
        versions={"msched": "0.1.0"},
        machine=Machine(cpu="cpu", cores=2, memory_bytes=1, system="Linux", python="3.11"),
        state=state,
        status=None if failed else status,
        error="no such\nfile" if failed else "",
        reason="over a limit" if status in ("invalid", "infeasible") else "",
        input=Input(name=workload, hash=f"hash of {workload}", ops=9, tensors=8, dependencies=7),
        problem=None if failed else Size(hash=problem, ops=5, dependencies=6, engines=("core",), streams=2),
        score=score,
        bound=None if failed else Proof(makespan_ns=bound_ns, argument="critical path", each={}),
        seconds={"solve": 0.25},
    )


@pytest.fixture
def record() -> Callable[..., Record]:
    return made
