"""Splitting: a stream with more tasks than it may hold goes on on a stream that is free.

GE does so as its last step, the physical split of logical streams: the first op of the new stream waits for the last of
the old.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from msched.arrays import Int64Array
from msched.plan import Plan
from msched.plan import waits as waits_of
from msched.problem import Problem
from msched.solvers.limits import misplaced
from msched.solvers.rotation import rotate

_LINK = 3  # tasks that a cut may add to one stream: the wait at its begin, the record at its end


def split(problem: Problem, plan: Plan, dispatch: str = "arrival") -> Plan:
    """`plan` with every stream that holds too many tasks cut into as few as hold them; `plan` itself where none does.

    Cutting changes which streams ops are on, but not their order: each cut is one wait more, from the op before it to
    the op behind it. Where there are not streams enough, or labels or engine limits forbid it, the ops go round among
    the streams there are, as the plan runs under `dispatch`; where that does not help, the plan stays as it is, for
    `limits.broken` to say why it is none.
    """
    limit = problem.tasks_per_stream
    if limit is None or limit <= _LINK or problem.n <= limit:
        return plan
    waits = waits_of(problem, plan)
    tasks = np.ones(problem.n, np.int64)
    np.add.at(tasks, waits[:, 0], 1)
    np.add.at(tasks, waits[:, 1], 2)
    stream, used, links = plan.stream.copy(), plan.streams, set(map(tuple, plan.fences.tolist()))
    for s in np.flatnonzero(np.bincount(plan.stream, tasks) > limit).tolist():
        ops = plan.order[plan.stream[plan.order] == s]
        if tasks[ops].max() > limit - _LINK:
            return rotate(problem, plan, dispatch) or plan
        part = _parts(tasks[ops], limit - _LINK)
        stream[ops] = np.where(part == 0, s, used + part - 1)
        used += int(part[-1])
        last = np.flatnonzero(np.diff(part))
        links |= set(zip(ops[last].tolist(), ops[last + 1].tolist(), strict=True))
    if used == plan.streams:
        return plan
    if misplaced(problem, stream):
        return rotate(problem, plan, dispatch) or plan
    return replace(plan, stream=stream, fences=np.array(sorted(links), np.int64))


def _parts(tasks: Int64Array, most: int) -> Int64Array:
    """The part of each entry when a run is cut as late as parts of at most `most` allow: shape of `tasks`."""
    total = np.concatenate([[0], np.cumsum(tasks)])
    part = np.zeros(tasks.size, np.int64)
    begin = 0
    while (end := int(np.searchsorted(total, total[begin] + most, side="right")) - 1) < tasks.size:
        part[end:] += 1
        begin = end
    return part
