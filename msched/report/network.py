"""A picture of a network as SVG: ops in layers from left to right, coloured by engine."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from msched.arrays import BoolArray, Int64Array
from msched.bounds import heads_and_tails, shortest_durations
from msched.config import load, merged, options
from msched.errors import OptionError
from msched.graph import OpGraph
from msched.lowering import lower
from msched.problem import Problem
from msched.report.palette import FAINT, INK, colour
from msched.study import inputs
from msched.study.progress import duration

MOST_OPS = 2000  # more are a smear
_LAYER, _WIDEST_LAYER, _ROW, _MARGIN, _LINE = 18.0, 70.0, 14.0, 12.0, 16.0  # pixels
_SMALLEST, _LARGEST = 2.5, 6.5  # radii of a dot
_THREAD = "#AAAAAA"
_FONT = "DejaVu Sans, Verdana, sans-serif"
_LETTER = 6.2  # pixels that a letter of the legend takes at most
_Points = list[tuple[float, float]]


def graph_of(what: str, changes: Iterable[str] = ()) -> OpGraph:
    """A shipped workload by its name, or the network in a file; `changes` set parameters, as in "layers=2".

    Raises OptionError for what is neither, or for a change that is not key=value, and what building the graph raises.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError  # type: ignore[import-untyped]

    given = list(changes)
    for change in given:
        if not change.partition("=")[0] or "=" not in change:
            raise OptionError(f"{change!r} changes nothing; parameters are given as key=value")
    if what in options("workload"):
        values = load("workload", what)
    elif Path(what).exists():
        values = {**load("workload", "file"), "path": what}
    else:
        raise OptionError(f"{what!r} is no file and no workload; there are: {', '.join(options('workload'))}")
    try:
        parsed: Any = OmegaConf.to_container(OmegaConf.from_dotlist(given), resolve=True)
    except (OmegaConfBaseException, YAMLError) as error:
        why = str(error).strip().splitlines()[0]
        raise OptionError(f"{' '.join(given)}: cannot be read as key=value in YAML: {why}") from error
    config = {"workload": merged(values, parsed)}
    inputs.check(config)
    return inputs.graph_of(config)


def write(what: str, changes: Iterable[str], device: str, output: Path | None = None) -> Path:
    """Draw what `graph_of` finds, on a device of conf/device, into `output` (by default what.svg); returns the file.

    Raises OptionError for a file that cannot be written, and what `graph_of`, lowering and `picture` raise.
    """
    given = list(changes)
    problem = lower(graph_of(what, given), device)
    title = " ".join([f"{Path(what).stem} on {device}:", f"{problem.n} ops", *(f"({change})" for change in given)])
    path = output or Path(f"{Path(what).stem}.svg")
    text = picture(problem, title)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OptionError(f"{path}: cannot be written: {error.strerror}") from error
    return path


def picture(problem: Problem, title: str) -> str:
    """SVG, the same bytes each time: every op a dot, the larger the longer it takes; what is critical is black.

    Dependencies that others imply are left out. A dot says its op and duration to the mouse. The layout is that of
    Sugiyama, Tagawa and Toda (1981), by igraph. Raises OptionError for a problem of more than MOST_OPS ops, or where
    igraph is not installed.
    """
    if problem.n > MOST_OPS:
        raise OptionError(f"{problem.name}: {problem.n} ops cannot be told apart; at most {MOST_OPS} are drawn")
    edges = _needed(problem)
    routes, place = _layout(layers(problem.n, problem.topological_order, edges), edges)
    critical = _critical(problem)
    used = [e for e in range(problem.capacity.size) if (problem.engine == e).any()]
    entries = [(colour(e), "none", problem.engine_names[e]) for e in used] + [(FAINT, INK, "critical")]
    legend = [2 * _MARGIN + _LETTER * len(label) for _, _, label in entries]
    wide = max(float(place[:, 0].max(initial=0)) + 2 * _MARGIN, sum(legend), _LETTER * len(title) + 2 * _MARGIN)
    high = float(place[:, 1].max(initial=0)) + 2 * _MARGIN + 2 * _LINE
    size = {"width": _text(wide), "height": _text(high), "viewBox": f"0 0 {_text(wide)} {_text(high)}"}
    root = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", **size})
    ElementTree.SubElement(root, "rect", {"width": "100%", "height": "100%", "fill": "white"})
    words = ElementTree.SubElement(root, "g", {"font-family": _FONT, "font-size": "10", "fill": INK})
    _write(words, _MARGIN, _LINE, title)
    drawing = ElementTree.SubElement(root, "g", {"transform": f"translate({_text(_MARGIN)} {_text(_LINE + _MARGIN)})"})
    _draw_edges(drawing, routes, critical[edges[:, 0]] & critical[edges[:, 1]])
    _draw_ops(drawing, problem, place, critical)
    left = 0.0
    for (face, ring, label), room in zip(entries, legend, strict=True):
        mark = {"cx": _text(left + _MARGIN + 4), "cy": _text(high - 10), "r": "4", "fill": face, "stroke": ring}
        ElementTree.SubElement(root, "circle", mark)
        _write(words, left + _MARGIN + 11, high - 6.5, label)
        left += room
    ElementTree.indent(root, "")
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def layers(n: int, order: Int64Array, edges: Int64Array) -> Int64Array:
    """The layer of each op, shape (n,): as early as its dependencies let it, or later where that makes them shorter.

    order (n,): topological. edges (m, 2).
    """
    before: list[list[int]] = [[] for _ in range(n)]
    after: list[list[int]] = [[] for _ in range(n)]
    for u, v in edges.tolist():
        before[v].append(u)
        after[u].append(v)
    layer = np.zeros(n, np.int64)
    for v in order.tolist():
        layer[v] = max((int(layer[u]) + 1 for u in before[v]), default=0)
    for v in order.tolist()[::-1]:
        if len(after[v]) > len(before[v]):
            layer[v] = min(int(layer[w]) for w in after[v]) - 1
    return layer


