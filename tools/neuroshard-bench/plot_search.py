"""Draws the curves that `neuroshard-bench search --curves` wrote.

    python3 tools/neuroshard-bench/plot_search.py curves.json docs/images

Needs matplotlib (tools/dev/requirements/plots.txt).
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot as plt  # noqa: E402

# The same bytes for the same data.
plt.rcParams["svg.hashsalt"] = "neuroshard"
SIZE = (7.2, 3.6)


def save(figure, path):
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def plot_cost_over_time(curves, path):
    figure, axes = plt.subplots(figsize=SIZE)
    for name, points in curves["cost_over_time"].items():
        final = points[-1]["cost_ms"]
        axes.plot([point["seconds"] for point in points],
                  [100 * (point["cost_ms"] / final - 1) for point in points], marker="o",
                  markersize=3, label=name)
    axes.set(xscale="log", xlabel="seconds until the deadline, or the end",
             ylabel="cost above the final plan, %")
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, path)


def plot_cost_by_algorithm(curves, path):
    tasks = curves["cost_by_algorithm"]
    names = [name for name in next(iter(tasks.values())) if name != "default"]
    figure, axes = plt.subplots(figsize=SIZE)
    width = 0.8 / len(tasks)
    for number, (task, costs) in enumerate(tasks.items()):
        places = [place + number * width for place in range(len(names))]
        heights = [costs[name] / costs["default"] if costs.get(name) else 0 for name in names]
        axes.bar(places, heights, width, label=task)
        for place, name in zip(places, names):
            if not costs.get(name):
                axes.annotate("no plan", (place, 0.05), rotation=90, ha="center", fontsize=6)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(ylabel="cost / default search's cost")
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(names))], names, rotation=30,
                    ha="right")
    axes.legend(fontsize=8)
    save(figure, path)


def plot_time_by_size(curves, path):
    figure, axes = plt.subplots(figsize=SIZE)
    lines = defaultdict(list)
    for point in curves["time_by_size"]:
        lines[point["devices"]].append((point["tables"], point["seconds"]))
    for devices, points in lines.items():
        axes.plot(*zip(*points), marker="o", markersize=3, label=f"{devices} devices")
    axes.set(xscale="log", yscale="log", xlabel="tables",
             ylabel=f"seconds, {curves['threads']} threads")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("curves", type=Path)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    curves = json.loads(arguments.curves.read_text())
    plot_cost_over_time(curves, arguments.folder / "search-cost-over-time.svg")
    plot_cost_by_algorithm(curves, arguments.folder / "search-cost-by-algorithm.svg")
    plot_time_by_size(curves, arguments.folder / "search-time-by-size.svg")


if __name__ == "__main__":
    main()
