"""Task graphs of the Standard Task Graph Set (`.stg`): P|prec|Cmax.

The number of tasks without the two dummies, then a line a task, the dummies included: its number, counted from 0, its
processing time, the number of its predecessors, and these; `#` begins a comment. Source: Tobita and Kasahara, A
standard task graph set for fair evaluation of multiprocessor scheduling algorithms, Journal of Scheduling 5 (2002).
"""

from __future__ import annotations

from msched.errors import FormatError, OptionError
from msched.formats.problems import figures
from msched.formats.problems.layout import layouts
from msched.formats.problems.project import Project
from msched.problem import Problem

WHAT = "a task graph of the Standard Task Graph Set"
LARGEST_BYTES = figures.LARGEST_BYTES


def recognises(head: bytes) -> bool:
    """One figure stands alone in the first line."""
    return "task_graph_set" in layouts(head)


def parse(data: bytes, name: str, streams: int | None) -> Problem:
    """One op a task; the identical processors are the `streams`. Raises FormatError with the line, OptionError."""
    if streams is None:
        raise OptionError(f"{WHAT} says nothing of processors; give their number as streams=")
    text = figures.Figures(data)
    head = text.row("the number of tasks")
    if len(head) != 1:
        raise FormatError(f"line {text.line}: {len(head)} figures where the number of tasks alone is needed")
    tasks = head[0] + 2
    text.expect(3 * tasks, f"{head[0]} tasks and two dummies")
    project = Project("task", 0)
    for task in range(tasks):
        row = text.row(f"task {task} of {head[0]} and two dummies, counted from 0")
        if len(row) < 3 or row[0] != task or len(row) != 3 + row[2]:
            raise FormatError(
                f"line {text.line}: the row of task {task} is needed: its number, its time, the number of its "
                f"predecessors and these; it holds {len(row)} figures, and begins {row[:3]}"
            )
        project.lines.append(text.line)
        project.modes.append([(row[1], ())])
        for number in row[3:]:
            project.before.append(project.job(number, tasks, text.line))
            project.after.append(task)
    text.end(f"task {tasks - 1}")
    return project.problem(name, (), streams)