def _needed(problem: Problem) -> Int64Array:
    """Dependencies that no others imply."""
    import networkx

    graph: networkx.DiGraph[int] = networkx.DiGraph()
    graph.add_nodes_from(range(problem.n))
    graph.add_edges_from(map(tuple, problem.edges.tolist()))
    kept = sorted(networkx.transitive_reduction(graph).edges)
    return np.array(kept, np.int64).reshape(-1, 2)


def _layout(layer: Int64Array, edges: Int64Array) -> tuple[list[_Points], NDArray[np.float64]]:
    """In pixels: the points of each edge, one in each layer from its begin to its end, and the ops, shape (n, 2)."""
    try:
        import igraph
    except ImportError as error:
        raise OptionError("drawing a network needs igraph: pip install 'msched[draw]'") from error
    depth: list[int] = layer.tolist()
    links: list[tuple[int, int]] = []
    routes: list[list[int]] = []
    for u, v in edges.tolist():
        between = range(len(depth), len(depth) + int(layer[v] - layer[u]) - 1)
        depth += range(int(layer[u]) + 1, int(layer[v]))
        routes.append([u, *between, v])
        links += pairwise(routes[-1])
    layout = igraph.Graph(n=len(depth), edges=links, directed=True).layout_sugiyama(layers=depth)
    across = _apart(np.array([x for x, _ in layout.coords], np.float64), np.array(depth, np.int64), layer.size)
    tall = float(across.max(initial=0)) * _ROW
    step = min(max(0.8 * tall / max(*depth, 1), _LAYER), _WIDEST_LAYER) if depth else _LAYER
    place = np.stack([np.array(depth, np.float64) * step, across * _ROW], axis=1)
    points = [[(float(place[k, 0]), float(place[k, 1])) for k in route] for route in routes]
    return points, place[: layer.size]


def _apart(across: NDArray[np.float64], depth: Int64Array, n: int) -> NDArray[np.float64]:
    """Rows from 0, moved as little as it takes (least squares, pool adjacent violators) so that none meet in a layer.

    igraph lays nodes closer than it is asked to, some on top of each other. The first n are ops and keep a row apart,
    the bends of edges half a row.
    """
    result = across.copy()
    for at in range(int(depth.max(initial=-1)) + 1):
        row = np.flatnonzero(depth == at)
        row = row[np.argsort(across[row], kind="stable")]
        both = (row[1:] < n) & (row[:-1] < n)
        offset = np.concatenate([[0.0], np.cumsum(np.where(both, 1.0, 0.5))])
        pools: list[tuple[float, int]] = []  # sum and number of the wishes that share a value
        for wish in (across[row] - offset[: row.size]).tolist():
            pool = (wish, 1)
            while pools and pools[-1][0] * pool[1] >= pool[0] * pools[-1][1]:
                before = pools.pop()
                pool = (before[0] + pool[0], before[1] + pool[1])
            pools.append(pool)
        result[row] = np.repeat([total / count for total, count in pools], [count for _, count in pools]) + offset
    return result - (result.min() if result.size else 0.0)


def _draw_edges(root: ElementTree.Element, routes: list[_Points], critical: BoolArray) -> None:
    """Curves that leave and enter each layer along the picture."""
    for mask, ink, thick in ((~critical, _THREAD, "0.7"), (critical, INK, "1.2")):
        parts = []
        for k in np.flatnonzero(mask).tolist():
            parts.append("M{} {}".format(*map(_text, routes[k][0])))
            for (x, y), (to_x, to_y) in pairwise(routes[k]):
                middle = _text((x + to_x) / 2)
                end = f"{_text(to_x)} {_text(to_y)}"
                parts.append(f"H{_text(to_x)}" if y == to_y else f"C{middle} {_text(y)} {middle} {_text(to_y)} {end}")
        shape = {"d": "".join(parts), "fill": "none", "stroke": ink, "stroke-width": thick}
        ElementTree.SubElement(root, "path", shape)


def _draw_ops(root: ElementTree.Element, problem: Problem, place: NDArray[np.float64], critical: BoolArray) -> None:
    longest = max(int(problem.duration.max(initial=0)), 1)
    for e in np.unique(problem.engine).tolist():
        for mask, ring in ((~critical, "none"), (critical, INK)):
            group = {"fill": colour(e), "stroke": ring, "stroke-width": "1.2"}
            dots = ElementTree.SubElement(root, "g", group)
            for v in np.flatnonzero((problem.engine == e) & mask).tolist():
                radius = _SMALLEST + (_LARGEST - _SMALLEST) * sqrt(int(problem.duration[v]) / longest)
                where = {"cx": _text(place[v, 0]), "cy": _text(place[v, 1]), "r": _text(radius)}
                title = ElementTree.SubElement(ElementTree.SubElement(dots, "circle", where), "title")
                title.text = _printable(f"{problem.op_names[v]}: {duration(int(problem.duration[v]))}")


def _write(words: ElementTree.Element, x: float, y: float, text: str) -> None:
    ElementTree.SubElement(words, "text", {"x": _text(x), "y": _text(y)}).text = _printable(text)


def _printable(text: str) -> str:
    """`text` without the characters that XML cannot hold."""
    return "".join(c if c.isprintable() else " " for c in text)


def _text(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


def _critical(problem: Problem) -> BoolArray:
    """Ops on a longest chain of durations and unavoidable lags: shape (n,)."""
    heads, tails = heads_and_tails(problem)
    length = heads + shortest_durations(problem) + tails
    result: BoolArray = length == length.max(initial=0)
    return result
