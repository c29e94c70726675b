"""A part of a problem as a problem of its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from msched.arrays import BoolArray, Int64Array
from msched.problem import Problem


def excerpt(problem: Problem, ops: Int64Array, duration: Int64Array, demand: Int64Array, moded: BoolArray) -> Problem:
    """The problem of some `ops`, rising indices (k,), with the dependencies among them and without tensors or limits on
    memory, events and tasks.

    duration (n,) and demand (n, E): of the modes in force. Ops with `moded` (n,) keep all modes and their own figures.
    """
    index = np.full(problem.n, -1, np.int64)
    index[ops] = np.arange(ops.size)
    inside = (index[problem.edges] >= 0).all(axis=1)
    rows = (index[problem.mode_op] >= 0) & moded[problem.mode_op]
    kept = moded[ops]
    nothing = np.zeros(0, np.int64)
    return replace(
        problem,
        op_names=tuple(problem.op_names[v] for v in ops.tolist()),
        duration=np.where(kept, problem.duration[ops], duration[ops]),
        demand=np.where(kept[:, None], problem.demand[ops], demand[ops]),
        engine=problem.engine[ops],
        edges=index[problem.edges[inside]],
        delay=problem.delay[inside],
        workspace=np.zeros(ops.size, np.int64),
        label=problem.label[ops],
        communicator=problem.communicator[ops],
        mode_op=index[problem.mode_op[rows]],
        mode_duration=problem.mode_duration[rows],
        mode_demand=problem.mode_demand[rows],
        tensor_producer=nothing,
        tensor_bytes=nothing,
        tensor_consumer_start=np.zeros(1, np.int64),
        tensor_consumer=nothing,
        tensor_persistent=np.zeros(0, np.bool_),
        tensor_output=np.zeros(0, np.bool_),
        tasks_per_stream=None,
        events=None,
        memory_bytes=None,
        warnings=(),
    )
