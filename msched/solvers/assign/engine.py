"""One stream an engine, as ONNX Runtime and DALI (policy PerBackend) do."""

from __future__ import annotations

from dataclasses import dataclass

from msched.arrays import Int64Array
from msched.problem import Problem
from msched.solvers.base import Budget
from msched.solvers.stream_pool import follow_labels, within_limits


@dataclass(frozen=True)
class PerEngine:
    """The ops of an engine share one stream; those of a label take the stream of its first op's engine."""

    def assign(self, problem: Problem, budget: Budget) -> Int64Array:
        """Streams in the sequence of the engines in use, shape (n,). Raises UnassignableError: too few streams, or a
        label across engines where streams are bound to engines."""
        return within_limits(problem, follow_labels(problem, problem.engine))
