"""List scheduling under a memory limit: ops start in the order of a low-peak traversal, as early as the limit lets."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass

import numpy as np

from msched.plan import Plan
from msched.problem import Problem
from msched.solvers.base import Budget, Sequencer, UnassignableError
from msched.solvers.tensors import op_tensors


@dataclass(frozen=True)
class MemoryList:
    """Each op in turn starts no earlier than the one before it, once a stream, its units and its bytes are free.

    Since starts never go back along the order, the schedule cannot deadlock on memory as long as the limit is at least
    the order's own peak: when nothing runs, what is live is what the serial traversal holds at this place. An op that
    must wait for bytes, units or its turn starts when a fence can let it go, so that securing can keep every start.

    order: the traversal. max_streams: most streams where the problem sets no limit.
    """

    order: Sequencer
    max_streams: int = 32

    def solve(self, problem: Problem, budget: Budget) -> Plan:
        """A plan with predicted starts. Raises UnassignableError for bound streams, labels, or when memory ends."""
        if problem.binding == "engine" or (problem.label >= 0).any():
            raise UnassignableError("memory_list places ops on free streams only; binding and labels are not kept")
        order = self.order.sequence(problem, np.zeros(problem.n, np.int64), budget)
        outputs, inputs = op_tensors(problem)
        size, left = problem.tensor_bytes.tolist(), np.diff(problem.tensor_consumer_start).tolist()
        kept, workspace = problem.tensor_output.tolist(), problem.workspace.tolist()
        duration, demand = problem.duration.tolist(), problem.demand.tolist()
        limit = problem.memory_bytes
        room = None if limit is None else limit - int(problem.tensor_bytes[problem.tensor_persistent].sum())
        streams = min(self.max_streams if problem.streams is None else problem.streams, max(problem.n, 1))
        sync = problem.record_ns + problem.wait_ns
        free = problem.capacity.tolist()
        stream_free = [0] * streams
        finishes: list[list[int]] = [[] for _ in range(streams)]
        running: list[tuple[int, int]] = []  # (finish, op), sorted
        start, finish, stream = [0] * problem.n, [0] * problem.n, [0] * problem.n
        live = now = 0

        def release() -> None:
            nonlocal live, now
            end, v = running.pop(0)
            now = max(now, end)
            for e, units in enumerate(demand[v]):
                free[e] += units
            live -= workspace[v] + sum(size[t] for t in outputs[v] if left[t] == 0 and not kept[t])
            for t in inputs[v]:
                left[t] -= 1
                if left[t] == 0 and not kept[t]:
                    live -= size[t]

        for position, v in enumerate(order.tolist()):
            entries = range(problem.predecessor_start[v], problem.predecessor_start[v + 1])
            before = [(int(problem.predecessor[k]), int(problem.delay[problem.predecessor_edge[k]])) for k in entries]
            arrivals = [
                max([stream_free[s], *(finish[u] + (0 if stream[u] == s else sync + d) for u, d in before)])
                for s in range(streams)
            ]
            s = min(range(streams), key=lambda s: (arrivals[s], s))
            arrival = max(arrivals[s], (position + 1) * problem.host_issue_ns)
            now = max(now, arrival)
            need = workspace[v] + sum(size[t] for t in outputs[v])
            while running and running[0][0] <= now:
                release()
            while any(f < d for f, d in zip(free, demand[v], strict=True)) or (room is not None and live + need > room):
                if not running:
                    raise UnassignableError(f"op {problem.op_names[v]!r} finds no room in {limit} bytes in this order")
                release()
                while running and running[0][0] <= now:
                    release()
            # Only a fence from another stream holds an op back, and its event takes time.
            if room is not None and now > arrival:
                now = _first_finish(finishes[:s] + finishes[s + 1 :], now - sync) + sync
                while running and running[0][0] <= now:
                    release()
            start[v], finish[v], stream[v] = now, now + duration[v], s
            stream_free[s] = finish[v] + problem.gap_ns
            finishes[s].append(finish[v])
            live += need
            for e, units in enumerate(demand[v]):
                free[e] -= units
            insort(running, (finish[v], v))
        used = {s: k for k, s in enumerate(dict.fromkeys(stream[v] for v in order.tolist()))}
        return Plan(
            stream=np.array([used[s] for s in stream], np.int64),
            order=order,
            predicted_start_ns=np.array(start, np.int64),
            predicted_makespan_ns=max(finish, default=0),
        )


def _first_finish(finishes: list[list[int]], earliest: int) -> int:
    """The first of the finishes, sorted in each stream, from `earliest` on; `earliest` where there is none."""
    found = (ends[k] for ends in finishes if (k := bisect_left(ends, earliest)) < len(ends))
    return min(found, default=earliest)
