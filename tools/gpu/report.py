"""results.json and results.md, from what the sections have recorded.

results.json holds every record of every section. results.md has tables of measured figures
only: a dry run leaves their places empty."""

import json

from records import Records
from timing_math import geometric_mean, median

STATE = "state.json"
SECTIONS = ("build", "correctness", "exchange", "sanitizer", "memory", "speed", "collect")


def load_state(out, dry):
    path = out / STATE
    if not path.exists():
        return {"schema": "neuroshard.gpu_results/1", "dry_run": dry, "sections": {}}
    state = json.loads(path.read_text())
    if state["dry_run"] != dry:
        raise SystemExit(f"error: {out} has results of a {'dry' if state['dry_run'] else 'real'} "
                         "run; name another folder")
    return state


def save_state(out, state):
    (out / STATE).write_text(json.dumps(state, indent=1) + "\n")


def write_report(out, state):
    machine = out / "machine.json"
    results = {**state, "machine": json.loads(machine.read_text()) if machine.exists() else None}
    results["records"] = {name: Records(out / f"{name}.jsonl").items for name in SECTIONS}
    (out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
    (out / "results.md").write_text(markdown(results))


def markdown(results):
    machine = results["machine"] or {}
    measured = bool(machine.get("measured"))
    lines = ["# GPU results", "", describe(machine), "", "| section | status | seconds |",
             "|---|---|---:|"]
    lines += [f"| {name} | {entry['status']} | {entry['wall_s']} |"
              for name, entry in results["sections"].items()]
    records = results["records"]
    lines += ["", correctness_line(records["correctness"]), "",
              exchange_line(records.get("exchange", {}))]
    if not measured:
        return "\n".join([*lines, "", "Times and memory: not measured (dry run).", ""])
    lines += ["", "## Memory", "", *memory_table(records["memory"])]
    lines += ["", "## Speed", "", *speed_tables(records["speed"]), ""]
    return "\n".join(lines)


def describe(machine):
    if not machine.get("measured"):
        return "Dry run on the emulator: nothing here was measured on a GPU."
    return (f"{machine['device']}, UUID {machine['uuid']}, driver {machine['driver']}, "
            f"torch {machine['torch']}, {machine['date']}.")


def correctness_line(records):
    passed = sum(record["passed"] for record in records.values())
    failed = [name for name, record in records.items() if not record["passed"]]
    return (f"Correctness: {passed} of {len(records)} cases passed"
            + (f"; failed: {', '.join(failed)}" if failed else "") + ".")


def exchange_line(records):
    found = [f"{name}: " + (record.get("skipped") or ("passed" if record["passed"] else "failed"))
             for name, record in records.items()]
    return f"Sharded modules: {'; '.join(found) or 'not run'}."


def memory_table(records):
    lines = ["| plan, device | predicted GiB | measured GiB | predicted / measured |",
             "|---|---:|---:|---:|"]
    for name, record in records.items():
        if "measured_bytes" not in record:
            lines.append(f"| {name} | | | {record.get('skipped', '')} |")
            continue
        predicted, measured = record["predicted_bytes"], record["measured_bytes"]
        lines.append(f"| {name} | {predicted / 2**30:.3f} | {measured / 2**30:.3f} "
                     f"| {predicted / measured:.3f} |")
    return lines


# Speed


def times_of(record, kind):
    """Median ms of each contender. kind: forward_ms, step_ms, backward_ms (the difference)."""
    if kind != "backward_ms":
        return {name: median(samples) for name, samples in record.get(kind, {}).items() if samples}
    forward, step = times_of(record, "forward_ms"), times_of(record, "step_ms")
    return {name: step[name] - forward[name] for name in step if name in forward}


def speed_tables(records):
    copies = [value for name in ("copy", "copy_at_the_end") if name in records
              for value in records[name]["bytes_per_s"]]
    if not copies:
        return ["No copy bandwidth was measured, so no share can be given."]
    copy = median(copies)
    points = {name: record for name, record in records.items() if "point" in record}
    lines = [f"A device-to-device copy reaches {copy / 1e12:.2f} TB/s (read and written). Share: "
             "logical bytes / time / that. Backward: step minus forward, sort and optimizer "
             "included."]
    for kind, title in (("forward", "Forward"), ("backward", "Backward and optimizer")):
        lines += ["", f"### {title}", "", *speed_table(points, kind, copy)]
    return lines


def speed_table(points, kind, copy):
    names = list(dict.fromkeys(name for record in points.values()
                               for name in times_of(record, f"{kind}_ms")))
    lines = ["| point | " + " | ".join(f"{name}, us" for name in names)
             + " | share of copy | best other / ours |",
             "|---|" + "---:|" * (len(names) + 2)]
    ratios = []
    for point, record in points.items():
        times = times_of(record, f"{kind}_ms")
        if "neuroshard" not in times:
            lines.append(f"| {point} |" + " |" * len(names) + f" {record.get('skipped', '')} | |")
            continue
        ours = times["neuroshard"]
        others = [value for name, value in times.items() if not name.startswith("neuroshard")]
        ratio = min(others) / ours if others else None
        ratios += [ratio] if ratio else []
        share = record["bytes"][kind] / (ours / 1e3) / copy
        cells = [f"{times[name] * 1e3:.1f}" if name in times else "" for name in names]
        lines.append(f"| {point} | " + " | ".join(cells) + f" | {share:.1%} | "
                     + (f"{ratio:.2f}" if ratio else "") + " |")
    if ratios:
        lines += ["", f"Best other / ours: geometric mean {geometric_mean(ratios):.2f}, "
                  f"least {min(ratios):.2f}, over {len(ratios)} points."]
    return lines
