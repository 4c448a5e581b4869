"""The table of neuroshard-bench plans."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping

TERMS = ("step", "forward", "backward", "exchange")


def ranks_of(values: list[float]) -> list[float]:
    """Ranks in ascending order, from 0; equal values share their mean rank."""
    order = sorted(values)
    return [(order.index(one) + len(order) - 1 - order[::-1].index(one)) / 2 for one in values]


def spearman(first: list[float], second: list[float]) -> float:
    """Spearman's rank correlation; nan for fewer than three values, or if all are equal."""
    a, b = ranks_of(first), ranks_of(second)
    mean = (len(a) - 1) / 2
    spread = math.sqrt(sum((x - mean) ** 2 for x in a) * sum((y - mean) ** 2 for y in b))
    if len(a) < 3 or spread == 0:
        return math.nan
    return sum((x - mean) * (y - mean) for x, y in zip(a, b)) / spread


def geometric_mean(values: list[float]) -> float:
    return statistics.geometric_mean(values) if values else math.nan


def ordered_pairs(tasks: Iterable[Mapping[str, dict]], apart: float) -> tuple[int, int]:
    """Of the pairs of plans of one task whose measured steps are more than `apart` (a share) apart:
    how many are predicted in the right order, and how many there are."""
    right = count = 0
    for task in tasks:
        run = [plan for plan in task.values() if plan["measured"]]
        for slow, fast in itertools.permutations(run, 2):
            if slow["measured"]["step"] > fast["measured"]["step"] * (1 + apart):
                count += 1
                right += slow["predicted"]["step"] > fast["predicted"]["step"]
    return right, count


def losses(tasks: Iterable[Mapping[str, dict]], base: str, apart: float) -> tuple[int, int]:
    """On how many tasks another plan's step is more than `apart` shorter than base's, and how many
    tasks have base's plan and others."""
    lost = count = 0
    for task in tasks:
        steps = {name: plan["measured"]["step"] for name, plan in task.items() if plan["measured"]}
        own = steps.pop(base, None)
        if own is not None and steps:
            count += 1
            lost += own > min(steps.values()) * (1 + apart)
    return lost, count


def inside_of(plans: Iterable[dict]) -> list[bool]:
    """Whether a plan's measured step is in its interval, of the plans that have one."""
    return [one["predicted"]["low"] <= one["measured"]["step"] <= one["predicted"]["high"]
            for one in plans if one["predicted"]["high"] > 0]


def print_torchrec(plans: list[dict], base: str) -> None:
    """TorchRec's engine beside ours under base's plans."""
    own = {plan["task"]: plan["measured"]["step"] for plan in plans
           if plan["algorithm"] == base and plan["measured"]}
    steps: dict[str, dict[int, float]] = defaultdict(dict)
    for plan in plans:
        if plan["engine"] == "torchrec" and plan["measured"]:
            steps[plan["algorithm"]][plan["task"]] = plan["measured"]["step"]

    def compare(what: str, slow: Mapping[int, float], fast: Mapping[int, float]) -> None:
        ratios = [slow[task] / fast[task] for task in sorted(set(slow) & set(fast))]
        if ratios:
            print(f"  {what}: {geometric_mean(ratios):.3f} of {len(ratios)} tasks, "
                  f"{min(ratios):.3f} to {max(ratios):.3f}")

    print("\nTorchRec's DistributedModelParallel, geometric means of steps")
    compare(f"its planner's plan over our engine with the plan of {base}", steps["dmp torchrec"],
            own)
    compare("its planner's plan over ours for it", steps["dmp torchrec"], steps["dmp default"])


def print_report(plans: list[dict], ranks: int) -> None:
    """plans: as of Measured (plans.py)."""
    print_ours([plan for plan in plans if plan["engine"] == "neuroshard"], ranks)
    if any(plan["engine"] == "torchrec" for plan in plans):
        print_torchrec(plans, plans[0]["algorithm"])


