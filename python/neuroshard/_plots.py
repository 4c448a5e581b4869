"""Plots of results, with matplotlib, and the colors of their parts, which reports have, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EXTRA = "plot"
# Neighbours in a bar look different to people of all kinds of color vision (test_plots.py).
COLORS = {
    "forward": "#0072b2", "backward": "#d55e00", "exchange": "#009e73", "fetch": "#9467bd", "dense": "#e69f00",
    "fixed": "#6b7686", "weights": "#0072b2", "optimizer state": "#d55e00", "step data": "#009e73",
    "reserves": "#5a6370",
}
INCHES, BAR_INCHES, MOST_INCHES, MOST_LABELS = 11.0, 0.26, 24.0, 64


def draw(headline: str, times: Sequence[Mapping[str, float]], memory: Sequence[Mapping[str, int]],
         limits: Sequence[int]) -> Figure:
    """A figure with a bar for each device, of its times (ms) and beside it of its memory (bytes); parts of no
    device are left out. limits: usable bytes of each device, or nothing."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("PlanResult.plot() needs matplotlib, which cannot be imported "
                          f"({error}): pip install \"neuroshard[{EXTRA}]\"") from error

    height = min(MOST_INCHES, 1.8 + BAR_INCHES * len(times))
    figure = Figure(figsize=(INCHES, height), layout="constrained")
    figure.suptitle(headline, fontsize=11)
    # For notebooks, which else know figures of pyplot alone.
    setattr(figure, "_repr_png_", partial(png_of, figure))
    left, right = figure.subplots(1, 2, sharey=True)
    stack(left, times, "time of a step, ms")
    gib = [{kind: value / 2**30 for kind, value in one.items()} for one in memory]
    stack(right, gib, "memory, GiB")
    for device, limit in enumerate(limits):
        right.plot([limit / 2**30] * 2, [device - 0.4, device + 0.4], color="black", linewidth=1.5,
                   label="usable" if device == 0 else None)
    for axes in (left, right):
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=5, frameon=False, fontsize=8)
    left.set_ylabel("device")
    left.set_ylim(len(times) - 0.5, -0.5)
    left.set_yticks(range(0, len(times), -(-len(times) // MOST_LABELS)))
    return figure


def png_of(figure: Figure) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def stack(axes: Any, rows: Sequence[Mapping[str, float]], label: str) -> None:
    """A bar for each row, of its parts one after the other."""
    ends = [0.0] * len(rows)
    for kind in rows[0] if rows else ():
        values = [row[kind] for row in rows]
        if any(values):
            axes.barh(range(len(rows)), values, left=ends, height=0.8, color=COLORS[kind], edgecolor="white",
                      linewidth=0.6, label=kind)
            ends = [end + value for end, value in zip(ends, values, strict=True)]
    axes.set_xlabel(label)
    axes.spines[["top", "right"]].set_visible(False)

