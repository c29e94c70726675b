"""Schedule generation schemes written for clarity alone: every instant is tried, and every rule is looked up there.

Ops in the numbers of the problem. `allowed` names the streams that each op may use; where `counted`, only how many ops
are on the streams of one pool matters, and ops of no duration need none of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msched.problem import Problem


@dataclass
class Generation:
    problem: Problem
    allowed: list[list[int]]
    counted: bool
    start: dict[int, int] = field(default_factory=dict)
    stream: dict[int, int] = field(default_factory=dict)
    mode: dict[int, int] = field(default_factory=dict)

    def modes(self, v: int) -> list[tuple[int, list[int]]]:
        p = self.problem
        rows = [k for k, u in enumerate(p.mode_op.tolist()) if u == v]
        own = (int(p.duration[v]), p.demand[v].tolist())
        return [own, *((int(p.mode_duration[k]), p.mode_demand[k].tolist()) for k in rows)]

    def duration(self, v: int) -> int:
        return self.modes(v)[self.mode[v]][0]

    def finish(self, v: int) -> int:
        return self.start[v] + self.duration(v)

    def inputs(self, v: int) -> list[tuple[int, int]]:
        p = self.problem
        rows = [(u, int(d)) for (u, w), d in zip(p.edges.tolist(), p.delay.tolist(), strict=True) if w == v]
        return [(u, p.record_ns + p.wait_ns + d) for u, d in rows]

    def engines_fit(self, demand: list[int], t: int, length: int) -> bool:
        for now in range(t, t + length):
            running = [u for u in self.start if self.start[u] <= now < self.finish(u)]
            for e, capacity in enumerate(self.problem.capacity.tolist()):
                if demand[e] + sum(self.modes(u)[self.mode[u]][1][e] for u in running) > capacity:
                    return False
        return True

    def collectives_apart(self, v: int, t: int, length: int) -> bool:
        event = self.problem.record_ns + self.problem.wait_ns
        group = self.problem.communicator
        for u in self.start:
            if group[u] == group[v] >= 0:
                mine, other = max(event, int(length == 0)), max(event, int(self.duration(u) == 0))
                if t < self.finish(u) + other and self.start[u] < t + length + mine:
                    return False
        return True

    def held(self, length: int) -> int:
        return length + self.problem.gap_ns if self.counted else max(length + self.problem.gap_ns, 1)

    def streams(self, v: int, t: int, length: int) -> list[int]:
        """Streams on which op v may start at t: [0] or none where they are counted."""
        if any(t < self.finish(u) for u, _ in self.inputs(v)):
            return []
        hold = self.held(length)
        if self.counted:
            for now in range(t, t + hold):
                on = [u for u in self.start if self.allowed[u] == self.allowed[v]]
                if sum(self.start[u] <= now < self.start[u] + self.held(self.duration(u)) for u in on) >= len(
                    self.allowed[v]
                ):
                    return []
            return [0]
        label = self.problem.label
        homes = {self.stream[u] for u in self.start if label[u] == label[v] >= 0}
        return [
            s
            for s in homes or self.allowed[v]
            if all(t >= self.finish(u) + (0 if self.stream[u] == s else lag) for u, lag in self.inputs(v))
            and all(
                t >= self.start[u] + self.held(self.duration(u)) or self.start[u] >= t + hold
                for u in self.start
                if self.stream[u] == s
            )
        ]

    def choices(self, v: int, t: int, length: int, demand: list[int]) -> list[int]:
        if self.engines_fit(demand, t, length) and self.collectives_apart(v, t, length):
            return self.streams(v, t, length)
        return []

    def place(self, v: int, mode: int, t: int, streams: list[int]) -> None:
        """On the stream of a predecessor, of several the one whose edge is given last; else on the lowest."""
        for u, _ in reversed(self.inputs(v)):
            if self.stream[u] in streams:
                streams = [self.stream[u]]
                break
        self.start[v], self.stream[v], self.mode[v] = t, min(streams), mode


def serial(problem: Problem, allowed: list[list[int]], counted: bool, sequence: list[int]) -> Generation:
    """Ops in sequence, each in the mode that can finish first, as early as that can start."""
    made = Generation(problem, allowed, counted)
    for v in sequence:
        found = []
        for mode, (length, demand) in enumerate(made.modes(v)):
            t = 0
            while not (streams := made.choices(v, t, length, demand)):
                t += 1
            found.append((t + length, mode, t, streams))
        _, mode, t, streams = min(found, key=lambda one: one[:2])
        made.place(v, mode, t, streams)
    return made


def parallel(problem: Problem, allowed: list[list[int]], counted: bool, sequence: list[int]) -> Generation:
    """At each instant the ops whose inputs have ended are tried in sequence, each in its shortest mode that fits.

    What an op of no duration sets free at its instant is tried after all others.
    """
    made, t = Generation(problem, allowed, counted), 0
    while len(made.start) < problem.n:
        ready = [
            v
            for v in sequence
            if v not in made.start and all(u in made.start and made.finish(u) <= t for u, _ in made.inputs(v))
        ]
        begun = 0
        for v in ready:
            fitting = [
                (length, mode, streams)
                for mode, (length, demand) in enumerate(made.modes(v))
                if (streams := made.choices(v, t, length, demand))
            ]
            if fitting:
                _, mode, streams = min(fitting, key=lambda one: one[:2])
                made.place(v, mode, t, streams)
                begun += 1
        if not begun:
            t += 1
    return made
