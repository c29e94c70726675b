"""The tensors of each op, as memory-aware algorithms walk over them."""

from __future__ import annotations

import numpy as np

from msched.problem import Problem


def op_tensors(problem: Problem) -> tuple[list[list[int]], list[list[int]]]:
    """The tensors, persistent ones aside, that each op produces, and that it consumes (once for each use)."""
    outputs: list[list[int]] = [[] for _ in range(problem.n)]
    inputs: list[list[int]] = [[] for _ in range(problem.n)]
    start, consumer = problem.tensor_consumer_start.tolist(), problem.tensor_consumer.tolist()
    for t in np.flatnonzero(~problem.tensor_persistent).tolist():
        outputs[problem.tensor_producer[t]].append(t)
        for v in consumer[start[t] : start[t + 1]]:
            inputs[v].append(t)
    return outputs, inputs
