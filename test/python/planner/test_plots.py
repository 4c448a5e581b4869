"""PlanResult.plot() draws the parts of the result, in colors that all can tell apart."""

import math
import pickle
import sys

import pytest

import neuroshard as ns
from neuroshard import _plots
from support.planning import small_problem


def test_plots_have_the_parts_of_every_device(tmp_path):
    from matplotlib.colors import to_hex

    problem = small_problem()
    result = ns.plan(problem, progress=False)
    figure = result.plot(problem)
    assert figure.get_suptitle() in repr(result)
    for axes, rows, unit in zip(figure.axes, ([one.parts for one in result.breakdown.devices],
                                              [one.parts for one in result.memory.devices]), (1, 2**30)):
        drawn = {bars.get_label(): [one.get_width() for one in bars] for bars in axes.containers}
        assert drawn == {kind: [row[kind] / unit for row in rows] for kind in rows[0] if any(row[kind] for row in rows)}
        for bars in axes.containers:
            assert to_hex(bars[0].get_facecolor()) == _plots.COLORS[bars.get_label()]
        ends = [max(one.get_x() + one.get_width() for one in bars) for bars in zip(*axes.containers)]
        assert ends == pytest.approx([sum(row.values()) / unit for row in rows])
    limits = [line.get_xdata()[0] * 2**30 for line in figure.axes[1].lines]
    assert limits == [one.memory_bytes for one in problem.topology.devices]
    figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert not pickle.loads(pickle.dumps(result.plot())).axes[1].lines


def test_plots_refuse_other_problems_and_say_what_is_missing(monkeypatch):
    problem = small_problem()
    result = ns.plan(problem, progress=False)
    with pytest.raises(ValueError, match="expected the problem of the plan, with 2 devices, got one with 4"):
        result.plot(problem.replace(topology="4xCPU"))
    with pytest.raises(TypeError, match="expected a ShardingProblem, got: '2xCPU'"):
        result.plot("2xCPU")
    first, *rest = problem.tables
    for tables, text in ((rest, "none in the problem, 1"), ([first.replace(rows=first.rows + 1), *rest], "in the plan")):
        other = problem.replace(tables=tables, features=[one for one in problem.features
                                                         if one.table in {table.name for table in tables}])
        with pytest.raises(ValueError, match=f"another table '{first.name}'.*{text}"):
            result.plot(other)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'needs matplotlib, .*: pip install "neuroshard\[plot\]"'):
        result.plot()


def test_parts_add_up():
    problem = small_problem()
    result = ns.plan(problem, progress=False)
    assert sum(result.breakdown.parts.values()) == pytest.approx(result.cost_ms)
    for memory in result.memory.devices:
        assert sum(memory.parts.values()) == memory.peak_bytes


def color_distance(one, other):
    """CIE76 between two colors of linear light."""
    def lab(rgb):
        x, y, z = (sum(row[at] * rgb[at] for at in range(3)) / white for row, white in (
            ((0.4124, 0.3576, 0.1805), 0.9505), ((0.2126, 0.7152, 0.0722), 1.0), ((0.0193, 0.1192, 0.9505), 1.089)))
        fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
        return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)
    return math.dist(lab(one), lab(other))


# Machado, Oliveira and Fernandes 2009, table 1, severity 1.0: linear light as people without one kind of cone see it.
COLOR_VISION = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


@pytest.mark.parametrize("vision", COLOR_VISION)
def test_neighbours_in_bars_can_be_told_apart_by_all(vision):
    def seen(color):
        rgb = [int(color[at:at + 2], 16) / 255 for at in (1, 3, 5)]
        light = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in rgb]
        return [min(1, max(0, sum(a * b for a, b in zip(row, light)))) for row in COLOR_VISION[vision]]

    for kinds in (("forward", "backward", "exchange", "fetch", "dense", "fixed"),
                  ("weights", "optimizer state", "step data", "reserves")):
        for one, other in zip(kinds, kinds[1:]):
            assert color_distance(seen(_plots.COLORS[one]), seen(_plots.COLORS[other])) > 20, (one, other)
