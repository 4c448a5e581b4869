"""Prints the tables of neuroshard-bench planners as Markdown, from the contents of its JSON
file."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from neuroshard.bench._planners.contest import DEFAULT, OURS, OURS_BY_RATING
from neuroshard.bench._planners.score import PARTS
from neuroshard.bench._plans.report import geometric_mean

GIB = 1 << 30
SHAPES = ("whole", "columns", "rows", "replicated")
BEST = f"{DEFAULT}, best of"


def lines_of(scores: list[dict], rules: str) -> list[dict]:
    """The lines of a workload: TorchRec's planner by default, the best of all its settings by our
    cost model (its seconds are those of trying all), ours by TorchRec's rating, and ours."""
    under = [one for one in scores if one["rules"] == rules]
    theirs = [one for one in under if one["setting"].startswith(DEFAULT)]
    lines = [theirs[0]]
    valid = [one for one in theirs if not one["problems"]]
    if len(theirs) > 1 and valid:
        best = min(valid, key=lambda one: one["step_ms"])
        lines.append({**best, "setting": f"{BEST} {len(theirs)}", "chosen": best["setting"],
                      "seconds": [sum(one["seconds"][0] for one in theirs)],
                      "cpu_seconds": [sum(one["cpu_seconds"][0] for one in theirs)]})
    return lines + [one for one in under if one["setting"].startswith(OURS)]


def spread(values: list[float]) -> str:
    """The median, and between which all lie."""
    middle = f"{statistics.median(values):.2f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.2f} to {max(values):.2f})"


def plan_cells(line: dict, base: dict) -> list[str]:
    if line["problems"]:
        return [f"no valid plan: {line['problems'][0]}", *[""] * 4]
    against = "" if base["problems"] else f"{line['step_ms'] / base['step_ms']:.3f}"
    return [f"{line['step_ms']:.4f}", against,
            " + ".join(f"{line['parts'][part]:.3f}" for part in PARTS),
            ", ".join(f"{line['shapes'][one]} {one}" for one in SHAPES if one in line["shapes"]),
            f"{line['rating']:.4f}"]


def cost_cells(line: dict, _: dict) -> list[str]:
    memory = [one / GIB for one in line["memory"]]
    shown = [f"{one(memory):.1f}" for one in (max, statistics.mean, min)] if memory else [""] * 3
    return [*shown, spread(line["seconds"]), spread(line["cpu_seconds"])]


def print_lines(found: dict[str, list[dict]], heads: list[str],
                cells: Callable[[dict, dict], list[str]]) -> None:
    print("| " + " | ".join(["workload", "rules", "planner", *heads]) + " |")
    print("|---" * 3 + "|---:" * len(heads) + "|")
    for name, scores in found.items():
        for rules in dict.fromkeys(one["rules"] for one in scores):
            lines = lines_of(scores, rules)
            for line in lines:
                print("| " + " | ".join([name, rules, line["setting"],
                                         *cells(line, lines[0])]) + " |")


def mean_ratio(found: dict[str, list[dict]], rules: str, key: str, base: str,
               ours: str = OURS) -> str:
    """The geometric mean of ours over line `base`, of the workloads with both."""
    ratios = []
    for scores in found.values():
        lines = lines_of(scores, rules) if any(one["rules"] == rules for one in scores) else []
        pair = [next((one for one in lines if one["setting"] == name
                      or name == BEST and one["setting"].startswith(BEST)), None)
                for name in (ours, base)]
        if all(one and not one["problems"] for one in pair):
            values = [statistics.median(one[key]) if isinstance(one[key], list) else one[key]
                      for one in pair]
            ratios.append(values[0] / values[1])
    return f"{geometric_mean(ratios):.3f}" if ratios else "-"


def print_means(found: dict[str, list[dict]]) -> None:
    print("\n| ours over theirs, geometric mean | step to torchrec's | step to its best | "
          "TorchRec's rating | the same, searched by it | seconds | CPU seconds |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for rules in dict.fromkeys(one["rules"] for scores in found.values() for one in scores):
        cells = [mean_ratio(found, rules, *which) for which in (
            ("step_ms", DEFAULT), ("step_ms", BEST), ("rating", DEFAULT),
            ("rating", DEFAULT, OURS_BY_RATING), ("seconds", DEFAULT), ("cpu_seconds", DEFAULT))]
        print(f"| {rules} | " + " | ".join(cells) + " |")


def print_settings(found: dict[str, list[dict]]) -> None:
    print("\n| workload | rules | setting of TorchRec's planner | step, ms | "
          "TorchRec's rating, ms | seconds |")
    print("|---|---|---|---:|---:|---:|")
    for name, scores in found.items():
        for one in scores:
            if one["setting"].startswith(f"{DEFAULT}, "):
                price = one["problems"][0] if one["problems"] else f"{one['step_ms']:.4f}"
                print(f"| {name} | {one['rules']} | {one['setting']} | {price} | "
                      f"{one['rating']:.4f} | {one['seconds'][0]:.2f} |")


def print_report(head: dict, found: dict[str, list[dict]]) -> None:
    print(f"{head['devices']}; {head['repeats']} repeats; " + ", ".join(
        f"{name} {head[name]}" for name in ("torchrec", "torch", "python", "machine", "date")))
    print("\nParts: ids exchanged + slowest forward + results exchanged + gradients exchanged + "
          "slowest backward.\n")
    print_lines(found, ["step, ms", "to torchrec's", "parts, ms", "tables",
                        "TorchRec's rating, ms"], plan_cells)
    print()
    print_lines(found, ["memory, GiB: max", "mean", "min", "seconds", "CPU seconds"], cost_cells)
    print_means(found)
    if any(one["setting"].startswith(f"{DEFAULT}, ") for scores in found.values()
           for one in scores):
        print_settings(found)
