"""Compares the goals for the kernels with the measurements: met, missed, or not measured."""

from points import DLRM_BATCH, Point, dlrm_name
from speed_tables import copy_of, points_of, ratio_of, share_of, times_of
from timing_math import geometric_mean

OURS = "neuroshard"
LATENCY_POINT = Point(10**5, 128, 512, 20)


def goals_table(results):
    records = results["records"]
    lines = ["| goal | asked | measured | |", "|---|---|---|---|"]
    for goal, asked, measured, met in [*correctness(records), *memory(records["memory"]),
                                       *speed(records["speed"]), *building(records)]:
        verdict = {True: "met", False: "**missed**", None: "not measured"}[met]
        lines.append(f"| {goal} | {asked} | {measured} | {verdict} |")
    return lines


def correctness(records):
    for section, goal in (("correctness", "cases that agree with torch in float64"),
                          ("exchange", "sharded modules that agree with torch in float64"),
                          ("sanitizer", "cases without errors of compute-sanitizer")):
        ran = [record for record in records.get(section, {}).values() if "skipped" not in record]
        passed = sum(bool(record.get("passed")) for record in ran)
        yield goal, "all", f"{passed} of {len(ran)}", passed == len(ran) if ran else None


def memory(records):
    ratios = {name: record["predicted_bytes"] / record["measured_bytes"]
              for name, record in records.items() if "measured_bytes" in record}
    text = f"{min(ratios.values()):.3f} to {max(ratios.values()):.3f}" if ratios else ""
    if skipped := [name for name in records if name not in ratios]:
        text += f"; without {', '.join(skipped)}"
    yield ("predicted / measured memory", "0.98 to 1.10", text,
           all(0.98 <= ratio <= 1.10 for ratio in ratios.values()) if ratios else None)


def speed(records):
    points = points_of(records)
    for kind, goal in (("forward", "forward"), ("backward", "backward and optimizer")):
        yield from beside_others(points, kind, goal)
    yield from shares(points, copy_of(records))
    ms = times_of(points.get(dlrm_name(), {}), "forward").get(OURS)
    why = points.get(dlrm_name(), {}).get("skipped", "")
    yield (f"DLRM-v2 forward, B={DLRM_BATCH}", "2.1 ms", f"{ms:.3f} ms" if ms else why,
           ms <= 2.1 if ms else None)
    ms = times_of(points.get(LATENCY_POINT.name, {}), "forward").get(OURS)
    yield (f"forward of {LATENCY_POINT.name} by graph replay", "46 us",
           f"{ms * 1e3:.1f} us" if ms else "", ms <= 0.046 if ms else None)


def beside_others(points, kind, goal):
    ratios = {name: ratio for name, record in points.items() if (ratio := ratio_of(record, kind))}
    mean = geometric_mean(list(ratios.values())) if ratios else None
    yield (f"{goal}: best other / ours, geometric mean", "above 1",
           f"{mean:.2f} over {len(ratios)} points" if ratios else "", mean > 1 if ratios else None)
    slow = [name for name, ratio in ratios.items() if ratio < 1 / 1.1]
    least = min(ratios, key=ratios.get) if ratios else ""
    yield (f"{goal}: points more than 10 % slower than the best other", "none",
           f"{len(slow)}; least ratio {ratios[least]:.2f} ({least})" if ratios else "",
           not slow if ratios else None)


def shares(points, copy):
    for kind, goal, asked in (("forward", "forward: share of a copy at L >= 20, D >= 64", 0.9),
                              ("backward", "backward and optimizer: share of a copy", 0.5)):
        found = {name: share for name, record in points.items()
                 if counts(record["point"], kind) and (share := share_of(record, kind, copy))}
        low = [name for name, share in found.items() if share < asked]
        least = min(found, key=found.get) if found else ""
        yield (goal, f"{asked:.0%}", f"{len(found) - len(low)} of {len(found)} points, least "
               f"{found[least]:.1%} ({least})" if found else "", not low if found else None)


def counts(point, kind):
    if "rows" not in point:
        return kind == "forward"  # DLRM-v2: up to 100 ids per bag, dim 128
    return kind == "backward" or (point["ids"] >= 20 and point["dim"] >= 64)


def building(records):
    times = records.get("rebuild", {}).get("build", {}).get("build_s", {})
    yield ("building the runtime there", "120 s",
           ", ".join(f"{name}: {took} s" for name, took in times.items()),
           max(times.values()) < 120 if times else None)
