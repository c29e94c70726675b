"""Colours that stay apart for colour-blind readers and in print, and the style that all figures share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito, "Color universal design" (2008), without the yellow, which is faint on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F")
INK = "#222222"
FAINT = "#DDDDDD"

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # ships with matplotlib, so that a figure looks alike everywhere
    "font.size": 9,
    "text.parse_math": False,  # a name may hold dollar signs
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "legend.frameon": False,
    "svg.hashsalt": "msched",  # element ids come from it instead of from chance
    "svg.fonttype": "none",
    "figure.dpi": 150,
}


def colour(index: int) -> str:
    """The colour of the index-th engine or solver; beyond the palette they repeat."""
    return COLOURS[index % len(COLOURS)]


def ink_on(background: str) -> str:
    """The colour in which text can be read on `background`, by its relative luminance (WCAG 2.1)."""
    channels = (int(background[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return "white" if 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] < 0.25 else INK


@contextmanager
def style() -> Iterator[None]:
    """Draw inside of this block; needs no display."""
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        yield


def save(figure: Figure, stem: Path) -> list[Path]:
    """The figure as `stem`.png and `stem`.svg, the same bytes each time."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    paths = [stem.with_suffix(".png"), stem.with_suffix(".svg")]
    with style(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # of scripts that the font lacks: boxes are drawn
        figure.savefig(paths[0], metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None, "Creator": None})
    return paths
