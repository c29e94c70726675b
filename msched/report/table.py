"""A sweep as tables: one row a cell, and the best heuristic beside the exact solver; in four formats."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msched.report.rows import Row, contest, shared_variant
from msched.study.job import OVERRUN

if TYPE_CHECKING:
    import pandas

# Column to what a reader of the table sees: its heading, and the figure in a unit that reads well.
_SHOWN: dict[str, tuple[str, Callable[[Any], str]]] = {
    "ops": ("ops", str),
    "single_ns": ("single stream, ms", lambda ns: f"{ns / 1e6:.3f}"),
    "makespan_ns": ("makespan, ms", lambda ns: f"{ns / 1e6:.3f}"),
    "heuristic_ns": ("heuristic, ms", lambda ns: f"{ns / 1e6:.3f}"),
    "exact_ns": ("exact, ms", lambda ns: f"{ns / 1e6:.3f}"),
    "bound_ns": ("bound, ms", lambda ns: f"{ns / 1e6:.3f}"),
    "speed_up": ("speed-up", lambda ratio: f"{ratio:.2f}"),
    "gap": ("gap", lambda share: _percent(share)),
    "heuristic_gap": ("its gap", lambda share: _percent(share)),
    "exact_gap": ("exact gap", lambda share: _percent(share)),
    "gain": ("gain", lambda share: _percent(share)),
    "streams": ("streams", str),
    "waits": ("waits", str),
    "fences": ("fences", str),
    "peak_bytes": ("peak, MiB", lambda size: f"{size / 2**20:.1f}"),
    "heuristic_peak_bytes": ("heuristic peak, MiB", lambda size: f"{size / 2**20:.1f}"),
    "exact_peak_bytes": ("exact peak, MiB", lambda size: f"{size / 2**20:.1f}"),
    "heuristic_waits": ("heuristic waits", str),
    "exact_waits": ("exact waits", str),
    "heuristic_streams": ("heuristic streams", str),
    "exact_streams": ("exact streams", str),
    "solve_seconds": ("solve, s", lambda seconds: f"{seconds:.2f}"),
}
_SILENT = ("variant", "reason", "warnings", "slices", "heuristic_slices", "exact_slices")
_RANKED_BY = ("peak_bytes", "waits", "streams")  # beside the makespan, which the pairs always show
_SEPARATOR = " | "  # between the warnings of a cell
_REAL = ("speed_up", "gap", "heuristic_gap", "exact_gap", "gain", "solve_seconds")


def main_table(rows: Iterable[Row], *, timings: bool) -> pandas.DataFrame:
    """One row a cell, times in ns, sizes in bytes, gap as a share; a figure that a cell lacks is NA.

    With `timings`, the seconds of the solve as well, and warnings of it, which differ from run to run.
    """
    frame = _frame([_cells(row, timings=timings) for row in rows])
    return frame if timings or "solve_seconds" not in frame else frame.drop(columns="solve_seconds")


def side_by_side(rows: Iterable[Row]) -> pandas.DataFrame:
    """One row a problem and objective: its best heuristic and its best exact plan, and what the latter gains.

    gain: the share of the heuristic's makespan that the exact plan saves, or of the figure that the objective puts
    first; where that is another one, both plans' stand in the table.
    """
    problems: dict[str, list[Row]] = {}
    for row in rows:
        if row.record.problem is not None:
            problems.setdefault(contest(row), []).append(row)
    return _frame([_pair(found) for found in problems.values()])


def readable(frame: pandas.DataFrame) -> pandas.DataFrame:
    """`frame` as text for people: ms, MiB and per cent; nothing where a figure is missing; warnings by their number in
    `notes`.
    """
    import pandas

    shown = {}
    number = {text: str(place) for place, text in enumerate(notes(frame), 1)}
    for name in frame.columns:
        if name == "warnings":
            shown[name] = [", ".join(number[text] for text in _split(texts)) for texts in frame[name]]
            continue
        title, text = _SHOWN.get(name, (name.replace("_", " "), str))
        shown[title] = ["" if pandas.isna(value) else text(value) for value in frame[name]]
    return pandas.DataFrame(shown)


def notes(frame: pandas.DataFrame) -> list[str]:
    """The distinct warnings of all rows, in the order of the rows."""
    if "warnings" not in frame:
        return []
    return list(dict.fromkeys(text for texts in frame["warnings"] for text in _split(texts)))


def write(frame: pandas.DataFrame, stem: Path, caption: str) -> list[Path]:
    """`frame` as CSV and Parquet in plain units, as Markdown and LaTeX for a reader: `stem` with each ending."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    csv, parquet, markdown_path, latex = (stem.with_suffix(f".{ending}") for ending in ("csv", "parquet", "md", "tex"))
    frame.to_csv(csv, index=False, lineterminator="\n")
    frame.to_parquet(parquet, index=False)
    markdown_path.write_text(markdown(frame), encoding="utf-8")
    body = readable(frame).rename(columns=_for_latex).style.hide(axis="index").format(_for_latex)
    align = "".join("r" if is_figure(name) else "l" for name in frame.columns)
    caption = " ".join([caption, *(f"Warning {number}: {text}." for number, text in enumerate(notes(frame), 1))])
    latex.write_text(body.to_latex(column_format=align, hrules=True, caption=_for_latex(caption)), encoding="utf-8")
    return [csv, parquet, markdown_path, latex]