def print_sizes(tasks: Mapping[int, Mapping[str, dict]], names: list[str], base: str) -> None:
    """What plans send and hold, over those of base."""
    print(f"\nover those of {base}, geometric means: bytes that a step sends over network cards, "
          "memory of the fullest device (planned)")
    for name in names:
        pairs = [(task[name], task[base]) for task in tasks.values()
                 if all(name in task and task[one]["measured"] for one in (name, base))]

        def over(what: str) -> float:
            return geometric_mean([a[what] / b[what] for a, b in pairs if a[what] and b[what]])

        print(f"{name:<12} {over('sent_bytes'):>8.3f} {over('memory_bytes'):>8.3f}")


def print_ours(plans: list[dict], ranks: int) -> None:
    tasks: dict[int, dict[str, dict]] = defaultdict(dict)
    for plan in plans:
        tasks[plan["task"]][plan["algorithm"]] = plan
    names = list(dict.fromkeys(plan["algorithm"] for plan in plans))
    base = names[0]
    print(f"{len(tasks)} tasks on {ranks} ranks; times over those of {base}, geometric means of "
          "the tasks that have both plans")
    print(f"{'algorithm':<12} {'plans':>5} {'measured step':>14} {'predicted step':>15} "
          f"{'faster than it on':>18}")
    for name in names:
        pairs = [(task[name], task[base]) for task in tasks.values()
                 if all(name in task and task[one]["measured"] for one in (name, base))]
        measured = [a["measured"]["step"] / b["measured"]["step"] for a, b in pairs]
        predicted = [a["predicted"]["step"] / b["predicted"]["step"] for a, b in pairs]
        wins = sum(one > 1 for one in measured)
        print(f"{name:<12} {len(pairs):>5} {geometric_mean(measured):>14.3f} "
              f"{geometric_mean(predicted):>15.3f} "
              f"{'' if name == base else f'{wins} of {len(pairs)}':>18}")
    run = [plan for plan in plans if plan["measured"]]
    print_sizes(tasks, names, base)
    print(f"\npredicted and measured milliseconds of {base}'s plans")
    print("task " + " ".join(f"{term + ' pred.':>15} {'meas.':>7}" for term in TERMS)
          + "  spread")
    for number, task in tasks.items():
        plan = task[base]
        if plan["measured"]:
            print(f"{number + 1:>4} " + " ".join(
                f"{plan['predicted'][term]:>15.2f} {plan['measured'][term]:>7.2f}"
                for term in TERMS) + f" {plan['spread']:>7.1%}")
    print(f"\nover all {len(run)} plans:")
    for term in TERMS:
        predicted = [plan["predicted"][term] for plan in run]
        measured = [plan["measured"][term] for plan in run]
        error = sum(abs(p / m - 1) for p, m in zip(predicted, measured) if m > 0) / len(run)
        print(f"  {term:<9} rank correlation {spearman(predicted, measured):.3f}, mean error "
              f"{error:.1%}")
    within = [spearman([plan["predicted"]["step"] for plan in task.values() if plan["measured"]],
                       [plan["measured"]["step"] for plan in task.values() if plan["measured"]])
              for task in tasks.values()]
    within = [one for one in within if not math.isnan(one)]
    if within:
        print(f"  step      rank correlation within a task, mean {sum(within) / len(within):.3f}")
    for apart in (0.05, 0.1):
        right, count = ordered_pairs(tasks.values(), apart)
        if count:
            print(f"  step      {count} pairs of a task more than {apart:.0%} apart, "
                  f"{right / count:.1%} of them predicted in their order")
    inside = inside_of(run)
    if inside:
        print(f"  step      {sum(inside)} of {len(inside)} inside the interval of nine in ten")
    lost, count = losses(tasks.values(), base, 0.03)
    if count:
        print(f"{base} is more than 3 % slower than the best other plan on {lost} of {count} tasks")
