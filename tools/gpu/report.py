"""Writes results.json and results.md from the records of the sections.

results.json holds every record of every section. results.md has tables of measured figures
only: a dry run leaves their places empty."""

import json
from pathlib import Path

from goals import goals_table
from records import Records, blame_path, write_whole
from speed_tables import speed_tables

SCHEMA = "neuroshard.gpu_results/2"
STATE, MACHINES = "state.json", "machines.json"
SECTIONS = ("build", "correctness", "speed", "memory", "collect", "exchange", "sanitizer",
            "rebuild")
LOG_BYTES = 4 << 20


# What is kept between runs


def load_state(arguments):
    """The state of the work folder, or that of results from elsewhere, with their records."""
    path = arguments.work / STATE
    source = arguments.resume or arguments.out / "results.json"
    if path.exists():
        state = json.loads(path.read_text())
    elif source.exists():
        state = restore(arguments.work, json.loads(source.read_text()))
    elif arguments.resume:
        raise SystemExit(f"error: {arguments.resume} does not exist")
    else:
        state = {"schema": SCHEMA, "dry_run": arguments.dry_run, "sections": {}}
    if state["dry_run"] != arguments.dry_run:
        raise SystemExit(f"error: {arguments.out} has results of a "
                         f"{'dry' if state['dry_run'] else 'real'} run; name another folder")
    return state


def restore(work, results):
    """Writes the records of results.json; gives their state."""
    if results.get("schema") != SCHEMA:
        raise SystemExit(f"error: expected results of schema {SCHEMA}, found "
                         f"{results.get('schema')}; name another folder")
    for name, items in results["records"].items():
        lines = [json.dumps({"name": item, **record}) + "\n" for item, record in items.items()]
        if lines:
            write_whole(work / f"{name}.jsonl", "".join(lines))
    if results["machines"]:
        write_whole(work / MACHINES, json.dumps(results["machines"]))
    return {name: results[name] for name in ("schema", "dry_run", "sections")}


def note_machine(work, facts):
    """Adds the GPU of this run; results of different kinds of GPU do not mix."""
    path = work / MACHINES
    machines = json.loads(path.read_text()) if path.exists() else []
    if machines and machines[0]["device"] != facts["device"]:
        raise SystemExit(f"error: these are results of {machines[0]['device']}, and this is "
                         f"{facts['device']}; name another folder")
    key = ("uuid", "driver", "torch")
    if not any(all(one[name] == facts[name] for name in key) for one in machines):
        write_whole(path, json.dumps([*machines, facts], indent=1))


def failed(record):
    return bool(record.get("error")) or record.get("passed") is False


def failed_items(work, section):
    return [name for name, record in Records(work / f"{section}.jsonl").items.items()
            if failed(record)]


def forget_errors(work, section):
    """Removes failed items, so that they are tried again."""
    records = Records(work / f"{section}.jsonl")
    kept = [json.dumps({"name": name, **record}) + "\n" for name, record in records.items.items()
            if not failed(record)]
    write_whole(records.path, "".join(kept))
    blame_path(work, section).unlink(missing_ok=True)


# What is written


def write_report(arguments, state):
    work, out = arguments.work, arguments.out
    write_whole(work / STATE, json.dumps(state, indent=1) + "\n")
    results = results_of(work, state)
    write_whole(out / "results.json", json.dumps(results) + "\n")
    write_whole(out / "results.md", markdown(results))
    write_whole(out / "log.txt", "".join(
        f"== {name}\n{end_of(work / f'{name}.log', LOG_BYTES // len(SECTIONS))}\n"
        for name in SECTIONS if (work / f"{name}.log").exists()))


def results_of(work, state):
    machines = work / MACHINES
    return {**state, "machines": json.loads(machines.read_text()) if machines.exists() else [],
            "records": {name: Records(work / f"{name}.jsonl").items for name in SECTIONS}}


def end_of(path, most):
    data = path.read_bytes()
    return data[-most:].decode(errors="replace")


def goals_text(out):
    """The table of goals of results already written, for a terminal."""
    text = (Path(out) / "results.md").read_text()
    begin = text.find("## Goals")
    return text[begin:text.find("\n## ", begin + 4)].strip() if begin >= 0 else ""


def markdown(results):
    machines, records = results["machines"], results["records"]
    measured = bool(machines) and all(one["measured"] for one in machines)
    lines = ["# GPU results", "", *describe(machines, measured), "",
             "| section | status | seconds | |", "|---|---|---:|---|"]
    lines += [f"| {name} | {entry['status']} | {entry['wall_s']} | {one_line(entry['why'])} |"
              for name, entry in results["sections"].items()]
    lines += ["", *failures(records)]
    if not measured:
        return "\n".join([*lines, "", "Times and memory: not measured (dry run).", ""])
    lines += ["", "## Goals", "", *goals_table(results)]
    lines += ["", "## Memory", "", *memory_table(records["memory"])]
    lines += ["", "## Speed", "", *speed_tables(records["speed"]), ""]
    lines += whole_step(records.get("exchange", {}).get("whole step", {}))
    return "\n".join(lines)


def describe(machines, measured):
    if not machines:
        return ["No GPU was reached."]
    if not measured:
        return ["Dry run on the emulator: nothing here was measured on a GPU."]
    return [f"{one['device']} ({one['memory_bytes'] / 2**30:.1f} GiB), UUID {one['uuid']}, driver "
            f"{one['driver']}, torch {one['torch']}, {one['date']}." for one in machines]


def one_line(text, most=160):
    return " ".join(text.replace("|", "/").split())[:most]


def failures(records):
    """A line for each section with items: how many passed, what failed and why."""
    lines = []
    for section, items in records.items():
        bad = {name: record for name, record in items.items() if failed(record)}
        if not items:
            continue
        skipped = sum("skipped" in record for record in items.values())
        lines.append(f"- {section}: {len(items) - len(bad) - skipped} of {len(items)} items passed"
                     + (f", {skipped} skipped" if skipped else "")
                     + (f"; failed: {', '.join(bad)}" if bad else ""))
        lines += [f"  - {name}: {one_line(record.get('error', ''))}"
                  for name, record in list(bad.items())[:8]]
    return lines


def whole_step(record):
    """Milliseconds of a training step of the tables of one GPU."""
    if "graph_ms" not in record:
        return []
    ways = {"ids checked before they are used": "waiting_ms", "ids read in place": "eager_ms",
            "a CUDA graph of that": "graph_ms"}
    return [f"A training step of five tables, {record['samples']} samples, by neuroshard.EmbeddingTables:",
            "", "| step | ms |", "|---|---|",
            *(f"| {way} | {record[key]:.3f} |" for way, key in ways.items()), ""]


def memory_table(records):
    lines = ["| plan, device | predicted GiB | measured GiB | predicted / measured |",
             "|---|---:|---:|---:|"]
    for name, record in records.items():
        if "measured_bytes" not in record:
            why = record.get("skipped") or record.get("error", "")
            lines.append(f"| {name} | | | {one_line(why)} |")
            continue
        predicted, measured = record["predicted_bytes"], record["measured_bytes"]
        lines.append(f"| {name} | {predicted / 2**30:.3f} | {measured / 2**30:.3f} "
                     f"| {predicted / measured:.3f} |")
    return lines