def markdown(frame: pandas.DataFrame) -> str:
    """The readable table in Markdown, figures to the right, its warnings below."""
    align = ["right" if is_figure(name) else "left" for name in frame.columns]
    shown = readable(frame).map(lambda text: text.replace("|", r"\|"))
    below = "".join(f"{number}. {text}\n" for number, text in enumerate(notes(frame), 1))
    text = f"{shown.to_markdown(index=False, colalign=align, disable_numparse=True)}\n"
    return f"{text}\nWarnings:\n\n{below}" if below else text


def is_figure(column: str) -> bool:
    """Whether a column holds numbers, which stand to the right."""
    return column in _SHOWN


def _cells(row: Row, *, timings: bool) -> dict[str, Any]:
    record, score = row.record, row.record.score
    return {
        "workload": row.workload,
        "device": record.names.device,
        "solver": record.names.solver,
        "variant": row.variant,
        "slices": _slices(row),
        "ops": record.problem.ops if record.problem else None,
        "makespan_ns": row.makespan_ns,
        "speed_up": row.speed_up,
        "bound_ns": row.bound.makespan_ns if row.bound else None,
        "gap": row.gap,
        "streams": score.streams if score else None,
        "waits": score.waits if score else None,
        "fences": score.fences if score else None,
        "peak_bytes": score.peak_bytes if score else None,
        "solve_seconds": record.seconds.get("solve"),
        "status": row.status,
        "reason": row.reason,
        "warnings": _warnings([row], timings=timings),
    }


def _pair(found: list[Row]) -> dict[str, Any]:
    heuristic = min((row for row in found if row.valid and not row.exact), key=Row.merit, default=None)
    exact = min((row for row in found if row.valid and row.exact), key=Row.merit, default=None)
    first = found[0]
    gain = None
    if heuristic and exact and (before := _first_figure(heuristic)):
        gain = 1 - _first_figure(exact) / before
    return {
        "workload": first.workload,
        "device": first.record.names.device,
        "variant": " ".join(shared_variant(found)),
        "single_ns": first.single_ns,
        "best_heuristic": heuristic.record.names.solver if heuristic else "",
        "heuristic_ns": heuristic.makespan_ns if heuristic else None,
        "heuristic_slices": _slices(heuristic),
        "heuristic_gap": heuristic.gap if heuristic else None,
        **{f"heuristic_{figure}": _ranking(heuristic, figure) for figure in _RANKED_BY},
        "exact_solver": exact.record.names.solver if exact else "",
        "exact_ns": exact.makespan_ns if exact else None,
        "exact_slices": _slices(exact),
        "exact_gap": exact.gap if exact else None,
        **{f"exact_{figure}": _ranking(exact, figure) for figure in _RANKED_BY},
        "gain": gain,
        "bound_ns": first.bound.makespan_ns if first.bound else None,
        "status": exact.status if exact else "",
        "warnings": _warnings([row for row in (heuristic, exact) if row], timings=False),
    }


def _first_figure(row: Row) -> int:
    return int(row.merit()[0])


def _ranking(row: Row | None, figure: str) -> int | None:
    """A figure of the score where the objective begins with it."""
    return _first_figure(row) if row is not None and row.record.config["objective"]["order"][0] == figure else None


def _warnings(rows: Iterable[Row], *, timings: bool) -> str:
    """The distinct warnings of rows; without `timings` not those of the time that a solve took."""
    texts = [" ".join(text.split()) for row in rows for text in row.record.warnings]
    kept = [text for text in texts if timings or not text.startswith(OVERRUN)]
    return _SEPARATOR.join(dict.fromkeys(kept))


def _split(texts: str) -> list[str]:
    return texts.split(_SEPARATOR) if texts else []


def _slices(row: Row | None) -> str:
    """The cut that was chosen or asked for, empty for none."""
    cut = 1 if row is None else row.record.slices
    if isinstance(cut, int):
        return "" if cut == 1 else str(cut)
    return " ".join(f"{pattern}:{k}" for pattern, k in cut.items())


def _frame(cells: list[dict[str, Any]]) -> pandas.DataFrame:
    """Figures keep their type where some are missing; columns of words are left out where they say nothing."""
    import pandas

    frame = pandas.DataFrame(cells)
    for name in frame.columns:
        if name in _SHOWN:
            frame[name] = frame[name].astype("Float64" if name in _REAL else "Int64")
    silent = [name for name in _SILENT if name in frame and not frame[name].astype(bool).any()]
    pairs = [f"{side}_{figure}" for side in ("heuristic", "exact") for figure in _RANKED_BY]
    silent += [name for name in pairs if name in frame and frame[name].isna().all()]
    return frame.drop(columns=silent)


def _percent(share: float) -> str:
    return "0" if share == 0 else f"{share:.2%}"


def _for_latex(text: object) -> str:
    """`text` with what LaTeX would take for a command spelled out."""
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, f"\\{c}" if c in "#$%&_{}" else c) for c in str(text))
