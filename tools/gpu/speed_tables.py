"""The tables of the section speed: times, shares of a copy's rate, and ratios to the others."""

from timing_math import geometric_mean, median

OURS, FIXED = "neuroshard", "neuroshard, fixed pooling"
KINDS = {"forward": "Forward", "backward": "Backward and optimizer"}


def copy_of(records):
    """Bytes per second that a copy reaches in the run, or None."""
    found = [value for name in ("copy", "copy_at_the_end")
             for value in records.get(name, {}).get("bytes_per_s", [])]
    return median(found) if found else None


def points_of(records):
    return {name: record for name, record in records.items() if "point" in record}


def times_of(record, kind):
    """Median ms of each contender. kind: forward, step, or backward: the difference, where it is
    one."""
    if kind != "backward":
        return {name: median(samples) for name, samples in record.get(f"{kind}_ms", {}).items()
                if samples}
    forward, step = times_of(record, "forward"), times_of(record, "step")
    found = {name: step[name] - forward[name] for name in step if name in forward}
    return {name: ms for name, ms in found.items() if ms > 0}


def spread_of(record):
    """Half of the samples of our forward lie within this share around their median."""
    samples = sorted(record.get("forward_ms", {}).get(OURS, []))
    if len(samples) < 4:
        return None
    return (samples[3 * len(samples) // 4] - samples[len(samples) // 4]) / median(samples)


def ratio_of(record, kind):
    """The best of the others / ours; None if one is missing."""
    times = times_of(record, kind)
    others = [ms for name, ms in times.items() if not name.startswith(OURS)]
    return min(others) / times[OURS] if others and OURS in times else None


def share_of(record, kind, copy):
    """Logical bytes / time / what a copy reaches; None if it was not measured."""
    ours = times_of(record, kind).get(OURS)
    return record["bytes"][kind] / (ours / 1e3) / copy if ours and copy else None


def speed_tables(records):
    copy = copy_of(records)
    if not copy:
        return ["No copy bandwidth was measured, so no share can be given."]
    lines = [f"A device-to-device copy reaches {copy / 1e12:.2f} TB/s (read and written). Times "
             "are medians, in us. Share: logical bytes / time / that. Spread: where the middle half "
             "of our samples lies. Backward: step minus forward, sort and optimizer included."]
    for kind, title in KINDS.items():
        lines += ["", f"### {title}", "", *speed_table(points_of(records), kind, copy)]
    return [*lines, *left_out(points_of(records))]


def speed_table(points, kind, copy):
    names = list(dict.fromkeys(name for record in points.values()
                               for name in times_of(record, kind)))
    lines = ["| point | " + " | ".join(names) + " | share | best other / ours | spread |",
             "|---|" + "---:|" * (len(names) + 3)]
    for point, record in points.items():
        times = times_of(record, kind)
        if times:
            cells = [f"{times[name] * 1e3:.1f}" if name in times else "" for name in names]
            values = (share_of(record, kind, copy), ratio_of(record, kind), spread_of(record))
            cells += ["" if value is None else text.format(value)
                      for value, text in zip(values, ("{:.1%}", "{:.2f}", "{:.1%}"))]
            lines.append(f"| {point} | " + " | ".join(cells) + " |")
    ratios = [ratio for record in points.values() if (ratio := ratio_of(record, kind))]
    if ratios:
        lines += ["", f"Best other / ours: geometric mean {geometric_mean(ratios):.2f}, "
                  f"least {min(ratios):.2f}, over {len(ratios)} points."]
    return lines


def left_out(points):
    """The points that were not measured, and why."""
    lines = []
    for name, record in points.items():
        whys = {"": record.get("skipped") or record.get("error", ""), **record.get("errors", {})}
        lines += [f"- {name}{', ' + who if who else ''}: {' '.join(why.split())[:200]}"
                  for who, why in whys.items() if why]
    return ["", "Not measured, or otherwise than the rest:", "", *lines] if lines else []
