"""The optimum by trying every plan: streams (set partitions), issue orders (linear extensions) and modes.

Under `planned` an op's start depends on the ops issued before it alone, so plans are built one op at a time and share
the work of their beginnings. Three cuts lose no makespan. A beginning is dropped when an op in it, followed by the
shortest durations that depend on it, ends no earlier than the best plan so far. Nothing is sought below the longest
path, the last issue of the host, and the work over the units or streams that do it. And of two neighbours in the issue
order that share no stream, no engine and no dependency, and whose places the host does not price, swapping gives the
same start times: only the order with the smaller index first is tried.
"""

from __future__ import annotations

import numpy as np

from msched.plan import Plan
from msched.problem import Problem


def optimum(problem: Problem) -> tuple[int, Plan] | None:
    """The least makespan under `planned` and `fixed` in ns and a plan that reaches it; None where no plan is.

    Knows all costs and the limits on streams, on engines' streams and of labels. Not the limits on memory, events and
    tasks nor the order of communicators, for which extra fences can be worth their time.
    """
    p, n = problem, problem.n
    before: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for (u, v), delay in zip(p.edges.tolist(), p.delay.tolist(), strict=True):
        before[v].append((u, p.record_ns + p.wait_ns + delay))
    modes = [[(d, q)] for d, q in zip(p.duration.tolist(), p.demand.tolist(), strict=True)]
    for v, d, q in zip(p.mode_op.tolist(), p.mode_duration.tolist(), p.mode_demand.tolist(), strict=True):
        modes[v].append((d, q))
    tail = [0] * n
    for v in reversed(p.topological_order.tolist()):
        for u, _ in before[v]:
            tail[u] = max(tail[u], tail[v] + min(d for d, _ in modes[v]))
    engine, capacity, label = p.engine.tolist(), p.capacity.tolist(), p.label.tolist()
    most_streams = n if p.streams is None else p.streams
    most_of_engine = [n if k < 0 else k for k in p.engine_streams.tolist()]

    shortest = [min(d for d, _ in choices) for choices in modes]
    floor = max([n * p.host_issue_ns, *(t + d for t, d in zip(tail, shortest, strict=True))])
    floor = max(floor, -(-sum(shortest) // max(1, most_streams)))
    for e, units in enumerate(capacity):
        floor = max(floor, -(-sum(min(d * q[e] for d, q in choices) for choices in modes) // max(1, units)))

    order: list[int] = []
    stream, mode, start, finish = [-1] * n, [0] * n, [0] * n, [0] * n
    held: list[dict[int, int]] = [{} for _ in range(n)]
    streams: list[list[int]] = []
    best: tuple[int, Plan] | None = None

    def allowed(v: int, s: int) -> bool:
        if label[v] >= 0 and any(label[u] == label[v] and stream[u] != s for u in order):
            return False
        if s == len(streams):
            alike = sum(engine[ops[0]] == engine[v] for ops in streams)
            return s < most_streams and (p.binding == "free" or alike < most_of_engine[engine[v]])
        return p.binding == "free" or engine[streams[s][0]] == engine[v]

    def begin(v: int, s: int, needs: dict[int, int]) -> int:
        time = (len(order) + 1) * p.host_issue_ns
        if s < len(streams):
            time = max(time, finish[streams[s][-1]] + p.gap_ns)
        for u, lag in before[v]:
            time = max(time, finish[u] + (lag if stream[u] != s else 0))
        rivals = [u for u in order if held[u].keys() & needs.keys()]
        time = max([time, *(start[u] for u in rivals)])
        for instant in [time, *sorted(finish[u] for u in rivals if finish[u] > time)]:
            running = [u for u in rivals if finish[u] > instant]
            if all(units + sum(held[u].get(e, 0) for u in running) <= capacity[e] for e, units in needs.items()):
                return instant
        raise AssertionError("an op that fits an empty device always fits in the end")

    def extend() -> None:
        nonlocal best
        if len(order) == n:
            makespan = max(finish, default=0)
            if best is None or makespan < best[0]:
                best = makespan, Plan(stream=np.array(stream), order=np.array(order), mode=np.array(mode))
        for v in range(n):
            if best is not None and best[0] == floor:
                return
            if stream[v] >= 0 or any(stream[u] < 0 for u, _ in before[v]):
                continue
            for s in range(len(streams) + 1):
                if not allowed(v, s):
                    continue
                for m, (duration, demand) in enumerate(modes[v]):
                    needs = {e: units for e, units in enumerate(demand) if units and duration}
                    last = order[-1] if order else v
                    bound = (
                        stream[last] == s or held[last].keys() & needs.keys() or any(u == last for u, _ in before[v])
                    )
                    if last > v and not bound and not p.host_issue_ns:
                        continue
                    start[v] = begin(v, s, needs)
                    finish[v] = start[v] + duration
                    if best is not None and finish[v] + tail[v] >= best[0]:
                        continue
                    stream[v], mode[v], held[v] = s, m, needs
                    if s == len(streams):
                        streams.append([])
                    streams[s].append(v)
                    order.append(v)
                    extend()
                    order.pop()
                    streams[s].pop()
                    if not streams[s]:
                        streams.pop()
                    stream[v], held[v] = -1, {}

    extend()
    return best
