"""List schedulers written for clarity alone: time goes by in steps of 1 ns, and every rule is looked up at every step.

Streams are given by `allowed`: those that each op may use. Both return start times and streams.
"""

from __future__ import annotations

from collections.abc import Iterator

from msched.problem import Problem


class Schedule:
    """What has been placed so far."""

    def __init__(self, problem: Problem, allowed: list[list[int]]) -> None:
        self.problem, self.allowed = problem, allowed
        self.start: dict[int, int] = {}
        self.stream: dict[int, int] = {}
        self.sync = problem.record_ns + problem.wait_ns
        self.inputs: dict[int, dict[int, int]] = {v: {} for v in range(problem.n)}
        for (u, v), delay in zip(problem.edges.tolist(), problem.delay.tolist(), strict=True):
            self.inputs[v][u] = delay

    def length(self, v: int) -> int:
        return int(self.problem.duration[v])

    def finish(self, v: int) -> int:
        return self.start[v] + self.length(v)

    def rank(self, v: int, lags: bool) -> int:
        below = [
            self.rank(w, lags) + (self.sync + before[v] if lags else 0)
            for w, before in self.inputs.items()
            if v in before
        ]
        return self.length(v) + max(below, default=0)

    def priorities(self, lags: bool) -> list[int]:
        place = self.problem.topological_order.tolist()
        return sorted(range(self.problem.n), key=lambda v: (-self.rank(v, lags), place.index(v)))

    def streams(self, v: int) -> Iterator[int]:
        """Allowed streams: those of predecessors first, then by number; one only where the label has chosen."""
        friends = [w for w in self.stream if self.problem.label[w] == self.problem.label[v] >= 0]
        homes = {self.stream[w] for w in friends} or set(self.allowed[v])
        used = {self.stream[u] for u in self.inputs[v] if u in self.stream}
        yield from sorted(homes & used)
        yield from sorted(homes - used)

    def inputs_there(self, v: int, s: int, t: int) -> bool:
        return all(
            u in self.start and t >= self.finish(u) + (0 if self.stream[u] == s else self.sync + delay)
            for u, delay in self.inputs[v].items()
        )

    def clear_of(self, v: int, t: int, others: list[int], pause: int) -> bool:
        return all(t >= self.finish(x) + pause or t + self.length(v) + pause <= self.start[x] for x in others)

    def on(self, s: int) -> list[int]:
        return [x for x in self.stream if self.stream[x] == s]

    def companions(self, v: int) -> list[int]:
        groups = self.problem.communicator
        return [x for x in self.start if groups[x] == groups[v] >= 0]

    def units_free(self, v: int, t: int) -> bool:
        for now in range(t, t + self.length(v)):
            running = [x for x in self.start if self.start[x] <= now < self.finish(x)]
            held = self.problem.demand[[v, *running]].sum(axis=0)
            if (held > self.problem.capacity).any():
                return False
        return True

    def place(self, v: int, s: int, t: int) -> None:
        self.stream[v], self.start[v] = s, t

    def result(self) -> tuple[list[int], list[int]]:
        ops = range(self.problem.n)
        return [self.start[v] for v in ops], [self.stream[v] for v in ops]


def by_level(problem: Problem, allowed: list[list[int]]) -> tuple[list[int], list[int]]:
    """Whenever something can start, the op of the highest level that can does."""
    schedule, now = Schedule(problem, allowed), 0
    priorities = schedule.priorities(lags=False)

    def startable() -> tuple[int, int] | None:
        for v in priorities:
            quiet = all(now >= schedule.finish(x) + schedule.sync for x in schedule.companions(v))
            if v in schedule.start or not quiet or not schedule.units_free(v, now):
                continue
            for s in schedule.streams(v):
                idle = all(now >= schedule.finish(x) + problem.gap_ns for x in schedule.on(s))
                if idle and schedule.inputs_there(v, s, now):
                    return v, s
        return None

    while len(schedule.start) < problem.n:
        while (found := startable()) is not None:
            schedule.place(*found, now)
        now += 1
    return schedule.result()


def by_earliest_finish(problem: Problem, allowed: list[list[int]]) -> tuple[list[int], list[int]]:
    """Ops by upward rank, each at the first instant and on the first stream where it fits between what is placed."""
    schedule = Schedule(problem, allowed)
    for v in schedule.priorities(lags=True):
        t = 0
        while v not in schedule.start:
            for s in schedule.streams(v):
                if (
                    schedule.inputs_there(v, s, t)
                    and schedule.clear_of(v, t, schedule.on(s), problem.gap_ns)
                    and schedule.clear_of(v, t, schedule.companions(v), schedule.sync)
                    and schedule.units_free(v, t)
                ):
                    schedule.place(v, s, t)
                    break
            t += 1
    return schedule.result()
